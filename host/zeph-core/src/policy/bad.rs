//! An invalid rule. The reader of the configuration adds its location.

/// A rule that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule `{rule}` does not compile: {reason}")]
pub struct BadRule {
    /// The rule, or the part of it that is wrong, as it was given.
    pub rule: String,
    /// What is wrong with it.
    pub reason: String,
}

impl BadRule {
    pub(super) fn new(rule: &str, reason: impl ToString) -> Self {
        Self {
            rule: crate::failure::one_line(rule, 200),
            reason: reason.to_string(),
        }
    }
}
