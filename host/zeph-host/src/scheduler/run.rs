//! One run: a call, or a turn of the agent, with the authority that was there when it was scheduled and never more.
//!
//! The session is that of the caller: its principal (a person's becomes a program's: what a person typed once is no approval for later), its
//! caller, what let that in, and its conversation. Rules are those of the configuration, without the `--allow` of the host that happens to run it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_agent::event::{AgentEvent, Observer, TurnStatus};
use zeph_agent::transcript::UserEntry;
use zeph_core::call::ToolRequest;
use zeph_core::category::ErrorCategory;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::output::Outcome;
use zeph_core::policy::Label;
use zeph_core::principal::Principal;
use zeph_engine::Cancel;
use zeph_store::{RunFence, RunState, Schedule, WorkHold};

use super::task::Task;
use crate::admission::Admission;
use crate::agent::approver::Approver;
use crate::agent::begin::{self, AgentRun, AgentStart};
use crate::agent::models;
use crate::calls::CallControl;
use crate::host::Host;
use crate::session::Session;

/// Characters of what is noted of a run.
const NOTE_CHARS_MAX: usize = 600;

/// How a run ended: the state, and what to know of it.
pub(super) type Ended = (RunState, String);

/// Runs what `schedule` says, until it has ended or `stop` is thrown.
pub(super) async fn run(
    host: &Host,
    (schedule, admission): (&Schedule, Admission),
    fence: RunFence,
    stop: &CancellationToken,
) -> Ended {
    let label = format!("schedule:{}:{}", schedule.what.name, fence.run);
    match serde_json::from_str(&schedule.what.work) {
        Ok(Task::Call {
            tool,
            arguments,
            named,
        }) => {
            let request = ToolRequest {
                tool,
                arguments: serde_json::Value::Object(arguments),
                answers: None,
            };
            let opened = session(host, (schedule, admission), (&label, fence));
            match opened.await {
                Ok(session) => {
                    if let Some(named) = &named {
                        session.hear_named(named);
                    }
                    call(host, &session, request, stop).await
                }
                Err(problem) => (RunState::Failed, problem),
            }
        }
        Ok(Task::Prompt {
            prompt,
            labels,
            named,
        }) => {
            // What a model wrote names no more than was named where it wrote it.
            let named = named.or_else(|| schedule.what.is_model.then(Vec::new));
            let prompt = ToldPrompt {
                text: &prompt,
                labels,
                named,
            };
            let run = AgentRun {
                label: Arc::from(label),
                caller: schedule.what.owner.caller.id.clone(),
                admission,
                hold: WorkHold::Run(fence),
            };
            told(host, run, prompt, stop).await
        }
        Err(error) => (
            RunState::Failed,
            format!("the task cannot be read: {error}"),
        ),
    }
}

/// The session of the caller, as it is for a schedule.
async fn session(
    host: &Host,
    (schedule, admission): (&Schedule, Admission),
    (label, fence): (&str, RunFence),
) -> Result<Session, String> {
    let opened = host.open_session(Some(schedule.what.conversation), principal(schedule));
    let session = opened.await.map_err(|error| error.to_string())?;
    let session = match schedule.what.owner.caller.is_anonymous() {
        true => session.of_anybody(),
        false => session,
    };
    let session = session.admitted(admission);
    Ok(session.of_schedule(label).holding(WorkHold::Run(fence)))
}

fn principal(schedule: &Schedule) -> Principal {
    let caller_id = schedule.what.owner.caller.id.clone();
    match schedule.what.is_model {
        true => Principal::Model { caller_id },
        false => Principal::Program { caller_id },
    }
}

async fn call(
    host: &Host,
    session: &Session,
    request: ToolRequest,
    stop: &CancellationToken,
) -> Ended {
    let control = CallControl::default();
    let cancel: Cancel = control.cancel.clone();
    let mut calling = std::pin::pin!(host.call(session, request, control));
    let report = tokio::select! {
        biased;
        report = &mut calling => report,
        () = stop.cancelled() => {
            cancel.cancel();
            // A call is never dropped: its record is completed.
            calling.await
        }
    };
    drop(host.end_runs(session).await);
    match &report.output.outcome {
        Outcome::Done => (RunState::Done, String::new()),
        Outcome::Failed(failure) => ended(failure),
    }
}

fn ended(failure: &ToolFailure) -> Ended {
    let state = match failure.category {
        ErrorCategory::ConfirmationRequired | ErrorCategory::PolicyBlocked => RunState::Refused,
        _ => RunState::Failed,
    };
    (state, one_line(&failure.message, NOTE_CHARS_MAX))
}

/// A prompt, and what is known of who wrote it.
struct ToldPrompt<'a> {
    text: &'a str,
    labels: Vec<Label>,
    /// The addresses it may name; none where a person wrote it.
    named: Option<Vec<String>>,
}

/// Gives the agent a prompt.
async fn told(
    host: &Host,
    run: AgentRun,
    prompt: ToldPrompt<'_>,
    stop: &CancellationToken,
) -> Ended {
    let provider = match models::provider(host, None) {
        Ok(provider) => provider,
        Err(missing) => {
            return (
                RunState::Failed,
                format!("{}; {}", missing.problem, missing.hint),
            );
        }
    };
    let start = AgentStart {
        provider,
        approver: Approver::default(),
        live: None,
        resume: None,
        // A conversation of its own for each run: what an earlier one read must not lead this one, but for what stands in the prompt.
        conversation: None,
        schedule: Some(run),
    };
    let mut agent = match begin::begin(host, start).await {
        Ok(agent) => agent,
        Err(problem) => return (RunState::Failed, one_line(&problem, NOTE_CHARS_MAX)),
    };
    let session = agent.host().session();
    host.holds(session, prompt.labels).await;
    let user = UserEntry {
        is_by_model: prompt.named.is_some(),
        ..begin::plain_entry(agent.host(), prompt.text)
    };
    if let Some(named) = &prompt.named {
        session.hear_named(named);
    }
    let end = agent.turn(user, &Unheard, stop).await;
    drop(host.end_runs(agent.host().session()).await);
    let text = one_line(&end.text, NOTE_CHARS_MAX);
    match &end.status {
        TurnStatus::Done if end.needs_approval => (RunState::Refused, text),
        TurnStatus::Done => (RunState::Done, text),
        other => (
            RunState::Failed,
            one_line(&other.to_string(), NOTE_CHARS_MAX),
        ),
    }
}

/// Nobody watches a scheduled run.
struct Unheard;

impl Observer for Unheard {
    fn on(&self, _: AgentEvent<'_>) {}
}
