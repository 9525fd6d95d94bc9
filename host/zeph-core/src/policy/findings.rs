//! What every check found about one call, and which of it decides.

use super::finding::Finding;
use super::subject::{self, RuleSubject};
use super::trial::{Decisive, Observed};
use super::{
    Check, PermissionSource, Policy, SessionFacts, TraceStep, Verdict, flow, grant_mode, guard,
    heard, leave, permission, trajectory, trust,
};
use crate::call::ResolvedCall;
use crate::text::counted;
use crate::tool::Backend;

/// Every check in its order, with its name in traces.
pub(super) struct Findings {
    pub(super) scoped: Finding,
    pub(super) scope: Finding,
    pub(super) rules: Finding,
    pub(super) permissions: Finding,
    pub(super) guards: Finding,
    pub(super) outside: Finding,
    pub(super) obeyed: Finding,
    pub(super) unknown: Finding,
    pub(super) heard: Finding,
    pub(super) sequences: Finding,
    pub(super) flow: Finding,
    pub(super) grants: Finding,
    pub(super) trust: Finding,
    pub(super) quota: Finding,
    pub(super) default: Finding,
    /// What rules and grants on trial would have said; none of it decides.
    pub(super) observed: Vec<Observed>,
}

/// Makes every check.
pub(super) fn look(policy: &Policy, facts: &SessionFacts<'_>, call: &ResolvedCall) -> Findings {
    let subject = RuleSubject::new(policy, call);
    let line = subject.line.as_ref();
    let off = || Finding::pass("not enabled");
    let scoped = policy.scoped.as_ref();
    let scope = policy.scope.as_ref();
    let (rules, written) = match &policy.rules {
        Some(rules) => rules.check(&subject, facts),
        None => (off(), Vec::new()),
    };
    let scoped = scoped.map_or_else(off, |scoped| scoped.check(policy, &subject));
    let permissions = permission::check(policy, &subject, &written);
    let mut observed = grant_mode::observed(facts.grants);
    if let Some(trial) = &policy.trial {
        let decisive = Decisive {
            scoped: &scoped,
            rules: &rules,
            written: &written,
            permissions: &permissions,
        };
        observed.extend(trial.look(policy, facts, &subject, &decisive));
    }
    Findings {
        scoped,
        scope: scope.map_or_else(off, |scope| scope.check(facts)),
        rules,
        permissions,
        guards: line.map_or_else(
            || Finding::pass("no command"),
            |line| guard::check(policy, line),
        ),
        outside: outside(call),
        obeyed: leave::check(policy, facts, &subject),
        unknown: unknown(line),
        heard: heard::check(facts, call),
        sequences: trajectory::check(policy, facts, call),
        flow: flow::check(policy, facts, call),
        grants: grant_mode::check(facts.grants),
        trust: trust::check(facts.trust),
        quota: quota(policy, facts),
        default: default(policy, &subject),
        observed,
    }
}

impl Findings {
    /// What one check found.
    fn of(&self, check: Check) -> &Finding {
        match check {
            Check::Scoped => &self.scoped,
            Check::Scope => &self.scope,
            Check::Policy => &self.rules,
            Check::Permissions => &self.permissions,
            Check::BuiltIn => &self.guards,
            Check::Directories => &self.outside,
            Check::Obeyed => &self.obeyed,
            Check::Analysis => &self.unknown,
            Check::Addresses => &self.heard,
            Check::Sequences => &self.sequences,
            Check::Flow => &self.flow,
            Check::Grants => &self.grants,
            Check::Trust => &self.trust,
            Check::Quota => &self.quota,
            Check::Default => &self.default,
        }
    }

    fn all(&self) -> [(Check, &Finding); Check::ALL.len()] {
        Check::ALL.map(|check| (check, self.of(check)))
    }

    /// Every check and what it found. The default is for calls of which no other check says anything.
    pub(super) fn trace(&self) -> Vec<TraceStep> {
        let is_default = std::ptr::eq(self.decisive(), &self.default);
        let not_asked = Finding::pass("not asked: a check above decides");
        let steps = self.all().into_iter().map(|(check, finding)| {
            let finding = match check {
                Check::Default if !is_default => &not_asked,
                _ => finding,
            };
            TraceStep {
                rule: finding.rule.clone(),
                would: finding.would,
                ..TraceStep::new(check.label(), finding.verdict, finding.detail.clone())
            }
        });
        steps
            .chain(self.observed.iter().map(Observed::step))
            .collect()
    }

    /// The first refusal that no approval lifts.
    pub(super) fn denial(&self, facts: &SessionFacts<'_>) -> Option<&Finding> {
        let is_approved = facts.approval.is_some();
        self.all()
            .into_iter()
            .map(|(_, finding)| finding)
            .filter(|finding| finding.verdict == Verdict::Deny)
            .find(|finding| !(finding.can_be_approved && is_approved))
    }

