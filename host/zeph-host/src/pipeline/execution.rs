//! Stage 4 of the line, and what stands around it: the editor's files, the cache and the order of calls.

use std::path::PathBuf;
use std::sync::Arc;

use zeph_core::call::ObeyedPath;
use zeph_core::execution::Execution;
use zeph_core::failure::ToolFailure;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Tool;
use zeph_engine::GuestWork;
use zeph_engine::fs::Touched;
use zeph_mcp::tool::OutputSchema;
use zeph_plugins::rights::Rights;
use zeph_plugins::set::{PluginOrigin, PluginSet};
use zeph_shell::jail::HostWrite;
use zeph_store::Agreement;

use super::judgement::AllowedCall;
use super::nested::NestedCalls;
use crate::authorisation::objects;
use crate::calls::CallControl;
use crate::clock::now_ms;
use crate::executor::backend;
use crate::filtering::{KnownWarnings, OutputSubject};
use crate::guest::{Explainer, GuestHints, GuestRules, GuestRun, GuestUses, JudgeContext};
use crate::host::Rooms;
use crate::offers::Offer;
use crate::resolve::not_active;
use crate::serve::acp::files::FileCall;
use crate::session::Session;
use crate::work::{BackendCall, Work};
use crate::{builtin, guest, redact, servers, turn_state};

/// What came of running a call.
pub(super) struct RunResult {
    pub(super) execution: Execution,
    pub(super) wanted: GuestHints,
    /// What filters are to take the result for.
    pub(super) subject: OutputSubject,
    /// What is known of its warnings, when it was kept.
    pub(super) warnings: KnownWarnings,
    /// All that it depends on, when that is known.
    pub(super) touched: Option<Touched>,
    /// What it used, as far as that is known.
    pub(super) uses: GuestUses,
    /// Whether its turn learns from it: not from what the turn held already.
    pub(super) is_of_turn: bool,
}

impl RunResult {
    pub(super) fn failed(failure: ToolFailure) -> Self {
        Self::ended(Execution::failed(failure), OutputSubject::Other)
    }

    fn ended(execution: Execution, subject: OutputSubject) -> Self {
        Self {
            execution,
            wanted: GuestHints::default(),
            subject,
            warnings: KnownWarnings::default(),
            touched: None,
            uses: GuestUses::default(),
            is_of_turn: true,
        }
    }

    fn of(run: GuestRun, subject: OutputSubject) -> Self {
        Self {
            execution: run.execution,
            wanted: run.wanted,
            subject,
            warnings: KnownWarnings::default(),
            touched: run.touched,
            uses: run.uses,
            is_of_turn: true,
        }
    }
}

/// Around stage 4: a file that an editor has open is read and written as it is there.
pub(super) async fn edited(
    host: &Rooms,
    session: &Session,
    allowed: AllowedCall,
    control: CallControl,
) -> RunResult {
    let file = || FileCall::of(allowed.call.tool(), allowed.call.arguments());
    let editor = control.editor.files.clone();
    let Some((files, file)) = editor.and_then(|files| Some((files, file()?))) else {
        return answer(host, session, allowed, control).await;
    };
    let cancel = control.cancel.clone();
    files.before(&file, &cancel).await;
    let mut done = answer(host, session, allowed, control).await;
    done.execution = files.after(&file, done.execution, &cancel).await;
    done.warnings = KnownWarnings::default();
    done
}

/// Between stages 3 and 4: the result of an earlier call, or of this one, which is kept.
async fn answer(
    host: &Rooms,
    session: &Session,
    allowed: AllowedCall,
    control: CallControl,
) -> RunResult {
    let guest = allowed.guest();
    let slot = guest.and_then(|(provider, rights)| {
        let terms = (rights, provider.origin);
        host.cache.slot(session, &allowed.call, terms)
    });
    // A record tells what a call used, not what an earlier one did.
    let slot = slot.filter(|_| host.recorder.is_none());
    let subject = host.filter.filtering.subject(&allowed.call);
    let Some(slot) = slot else {
        return execute(host, session, allowed, (subject, false), control).await;
    };
    if let Some((execution, warnings)) = host.cache.find(&slot).await {
        return RunResult {
            warnings,
            ..RunResult::ended(execution, subject)
        };
    }
    let mut done = execute(host, session, allowed, (subject, true), control).await;
    host.cache.keep(slot, &done.execution, done.touched.take());
    done
}

