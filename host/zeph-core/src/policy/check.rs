//! The checks of the authoriser, in the order in which their findings stand: what traces, listings of rules and decisions walk.

use super::flow::FLOW_CHECK;

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// `tools.scoped`: which tools there are, and constraints on their arguments.
    Scoped,
    /// `tools.scope.run_as_user`.
    Scope,
    /// `tools.policy` and `tools.authorization`.
    Policy,
    /// `tools.permissions`, or the lists of `tools.shell`.
    Permissions,
    /// Removals that are never intended, and commands of a network that is not there.
    BuiltIn,
    /// Paths outside of the allowed directories.
    Directories,
    /// Changes of what programs obey.
    Obeyed,
    /// What cannot be known of a command before it runs.
    Analysis,
    /// Addresses that nobody named.
    Addresses,
    /// Sequences of calls.
    Sequences,
    /// What would leave the machine.
    Flow,
    /// Grants that do not simply allow.
    Grants,
    /// How far the caller and the tool are trusted.
    Trust,
    /// `tools.max_tool_calls_per_session`.
    Quota,
    /// What becomes of a call that nothing else decided about.
    Default,
}

impl Check {
    /// All of them, in their order.
    pub const ALL: [Self; 15] = [
        Self::Scoped,
        Self::Scope,
        Self::Policy,
        Self::Permissions,
        Self::BuiltIn,
        Self::Directories,
        Self::Obeyed,
        Self::Analysis,
        Self::Addresses,
        Self::Sequences,
        Self::Flow,
        Self::Grants,
        Self::Trust,
        Self::Quota,
        Self::Default,
    ];

    /// Its name in traces.
    pub fn label(self) -> &'static str {
        match self {
            Self::Scoped => "scoped",
            Self::Scope => "scope",
            Self::Policy => "policy",
            Self::Permissions => "permissions",
            Self::BuiltIn => "built-in",
            Self::Directories => "directories",
            Self::Obeyed => "obeyed",
            Self::Analysis => "analysis",
            Self::Addresses => "addresses",
            Self::Sequences => "sequences",
            Self::Flow => FLOW_CHECK,
            Self::Grants => "grants",
            Self::Trust => "trust",
            Self::Quota => "quota",
            Self::Default => "default",
        }
    }
}
