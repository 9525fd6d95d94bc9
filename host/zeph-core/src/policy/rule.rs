//! The rules of `tools.policy` and `tools.authorization`: the first that matches decides.
//!
//! A denying rule matches when any part of the call fits it, an allowing one only when every part does. So a model cannot
//! reach a forbidden path by naming an allowed one beside it.

use regex::{RegexBuilder, RegexSet, RegexSetBuilder, SetMatches};
use serde::{Deserialize, Serialize};

use super::bad::BadRule;
use super::facts::{SessionFacts, TrustLevel};
use super::pattern::Pattern;
use super::subject::{Subject, Text, tool_key};
use super::{Finding, Verdict};

/// Most rules of one section. Source: the documented limit; more is data, not policy.
pub const POLICY_RULES_MAX: usize = 256;

/// Most bytes of one `args_match`. Source: the documented limit.
pub const ARGS_MATCH_BYTES_MAX: usize = 1024;

/// Most bytes a compiled `args_match` takes. Ordinary ones take some kilobytes; nested repetitions are refused.
const REGEX_SIZE_MAX: usize = 1024 * 1024;

/// Most bytes all of them take together.
const REGEX_SET_SIZE_MAX: usize = 32 * 1024 * 1024;

/// What a matching rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call is approved.
    Allow,
    /// The call is refused.
    Deny,
}

/// A rule as a configuration says it. Each field that is not said matches every call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRuleText {
    /// What it does.
    pub effect: Effect,
    /// A glob over the tool's name; `bash`, `sh` and `shell` are one.
    pub tool: String,
    /// Globs over the resolved paths of the call. A call that names none is not matched.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Names of variables that must all exist in the host's environment.
    #[serde(default)]
    pub env: Vec<String>,
    /// It matches sessions that are trusted this much or more.
    #[serde(default)]
    pub trust_level: Option<TrustLevel>,
    /// A regular expression over the command and its parts, or the string arguments.
    #[serde(default)]
    pub args_match: Option<String>,
    /// Reserved; nothing looks at it.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// A compiled rule.
#[derive(Debug, Clone)]
pub struct PolicyRule {
    effect: Effect,
    tool: Pattern,
    paths: Vec<Pattern>,
    env: Vec<String>,
    trust_level: Option<TrustLevel>,
    args_match: Option<String>,
}

/// The rules of both sections in the order they are asked.
#[derive(Debug, Clone)]
pub struct PolicyRules {
    sections: Vec<(String, Vec<PolicyRule>)>,
    default_effect: Effect,
    /// The `args_match` of all rules that have one, in order. One set looks at a text once, however many rules there are, and takes
    /// a fraction of the time to make.
    expressions: RegexSet,
}

/// Which expressions match which text of a call.
struct Matches {
    /// Every text on its own; what denies looks at all of them.
    any: Vec<SetMatches>,
    /// What an allowing rule must match, without exception.
    required: Vec<SetMatches>,
}

impl PolicyRule {
    /// Compiles a rule; relative globs over paths start in `directory`.
    ///
    /// Errors: [`BadRule`] names the glob or the expression that does not compile or is longer than 1024 bytes.
    pub fn new(text: &PolicyRuleText, directory: &str) -> Result<Self, BadRule> {
        let paths = text.paths.iter().map(|glob| Pattern::path(glob, directory));
        Ok(Self {
            effect: text.effect,
            tool: Pattern::new(&tool_key(&text.tool))?,
            paths: paths.collect::<Result<_, _>>()?,
            env: text.env.clone(),
            trust_level: text.trust_level,
            args_match: text.args_match.as_deref().map(checked).transpose()?,
        })
    }

    /// `expression` is the place of its `args_match` in the set, when it has one.
    fn matches(
        &self,
        subject: &Subject<'_>,
        facts: &SessionFacts<'_>,
        expression: Option<usize>,
        matches: &Matches,
    ) -> bool {
        self.tool.fits(&subject.tool)
            && self.trust_level.is_none_or(|level| facts.trust <= level)
            && self.env.iter().all(|name| (facts.has_variable)(name))
            && (self.paths.is_empty() || self.path_fits(&subject.paths))
            && expression.is_none_or(|at| matches.fit(self.effect, at))
    }

    fn path_fits(&self, paths: &[Text]) -> bool {
        let fits = |path: &Text| self.paths.iter().any(|glob| glob.fits(&path.lower));
        match self.effect {
            Effect::Deny => paths.iter().any(fits),
            Effect::Allow => !paths.is_empty() && paths.iter().all(fits),
        }
    }
}

