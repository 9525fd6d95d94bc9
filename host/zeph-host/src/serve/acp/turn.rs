//! A prompt and its end.

use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_acp::agent::{PromptResponse, StopReason};
use zeph_acp::rpc::{RequestId, RpcError};
use zeph_agent::event::{TurnEnd, TurnStatus};

use super::command::{self, SlashCommand};
use super::prompt::Prompt;
use super::session::{AcpSession, Busy};
use super::telling::TurnTelling;
use crate::agent::begin::HostAgent;

/// Begins a turn and answers its request at its end.
///
/// Errors: it cannot begin.
pub(super) fn start(
    session: &Arc<AcpSession>,
    request: RequestId,
    prompt: Prompt,
    tasks: &mut JoinSet<()>,
) -> Result<(), RpcError> {
    let (agent, cancel) = session.begin(&request).map_err(|busy| match busy {
        Busy::Turn => {
            RpcError::request("a turn of this session runs; cancel it, or wait for its end")
        }
        Busy::Closed => RpcError::params("the session is closed"),
    })?;
    let session = Arc::clone(session);
    tasks.spawn(async move {
        // In a task of its own, so that a crash leaves no call without an end and no request without an answer.
        let mut turn = JoinSet::new();
        let of_turn = (Arc::clone(&session), cancel.clone());
        turn.spawn(async move { run(of_turn, agent, prompt).await });
        let ended = match turn.join_next().await {
            Some(Ok((agent, ended))) => {
                session.end_open_calls();
                session.end(Some(agent));
                ended
            }
            failed => {
                tracing::error!(?failed, "a turn has panicked");
                session.end_open_calls();
                session.end(None);
                Err(RpcError::internal(
                    "the agent failed; load the session to go on",
                ))
            }
        };
        // A turn that was cancelled ends as that, whatever else happened.
        let ended = match cancel.is_cancelled() {
            true => Ok(StopReason::Cancelled),
            false => ended,
        };
        let answer = ended.map(|stop_reason| value(&PromptResponse { stop_reason }));
        session.connection().answer(&request, answer);
    });
    Ok(())
}

fn value(response: &PromptResponse) -> Value {
    serde_json::to_value(response).unwrap_or_default()
}

type TurnResult = Result<StopReason, RpcError>;

async fn run(
    (session, cancel): (Arc<AcpSession>, CancellationToken),
    mut agent: Box<HostAgent>,
    prompt: Prompt,
) -> (Box<HostAgent>, TurnResult) {
    let context_max = agent.limits().context_budget_tokens;
    let telling = TurnTelling::new(&session, &cancel, context_max);
    let ended = match command::read(&prompt.text) {
        Some(Ok(command)) => slash(&session, &mut agent, command, &telling, &cancel).await,
        Some(Err(problem)) => {
            telling.say(&problem);
            Ok(StopReason::EndTurn)
        }
        None => exchange(&mut agent, prompt, &telling, &cancel).await,
    };
    (agent, ended)
}

async fn slash(
    session: &Arc<AcpSession>,
    agent: &mut HostAgent,
    command: SlashCommand,
    telling: &TurnTelling,
    cancel: &CancellationToken,
) -> TurnResult {
    let text = command::run(session, agent, command, telling, cancel).await;
    telling.say(&text);
    Ok(StopReason::EndTurn)
}

async fn exchange(
    agent: &mut HostAgent,
    prompt: Prompt,
    telling: &TurnTelling,
    cancel: &CancellationToken,
) -> TurnResult {
    let (user, problems) = prompt.entry(agent.host());
    for problem in &problems {
        telling.say(&format!("> {problem}\n\n"));
    }
    let end = agent.turn(user, telling, cancel).await;
    stop(&end, telling)
}

/// How a turn ended, in the terms of the protocol; what it has no term for is said.
fn stop(end: &TurnEnd, telling: &TurnTelling) -> TurnResult {
    let said = || telling.say(&format!("\n\n{}", end.status));
    match &end.status {
        TurnStatus::Done => Ok(StopReason::EndTurn),
        TurnStatus::Interrupted => Ok(StopReason::Cancelled),
        TurnStatus::Refused => Ok(StopReason::Refusal),
        TurnStatus::IterationLimit { .. } => {
            said();
            Ok(StopReason::MaxTurnRequests)
        }
        TurnStatus::ContextFull | TurnStatus::Cut(_) => {
            said();
            Ok(StopReason::MaxTokens)
        }
        TurnStatus::ProviderFailed(_) | TurnStatus::JournalFailed(_) if !telling.has_told() => {
            Err(RpcError::internal(end.status.to_string()))
        }
        TurnStatus::ProviderFailed(_)
        | TurnStatus::JournalFailed(_)
        | TurnStatus::DoomLoop
        | TurnStatus::Budget(_)
        | TurnStatus::Empty => {
            said();
            Ok(StopReason::EndTurn)
        }
    }
}