/// Stage 4: a call that changes something waits for its turn; then its backend runs it, and the hooks for what it changed.
async fn execute(
    host: &Rooms,
    session: &Session,
    allowed: AllowedCall,
    (subject, is_watched): (OutputSubject, bool),
    control: CallControl,
) -> RunResult {
    let can_change = allowed.can_change();
    let _changing = host.cache.changing(can_change);
    let beside = || session.commands().beside(&allowed.call);
    let _beside = can_change.then(beside).flatten();
    let AllowedCall {
        call,
        rights,
        files,
        agreement,
        offer,
    } = allowed;
    let hooked = session.commands().hooks_for(&call);
    let (changed, obeyed) = match &rights {
        Some(rights) if rights.can_change => (files.reach, files.obeyed),
        _ => (Vec::new(), Vec::new()),
    };
    let named = changed.clone();
    let patience = host.config.limits.wall_clock;
    let turn = match host.order.wait(changed, patience, &control.cancel).await {
        Ok(turn) => turn,
        Err(failure) => return RunResult::failed(failure),
    };
    let begun_ms = now_ms();
    let writing = begin_writing(&obeyed, named, begun_ms).await;
    let control = redact::control(control, &host.secrets.redactor());
    let terms = GuestTerms {
        rights: rights.as_ref(),
        offer: &offer,
        agreement,
        is_watched,
    };
    let mut done = answered((host, session), call, (subject, terms), control).await;
    if done.execution.result.is_ok() {
        note_written(writing, obeyed).await;
    }
    drop(turn);
    if let Some(since_ms) = hooked {
        let commands = session.commands();
        done.execution = commands.hooked(session, since_ms, done.execution).await;
    }
    done
}

/// What a plugin alone is run with.
struct GuestTerms<'a> {
    rights: Option<&'a Rights>,
    offer: &'a Offer,
    agreement: Option<Agreement>,
    is_watched: bool,
}

/// A call that its backend runs.
async fn answered(
    (host, session): (&Rooms, &Session),
    call: AuthorizedCall<Work>,
    (subject, terms): (OutputSubject, GuestTerms<'_>),
    control: CallControl,
) -> RunResult {
    match call.route() {
        BackendCall::Shell(call) => {
            let control = turn_state::told(session, call.frame(), &host.secrets, control);
            let execution = Box::pin(session.commands().call(call, session, control)).await;
            RunResult {
                uses: host.command_uses(),
                ..RunResult::ended(execution, subject)
            }
        }
        BackendCall::Builtin(call) => {
            let is_of_turn = call.work().is_new();
            let result = builtin::call(host, session, call).await;
            RunResult {
                is_of_turn,
                ..RunResult::ended(Execution::ended(result), subject)
            }
        }
        BackendCall::Mcp(call) => {
            let servers = host.offers.servers();
            let execution = Box::pin(servers::call(servers, call, control)).await;
            RunResult::ended(execution, subject)
        }
        BackendCall::Delegated(call) => {
            let patience = host.config.limits.wall_clock;
            RunResult::ended(backend::call(call, patience, control).await, subject)
        }
        BackendCall::Guest(call) => {
            let judged = JudgeContext {
                said: session.last_said(),
                meter: control.meter.clone(),
            };
            let ran = RunningGuest {
                call: Arc::new(call),
                rights: terms.rights,
                offer: terms.offer,
                judged,
                is_watched: terms.is_watched,
            };
            // The largest future of the line.
            Box::pin(ran.run((host, session), subject, (terms.agreement, control))).await
        }
    }
}

/// A call that `named` these paths and has leave to write to the places `obeyed`, if there are any.
async fn begin_writing(
    obeyed: &[ObeyedPath],
    named: Vec<PathBuf>,
    begun_ms: i64,
) -> Option<HostWrite> {
    if obeyed.is_empty() {
        return None;
    }
    let looked = tokio::task::spawn_blocking(move || HostWrite::begin(named, begun_ms)).await;
    looked
        .inspect_err(|error| tracing::error!(%error, "looking at what a call names has panicked"))
        .ok()
}

/// Has the looks after commands that run now know what a call wrote with leave to places that programs obey.
async fn note_written(writing: Option<HostWrite>, obeyed: Vec<ObeyedPath>) {
    let Some(writing) = writing else {
        return;
    };
    let note = move || {
        for place in &obeyed {
            writing.note(&place.path);
        }
    };
    if let Err(error) = tokio::task::spawn_blocking(note).await {
        tracing::error!(%error, "noting what a call wrote has panicked");
    }
}

/// A call that a plugin answers.
struct RunningGuest<'a> {
    call: Arc<AuthorizedCall<GuestWork>>,
    rights: Option<&'a Rights>,
    offer: &'a Offer,
    judged: JudgeContext,
    is_watched: bool,
}

