//! Stage 4 of the line for a tool in a component: its call with the programs it runs, and what it was refused in words that help.

mod programs;
mod services;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;
use zeph_config::Config;
use zeph_core::capability::FsRights;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::{Execution, ExecutionFacts, PrivateFile};
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::ToolKind;
use zeph_engine::fs::{Touched, UsedFiles};
use zeph_engine::{
    AskedCall, CallEnd, CallTerms, Cancel, GuestWork, LIMITS_MAX, Listener, MissingGrant,
    SentRequest,
};
use zeph_store::Agreement;

use crate::calls::CallControl;
use crate::known_secrets::KnownSecrets;
use crate::questions::{Asker, Questions, SealedInquiry};
use crate::redact;
use crate::retry::Attempts;

use self::programs::Programs;
pub(crate) use self::programs::{JudgeContext, ProgramRoom};
use self::services::Services;
pub(crate) use self::services::{ServerToolCaller, ServiceRoom};
use zeph_plugins::refusal::{self, Explanation, GrantRequest, ObeyedRefusal};
use zeph_plugins::rights::Rights;
use zeph_plugins::set::{InForce, PluginOrigin};

/// What refusals are explained with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Explainer<'a> {
    pub(crate) in_force: &'a InForce,
    pub(crate) rights: &'a Rights,
    pub(crate) config: &'a Config,
    /// How this program is called here, for the commands that messages name.
    pub(crate) program: &'a str,
    /// Where relative paths of calls start.
    pub(crate) directory: &'a Path,
}

/// What would let a call get further than it got.
#[derive(Debug, Default)]
pub(crate) struct GuestHints {
    /// What a person could grant.
    pub(crate) grant: Option<GrantRequest>,
    /// What its tool asked the user: the same call can be made again with the answers.
    pub(crate) answers: Option<SealedInquiry>,
    /// What programs obey and it was refused, when that is why it failed.
    pub(crate) obeyed: Option<ObeyedRefusal>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct GuestRun {
    pub(crate) execution: Execution,
    pub(crate) wanted: GuestHints,
    /// All that the result depends on, when that is known.
    pub(crate) touched: Option<Touched>,
    /// What it used.
    pub(crate) uses: GuestUses,
}

/// What a call used, with all its attempts.
#[derive(Debug, Default)]
pub(crate) struct GuestUses {
    /// Files; single objects only where they are recorded.
    pub(crate) files: UsedFiles,
    /// What it tried and did not hold.
    pub(crate) refused: Vec<MissingGrant>,
    /// The programs it ran, each with its arguments.
    pub(crate) programs: Vec<Vec<String>>,
    /// The requests it sent.
    pub(crate) requests: Vec<SentRequest>,
    /// The providers of embeddings it used, by their names.
    pub(crate) embedders: Vec<String>,
    /// The tools of MCP servers it called, each `SERVER/TOOL`.
    pub(crate) tools: Vec<String>,
    /// The granted directories in which its command used something, and whether something was changed there.
    pub(crate) directories: Vec<(PathBuf, bool)>,
    /// What the caller has to know about files the call left behind, one sentence each.
    pub(crate) left: Vec<String>,
}

impl GuestRun {
    fn of(execution: Execution, wanted: GuestHints) -> Self {
        Self {
            execution,
            wanted,
            touched: None,
            uses: GuestUses::default(),
        }
    }

    /// Of a call that did not run.
    pub(crate) fn failed(failure: ToolFailure) -> Self {
        Self::of(Execution::failed(failure), GuestHints::default())
    }
}

/// How a call is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestRules<'a> {
    pub(crate) explainer: Explainer<'a>,
    pub(crate) questions: &'a Questions,
    /// What it is given to know is added to them first.
    pub(crate) secrets: &'a KnownSecrets,
    /// What the programs that it runs are run with.
    pub(crate) programs: ProgramRoom<'a>,
    /// What it has done elsewhere is done with.
    pub(crate) services: ServiceRoom<'a>,
    /// What a judge is told with them.
    pub(crate) judged: &'a JudgeContext,
    /// Whether what it depends on has to be known.
    pub(crate) is_watched: bool,
    /// Whether every object that it uses is recorded.
    pub(crate) is_recorded: bool,
}

