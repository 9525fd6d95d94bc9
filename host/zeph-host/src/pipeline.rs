//! The line every call follows, from request to audit, whichever door it came through.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zeph_core::call::{CallFrame, FileFacts, ResolvedCall, ToolRequest};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::command::CommandLine;
use zeph_core::failure::ToolFailure;
use zeph_core::id::CallId;
use zeph_core::output::{RawOutput, ToolOutput};
use zeph_core::policy::{AuthorizedCall, Decision};
use zeph_core::tool::Backend;
use zeph_engine::{Cancel, GuestWork, Listener, Plugin};
use zeph_plugins::off;
use zeph_plugins::refusal::{self, Explained, GrantRequest};
use zeph_plugins::rights::{self, Rights};
use zeph_plugins::set::{InForce, PluginSet};
use zeph_shell::analysis::analyse;
use zeph_shell::run::OutputListener;
use zeph_shell::shell::ShellWork;
use zeph_store::{Begin, SingleUseRights};

use crate::asking::Ask;
use crate::audit::{Audit, Entry};
use crate::builtin::BuiltinWork;
use crate::deciding::Asked;
use crate::filtering::{self, Subject};
use crate::host::Inner;
use crate::order::Turn;
use crate::session::Session;
use crate::work::{BackendCall, Work};
use crate::{builtin, completed, deciding, overflow, path, shell};

/// The caller's hold on a running call.
#[derive(Debug, Clone, Default)]
pub struct CallControl {
    /// Ends the call at once.
    pub cancel: Cancel,
    /// Hears how it is getting on.
    pub listener: Option<Listener>,
    /// Hears what a command prints while it runs.
    pub on_output: Option<OutputListener>,
    /// Reaches a person who can agree to it; without one a call that asks is refused.
    pub ask: Option<Ask>,
}

/// What became of a call.
#[derive(Debug, Clone)]
pub struct CallReport {
    /// The call's identity, as in the audit.
    pub id: CallId,
    /// What ended in the background since it was last told: messages for the model, to be given to it before this output.
    pub messages: Vec<String>,
    /// What the caller gets.
    pub output: ToolOutput,
    /// From request to output.
    pub duration: Duration,
    /// What a person could grant so that the call would get further.
    pub request: Option<GrantRequest>,
}

/// Makes one call. Every stage is a plain call; every way a call can end leaves through the one exit at the bottom.
pub(crate) async fn call(
    host: &Inner,
    session: &Session,
    request: ToolRequest,
    control: CallControl,
) -> CallReport {
    let started = Instant::now();
    let frame = session.frame();
    let id = frame.id;
    let calls_made = session.count_call();
    let draft = host.audit.draft(&frame, &request);
    let messages = completed::tell(host, session).await;

    // 1 parse, 2 resolve, 3 authorise. The audit knows of the call before anything happens. Without it nothing does.
    let plugins = plugins(host, &request, &control.cancel).await;
    let made = (frame, request, draft);
    let (recorded, looked_up) = begin(host, session, &plugins, made, &control, calls_made).await;
    let LookedUp {
        decision,
        mut rights,
        mut notes,
        files,
    } = looked_up;
    let (entry, done) = match (recorded, decision) {
        (Err(failure), _) => (None, Done::failed(failure)),
        (Ok(entry), Err(failure)) => (Some(entry), Done::failed(failure)),
        (Ok(entry), Ok(Decision::Deny(refusal) | Decision::Ask(refusal))) => {
            (Some(entry), Done::failed(refusal.failure))
        }
        // 4 execute
        (Ok(entry), Ok(Decision::Allow(call))) => {
            let hooked = host.shell.hooks_for(&call);
            let subject = host.filtering.subject(&call);
            let can_change = rights.as_ref().is_some_and(|rights| rights.can_change);
            let done = match turn(host, files, can_change, &control.cancel).await {
                Ok(_turn) => execute(host, session, &plugins, call, &mut rights, control).await,
                Err(failure) => Done::failed(failure),
            };
            let done = with_hooks(host, session, hooked, done).await;
            (Some(entry), Done { subject, ..done })
        }
    };
    notes.extend(done.notes);
    // 5 filter, 7 overflow
    let exit_code = done.facts.map_or(Some(0), |facts| facts.exit_code);
    let output = match (done.result, done.partial) {
        (Ok(raw), _) => {
            let shown = filtering::stage(host, session, done.subject, exit_code, raw).await;
            overflow::fit(host, session, shown, notes).await
        }
        (Err(failure), None) => {
            notes.extend(host.filtering.warning(&failure.message));
            ToolOutput::failed_with(failure, notes)
        }
        (Err(failure), Some(partial)) => {
            let shown = filtering::stage(host, session, done.subject, exit_code, partial).await;
            overflow::fit(host, session, shown, notes)
                .await
                .failed_by(failure)
        }
    };
    // 8 the one exit
    let duration = started.elapsed();
    if let Some(entry) = entry {
        let used_grants = rights.is_some_and(|rights| rights.is_used);
        entry
            .finish(&output, done.facts, duration, used_grants)
            .await;
    }
    CallReport {
        id,
        messages,
        output,
        duration,
        request: done.request,
    }
}

