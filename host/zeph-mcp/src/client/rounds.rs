//! Requests whose questions are passed on: where a server asks before it answers, the caller gets the questions, and makes it
//! again with the answers and the server's state.

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, GetPromptResult, InputRequest,
    InputRequiredResult, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult,
    ServerResult,
};
use serde::{Deserialize, Serialize};

use super::error::McpError;
use super::session::{QUESTIONS_MAX, not_put};
use super::{CallControl, Connection, question};

/// What one round of a request came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RoundAnswer<T> {
    /// Questions to the user, and the server's state. They are told from an answer by their type, which is required.
    Required(InputRequiredResult),
    /// The answer.
    Complete(T),
}

impl Connection {
    /// Reads a resource, with the answers and the state that `params` bring.
    ///
    /// Errors: any of [`McpError`]; `NotGiven` when the server asks for anything but answers of the user.
    pub async fn read_resource_round(
        &self,
        params: ReadResourceRequestParams,
        control: CallControl,
    ) -> Result<RoundAnswer<ReadResourceResult>, McpError> {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match self.0.session.ask(request, &control).await? {
            ServerResult::ReadResourceResult(result) => Ok(RoundAnswer::Complete(result)),
            ServerResult::InputRequiredResult(required) => self.passed_on(required),
            _ => Err(McpError::bad_answer("it is not the contents of a resource")),
        }
    }

    /// Fills in a prompt, with the answers and the state that `params` bring.
    ///
    /// Errors: any of [`McpError`]; `NotGiven` when the server asks for anything but answers of the user.
    pub async fn prompt_round(
        &self,
        params: GetPromptRequestParams,
        control: CallControl,
    ) -> Result<RoundAnswer<GetPromptResult>, McpError> {
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        match self.0.session.ask(request, &control).await? {
            ServerResult::GetPromptResult(result) => Ok(RoundAnswer::Complete(result)),
            ServerResult::InputRequiredResult(required) => self.passed_on(required),
            _ => Err(McpError::bad_answer("it is not a prompt")),
        }
    }

    fn passed_on<T>(&self, mut required: InputRequiredResult) -> Result<RoundAnswer<T>, McpError> {
        let questions = required.input_requests.iter_mut().flatten();
        let mut n_questions = 0;
        for (_, question) in questions {
            n_questions += 1;
            match question {
                InputRequest::Elicitation(asked) if self.0.session.questions.has(&asked.params) => {
                    let clean = question::cleaned(asked.params.clone());
                    asked.params = clean.map_err(not_put)?;
                }
                InputRequest::Elicitation(_) => return Err(McpError::NotGiven("elicitation")),
                InputRequest::ListRoots(_) => return Err(McpError::NotGiven("roots")),
                _ => return Err(McpError::NotGiven("sampling")),
            }
        }
        if n_questions > QUESTIONS_MAX {
            return Err(McpError::bad_answer(format!(
                "the server has more than {QUESTIONS_MAX} questions at once"
            )));
        }
        Ok(RoundAnswer::Required(required))
    }
}
