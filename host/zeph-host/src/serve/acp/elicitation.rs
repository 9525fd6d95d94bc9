//! The questions of a tool as forms of an editor that has them (`elicitation/create`). Where it has none, the call ends with its questions.

use std::time::Duration;

use rmcp::model::ElicitResult;
use zeph_acp::client::{ELICITATION_CREATE, ElicitationRequest, ElicitationResponse};
use zeph_core::inquiry::{GivenAnswer, GivenAnswers, UserQuestion};

use super::super::inquiry;
use super::session::AcpSession;
use crate::clock::now_ms;
use crate::questions::SealedInquiry;

/// How often a question is put whose answer does not fit.
const ATTEMPTS: usize = 3;

/// What the user answers to all that `tool` asks for call `tool_call_id`; none when nobody answers in time.
pub(super) async fn inquire(
    session: &AcpSession,
    (tool, tool_call_id): (&str, &str),
    asked: &SealedInquiry,
) -> Option<GivenAnswers> {
    if !session.client().capabilities.elicitation.form {
        return None;
    }
    let left = u64::try_from(asked.expires_ms.saturating_sub(now_ms())).unwrap_or_default();
    let all = async {
        let mut answers = Vec::new();
        for question in asked.inquiry.questions() {
            answers.push(answer(session, (tool, tool_call_id), question).await?);
        }
        Some(answers)
    };
    let answers = tokio::time::timeout(Duration::from_millis(left), all).await;
    Some(GivenAnswers {
        state: asked.state.clone(),
        answers: answers.ok().flatten()?,
    })
}

async fn answer(
    session: &AcpSession,
    (tool, tool_call_id): (&str, &str),
    question: &UserQuestion,
) -> Option<GivenAnswer> {
    let mut problem: Option<String> = None;
    for _ in 0..ATTEMPTS {
        let form = inquiry::form(tool, question, problem.as_deref()).ok()?;
        let request = ElicitationRequest {
            session_id: session.id().to_owned(),
            tool_call_id: tool_call_id.to_owned(),
            form: serde_json::to_value(form).ok()?,
        };
        let asked = session.connection();
        let asked = asked.request::<ElicitationResponse>(ELICITATION_CREATE, &request);
        let given = match asked.await {
            Ok(given) => given,
            Err(error) => {
                tracing::debug!(%error, "the client did not answer a question of a tool");
                return None;
            }
        };
        // What is none of the three actions is no answer.
        let given: ElicitResult = serde_json::from_value(serde_json::to_value(given).ok()?).ok()?;
        match inquiry::answer(question, &given) {
            Ok(answer) => return Some(answer),
            Err(wrong) => problem = Some(wrong),
        }
    }
    None
}
