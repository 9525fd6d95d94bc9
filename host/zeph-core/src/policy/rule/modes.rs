//! What rules do with the calls they match, and what is done with those that no rule matches.

use super::{DEFAULT_EFFECT, Effect, PolicyRule, PolicyRules, RuleMatch};
use crate::policy::mode::Mode;
use crate::policy::{Finding, Verdict};

impl PolicyRule {
    /// What it says of a call it matches.
    pub(super) fn says(&self) -> Verdict {
        match (self.effect, self.mode) {
            (Effect::Allow, _) => Verdict::Allow,
            (Effect::Deny, Some(Mode::Ask)) => Verdict::Ask,
            (Effect::Deny, Some(Mode::Observe | Mode::Deny) | None) => Verdict::Deny,
        }
    }

    /// Whether it matches every call of its tools, by any caller and in any directory.
    fn is_for_every_call(&self) -> bool {
        self.paths.is_empty()
            && self.env.is_empty()
            && self.trust_level.is_none()
            && self.args_match.is_none()
    }
}

impl PolicyRules {
    /// The same rules with another way to treat what no rule matches, where the default denies that.
    #[must_use]
    pub fn with_default_mode(self, default_mode: Mode) -> Self {
        Self {
            default_mode,
            ..self
        }
    }

    /// The same rules, with those that only observe taken for rules that decide; none when none does.
    pub fn on_trial(&self) -> Option<Self> {
        let observes = |(_, rules): &(String, Vec<PolicyRule>)| {
            rules.iter().any(|rule| rule.mode == Some(Mode::Observe))
        };
        let default_observes =
            self.default_effect == Effect::Deny && self.default_mode == Mode::Observe;
        let any = default_observes || self.sections.iter().any(observes);
        any.then(|| Self {
            is_trial: true,
            ..self.clone()
        })
    }

    /// What is said of a call no rule matches.
    pub(super) fn default_verdict(&self) -> Verdict {
        match (self.default_effect, self.default_mode) {
            (Effect::Allow, _) => Verdict::Pass,
            (Effect::Deny, Mode::Ask) => Verdict::Ask,
            (Effect::Deny, Mode::Observe) if !self.is_trial => Verdict::Pass,
            (Effect::Deny, Mode::Observe | Mode::Deny) => Verdict::Deny,
        }
    }

    /// Whether no call of the tool with these names can run: no rule before one that refuses them all, or before the default that does, lets
    /// any run or asks about any.
    pub(in crate::policy) fn hides(&self, names: &[String]) -> bool {
        for rule in self.rules() {
            if !names.iter().any(|name| rule.tool.fits(name)) {
                continue;
            }
            match rule.says() {
                Verdict::Deny if rule.is_for_every_call() => return true,
                Verdict::Deny => {}
                Verdict::Allow | Verdict::Ask | Verdict::Pass => return false,
            }
        }
        self.default_verdict() == Verdict::Deny
    }

    pub(super) fn has_in_force(&self, rule: &PolicyRule) -> bool {
        self.is_trial || rule.mode != Some(Mode::Observe)
    }

    /// The refusal of what no rule matches, where the default is to refuse.
    pub(super) fn default(&self, ruling: &RuleMatch) -> Option<Finding> {
        let refuses = ruling.decided.is_none() && self.default_verdict() == Verdict::Deny;
        refuses.then(|| {
            let reason = "no rule of `tools.policy` allows it, and `tools.policy.default_effect` is \"deny\"";
            Finding::new(Verdict::Deny, DEFAULT_EFFECT).because(reason)
        })
    }

    /// The question about what no rule matches, where the default is to ask.
    pub(super) fn default_question(&self, ruling: &RuleMatch) -> Option<Finding> {
        let asks = ruling.decided.is_none() && self.default_verdict() == Verdict::Ask;
        asks.then(|| {
            let reason = "no rule of `tools.policy` allows it, and `tools.policy.mode` is \"ask\"";
            Finding::new(Verdict::Ask, DEFAULT_EFFECT).because(reason)
        })
    }
}
