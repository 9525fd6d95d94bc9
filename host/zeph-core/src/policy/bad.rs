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

    /// Refuses a pattern of nothing but white space: a rule with one would look like a rule and match no call.
    pub(super) fn unless_empty(pattern: &str) -> Result<(), Self> {
        match pattern.trim().is_empty() {
            true => Err(Self::new(pattern, "an empty pattern matches nothing")),
            false => Ok(()),
        }
    }
}
