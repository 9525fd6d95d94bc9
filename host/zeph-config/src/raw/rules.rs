//! `[tools.permissions]`, `[tools.policy]`, `[tools.authorization]`, `[tools.scoped]`, `[tools.scope]` and `[hooks]`, exactly as
//! written.

use schemars::JsonSchema;
use serde::Deserialize;

/// Rules of one tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawPermission {
    /// A glob, matched without regard to case: against the command, or the paths the call names.
    pub(crate) pattern: String,
    /// What happens to a call that matches.
    pub(crate) action: RawAction,
    /// "observe" records what the rule would have done, and leaves it at that; "ask" asks where the rule would deny.
    #[serde(default)]
    #[schemars(with = "RawMode")]
    pub(crate) mode: Option<RawMode>,
}

/// What a rule does with a call it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawMode {
    Observe,
    Ask,
    Deny,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawAction {
    Allow,
    Ask,
    Deny,
}

/// Rules over all tools, first match wins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPolicy {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) default_effect: RawEffect,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) mode: RawMode,
    #[schemars(length(max = 256), extend("x-project" = "add-denying"))]
    pub(crate) rules: Vec<RawRule>,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) policy_file: String,
}

/// More rules, tried after those of `tools.policy`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAuthorization {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(length(max = 256), extend("x-project" = "add-denying"))]
    pub(crate) rules: Vec<RawRule>,
}

/// A rule over calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawRule {
    /// What happens to a call that matches.
    pub(crate) effect: RawEffect,
    /// A glob over names of tools.
    pub(crate) tool: String,
    /// Globs over the paths a call names; one match is enough.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) paths: Vec<String>,
    /// Names of variables that must all be set.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) env: Vec<String>,
    /// The rule is for calls whose caller and tool are both trusted this much or more.
    #[serde(default)]
    #[schemars(with = "RawTrust")]
    pub(crate) trust_level: Option<RawTrust>,
    /// A regular expression over each argument that is a string; empty means any.
    #[serde(default)]
    pub(crate) args_match: String,
    /// Reserved.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) capabilities: Vec<String>,
    /// "observe" records what the rule would have done, and leaves it at that; "ask" asks where the rule would deny.
    #[serde(default)]
    #[schemars(with = "RawMode")]
    pub(crate) mode: Option<RawMode>,
}

/// How far callers and tools are trusted, most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawTrust {
    Trusted,
    Verified,
    Quarantined,
    Blocked,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawEffect {
    Allow,
    Deny,
}

/// A file of rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPolicyFile {
    /// The rules, in the order they are tried.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) rules: Vec<RawRule>,
}

/// Which tools are offered, and with which arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScoped {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(length(max = 1000), extend("x-project" = "never: rules"))]
    pub(crate) denied_tools: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "never: rules"))]
    pub(crate) allowed_tools: Vec<String>,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) mode: RawMode,
    #[schemars(length(max = 256), extend("x-project" = "never: rules"))]
    pub(crate) constraints: Vec<RawConstraint>,
}

/// What the arguments of one tool may not be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawConstraint {
    /// The tool.
    pub(crate) tool: String,
    /// Texts and globs that no argument may match.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) deny_patterns: Vec<String>,
    /// Directories within which every path must lie; empty means any.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) allowed_paths: Vec<String>,
    /// "observe" records what the constraint would have denied, and leaves it at that; "ask" asks instead.
    #[serde(default)]
    #[schemars(with = "RawMode")]
    pub(crate) mode: Option<RawMode>,
}

/// When tools that fail are blocked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAnomaly {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(range(min = 3, max = 1000), extend("x-project" = "never: rules"))]
    pub(crate) window_size: u32,
    #[schemars(range(min = 0, max = 1), extend("x-project" = "never: rules"))]
    pub(crate) failure_threshold: f64,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) auto_block: bool,
}

/// On whose behalf tools run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScope {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) run_as_user: String,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) require_capability: bool,
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) audit_all_invocations: bool,
}

/// Commands of the operator that run when something happens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHooks {
    #[schemars(length(max = 100), extend("x-project" = "never: hooks"))]
    pub(crate) file_changed: Vec<RawHook>,
    #[schemars(length(max = 100), extend("x-project" = "never: hooks"))]
    pub(crate) cwd_changed: Vec<RawHook>,
}

/// One command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawHook {
    /// What runs, a command line.
    pub(crate) command: String,
    /// Globs of the paths it is for; empty means any.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) paths: Vec<String>,
    /// Seconds it may run; 0 means `tools.shell.timeout`.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub(crate) timeout_secs: u32,
    /// Whether its failure fails the call.
    #[serde(default)]
    pub(crate) fail_closed: bool,
}
