//! What the host knows of the call that runs, asked for when it is needed.
//!
//! In a native build there is no host: a call is made up, with a minute left, as in [`Context::for_tests`].

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::bindings::zeph::plugin::context as host;
use crate::{Context, ToolError};

/// What is left of a call that was made up.
const REMAINING_MS: u64 = 60_000;

/// The call's own identifier, as in the operator's audit.
pub fn call() -> String {
    asked(host::call, || "call-1".to_owned())
}

/// The conversation that the call belongs to.
pub fn conversation() -> String {
    asked(host::conversation, || "conversation-1".to_owned())
}

/// The turn of the agent that the call belongs to.
pub fn turn() -> Option<String> {
    asked(host::turn, || None)
}

/// The goal that is pursued in this turn, when the caller named one.
pub fn goal() -> Option<String> {
    asked(host::goal, || None)
}

/// The skill that is used in this turn, when the caller named one.
pub fn skill() -> Option<String> {
    asked(host::skill, || None)
}

/// Who asks, when a program makes the call and says so; none for a person.
pub fn caller() -> Option<String> {
    asked(host::caller, || None)
}

/// When the turn began, since the Unix epoch.
pub fn started() -> Duration {
    Duration::from_millis(asked(host::started, || 0))
}

/// What is left of the time the call may take.
pub fn remaining() -> Duration {
    Duration::from_millis(asked(host::remaining, || REMAINING_MS))
}

/// What the operator set for the plugin, in `[plugins.settings.NAME]` of the host's configuration.
///
/// Shape:  `T` is a struct; what nobody set is for it to default (`#[serde(default)]`). In a native build nothing is set.
/// Errors: `permanent_failure` when what was set is no `T`.
pub fn settings<T: DeserializeOwned>() -> Result<T, ToolError> {
    let text = asked(host::settings, || "{}".to_owned());
    serde_json::from_str(&text).map_err(|error| {
        ToolError::permanent(format!(
            "the operator's settings of this plugin (`plugins.settings`) are wrong: {error}"
        ))
    })
}

/// What the host says; natively what is made up.
fn asked<T>(host: fn() -> T, made_up: fn() -> T) -> T {
    match cfg!(target_family = "wasm") {
        true => host(),
        false => made_up(),
    }
}

impl Context {
    /// The frame of a call that nobody made, with a minute left: for tests that run a tool natively.
    pub fn for_tests() -> Self {
        Self {
            call_id: call(),
            conversation_id: conversation(),
            turn_id: None,
            goal_id: None,
            caller_id: None,
            remaining_ms: REMAINING_MS,
            answers: Vec::new(),
            state: None,
        }
    }
}