/// What `request` would come to, without making the call.
///
/// Errors: what is wrong with the request itself.
pub(crate) async fn explain(
    host: &Inner,
    session: &Session,
    request: ToolRequest,
) -> Result<Decision, ToolFailure> {
    let frame = session.frame();
    let plugins = plugins(host, &request, &Cancel::new()).await;
    let resolved = resolve(host, session, &plugins, frame, request);
    let (resolved, _) = with_work(host, session, &plugins, resolved).await;
    let (call, _) = resolved?;
    let owner = plugins.plugin(&call.tool.backend).and_then(InForce::owner);
    deciding::explain(host, session, call, owner).await
}

/// What is known of a call when it is decided.
struct LookedUp {
    decision: Result<Decision<Work>, ToolFailure>,
    rights: Option<Rights>,
    notes: Vec<String>,
    files: FileFacts,
}

/// Stages 1 to 3 and the begin of the record.
///
/// What a call holds for itself alone is taken when it begins. When another call has taken it since this one was decided, it was never
/// there: the call is decided again. Each time another call has got on.
async fn begin<'h>(
    host: &'h Inner,
    session: &Session,
    plugins: &PluginSet,
    (frame, request, draft): (CallFrame, ToolRequest, Begin),
    control: &CallControl,
    calls_made: u32,
) -> (Result<Entry<'h>, ToolFailure>, LookedUp) {
    let mut asked = Asked {
        calls_made,
        owner: None,
        agreed: None,
    };
    loop {
        let mut draft = draft.clone();
        let mut once = SingleUseRights::default();
        let resolved = resolve(host, session, plugins, frame.clone(), request.clone());
        let (resolved, rights) = with_work(host, session, plugins, resolved).await;
        let (mut notes, mut files) = (Vec::new(), FileFacts::default());
        let decision = match resolved {
            Ok((call, work)) => {
                let provider = plugins.plugin(&call.tool.backend);
                Audit::identify(&mut draft, &call.tool, provider);
                asked.owner = provider.and_then(InForce::owner);
                files.clone_from(&call.files);
                notes.clone_from(&call.arguments.notes);
                let decided =
                    deciding::decide(host, session, call, work, control, &mut asked).await;
                decided.map(|decided| {
                    once.approval = decided.approval;
                    once.grants = rights.as_ref().map(Rights::once).unwrap_or_default();
                    decided.decision
                })
            }
            Err(failure) => Err(failure),
        };
        let recorded = host.audit.begin(draft, &decision, once).await;
        if let Some(recorded) = recorded.transpose() {
            let looked_up = LookedUp {
                decision,
                rights,
                notes,
                files,
            };
            return (recorded, looked_up);
        }
    }
}

/// The plugins of this moment. A tool that nobody knows yet may belong to a plugin that is still being loaded.
async fn plugins(host: &Inner, request: &ToolRequest, cancel: &Cancel) -> Arc<PluginSet> {
    let is_there = |set: &PluginSet| set.is_settled || set.catalog.resolve(&request.tool).is_ok();
    let now = host.plugins();
    if is_there(&now) {
        return now;
    }
    // The program's own are compiled once, however long that takes; a stranger's gets the time of a call.
    tokio::select! {
        () = host.has_own_plugins() => {}
        () = cancel.cancelled() => {}
    }
    let now = host.plugins();
    if is_there(&now) {
        return now;
    }
    tokio::select! {
        () = host.settled() => {}
        () = cancel.cancelled() => {}
        () = tokio::time::sleep(host.config.limits.wall_clock) => {}
    }
    host.plugins()
}