impl RunningGuest<'_> {
    async fn run(
        self,
        (host, session): (&Rooms, &Session),
        subject: OutputSubject,
        (agreement, control): (Option<Agreement>, CallControl),
    ) -> RunResult {
        let (plugins, tool) = (&self.offer.plugins, self.call.tool());
        let (Some(explainer), Some(rights)) =
            (explainer(host, plugins, tool, self.rights), self.rights)
        else {
            return RunResult::failed(not_active());
        };
        let caller = NestedCalls::of(host, session, self.call.frame(), &control);
        let rules = GuestRules {
            explainer,
            questions: &host.questions,
            secrets: &host.secrets,
            programs: host.programs(),
            services: host.services(&caller),
            judged: &self.judged,
            is_watched: self.is_watched,
            is_recorded: host.recorder.is_some(),
        };
        // A client is told in the result.
        let tells_lack =
            control.remote.is_none() && explainer.in_force.origin == PluginOrigin::Folder;
        let mut run = guest::call(Arc::clone(&self.call), rules, agreement, control).await;
        if tells_lack {
            run.execution = lacking(tool, run.execution).await;
        }
        let used = (rights.granted.as_slice(), &run.uses);
        let plugin = explainer.in_force.plugin().id();
        host.usage.note(&host.store, plugin, used, now_ms());
        if let Some(refused) = run.wanted.obeyed.take() {
            let owner = self.offer.owner(&tool.backend);
            let asked = (&host.authoriser, session, owner);
            run.execution = objects::ask_later(asked, &self.call, refused, run.execution).await;
        }
        RunResult::of(run, subject)
    }
}

/// `execution` of a plugin's tool, with a note for its author where a success lacks what the tool promises.
async fn lacking(tool: &Tool, mut execution: Execution) -> Execution {
    let (Some(schema), Ok(raw)) = (OutputSchema::of(tool), &mut execution.result) else {
        return execution;
    };
    let lack = schema.lack(&mut raw.structured).await;
    let note = lack.map(|lack| format!("{lack}; clients of MCP get this call as an error"));
    execution.with_notes(note)
}

fn explainer<'a>(
    host: &'a Rooms,
    plugins: &'a PluginSet,
    tool: &Tool,
    rights: Option<&'a Rights>,
) -> Option<Explainer<'a>> {
    Some(Explainer {
        in_force: plugins.plugin(&tool.backend)?,
        rights: rights?,
        config: &host.config,
        program: &host.authoriser.program,
        directory: &host.authoriser.policy.directory,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_core::argument::Parameters;
    use zeph_core::category::{ErrorCategory, ErrorPhase};
    use zeph_core::execution::Execution;
    use zeph_core::failure::ToolFailure;
    use zeph_core::id::{PluginId, ToolName};
    use zeph_core::output::RawOutput;
    use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

    use super::lacking;

    #[tokio::test]
    async fn a_success_without_what_its_tool_promises_has_a_note() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tool = |output: Option<serde_json::Value>| Tool {
            name: ToolName::new("count").unwrap(),
            title: None,
            description: "Counts.".to_owned(),
            parameters: Parameters::new(json!({"type": "object"})).unwrap(),
            output: output.map(Into::into),
            kind: ToolKind::Other,
            annotations: Annotations::default(),
            backend: Backend::Wasm(PluginId("count".to_owned())),
        };
        let (plain, promising) = (tool(None), tool(Some(schema)));
        let gave = |structured| {
            let raw = RawOutput {
                structured,
                ..RawOutput::text("1")
            };
            Execution::ended(Ok(raw))
        };
        for (tool, structured, note) in [
            (&plain, None, None),
            (&plain, Some(json!({"n": "x"})), None),
            (&promising, Some(json!({"n": 1})), None),
            (&promising, None, Some("there is no structured result")),
            (&promising, Some(json!({"n": "x"})), Some("`n`")),
        ] {
            let before = structured.clone();
            let after = lacking(tool, gave(structured)).await;
            assert_eq!(after.notes.len(), usize::from(note.is_some()));
            assert!(
                after
                    .notes
                    .iter()
                    .zip(note)
                    .all(|(said, part)| said.contains(part))
            );
            assert_eq!(after.result.unwrap().structured, before);
        }
        let failure =
            ToolFailure::new(ErrorCategory::PermanentFailure, ErrorPhase::Execution, "no");
        let failed = lacking(&promising, Execution::failed(failure)).await;
        assert!(failed.notes.is_empty());
    }
}
