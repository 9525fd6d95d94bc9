//! One client's stay: whose conversation it is and who is calling.

use zeph_core::call::Caller;
use zeph_core::id::ConversationId;

/// A client connection. Owned by one task.
#[derive(Debug, Clone)]
pub struct Session {
    /// Owns the outputs stored during the session.
    pub conversation: ConversationId,
    /// Who makes the calls.
    pub caller: Caller,
}
