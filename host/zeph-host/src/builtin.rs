//! Tools the host runs itself, because they serve what only the host holds.

mod read_overflow;

use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Tool;

use crate::host::Inner;
use crate::session::Session;

/// Every built-in tool.
pub(crate) fn tools() -> Vec<Tool> {
    vec![read_overflow::tool()]
}

/// Runs a built-in tool.
pub(crate) async fn call(
    host: &Inner,
    session: &Session,
    call: AuthorizedCall,
) -> Result<RawOutput, ToolFailure> {
    // One tool so far; a second makes this a match over names.
    read_overflow::call(host, session, call).await
}
