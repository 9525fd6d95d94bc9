//! May this call run? One ordered list of checks over values.
//!
//! [`AuthorizedCall`] has private fields and is minted by [`authorise`] alone, with all that execution uses: a call that was not
//! authorised cannot be executed, and none with other arguments or another grant than those that were decided about. Every check looks at
//! every call, so that a trace tells the whole story; what each finds is put together in one place. Nothing here remembers anything:
//! counting calls and using up approvals is its caller's part.

use std::path::PathBuf;
use std::sync::Arc;

use crate::call::ResolvedCall;
use crate::id::ServerName;
use crate::tool::{Backend, Tool};

mod advice;
mod allow;
mod bad;
mod check;
mod command;
mod data_words;
mod decision;
mod facts;
mod finding;
mod findings;
mod flow;
mod globals;
mod grant_mode;
mod guard;
mod heard;
mod leave;
mod mode;
mod names;
mod options;
mod path_glob;
mod pattern;
mod permission;
mod possible;
mod reach;
mod redirection;
mod rule;
mod scope;
mod subject;
mod trajectory;
mod trial;
mod trust;

pub use self::allow::AllowRule;
pub use self::bad::BadRule;
pub use self::check::Check;
pub use self::command::CommandPattern;
pub use self::decision::{
    AuthorizedCall, Decision, Refusal, Routed, Seal, TraceStep, Verdict, authorise, authorise_with,
};
pub use self::facts::SessionFacts;
pub use self::flow::{
    Destination, FLOW_CHECK, FlowFacts, Governance, HeldLabels, Label, LabelKind, PrivatePaths,
    PrivateSource, UntrustedResult, destination, may_keep_files, may_show_files, private_files_of,
    private_sources, untrusted_line, untrusted_result,
};
pub use self::grant_mode::GrantModes;
pub use self::heard::HeardUrls;
pub use self::leave::Leave;
pub use self::mode::Mode;
pub use self::names::{NamedTool, unknown_tools};
pub use self::permission::{Action, PermissionRule, PermissionSource, Permissions, ShellLists};
pub use self::rule::{
    ARGS_MATCH_BYTES_MAX, Effect, Hidden, POLICY_RULES_MAX, PathLayer, PolicyRule, PolicyRuleText,
    PolicyRules, ShownRule,
};
pub use self::scope::{Constraint, Scoped, ShownConstraint, ShownScope, ToolScope};
pub use self::subject::tool_key;
pub use self::trajectory::{
    BadSequence, CallWord, CallWords, LearnedCause, MappedCall, NearSequence, SEQUENCE_WORDS_MAX,
    Sequence, SequenceOrigin, SequenceSet, TrajectoryFacts, WordKind, words_of,
};
pub use self::trial::{Observed, Trial};
pub use self::trust::{
    BadTrustLevel, BadTrustSubject, CallTrust, ToolOwner, TrustBlock, TrustLevel, TrustSubject,
};

use self::finding::Finding;
use self::subject::{RuleSubject, names};

/// The rules of one run. The default has none: what only reads runs, everything else asks.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `--allow`: calls that run without asking.
    pub allow: Vec<AllowRule>,
    /// `tools.scoped`, when it is enabled.
    pub scoped: Option<Scoped>,
    /// `tools.scope`, when it is enabled.
    pub scope: Option<ToolScope>,
    /// `tools.policy` and `tools.authorization`, when either is enabled.
    pub rules: Option<PolicyRules>,
    /// `tools.permissions`, or the lists of `tools.shell`.
    pub permissions: PermissionSource,
    /// `tools.governance`: sequences of calls, and what leaves the machine.
    pub governance: Governance,
    /// The same rules, with those that only observe taken for rules that decide; none when none does.
    pub trial: Option<Arc<Trial>>,
    /// Whether commands of the network are refused, because the jail has none.
    pub denies_network: bool,
    /// `tools.max_tool_calls_per_session`.
    pub calls_max: Option<u32>,
    /// Directories whose content is the user's own to remove: the working directory and what commands may write. Absolute, resolved.
    pub roots: Vec<PathBuf>,
    /// Where relative paths of a call start. Absolute, resolved.
    pub directory: PathBuf,
    /// The server that `wrap` serves: its user chose it, so its tools run unless a rule says otherwise.
    pub wrapped: Option<ServerName>,
}

impl Policy {
    /// Whether nothing of a tool can run, so that models should not be told of it.
    pub fn hides(&self, tool: &Tool) -> bool {
        let names = names(tool);
        let is_denied = match &self.permissions {
            PermissionSource::Rules(permissions) => permissions.hides(&names),
            PermissionSource::Lists(_) => false,
        };
        let is_out_of_scope = |scoped: &Scoped| scoped.conceals(&names);
        let rules = self.rules.as_ref();
        is_denied
            || self.scoped.as_ref().is_some_and(is_out_of_scope)
            || rules.is_some_and(|rules| rules.hides(&names))
    }

    /// Whether any rule can look at [`ResolvedCall::paths`]; resolving them may be omitted when none does.
    pub fn looks_at_paths(&self) -> bool {
        !self.allow.is_empty()
            || matches!(self.permissions, PermissionSource::Rules(_))
            || self.rules.as_ref().is_some_and(PolicyRules::looks_at_paths)
            || self.scoped.as_ref().is_some_and(Scoped::looks_at_paths)
            || self.governance.looks_at_files()
            || self.trial.is_some()
    }

    /// Whether any rule can look at the words of a command as paths ([`LinePlaces::words`](crate::command::LinePlaces)).
    pub fn looks_at_words(&self) -> bool {
        self.rules.as_ref().is_some_and(PolicyRules::looks_at_words)
            || self.scoped.as_ref().is_some_and(Scoped::looks_at_paths)
            || self.governance.looks_at_files()
            || self
                .trial
                .as_ref()
                .is_some_and(|trial| trial.looks_at_words())
    }

    /// What the rules hide from the tool of `call`, also when it reaches it from above: lists of layers, each of which is asked by itself.
    ///
    /// A command has no such lists: the jail hides what can be hidden from it.
    pub fn hidden_paths(
        &self,
        facts: &SessionFacts<'_>,
        call: &ResolvedCall,
    ) -> Vec<Vec<PathLayer>> {
        if call.tool.backend == Backend::Shell {
            return Vec::new();
        }
        let subject = RuleSubject::new(self, call);
        let of_rules = self.rules.iter().map(|rules| rules.layers(&subject, facts));
        let of_permissions = match &self.permissions {
            PermissionSource::Rules(permissions) => permissions.layers(&subject.names),
            PermissionSource::Lists(_) => Vec::new(),
        };
        let lists = of_rules.chain(of_permissions);
        lists.filter(|layers| !layers.is_empty()).collect()
    }
}

impl Policy {
    /// Why the rules about commands forbid `call`, one of `bash`, if they do. Programs that plugins run are held to it, too.
    ///
    /// What was not granted to `bash` at all says nothing here: other tools and other grants may run the program.
    pub fn forbids(&self, facts: &SessionFacts<'_>, call: &ResolvedCall) -> Option<String> {
        let findings = findings::look(self, facts, call);
        let named = [&findings.permissions, &findings.guards, &findings.rules];
        let denial = named.into_iter().find(|finding| {
            let by_default = finding.rule.as_deref() == Some(rule::DEFAULT_EFFECT);
            finding.verdict == Verdict::Deny && !by_default
        });
        denial.map(|finding| finding.detail.clone())
    }
}

#[cfg(test)]
mod tests;
