//! Tools the host runs itself, because they serve what only the host holds.

mod read_overflow;

use serde_json::{Map, Value};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Tool;

use crate::overflow::Overflow;

/// The tool that reads stored outputs.
pub(crate) const READ_OVERFLOW: &str = read_overflow::NAME;

/// Every built-in tool.
pub(crate) fn tools() -> Vec<Tool> {
    vec![read_overflow::tool()]
}

/// What one call of a built-in tool asks for: its arguments, read once.
#[derive(Debug, Clone)]
pub(crate) enum BuiltinWork {
    /// `read_overflow`
    ReadOverflow(read_overflow::ReadOverflowArguments),
}

impl BuiltinWork {
    /// Reads the arguments of a call of `tool`.
    ///
    /// Errors: `invalid_parameters`, and `tool_not_found` for a tool of another backend.
    pub(crate) fn read(tool: &Tool, arguments: &Map<String, Value>) -> Result<Self, ToolFailure> {
        match tool.name.as_str() {
            read_overflow::NAME => read_overflow::read(arguments).map(Self::ReadOverflow),
            other => Err(ToolFailure::new(
                ErrorCategory::ToolNotFound,
                ErrorPhase::Setup,
                format!("the host has no tool `{other}`"),
            )),
        }
    }
}

/// Runs a built-in tool.
pub(crate) async fn call(
    overflow: &Overflow,
    call: AuthorizedCall<BuiltinWork>,
) -> Result<RawOutput, ToolFailure> {
    match call.work() {
        BuiltinWork::ReadOverflow(arguments) => {
            read_overflow::call(overflow, call.frame().conversation, arguments).await
        }
    }
}