/// Runs the call, to which `agreement` says who agreed, and again when it fails for a moment. Answers that it was made with are used
/// up by that.
pub(crate) async fn call(
    call: Arc<AuthorizedCall<GuestWork>>,
    rules: GuestRules<'_>,
    agreement: Option<Agreement>,
    control: CallControl,
) -> GuestRun {
    let asker = match Asker::of(rules.questions, &call, agreement).await {
        Ok(asker) => asker,
        Err(failure) => return GuestRun::failed(failure),
    };
    let grant = call.work().grant();
    let time = grant.limits.wall_clock.min(LIMITS_MAX.wall_clock);
    rules.secrets.learn(redact::secrets(&grant.variables));
    let redactor = rules.secrets.last_redactor();
    let mut facts = ExecutionFacts::default();
    let exit = grant.http.clone();
    let retry = &rules.explainer.config.retry;
    let mut attempts = Attempts::new(retry, call.tool().annotations, time, Instant::now());
    let shows_files = rules.explainer.in_force.origin != PluginOrigin::Program
        || !matches!(
            call.tool().kind,
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move
        );
    let running = RunningCall {
        call,
        rules,
        asker,
        cancel: control.cancel,
        listener: redact::listener(control.listener, &redactor),
    };
    let mut uses = GuestUses::default();
    let run = running
        .until_done(&mut attempts, (&mut facts, &mut uses))
        .await;
    if let Some(exit) = &exit {
        facts.hosts = exit.hosts();
        uses.requests = exit.requests();
    }
    // Of the tools of the program it is known that those that change files show nothing of them.
    if shows_files {
        for path in &uses.files.private {
            let opened = PrivateFile::Opened(path.to_string_lossy().into_owned());
            opened.add_to(&mut facts.private_files);
        }
    }
    facts.attempts = attempts.repeated();
    let note = run.execution.result.is_err().then(|| attempts.note());
    let notes = note.flatten().into_iter();
    let left = std::mem::take(&mut uses.left);
    let execution = run.execution.with_notes(notes.chain(left));
    GuestRun {
        execution: Execution { facts, ..execution },
        uses,
        ..run
    }
}

/// A call with all that its attempts have in common.
struct RunningCall<'a> {
    call: Arc<AuthorizedCall<GuestWork>>,
    rules: GuestRules<'a>,
    asker: Asker,
    cancel: Cancel,
    listener: Option<Listener>,
}

