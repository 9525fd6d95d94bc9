//! Rules as people read them.

use super::{Effect, PolicyRule, PolicyRules};
use crate::policy::mode::Mode;
use crate::policy::pattern::Pattern;

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRule {
    /// What traces call it: `tools.policy rule 3`.
    pub name: String,
    /// What it does.
    pub effect: Effect,
    /// What is said of how it does that; none when that follows from the effect.
    pub mode: Option<Mode>,
    /// What must hold for it to match, such as `tool = read`; all of them.
    pub conditions: Vec<String>,
}

impl PolicyRules {
    /// Every rule in the order they are asked, those that only observe too.
    pub fn shown(&self) -> Vec<ShownRule> {
        let rules = self.all().map(|(name, rule, _)| ShownRule {
            name: name(),
            effect: rule.effect,
            mode: rule.mode,
            conditions: rule.conditions(),
        });
        rules.collect()
    }

    /// What happens to a call no rule matches.
    pub fn default_effect(&self) -> Effect {
        self.default_effect
    }

    /// What the default does where it denies.
    pub fn default_mode(&self) -> Mode {
        self.default_mode
    }

    /// Every rule of a list of rules, with its name.
    pub(in crate::policy) fn named(&self) -> impl Iterator<Item = (String, &PolicyRule)> {
        let listed = self.all().filter(|(_, rule, _)| rule.key.is_none());
        listed.map(|(name, rule, _)| (name(), rule))
    }
}

impl PolicyRule {
    pub(in crate::policy) fn effect(&self) -> Effect {
        self.effect
    }

    pub(in crate::policy) fn tool(&self) -> &Pattern {
        &self.tool
    }

    pub(in crate::policy) fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    fn conditions(&self) -> Vec<String> {
        let texts = |patterns: &[Pattern]| {
            let texts: Vec<&str> = patterns
                .iter()
                .map(|pattern| pattern.text.as_str())
                .collect();
            texts.join(", ")
        };
        let conditions = [
            Some(format!("tool = {}", self.tool.text)),
            self.has_paths()
                .then(|| format!("paths = {}", texts(&self.paths))),
            (!self.except.is_empty()).then(|| format!("except = {}", self.except.join(", "))),
            (!self.env.is_empty()).then(|| format!("env = {}", self.env.join(", "))),
            self.trust_level
                .map(|level| format!("trust_level = {level:?}").to_lowercase()),
            self.args_match
                .as_ref()
                .map(|text| format!("args_match = {text}")),
        ];
        conditions.into_iter().flatten().collect()
    }
}
