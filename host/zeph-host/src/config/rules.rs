//! What the authoriser is told: checked rules, each with the place where it was said.
//!
//! Nothing is decided here.

/// The rules of `tools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSettings {
    /// The lists of `tools.shell`.
    pub legacy: LegacyRules,
}

/// Patterns over commands that count while `tools.permissions` is absent; each at most once, in the order said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyRules {
    /// Commands that never run (`blocked_commands`, without the built-in ones among `allowed_commands`).
    pub blocked: Vec<String>,
    /// Commands that ask (`confirm_patterns`).
    pub confirm: Vec<String>,
}
