//! Stage 4 of the line for a tool in a component: its call with the programs it runs, and what it was refused in words that help.

mod programs;

use std::path::Path;

use zeph_config::Config;
use zeph_core::category::ErrorCategory;
use zeph_core::execution::{Execution, ExecutionFacts};
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_core::policy::AuthorizedCall;
use zeph_engine::{AskedCall, CallEnd, GuestWork, MissingGrant};
use zeph_store::Agreement;

use crate::calls::CallControl;
use crate::known_secrets::KnownSecrets;
use crate::questions::{Asker, Questions, SealedInquiry};
use crate::redact;

use self::programs::Programs;
pub(crate) use self::programs::ProgramRoom;
use zeph_plugins::refusal::{self, Explanation, GrantRequest};
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
}

/// Runs the call, to which `agreement` says who agreed. Answers that it was made with are used up by that. What it is given to know
/// is added to `secrets` first.
pub(crate) async fn call(
    call: AuthorizedCall<GuestWork>,
    explainer: Explainer<'_>,
    (questions, secrets): (&Questions, &KnownSecrets),
    agreement: Option<Agreement>,
    room: ProgramRoom<'_>,
    control: CallControl,
) -> (Execution, GuestHints) {
    let asker = match Asker::of(questions, &call, agreement) {
        Ok(asker) => asker,
        Err(failure) => return (Execution::failed(failure), GuestHints::default()),
    };
    let tool = call.tool().name.clone();
    let variables = call.work().grant().variables.clone();
    secrets.learn(redact::secrets(&variables));
    let redactor = secrets.redactor();
    let listener = redact::listener(control.listener, &redactor);
    let (frame, definition) = (call.frame().clone(), call.tool().clone());
    let programs = Programs {
        room,
        rights: &explainer.rights.programs,
        in_force: explainer.in_force,
        call: &frame,
        tool: &definition,
    };
    let (mut end, ran_programs) = programs.around(call, control.cancel, listener).await;
    let facts = ExecutionFacts {
        command: None,
        used_grants: end.used_files || end.used_network || ran_programs || !variables.is_empty(),
        hosts: Vec::new(),
    };
    let (execution, wanted) = match end.asked.take() {
        Some(AskedCall { inquiry, arguments }) => {
            let inquiry = redact::inquiry(inquiry, &secrets.redactor());
            let asked = inquiry.map(|inquiry| AskedCall { inquiry, arguments });
            let sealed = asked.and_then(|asked| asker.seal(questions, asked));
            explainer.asked(end, sealed)
        }
        None => explainer.explain(tool.as_str(), end),
    };
    (Execution { facts, ..execution }, wanted)
}

impl Explainer<'_> {
    /// The end of a call that did not ask the user.
    fn explain(&self, tool: &str, end: CallEnd) -> (Execution, GuestHints) {
        let explained = self.explained(&end);
        match refusal::obeyed(tool, &end.refused, self.directory) {
            Some(failure) => (obeyed(end.result, failure), GuestHints::default()),
            None => refused(end.result, explained),
        }
    }

    /// The end of a call that asked the user; what it was refused becomes a note.
    fn asked(
        &self,
        end: CallEnd,
        sealed: Result<SealedInquiry, ToolFailure>,
    ) -> (Execution, GuestHints) {
        let note = self
            .explained(&end)
            .map(|explained| explained.failure.message);
        match sealed {
            Ok(sealed) => {
                let wanted = GuestHints {
                    grant: None,
                    answers: Some(sealed),
                };
                (Execution::ended(end.result).with_notes(note), wanted)
            }
            Err(failure) => (Execution::failed(failure), GuestHints::default()),
        }
    }

    fn explained(&self, end: &CallEnd) -> Option<Explanation> {
        let InForce { good, origin } = self.in_force;
        let explained =
            refusal::explain(good, self.rights, &end.refused, self.config, self.program);
        // What no grant would help, the host's own plugins say in words of their own, but for what stands in the configuration of the network.
        let is_about_network =
            |refused: &MissingGrant| matches!(refused, MissingGrant::Request { .. });
        let is_told = *origin == PluginOrigin::Folder || end.refused.iter().any(is_about_network);
        explained.filter(|explained| is_told || explained.request.is_some())
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
fn refused(
    result: Result<RawOutput, ToolFailure>,
    explained: Option<Explanation>,
) -> (Execution, GuestHints) {
    match explained {
        None => (Execution::ended(result), GuestHints::default()),
        Some(Explanation { failure, request }) => {
            let wanted = GuestHints {
                grant: request,
                answers: None,
            };
            (wanting(result, failure), wanted)
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
