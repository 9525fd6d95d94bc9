//! The tools that a caller's token allows, and how often. They apply to every call in the caller's name: of a client, of a scheduled run, of an agent.
//!
//! Calls that a plugin makes itself are exempt: they depend on what the operator granted the plugin.

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::policy::Refusal;
use zeph_core::tool::Tool;
use zeph_store::Store;

use crate::admission::count_call;
use crate::session::Session;

/// Why a call of `tool` is none that the token of the session's caller allows; none when it is.
pub(super) fn refusal(session: &Session, tool: &Tool) -> Option<Refusal> {
    let tools = &session.admission().tools;
    if session.is_of_plugin() || tools.has(tool.name.as_str(), &tool.qualified_name()) {
        return None;
    }
    let failure = failure(tool.name.as_str());
    Some(Refusal {
        reason: failure.message.clone(),
        failure,
        rule: "token".to_owned(),
        allow: Vec::new(),
        can_be_approved: false,
        trace: Vec::new(),
    })
}

/// Counts a call of a session whose calls no door counts.
///
/// Errors: as those of [`count_call`].
pub(super) async fn count(store: &Store, session: &Session) -> Result<(), ToolFailure> {
    match session.is_of_plugin() {
        true => Ok(()),
        false => count_call(store, session.admission().rate.as_ref()).await,
    }
}

/// What a caller is told.
pub(crate) fn failure(tool: &str) -> ToolFailure {
    let message = format!(
        "`{tool}` is not one of the tools that this caller's token allows (`zeph-host token add --tools`)"
    );
    ToolFailure::new(ErrorCategory::PolicyBlocked, ErrorPhase::Setup, message)
}
