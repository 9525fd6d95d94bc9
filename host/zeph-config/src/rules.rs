//! What the authoriser is told: every rule compiled, each error with the place where the rule stands.
//!
//! Nothing is decided here.

use std::path::PathBuf;
use std::time::Duration;

use zeph_core::policy::Policy;

/// The rules of `tools`.
#[derive(Debug, Clone)]
pub struct RuleSettings {
    /// Everything the configuration says. `allow` is empty: those are flags of one command.
    pub policy: Policy,
    /// The file whose rules take the place of `tools.policy.rules`, resolved (`tools.policy.policy_file`).
    pub policy_file: Option<PathBuf>,
    /// Files and folders that rules deny to commands: the jail hides them.
    pub hidden: Vec<PathBuf>,
    /// Names of variables that rules ask for, sorted: the decision has to know which of them exist.
    pub variables: Vec<String>,
}

/// Commands of the operator that run when something happens (`hooks`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSettings {
    /// When a tool changed a file.
    pub file_changed: Vec<HookCommand>,
    /// When the working directory of a session changed.
    pub cwd_changed: Vec<HookCommand>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// A command line, never empty.
    pub command: String,
    /// Globs over absolute, resolved paths it is for, known to compile; empty means any.
    pub paths: Vec<String>,
    /// How long it may run.
    pub timeout: Duration,
    /// Whether its failure fails the call.
    pub fail_closed: bool,
}