impl RunningCall<'_> {
    /// Makes one attempt after the other until one is the last.
    async fn until_done(
        self,
        attempts: &mut Attempts,
        (facts, uses): (&mut ExecutionFacts, &mut GuestUses),
    ) -> GuestRun {
        let has_variables = !self.call.work().grant().variables.is_empty();
        let mut has_started = false;
        loop {
            let noted = (&mut *facts, &mut *uses);
            let mut end = self.attempt(attempts.deadline(), noted).await;
            uses.files.add(std::mem::take(&mut end.files));
            uses.refused.extend(end.refused.iter().cloned());
            uses.left.append(&mut end.left);
            facts.used_grants |= end.used_files || end.used_network;
            if let Some(asked) = end.asked.take() {
                facts.used_grants |= has_variables;
                let explainer = self.rules.explainer;
                return explainer.asked(end, self.sealed(asked));
            }
            let (can_be_repeated, touched) = (end.can_be_repeated, end.touched.take());
            match &mut end.result {
                // An earlier attempt did: the call as a whole has started.
                Err(failure) if failure.phase == ErrorPhase::Setup && has_started => {
                    failure.phase = ErrorPhase::Execution;
                }
                Err(failure) if failure.phase == ErrorPhase::Setup => {}
                _ => has_started = true,
            }
            // What a variable holds, the guest has been told.
            facts.used_grants |= has_started && has_variables;
            let tool = self.call.tool().name.as_str();
            let run = GuestRun {
                touched,
                ..self.rules.explainer.explain(tool, end)
            };
            let failure = run.execution.result.as_ref().err();
            let Some(failure) = failure.filter(|_| can_be_repeated) else {
                return run;
            };
            let Some(wait) = attempts.wait_after(failure, Instant::now()) else {
                return run;
            };
            let heard = (&self.cancel, self.listener.as_ref());
            if let Err(cancelled) = attempts.pause(wait, failure, heard).await {
                return GuestRun::failed(cancelled);
            }
        }
    }

    /// One attempt. After a program or a service of it nothing is known of what the result depends on, nor of what making it again would do.
    async fn attempt(
        &self,
        deadline: Option<Instant>,
        (facts, uses): (&mut ExecutionFacts, &mut GuestUses),
    ) -> CallEnd {
        let explainer = self.rules.explainer;
        let programs = Programs {
            room: self.rules.programs,
            rights: &explainer.rights.programs,
            in_force: explainer.in_force,
            call: self.call.frame(),
            tool: self.call.tool(),
            judged: self.rules.judged,
        };
        let services = Services {
            room: self.rules.services,
            rights: &explainer.rights.services,
            in_force: explainer.in_force,
            call: self.call.frame(),
            tool: self.call.tool(),
            meter: self.rules.judged.meter.as_ref(),
        };
        let (queue, wishes) = services.queue().unzip();
        let over = Cancel::new();
        let governance = &explainer.config.rules.policy.governance;
        let terms = CallTerms {
            deadline,
            private: governance.followed(),
            is_watched: self.rules.is_watched,
            is_recorded: self.rules.is_recorded,
            // Ours show no date; what they are made of seeds its hash tables with it.
            ignores_date: explainer.in_force.origin == PluginOrigin::Program,
            programs: None,
            services: queue,
        };
        // The engine takes a token for itself: an attempt that has ended leaves its token cancelled.
        let token = Cancel::new();
        let heard = (token.clone(), self.listener.clone());
        let ended = async {
            let ended = programs.around(Arc::clone(&self.call), heard, terms).await;
            over.cancel();
            ended
        };
        let ended = async { tokio::join!(ended, services.serve(wishes, &over)) };
        tokio::pin!(ended);
        let ((mut end, programs), used) = tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                token.cancel();
                ended.await
            }
            ended = &mut ended => ended,
        };
        uses.programs.extend(programs.lines);
        let opened = programs.private_files.into_iter();
        opened.for_each(|file| file.add_to(&mut facts.private_files));
        if programs.ran || used.is_any() {
            facts.used_grants = true;
            end.touched = None;
        }
        // What was sent to a server or ran would be done a second time.
        if programs.ran || !used.tools.is_empty() {
            end.can_be_repeated = false;
        }
        uses.embedders.extend(used.embedders);
        uses.tools.extend(used.tools);
        end
    }

    /// The questions of the tool, sealed for the answers, without what it was given to know.
    fn sealed(self, asked: AskedCall) -> Result<SealedInquiry, ToolFailure> {
        let AskedCall { inquiry, arguments } = asked;
        let inquiry = redact::inquiry(inquiry, &self.rules.secrets.redactor())?;
        self.asker
            .seal(self.rules.questions, AskedCall { inquiry, arguments })
    }
}