/// Finds the tool, reads the arguments against its schema, and resolves the paths they name.
fn resolve(
    host: &Inner,
    session: &Session,
    plugins: &PluginSet,
    frame: CallFrame,
    request: ToolRequest,
) -> Result<(ResolvedCall, Option<Work>), ToolFailure> {
    let tool = plugins
        .catalog
        .resolve(&request.tool)
        .map_err(|unknown| off::why(plugins, &request.tool, &host.program).unwrap_or(unknown))?;
    let tool = tool.clone();
    let arguments = tool.parameters.read(request.arguments)?;
    // Only rules look at paths; what a guest may reach is decided by its grant, on the object really opened.
    let paths = match host.config.file.roots.first() {
        Some(root) if host.policy.looks_at_paths() => path::named_by(&arguments.values, &root.path),
        _ => Vec::new(),
    };
    let (work, command) = match tool.backend {
        Backend::Shell => {
            let (work, text) = ShellWork::read(&tool, &arguments.values)?;
            (Some(Work::Shell(work)), text)
        }
        Backend::Builtin => {
            let work = BuiltinWork::read(&tool, &arguments.values)?;
            (Some(Work::Builtin(work)), None)
        }
        // What it may touch is looked up in the store.
        Backend::Wasm(_) => (None, None),
    };
    let call = ResolvedCall {
        frame,
        tool,
        arguments,
        paths,
        command: command.map(|text| taken_apart(host, session, &text)),
        can_change: true,
        files: FileFacts::default(),
    };
    Ok((call, work))
}

/// A command line with its parts, and the files they name.
fn taken_apart(host: &Inner, session: &Session, text: &str) -> CommandLine {
    let mut line = analyse(text);
    let targets = line
        .redirections
        .iter()
        .filter_map(|redirection| redirection.target.as_deref());
    // The platform is looked at only where the answer matters.
    let is_temporary =
        |target: &str| target.starts_with("/tmp/") || target.starts_with("/var/tmp/");
    let has_private_tmp = targets.into_iter().any(is_temporary) && host.shell.has_private_tmp();
    line.places = path::line::places(
        &line,
        path::line::Here {
            directory: &session.shell().commands().directory(),
            home: host.config.plugins.home.as_deref(),
            has_private_tmp,
            looks_at_words: host.policy.looks_at_words(),
        },
    );
    line
}

/// Looks up what the plugin of a call holds.
async fn with_work(
    host: &Inner,
    session: &Session,
    plugins: &PluginSet,
    resolved: Result<(ResolvedCall, Option<Work>), ToolFailure>,
) -> (Result<(ResolvedCall, Work), ToolFailure>, Option<Rights>) {
    let mut call = match resolved {
        Ok((call, Some(work))) => return (Ok((call, work)), None),
        Ok((call, None)) => call,
        Err(failure) => return (Err(failure), None),
    };
    let Some(in_force) = plugins.plugin(&call.tool.backend) else {
        return (Err(not_active()), None);
    };
    let facts = deciding::facts(host, session.calls_made(), None);
    let hidden = host.policy.hidden_paths(&facts, &call);
    match rights::of_call(
        host.rights_source(),
        in_force,
        &call.tool,
        call.frame.conversation,
    )
    .await
    {
        Ok(rights) => {
            let rights = match rights.hiding(&host.first_party, hidden) {
                Ok(rights) => rights,
                Err(failure) => return (Err(failure), None),
            };
            call.can_change = rights.can_change;
            call.files = file_facts(host, in_force, &call).await;
            let work = Work::Guest(in_force.plugin().work(rights.grant.clone()));
            (Ok((call, work)), Some(rights))
        }
        Err(failure) => (Err(failure), None),
    }
}

fn not_active() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Setup,
        "the plugin of this tool is not active",
    )
}

/// What the paths of a call are, as far as that can be seen before it runs.
async fn file_facts(host: &Inner, in_force: &InForce, call: &ResolvedCall) -> FileFacts {
    let is_ours = matches!(in_force, InForce::FirstParty(_));
    if !(call.can_change || is_ours) {
        return FileFacts::default();
    }
    let roots = host.config.file.roots.iter().map(|root| root.path.clone());
    let look = path::Look {
        arguments: call.arguments.values.clone(),
        roots: roots.collect(),
        kind: call.tool.kind,
        can_change: call.can_change,
        is_ours,
    };
    if !look.can_change {
        return look.facts();
    }
    // It may list directories.
    let facts = tokio::task::spawn_blocking(move || look.facts()).await;
    facts.unwrap_or_default()
}

/// Waits until no earlier call changes what this one will; for a call that changes nothing at once.
///
/// Errors: when it is cancelled, or others take longer than a call may.
async fn turn(
    host: &Inner,
    files: FileFacts,
    can_change: bool,
    cancel: &Cancel,
) -> Result<Option<Turn>, ToolFailure> {
    if !can_change || files.reach.is_empty() {
        return Ok(None);
    }
    let (category, message) = tokio::select! {
        turn = host.order.turn(files.reach) => return Ok(Some(turn)),
        () = cancel.cancelled() => (ErrorCategory::Cancelled, "the call was cancelled while it waited for its turn"),
        () = tokio::time::sleep(host.config.limits.wall_clock) => {
            (ErrorCategory::RateLimited, "earlier calls that change the same files took too long")
        }
    };
    Err(ToolFailure::new(category, ErrorPhase::Setup, message))
}

