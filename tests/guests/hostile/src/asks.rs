//! Tools that behave: what a call knows of itself, and questions to the user.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use zeph_plugin::{AnswerAction, Ask, Context, Outcome, Output, ToolError, context};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Rounds {
    /// How often it asks.
    n: u64,
}

/// What is asked each time.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(
    dead_code,
    reason = "only its schema is used: the answer goes back as it came"
)]
struct Answer {
    /// Which branch.
    branch: String,
    /// Whether to force it.
    force: Option<bool>,
}

/// Everything the host says of this call, as JSON.
pub(crate) fn knows(frame: &Context) -> Output {
    let said = json!({
        "call": context::call(),
        "conversation": context::conversation(),
        "turn": context::turn(),
        "goal": context::goal(),
        "skill": context::skill(),
        "caller": context::caller(),
        "started": u64::try_from(context::started().as_millis()).unwrap_or(u64::MAX),
        "remaining": u64::try_from(context::remaining().as_millis()).unwrap_or(u64::MAX),
        "frame": {
            "call": frame.call_id,
            "conversation": frame.conversation_id,
            "turn": frame.turn_id,
            "goal": frame.goal_id,
            "caller": frame.caller_id,
            "remaining": frame.remaining_ms,
        },
    });
    Output::text(said.to_string()).structured(&said)
}

/// Asks `n` times, one question after the other, and says at the end what came back. The answers so far are its state.
pub(crate) fn asks(rounds: Rounds, context: &Context) -> Result<Outcome, ToolError> {
    let state = context.state.as_deref().unwrap_or(b"[]");
    let mut so_far: Vec<Value> = serde_json::from_slice(state)
        .map_err(|error| ToolError::permanent(format!("the state has changed: {error}")))?;
    for answer in &context.answers {
        let content = answer.content.as_deref().map(serde_json::from_str::<Value>);
        so_far.push(match (answer.action, content) {
            (AnswerAction::Accept, Some(Ok(content))) => content,
            (AnswerAction::Accept, _) => json!("no content"),
            (AnswerAction::Decline, _) => json!("declined"),
            (AnswerAction::Cancel, _) => json!("cancelled"),
        });
    }
    if (so_far.len() as u64) < rounds.n {
        let state = serde_json::to_vec(&so_far).unwrap_or_default();
        let ask = Ask::about::<Answer>("where", "Which branch is it\u{1b}[2J to be?");
        return Ok(ask.keeping(state).into());
    }
    let said = Value::Array(so_far);
    Ok(Output::text(said.to_string()).into())
}
