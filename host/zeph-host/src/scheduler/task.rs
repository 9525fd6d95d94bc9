//! What is done when its time has come: a call, or a prompt for the agent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use zeph_core::failure::one_line;
use zeph_core::policy::Label;

/// Characters of what is done, in lists.
const SHOWN_CHARS_MAX: usize = 60;

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Task {
    /// A tool is called.
    Call {
        /// Its name.
        tool: String,
        /// Its arguments.
        #[serde(default)]
        arguments: Map<String, Value>,
        /// As of a prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<Vec<String>>,
    },
    /// The agent is given a prompt.
    Prompt {
        /// What it is told.
        prompt: String,
        /// What the conversation had read that wrote it: the one that is told holds it from the beginning.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        labels: Vec<Label>,
        /// Of what is done, the addresses that were named where it was scheduled; none where what the user said was not known, or a person
        /// scheduled it. A run reaches others only where that is allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<Vec<String>>,
    },
}

impl Task {
    /// In a few words.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Call {
                tool, arguments, ..
            } => {
                let arguments = Value::Object(arguments.clone());
                one_line(&format!("{tool} {arguments}"), SHOWN_CHARS_MAX)
            }
            Self::Prompt { prompt, .. } => one_line(&format!("prompt: {prompt}"), SHOWN_CHARS_MAX),
        }
    }
}