impl Explainer<'_> {
    /// The end of a call that did not ask the user.
    fn explain(&self, tool: &str, end: CallEnd) -> GuestRun {
        let explained = self.explained(&end);
        match ObeyedRefusal::of(tool, &end.refused, self.directory) {
            Some(refusal) => {
                let execution = obeyed(end.result, refusal.failure());
                let failure = execution.result.as_ref().err();
                let asks =
                    |failure: &ToolFailure| failure.category == ErrorCategory::ConfirmationRequired;
                let wanted = GuestHints {
                    obeyed: failure.is_some_and(asks).then_some(refusal),
                    ..GuestHints::default()
                };
                GuestRun::of(execution, wanted)
            }
            None => refused(end.result, explained),
        }
    }

    /// The end of a call that asked the user; what it was refused becomes a note.
    fn asked(&self, end: CallEnd, sealed: Result<SealedInquiry, ToolFailure>) -> GuestRun {
        let note = self
            .explained(&end)
            .map(|explained| explained.failure.message);
        match sealed {
            Ok(sealed) => {
                let wanted = GuestHints {
                    answers: Some(sealed),
                    ..GuestHints::default()
                };
                GuestRun::of(Execution::ended(end.result).with_notes(note), wanted)
            }
            Err(failure) => GuestRun::failed(failure),
        }
    }

    fn explained(&self, end: &CallEnd) -> Option<Explanation> {
        let InForce { good, origin } = self.in_force;
        let explained =
            refusal::explain(good, self.rights, &end.refused, self.config, self.program);
        // What no grant would help, the host's own plugins say in words of their own, but for what stands in the configuration.
        let is_configured = |refused: &MissingGrant| match refused {
            MissingGrant::Request { .. } | MissingGrant::Host { .. } => true,
            MissingGrant::Directory { path, rights } => {
                end.result.is_err() && self.withholds(path, *rights)
            }
            _ => false,
        };
        let is_told = *origin == PluginOrigin::Folder || end.refused.iter().any(is_configured);
        let is_withheld = |explained: &Explanation| explained.is_withheld && end.result.is_err();
        explained
            .filter(|explained| is_told || explained.request.is_some() || is_withheld(explained))
    }

    /// Whether `tools.file.rights` leaves no tool one of `rights` at `path`.
    fn withholds(&self, path: &str, rights: FsRights) -> bool {
        let mut roots = self.config.file.roots.iter();
        let root = roots.find(|root| Path::new(path).starts_with(&root.path));
        root.is_some_and(|root| rights.without(root.rights) != FsRights::default())
    }
}

/// A call that failed because it may not change what programs obey asks; one that went well without it gets a note.
fn obeyed(result: Result<RawOutput, ToolFailure>, failure: ToolFailure) -> Execution {
    match result {
        // What it did before stays said.
        Err(other)
            if !keeps_its_category(other.category) && other.message.contains("only in part") =>
        {
            let message = format!("{}; {}", other.message, failure.message);
            Execution::failed(ToolFailure { message, ..failure })
        }
        other => wanting(other, failure),
    }
}

/// A call that failed for want of a right is refused; one that went well without it gets a note.
fn refused(result: Result<RawOutput, ToolFailure>, explained: Option<Explanation>) -> GuestRun {
    match explained {
        None => GuestRun::of(Execution::ended(result), GuestHints::default()),
        Some(Explanation {
            failure, request, ..
        }) => {
            let wanted = GuestHints {
                grant: request,
                ..GuestHints::default()
            };
            GuestRun::of(wanting(result, failure), wanted)
        }
    }
}

/// The end of a call that wanted something it did not hold, as `failure` says.
fn wanting(result: Result<RawOutput, ToolFailure>, failure: ToolFailure) -> Execution {
    match result {
        Ok(output) => Execution::ended(Ok(output)).with_notes([failure.message]),
        Err(other) if keeps_its_category(other.category) => Execution::failed(other),
        Err(_) => Execution::failed(failure),
    }
}

/// Failures that have a cause of their own, whatever was refused on the way.
fn keeps_its_category(category: ErrorCategory) -> bool {
    matches!(
        category,
        ErrorCategory::Cancelled | ErrorCategory::Timeout | ErrorCategory::RateLimited
    )
}
