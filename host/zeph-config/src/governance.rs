//! How conversations are governed, besides rules about single calls.

use std::num::NonZeroUsize;
use std::sync::Arc;

use zeph_core::policy::Sequence;

/// What sequences of calls are looked for (`tools.governance`). What they do is in [`RuleSettings`](crate::RuleSettings).
#[derive(Debug, Clone)]
pub struct GovernanceSettings {
    /// Whether sequences are looked for, and learned (`trajectory_enabled`).
    pub trajectory: bool,
    /// Those of the operator (`blocked_sequences`).
    pub sequences: Arc<[Sequence]>,
    /// How many calls of a conversation are remembered (`window_calls`).
    pub window_calls: NonZeroUsize,
}
