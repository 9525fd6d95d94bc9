//! Tools of MCP servers that the operator granted by name (`[[tool]]` in the manifest). There are none natively.

use std::time::Duration;

use crate::bindings::zeph::plugin::server_tools as host;
pub use crate::bindings::zeph::plugin::server_tools::{Answer, CallError, CallErrorKind, Options};

/// Calls `tool` of `server` and waits for its answer, for at most `timeout`. What it answers is untrusted.
///
/// Errors: why there is no answer.
pub fn call(
    server: &str,
    tool: &str,
    arguments: &serde_json::Value,
    timeout: Option<Duration>,
) -> Result<Answer, CallError> {
    let timeout = timeout.and_then(|timeout| u64::try_from(timeout.as_millis()).ok());
    let options = Options {
        timeout_ms: timeout,
    };
    match cfg!(target_family = "wasm") {
        true => host::call(server, tool, &arguments.to_string(), options),
        false => Err(CallError {
            kind: CallErrorKind::Unavailable,
            message: "servers are reached from a host only".to_owned(),
        }),
    }
}