/// What came of running a call.
struct Done {
    result: Result<RawOutput, ToolFailure>,
    /// What there was when it failed.
    partial: Option<RawOutput>,
    notes: Vec<String>,
    request: Option<GrantRequest>,
    facts: Option<shell::Facts>,
    /// What filters are to take the result for.
    subject: Subject,
}

impl Done {
    fn new(result: Result<RawOutput, ToolFailure>) -> Self {
        Self {
            result,
            partial: None,
            notes: Vec::new(),
            request: None,
            facts: None,
            subject: Subject::Other,
        }
    }

    fn failed(failure: ToolFailure) -> Self {
        Self::new(Err(failure))
    }
}

async fn execute(
    host: &Inner,
    session: &Session,
    plugins: &PluginSet,
    call: AuthorizedCall<Work>,
    rights: &mut Option<Rights>,
    control: CallControl,
) -> Done {
    match call.route() {
        BackendCall::Shell(call) => {
            let end = host
                .shell
                .call(call, session, control.cancel, control.on_output)
                .await;
            Done {
                result: end.result,
                partial: end.partial,
                notes: end.notes,
                request: None,
                facts: end.facts,
                subject: Subject::Other,
            }
        }
        BackendCall::Builtin(call) => Done::new(builtin::call(host, session, call).await),
        BackendCall::Guest(call) => guest(host, plugins, call, rights, control).await,
    }
}

/// Runs the hooks for what the call changed; one that fails closed fails the call.
async fn with_hooks(host: &Inner, session: &Session, hooked: Option<i64>, mut done: Done) -> Done {
    let Some(since_ms) = hooked else { return done };
    let report = host.shell.files_changed(session, since_ms).await;
    done.notes.extend(report.notes);
    if let Some(failure) = report.failure {
        done.partial = match std::mem::replace(&mut done.result, Err(failure)) {
            Ok(raw) => Some(raw),
            Err(_) => done.partial,
        };
    }
    done
}

async fn guest(
    host: &Inner,
    plugins: &PluginSet,
    call: AuthorizedCall<GuestWork>,
    rights: &mut Option<Rights>,
    control: CallControl,
) -> Done {
    let (Some(in_force), Some(rights)) = (plugins.plugin(&call.tool().backend), rights) else {
        // The set of plugins is the one the tool was found in.
        return Done::failed(not_active());
    };
    let tool = call.tool().name.clone();
    let end = Plugin::call(call, control.cancel, control.listener).await;
    let explained = match in_force {
        InForce::DropIn(good) => {
            refusal::explain(good, rights, &end.refused, &host.config, &host.program)
        }
        // What the host's own plugins may not do, they say themselves.
        InForce::FirstParty(_) => None,
    };
    if end.used_files || !rights.grant.variables.is_empty() {
        rights.is_used = true;
    }
    let directory = &host.policy.directory;
    match refusal::obeyed(tool.as_str(), &end.refused, directory) {
        Some(failure) => obeyed(end.result, failure),
        None => done(end.result, explained),
    }
}

/// A call that failed because it may not change what programs obey asks; one that went well without it gets a note.
fn obeyed(result: Result<RawOutput, ToolFailure>, failure: ToolFailure) -> Done {
    let (result, notes) = match result {
        Ok(output) => (Ok(output), vec![failure.message]),
        Err(other) if keeps_its_category(other.category) => (Err(other), Vec::new()),
        // What it did before stays said.
        Err(other) if other.message.contains("only in part") => {
            let message = format!("{}; {}", other.message, failure.message);
            (Err(ToolFailure { message, ..failure }), Vec::new())
        }
        Err(_) => (Err(failure), Vec::new()),
    };
    Done {
        notes,
        ..Done::new(result)
    }
}

/// A call that failed for want of a right is refused; one that went well without it gets a note.
fn done(result: Result<RawOutput, ToolFailure>, explained: Option<Explained>) -> Done {
    let Some(Explained { failure, request }) = explained else {
        return Done::new(result);
    };
    let (result, notes) = match result {
        Ok(output) => (Ok(output), vec![failure.message]),
        Err(other) if keeps_its_category(other.category) => (Err(other), Vec::new()),
        Err(_) => (Err(failure), Vec::new()),
    };
    Done {
        notes,
        request,
        ..Done::new(result)
    }
}

/// Failures that have a cause of their own, whatever was refused on the way.
fn keeps_its_category(category: ErrorCategory) -> bool {
    matches!(
        category,
        ErrorCategory::Cancelled | ErrorCategory::Timeout | ErrorCategory::RateLimited
    )
}
