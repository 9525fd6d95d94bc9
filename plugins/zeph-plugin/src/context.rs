//! What the host knows of a call and of the plugin; and a call as a test makes it up.

use serde::de::DeserializeOwned;

use crate::bindings::zeph::plugin::context;
use crate::{Context, ToolError};

/// What the operator set for the plugin, in `[plugins.settings.NAME]` of the host's configuration.
///
/// Shape:  `T` is a struct; what nobody set is for it to default (`#[serde(default)]`). In a native build nothing is set.
/// Errors: `permanent_failure` when what was set is no `T`.
pub fn settings<T: DeserializeOwned>() -> Result<T, ToolError> {
    let text = match cfg!(target_family = "wasm") {
        true => context::settings(),
        false => "{}".to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        ToolError::permanent(format!(
            "the operator's settings of this plugin (`plugins.settings`) are wrong: {error}"
        ))
    })
}

impl Context {
    /// The frame of a call that nobody made, with a minute left: for tests that run a tool natively.
    pub fn for_tests() -> Self {
        Self {
            call_id: "call-1".to_owned(),
            conversation_id: "conversation-1".to_owned(),
            turn_id: None,
            goal_id: None,
            caller_id: None,
            remaining_ms: 60_000,
            answers: Vec::new(),
            state: None,
        }
    }
}