    /// Whether a finding is about what the conversation did before: no rule about single calls changes it.
    pub(super) fn is_governed(&self, finding: &Finding) -> bool {
        std::ptr::eq(finding, &self.sequences) || std::ptr::eq(finding, &self.flow)
    }

    /// What asks whatever else allows the call: a rule that would refuse it if it were what it may turn out to be, and rules and grants whose
    /// mode is to ask. They are stronger than what allows.
    fn asking_anyway(&self) -> Option<&Finding> {
        let asking = [&self.scoped, &self.rules, &self.grants];
        asking
            .into_iter()
            .find(|finding| finding.verdict == Verdict::Ask)
    }

    /// Whether such a question decides.
    pub(super) fn asks_anyway(&self) -> bool {
        self.asking_anyway().is_some()
    }

    /// What decides when nothing refuses. The default always says something.
    pub(super) fn decisive(&self) -> &Finding {
        // What the calls before come to is known to no rule about a single call.
        let governed = [&self.sequences, &self.flow].into_iter();
        let governed = governed.filter(|finding| finding.verdict == Verdict::Ask);
        let others = [
            &self.obeyed,
            &self.permissions,
            &self.unknown,
            &self.rules,
            &self.heard,
        ];
        governed
            .chain(self.asking_anyway())
            .chain(others)
            .find(|finding| finding.verdict != Verdict::Pass)
            .unwrap_or(&self.default)
    }
}

fn outside(call: &ResolvedCall) -> Finding {
    let denied = |key: &str, reason: &String| Finding::new(Verdict::Deny, key).because(reason);
    match (&call.files.outside, &call.files.lacking) {
        (Some(reason), _) => denied("tools.file.allowed_paths", reason),
        (None, Some(reason)) => denied("tools.file.rights", reason),
        (None, None) => Finding::pass("no path outside the allowed directories"),
    }
}

fn unknown(line: Option<&subject::LineTexts<'_>>) -> Finding {
    let Some(first) = line.and_then(|line| line.unknown.first()) else {
        return Finding::pass("nothing is hidden");
    };
    let part = crate::failure::one_line(&first.part, 200);
    let reason = format!(
        "what `{part}` does is known only when it runs: {}",
        crate::failure::one_line(&first.reason, 200)
    );
    Finding::new(Verdict::Ask, "analysis: what cannot be known asks").because(reason)
}

fn quota(policy: &Policy, facts: &SessionFacts<'_>) -> Finding {
    match policy.calls_max {
        Some(max) if facts.calls_made >= max => {
            let reason = format!(
                "Tool call quota exceeded (session limit: {}, `tools.max_tool_calls_per_session`). No further tool calls are allowed this session.",
                counted(max, "call", "calls")
            );
            Finding::new(Verdict::Deny, "quota").because(reason)
        }
        Some(max) => {
            let detail = format!(
                "{} of {} made",
                facts.calls_made,
                counted(max, "call", "calls")
            );
            Finding::pass(&detail)
        }
        None => Finding::pass("no limit"),
    }
}

fn default(policy: &Policy, subject: &RuleSubject<'_>) -> Finding {
    let call = subject.call;
    let promises = call.tool.annotations;
    let name = call.name();
    if policy
        .scope
        .as_ref()
        .is_some_and(|scope| scope.require_capability)
    {
        let reason = format!(
            "no rule allows `{name}`, and `tools.scope.require_capability` wants one for every call"
        );
        return Finding::new(Verdict::Ask, "tools.scope.require_capability").because(reason);
    }
    if let PermissionSource::Rules(permissions) = &policy.permissions
        && permissions.knows(&subject.names)
    {
        let rule = format!("tools.permissions.{name}: what matches no rule asks");
        let reason = format!("no rule of `tools.permissions.{name}` allows it");
        return Finding::new(Verdict::Ask, rule).because(reason);
    }
    if let Backend::Mcp(tool) = &call.tool.backend
        && policy.wrapped.as_ref() == Some(&tool.server)
    {
        return Finding::new(Verdict::Allow, "default: the tools of a wrapped server run");
    }
    if promises.read_only && !promises.open_world {
        return Finding::new(Verdict::Allow, "default: read-only tools run");
    }
    if !call.can_change {
        let rule = "default: tools without a right to change anything run";
        return Finding::new(Verdict::Allow, rule);
    }
    let reason = format!("`{name}` changes something, and no rule allows it");
    Finding::new(Verdict::Ask, "default: tools that change something ask").because(reason)
}
