//! From a request that is answered with questions to the one that brings the answers: what goes out with the questions and has to come
//! back (`requestState`).
//!
//! It is sealed for the caller, the tool and the arguments, and names the conversation, in which the call goes on. An answer counts
//! together with it only: whatever else a request says agrees to nothing.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest, InputRequests,
    InputRequiredResult, InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;
use zeph_core::id::{ConversationId, Digest};
use zeph_core::inquiry::Inquiry;

use crate::approval::ApprovalAnswer;
use crate::questions::Questions;
use crate::seals::{BadSeal, Opened, Seals, Subject};

use super::approval;

/// What the questions of a request were about.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    conversation: ConversationId,
    /// The replica where that began, if others may go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<Arc<str>>,
    about: About,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum About {
    /// Whether the call with this digest may run.
    Approval(Digest),
    /// What its tool asks, in the seal of the questions.
    Questions(String),
    /// What a native server asks in the middle of the call, which waits.
    Waiting(Uuid),
}

/// The request that a round belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) caller: Option<&'a str>,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
}

/// A request that brings answers.
#[derive(Debug)]
pub(super) struct Resumed {
    /// Where the call was made first, and goes on.
    pub(super) conversation: ConversationId,
    /// The replica where that began, if others may go on with it.
    pub(super) home: Option<Arc<str>>,
    /// Whether it goes on with a call that was counted, and is none itself.
    pub(super) was_counted: bool,
    pub(super) round: Round,
}

/// What it brings answers to.
#[derive(Debug)]
pub(super) enum Round {
    /// An approval: the call it is for, and what the person said.
    Approval {
        call: Digest,
        answer: Option<ApprovalAnswer>,
    },
    /// The questions of a tool, their seal, and what came back.
    Questions {
        inquiry: Inquiry,
        state: String,
        given: InputResponses,
    },
    /// A call that waits, and what came back for its server.
    Waiting { id: Uuid, given: InputResponses },
}

impl Request<'_> {
    /// The state that goes out with questions.
    pub(super) fn seal(
        &self,
        seals: &Seals,
        (conversation, home): (ConversationId, Option<Arc<str>>),
        about: About,
        expires_ms: i64,
        now_ms: i64,
    ) -> String {
        let state = State {
            conversation,
            home,
            about,
        };
        self.with_subject(|subject| seals.seal(subject, &state, expires_ms, now_ms))
    }

    /// Reads the state and the answers that a request brings; `None` when it brings no state, whatever else it brings.
    ///
    /// Errors: invalid parameters: the state was altered, expired or used, or belongs to another caller, tool or other arguments; an
    ///         answer is none.
    pub(super) async fn resumed(
        &self,
        seals: &Seals,
        (state, responses): (Option<&str>, Option<InputResponses>),
        now_ms: i64,
    ) -> Result<Option<Resumed>, ErrorData> {
        let Some(state) = state else { return Ok(None) };
        let opened = self.with_subject(|subject| seals.open::<State>(subject, state, now_ms));
        let Opened { content, ticket } = opened.map_err(refused)?;
        let responses = responses.unwrap_or_default();
        let (round, was_counted) = match content.about {
            About::Approval(call) => {
                let answer = approved(&responses)?;
                // Of requests with one answer, one goes on with the call that was counted, whether that still asks or not. Without an
                // answer it is asked anew.
                match answer {
                    Some(_) => seals.redeem(ticket).await,
                    None => seals.check(ticket).await,
                }
                .map_err(refused)?;
                (Round::Approval { call, answer }, answer.is_some())
            }
            About::Questions(state) => {
                let inquiry = Questions::asked(&state).ok_or_else(|| refused(BadSeal::Foreign))?;
                let round = Round::Questions {
                    inquiry,
                    state,
                    given: responses,
                };
                // Questions have a seal of their own, which the call uses up. The first answers go on with the call that was counted;
                // those that are sent again are a call.
                (round, seals.redeem(ticket).await.is_ok())
            }
            About::Waiting(id) => {
                seals.check(ticket).await.map_err(refused)?;
                let given = responses;
                (Round::Waiting { id, given }, true)
            }
        };
        Ok(Some(Resumed {
            conversation: content.conversation,
            home: content.home,
            was_counted,
            round,
        }))
    }

    fn with_subject<T>(&self, make: impl FnOnce(Subject<'_>) -> T) -> T {
        let arguments = zeph_store::canonical(self.arguments);
        make(Subject {
            purpose: "request state",
            owner: self.caller,
            parts: &[self.tool.as_bytes(), arguments.as_bytes()],
        })
    }
}

/// What the person said about the call; nothing when the form came back without an answer.
fn approved(responses: &InputResponses) -> Result<Option<ApprovalAnswer>, ErrorData> {
    let Some(response) = responses.get(approval::KEY) else {
        return Ok(None);
    };
    let given = read(response)?;
    let answer = approval::answer(&given);
    answer.map(Some).map_err(invalid)
}

/// An answer to a form.
///
/// Errors: invalid parameters.
pub(super) fn read(response: &Value) -> Result<ElicitResult, ErrorData> {
    ElicitResult::deserialize(response).map_err(|error| {
        invalid(format!(
            "an entry of `inputResponses` is no answer to a form: {error}"
        ))
    })
}

/// The result that asks for input.
pub(super) fn required(
    forms: impl IntoIterator<Item = (String, ElicitRequestParams)>,
    state: String,
) -> InputRequiredResult {
    let requests: InputRequests = forms
        .into_iter()
        .map(|(key, form)| (key, request(form)))
        .collect();
    InputRequiredResult::new(Some(requests), Some(state))
}

/// A form as a request for input.
pub(super) fn request(form: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(form))
}

/// The answer to a state that does not count. Nothing ran.
pub(super) fn refused(problem: BadSeal) -> ErrorData {
    let why = match problem {
        BadSeal::Foreign => {
            "it was altered, or belongs to another call, caller or conversation, to an earlier run of the server or to one with other keys (`mcp.serve.seal_keys`)"
        }
        BadSeal::Expired => "the time to answer is over",
        BadSeal::Used => "it was used before, or too many others were given out since",
        BadSeal::Unknown => {
            let message = "the store cannot say whether `requestState` was used before; nothing ran, so make the call again";
            return ErrorData::internal_error(message, None);
        }
    };
    invalid(format!(
        "`requestState` does not count: {why}; make the call again without it"
    ))
}

fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

#[cfg(test)]
mod tests;
