//! Requests that the library does not hand to a method of its own: unknown ones, and known ones with other parameters than they take.

use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use zeph_core::failure::one_line;

/// The methods with parameters that this server answers.
const KNOWN_METHODS: [&str; 11] = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Those that it answers besides when it serves a native server.
const PASSED_METHODS: [&str; 6] = [
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// What a request of `method` is told. `passes`: whether the methods of a native server are answered.
pub(super) fn refused(method: &str, version: Option<&ProtocolVersion>, passes: bool) -> ErrorData {
    // The handshake of the old revisions is not a method of the new one.
    let is_gone = method == "initialize"
        && version.is_some_and(|version| *version >= ProtocolVersion::V_2026_07_28);
    let passed = PASSED_METHODS.contains(&method) && passes;
    let is_known = !is_gone && (passed || KNOWN_METHODS.contains(&method));
    let shown = one_line(method, 100);
    match is_known {
        true => {
            let message = format!("the parameters of `{shown}` are not those it takes");
            ErrorData::invalid_params(message, None)
        }
        false => {
            let message = format!("there is no method `{shown}`");
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
        }
    }
}
