//! Questions to the user: what a tool has to know before it can finish.
//!
//! The host asks, and makes the call again on a fresh instance, with the answers and the state that came with the questions. So a
//! tool that asks runs from its beginning each time:
//!
//! ```
//! use zeph_plugin::{Ask, Context, Outcome, Output, Reply, ToolError};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Branch {
//!     /// The branch to deploy.
//!     name: String,
//! }
//!
//! fn deploy(_: serde_json::Value, context: &Context) -> Result<Outcome, ToolError> {
//!     match context.reply::<Branch>("branch")? {
//!         None => Ok(Ask::about::<Branch>("branch", "Which branch?").into()),
//!         Some(Reply::Accepted(branch)) => Ok(Output::text(format!("deployed {}", branch.name)).into()),
//!         Some(Reply::Refused) => Err(ToolError::cancelled("the user named no branch")),
//!     }
//! }
//! ```

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{AnswerAction, Ask, Context, Outcome, Question, ToolError, input_schema};

/// What the user did about a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<T> {
    /// Answered it.
    Accepted(T),
    /// Declined to answer, or wants the call to stop.
    Refused,
}

impl Ask {
    /// One question, whose answer is a `T`: a struct of texts, numbers and booleans. `id` is its name in the answers.
    pub fn about<T: JsonSchema>(id: &str, message: &str) -> Self {
        let nothing = Self {
            questions: Vec::new(),
            state: None,
        };
        nothing.and::<T>(id, message)
    }

    /// Another question at the same time.
    pub fn and<T: JsonSchema>(mut self, id: &str, message: &str) -> Self {
        self.questions.push(Question {
            id: id.to_owned(),
            message: message.to_owned(),
            schema: input_schema::<T>().to_string(),
        });
        self
    }

    /// What the tool wants back with the answers, at most 64 KiB. Nobody can change it on the way; it is no place for secrets.
    pub fn keeping(mut self, state: Vec<u8>) -> Self {
        self.state = Some(state);
        self
    }
}

impl From<Ask> for Outcome {
    fn from(ask: Ask) -> Self {
        Self::Ask(ask)
    }
}

impl Context {
    /// What the user said to the question `id`; none when it was not asked yet.
    ///
    /// Errors: `permanent_failure` when the answer is no `T`: another question had that name.
    pub fn reply<T: DeserializeOwned>(&self, id: &str) -> Result<Option<Reply<T>>, ToolError> {
        let Some(answer) = self.answers.iter().find(|answer| answer.id == id) else {
            return Ok(None);
        };
        let (AnswerAction::Accept, Some(content)) = (&answer.action, &answer.content) else {
            return Ok(Some(Reply::Refused));
        };
        let accepted = serde_json::from_str(content).map_err(|error| {
            ToolError::permanent(format!("the answer to `{id}` cannot be read: {error}"))
        })?;
        Ok(Some(Reply::Accepted(accepted)))
    }
}

#[cfg(test)]
mod tests;
