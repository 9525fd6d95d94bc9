//! Rules on trial: what they would decide, beside what is decided.
//!
//! A rule with `mode = "observe"` decides nothing: none of the checks that decide knows of it, so it can neither refuse a call nor let one
//! run. The same checks are made once more with all of these rules, and where they come to something else, that is recorded.
//! What no rule can loosen (directories, the sandbox, what programs obey, commands that cannot be analysed) has no mode.

use super::finding::Finding;
use super::permission;
use super::subject::RuleSubject;
use super::{PermissionSource, Policy, PolicyRules, Scoped, SessionFacts, TraceStep, Verdict};

/// The rules of a policy, with those that only observe taken for rules that decide.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    /// `tools.scoped`.
    pub scoped: Option<Scoped>,
    /// `tools.policy` and `tools.authorization`.
    pub rules: Option<PolicyRules>,
    /// `tools.permissions`, or the lists of `tools.shell`.
    pub permissions: PermissionSource,
}

/// What a rule on trial would have said of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The check it belongs to.
    pub check: &'static str,
    /// The rule.
    pub rule: String,
    /// What it would have said.
    pub would: Verdict,
}

/// What the checks found that decide.
pub(super) struct Decisive<'a> {
    pub(super) scoped: &'a Finding,
    pub(super) rules: &'a Finding,
    /// For each write of a line, whether a rule of the policy lets `write` do it.
    pub(super) written: &'a [bool],
    pub(super) permissions: &'a Finding,
}

impl Trial {
    /// Where the rules on trial come to something else than what decides.
    pub(super) fn look(
        &self,
        policy: &Policy,
        facts: &SessionFacts<'_>,
        subject: &RuleSubject<'_>,
        decisive: &Decisive<'_>,
    ) -> Vec<Observed> {
        let scoped = self.scoped.as_ref();
        let scoped = scoped.map(|scoped| scoped.check(policy, subject));
        let rules = self.rules.as_ref();
        let rules = rules.map(|rules| rules.check(subject, facts).0);
        let of = (&self.permissions, policy);
        let permissions = permission::check_with(of, subject, decisive.written);
        let found = [
            scoped.and_then(|trial| other("scoped", trial, decisive.scoped)),
            rules.and_then(|trial| other("policy", trial, decisive.rules)),
            other("permissions", permissions, decisive.permissions),
        ];
        found.into_iter().flatten().collect()
    }

    /// Whether a rule looks at the words of a command as paths.
    pub(super) fn looks_at_words(&self) -> bool {
        self.rules.as_ref().is_some_and(PolicyRules::looks_at_words)
            || self.scoped.as_ref().is_some_and(Scoped::looks_at_paths)
    }
}

/// What the rules on trial say, where it is something else.
fn other(check: &'static str, trial: Finding, decisive: &Finding) -> Option<Observed> {
    let is_same = trial.verdict == decisive.verdict && trial.rule == decisive.rule;
    let says_nothing = trial.verdict == Verdict::Pass;
    if is_same || says_nothing {
        return None;
    }
    Some(Observed {
        check,
        rule: trial.rule?,
        would: trial.verdict,
    })
}

impl Observed {
    /// As a step of a trace: it passes, and says what would have been.
    pub(super) fn step(&self) -> TraceStep {
        let Self { check, rule, would } = self;
        let would_have = match would {
            Verdict::Pass => "would have said nothing",
            Verdict::Allow => "would have allowed the call",
            Verdict::Ask => "would have asked",
            Verdict::Deny => "would have denied the call",
        };
        TraceStep {
            would: Some(*would),
            rule: Some(rule.clone()),
            ..TraceStep::new(
                check,
                Verdict::Pass,
                format!("observed: {rule} {would_have}"),
            )
        }
    }
}