impl Matches {
    fn of(set: &RegexSet, subject: &Subject<'_>) -> Self {
        if set.is_empty() {
            return Self {
                any: Vec::new(),
                required: Vec::new(),
            };
        }
        let values = subject.call.arguments.values.values();
        let strings = values.filter_map(|value| value.as_str());
        let mut any: Vec<SetMatches> = strings.map(|text| set.matches(text)).collect();
        let Some(line) = &subject.line else {
            let required = subject.texts.iter().map(|text| set.matches(&text.given));
            return Self {
                any,
                required: required.collect(),
            };
        };
        let bare = line.parts.iter().filter_map(|part| part.bare.as_ref());
        any.extend(bare.map(|bare| set.matches(bare)));
        let others = line.parts.iter().filter(|part| !line.requires(part));
        any.extend(others.map(|part| set.matches(&part.text.given)));
        let required = line.required();
        let required = required.iter().map(|part| set.matches(&part.text.given));
        Self {
            any,
            required: required.collect(),
        }
    }

    fn fit(&self, effect: Effect, at: usize) -> bool {
        let matched = |matches: &SetMatches| matches.matched(at);
        match effect {
            Effect::Deny => self.any.iter().chain(&self.required).any(matched),
            Effect::Allow => !self.required.is_empty() && self.required.iter().all(matched),
        }
    }
}

impl PolicyRules {
    /// Puts sections together. Each has its name (`tools.policy`, a file) for the trace; all that are enabled belong here.
    ///
    /// Errors: [`BadRule`] when a section has more than 256 rules, or an expression becomes too large when it is compiled.
    pub fn new(
        sections: Vec<(String, Vec<PolicyRule>)>,
        default_effect: Effect,
    ) -> Result<Self, BadRule> {
        for (name, rules) in &sections {
            if rules.len() > POLICY_RULES_MAX {
                let reason = format!(
                    "it has {} rules; {POLICY_RULES_MAX} are the most",
                    rules.len()
                );
                return Err(BadRule::new(name, reason));
            }
        }
        let rules = sections.iter().flat_map(|(_, rules)| rules);
        let expressions = rules.filter_map(|rule| rule.args_match.as_deref());
        let expressions = set(&expressions.collect::<Vec<_>>())?;
        Ok(Self {
            sections,
            default_effect,
            expressions,
        })
    }

    /// Whether a rule looks at paths.
    pub(super) fn looks_at_paths(&self) -> bool {
        let mut rules = self.sections.iter().flat_map(|(_, rules)| rules);
        rules.any(|rule| !rule.paths.is_empty() || rule.args_match.is_some())
    }

    /// The first rule that matches.
    pub(super) fn check(&self, subject: &Subject<'_>, facts: &SessionFacts<'_>) -> Finding {
        let matches = Matches::of(&self.expressions, subject);
        let mut n_expressions = 0;
        for (section, rules) in &self.sections {
            let position = rules.iter().position(|rule| {
                let expression = rule.args_match.is_some().then_some(n_expressions);
                n_expressions += usize::from(expression.is_some());
                rule.matches(subject, facts, expression, &matches)
            });
            let Some(at) = position else {
                continue;
            };
            let rule = format!("{section} rule {}", at + 1);
            return match rules[at].effect {
                Effect::Allow => Finding::new(Verdict::Allow, rule),
                Effect::Deny => {
                    let reason = format!("`{section}` forbids it (rule {})", at + 1);
                    Finding::new(Verdict::Deny, rule).because(reason)
                }
            };
        }
        let Some((section, _)) = self.sections.first() else {
            return Finding::pass("no rules");
        };
        match self.default_effect {
            Effect::Allow => Finding::pass("no rule matches, and `default_effect` lets it pass"),
            Effect::Deny => {
                let reason =
                    format!("no rule of `{section}` allows it and its `default_effect` is `deny`");
                Finding::new(Verdict::Deny, format!("{section} default_effect")).because(reason)
            }
        }
    }
}

/// The text of an expression, when it is one.
fn checked(text: &str) -> Result<String, BadRule> {
    if text.len() > ARGS_MATCH_BYTES_MAX {
        let reason = format!(
            "`args_match` has {} bytes; {ARGS_MATCH_BYTES_MAX} are the most",
            text.len()
        );
        return Err(BadRule::new(text, reason));
    }
    one(text)?;
    Ok(text.to_owned())
}

fn one(text: &str) -> Result<(), BadRule> {
    RegexBuilder::new(text)
        .size_limit(REGEX_SIZE_MAX)
        .build()
        .map(drop)
        .map_err(|error| BadRule::new(text, crate::failure::one_line(&error.to_string(), 300)))
}

fn set(texts: &[&str]) -> Result<RegexSet, BadRule> {
    RegexSetBuilder::new(texts)
        .size_limit(REGEX_SET_SIZE_MAX)
        .build()
        .map_err(|error| {
            BadRule::new(
                "args_match",
                crate::failure::one_line(&error.to_string(), 300),
            )
        })
}
