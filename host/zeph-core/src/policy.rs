//! May this call run? One ordered list of checks over values.
//!
//! [`AuthorizedCall`] has private fields and is minted here alone: a call that was not authorised cannot be executed.

use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Map, Value};

use crate::call::{CallFrame, Caller, ResolvedCall};
use crate::category::{ErrorCategory, ErrorPhase};
use crate::failure::ToolFailure;
use crate::tool::Tool;

/// Proof that a call may run. It is consumed by execution.
#[derive(Debug)]
pub struct AuthorizedCall {
    frame: CallFrame,
    tool: Tool,
    arguments: Map<String, Value>,
    rule: String,
}

impl AuthorizedCall {
    /// The call's identity.
    pub fn frame(&self) -> &CallFrame {
        &self.frame
    }

    /// The tool to run.
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// The checked arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The rule that allowed it, for the audit.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

/// What the authoriser says.
#[derive(Debug)]
pub enum Decision {
    /// It may run.
    Allow(AuthorizedCall),
    /// A person has to agree; without one it is refused with this.
    Ask(Refusal),
    /// It may not run.
    Deny(Refusal),
}

/// Why a call does not run, and which rule said so.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What the caller is told.
    pub failure: ToolFailure,
    /// The rule that decided, for the audit.
    pub rule: String,
}

/// `TOOL` or `TOOL:PATTERN`: calls that run without asking.
#[derive(Debug, Clone)]
pub struct AllowRule {
    text: String,
    tool: GlobMatcher,
    pattern: Option<GlobMatcher>,
}

/// A rule that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule `{rule}` does not compile: {reason}")]
pub struct BadRule {
    rule: String,
    reason: String,
}

impl AllowRule {
    /// Reads `TOOL` or `TOOL:PATTERN`.
    ///
    /// Shape: both parts are globs, matched without regard to case; `PATTERN` is matched against every path the call
    /// names (absolute, resolved), and all must match. A relative pattern is taken from `directory`.
    pub fn parse(text: &str, directory: &str) -> Result<Self, BadRule> {
        let bad = |reason: String| BadRule {
            rule: text.to_owned(),
            reason,
        };
        let (tool, pattern) = match text.split_once(':') {
            Some((tool, pattern)) => (tool, Some(pattern)),
            None => (text, None),
        };
        if tool.is_empty() || pattern == Some("") {
            return Err(bad("write `TOOL` or `TOOL:PATTERN`".to_owned()));
        }
        let pattern = pattern.map(|pattern| {
            if pattern.starts_with('/') || pattern.starts_with("**") {
                pattern.to_owned()
            } else {
                format!("{}/{pattern}", globset::escape(directory))
            }
        });
        let glob = |text: &str| {
            GlobBuilder::new(text)
                .case_insensitive(true)
                .build()
                .map(|glob| glob.compile_matcher())
                .map_err(|error| bad(error.kind().to_string()))
        };
        Ok(Self {
            text: text.to_owned(),
            tool: glob(tool)?,
            pattern: pattern.as_deref().map(glob).transpose()?,
        })
    }

    fn matches(&self, call: &ResolvedCall) -> bool {
        let fits = |pattern: &GlobMatcher| {
            !call.paths.is_empty() && call.paths.iter().all(|path| pattern.is_match(path))
        };
        self.tool.is_match(call.name().as_str()) && self.pattern.as_ref().is_none_or(fits)
    }
}

/// The rules of one run.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Calls that run without asking, first match wins.
    pub allow: Vec<AllowRule>,
}

/// Decides about `call`.
///
/// In order: a call typed by a person is its own approval; an allow rule lets it run; what only reads inside the
/// granted directories runs; what holds no right to change anything runs; everything else asks.
pub fn authorise(policy: &Policy, call: ResolvedCall) -> Decision {
    if call.frame.caller == Caller::Person {
        return allow(call, "typed by a person".to_owned());
    }
    if let Some(rule) = policy.allow.iter().find(|rule| rule.matches(&call)) {
        let rule = format!("--allow {}", rule.text);
        return allow(call, rule);
    }
    let promises = call.tool.annotations;
    if promises.read_only && !promises.open_world {
        return allow(call, "default: read-only tools run".to_owned());
    }
    if !call.can_change {
        let rule = "default: tools without a right to change anything run".to_owned();
        return allow(call, rule);
    }
    let message = format!(
        "`{name}` changes something, and no rule allows it; the operator can allow it with `--allow {name}` \
         or `--allow '{name}:PATTERN'`",
        name = call.name()
    );
    Decision::Ask(Refusal {
        failure: ToolFailure::new(
            ErrorCategory::ConfirmationRequired,
            ErrorPhase::Setup,
            message,
        ),
        rule: "default: tools that change something ask".to_owned(),
    })
}

fn allow(call: ResolvedCall, rule: String) -> Decision {
    Decision::Allow(AuthorizedCall {
        frame: call.frame,
        tool: call.tool,
        arguments: call.arguments.values,
        rule,
    })
}

#[cfg(test)]
mod tests;
