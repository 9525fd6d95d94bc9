//! What a rule does with a call it matches.

use serde::{Deserialize, Serialize};

/// What a rule, a sequence or a grant does with a call it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The call goes on; the decision that would have been made is recorded.
    Observe,
    /// A person has to agree.
    Ask,
    /// The call is refused.
    Deny,
}
