//! Who asks for a call, as a test makes it up.

use crate::Context;

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
