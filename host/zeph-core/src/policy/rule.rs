//! The rules of `tools.policy` and `tools.authorization`: the first that matches decides.
//!
//! A denying rule matches when any part of the call fits it, an allowing one only when every part does. So a model cannot
//! reach a forbidden path by naming an allowed one beside it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use regex::RegexSet;
use regex_automata::nfa::thompson::NFA;
use serde::{Deserialize, Serialize};

use super::bad::BadRule;
use super::facts::SessionFacts;
use super::mode::Mode;
use super::path_glob::PathGlob;
use super::pattern::Pattern;
use super::possible::{Possible, Reading, automaton};
use super::reach::Reach;
use super::subject::{RuleSubject, SHELL, WRITER, tool_key};
use super::trust::TrustLevel;
use super::{Finding, Verdict};
use crate::globs::{LazyGlobs, LetterCase};

mod expression;
mod hidden;
mod matches;
mod modes;
mod ruling;
mod shown;

pub use self::expression::ARGS_MATCH_BYTES_MAX;
use self::expression::{checked, set};
pub use self::hidden::{Hidden, PathLayer};
use self::matches::Matches;
use self::ruling::RuleMatch;
pub use self::shown::ShownRule;

/// What refuses where no rule matches.
pub(super) const DEFAULT_EFFECT: &str = "tools.policy.default_effect";

/// Most rules of one section. Source: the documented limit; more is data, not policy.
pub const POLICY_RULES_MAX: usize = 256;

/// What a matching rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call is approved.
    Allow,
    /// The call is refused.
    Deny,
}

/// A rule as configured. A field that is not set matches every call.
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
    /// It matches calls whose caller and tool are both trusted this much or more.
    #[serde(default)]
    pub trust_level: Option<TrustLevel>,
    /// A regular expression over the command and its parts, or the string arguments.
    #[serde(default)]
    pub args_match: Option<String>,
    /// Reserved; nothing looks at it.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// What a rule that denies does with a call it matches; `observe` of a rule that allows, too. None: what its effect says.
    #[serde(default)]
    pub mode: Option<Mode>,
}

/// A compiled rule.
#[derive(Debug, Clone)]
pub struct PolicyRule {
    effect: Effect,
    tool: Pattern,
    paths: Vec<Pattern>,
    /// The folders of those `paths` that are for all below a folder. A command that is pointed at one goes through it.
    folders: Vec<Pattern>,
    /// Each of `paths` as the file or folder that it is, where it is one.
    trees: Vec<Option<PathBuf>>,
    /// Exceptions to `paths` of a rule that denies, as written and to be asked. Unlike `paths` they are kept narrow: `*` ends at a `/`.
    except: Vec<String>,
    excepted: Arc<LazyGlobs>,
    env: Vec<String>,
    trust_level: Option<TrustLevel>,
    args_match: Option<String>,
    mode: Option<Mode>,
    /// What traces call it, in place of its section and number.
    key: Option<&'static str>,
}

/// The rules of both sections in the order they are asked.
#[derive(Debug, Clone)]
pub struct PolicyRules {
    sections: Vec<(String, Vec<PolicyRule>)>,
    default_effect: Effect,
    /// What the default does where it denies.
    default_mode: Mode,
    /// Whether what only observes decides too.
    is_trial: bool,
    /// The `args_match` of all rules that have one, in order. One set looks at a text once, however many rules there are, and takes
    /// a fraction of the time to make.
    expressions: RegexSet,
    /// The expressions as automata, made for the first command that is not fully known.
    automata: OnceLock<Vec<Option<NFA>>>,
}

/// Whether a rule matches.
#[derive(Debug, PartialEq, Eq)]
enum RuleFit {
    No,
    Yes,
    /// It would if this turned out to be something else, which is known only when the call runs.
    Perhaps(String),
}

/// What rules are held against: a call, or a redirection as a call of `write`.
struct RuleTarget<'a> {
    names: &'a [String],
    reach: &'a Reach,
    matches: &'a Matches,
}

impl PolicyRule {
    /// Compiles a rule; relative globs over paths start in `directory`.
    ///
    /// Errors: [`BadRule`] names the glob or the expression that does not compile or is longer than 1024 bytes, the glob with `..`
    /// behind a wildcard, and an empty one.
    pub fn new(text: &PolicyRuleText, directory: &str) -> Result<Self, BadRule> {
        BadRule::unless_empty(&text.tool)?;
        let paths = || text.paths.iter();
        paths().try_for_each(|glob| BadRule::unless_empty(glob))?;
        let globs = paths().map(|glob| PathGlob::read(glob, directory));
        let globs = globs.collect::<Result<Vec<_>, _>>()?;
        let folders = globs.iter().filter_map(PathGlob::folder);
        Ok(Self {
            effect: text.effect,
            tool: Pattern::new(&tool_key(&text.tool))?,
            paths: paths()
                .map(|glob| Pattern::path(glob, directory))
                .collect::<Result<_, _>>()?,
            folders: folders
                .map(|folder| Pattern::of_paths(&folder, directory))
                .collect::<Result<_, _>>()?,
            trees: globs.iter().map(PathGlob::tree).collect(),
            env: text.env.clone(),
            trust_level: text.trust_level,
            args_match: text.args_match.as_deref().map(checked).transpose()?,
            except: Vec::new(),
            excepted: Arc::default(),
            mode: text.mode,
            key: None,
        })
    }

    /// The rule that keeps commands away from what `globs` hide, with all below it, except what fits `except`; `key` is where that is said.
    ///
    /// Shape: both are globs over absolute paths, or begin with `**/`; those of `except` are known to compile.
    /// Errors: as [`new`](Self::new).
    pub fn hiding(key: &'static str, globs: &[String], except: &[String]) -> Result<Self, BadRule> {
        let all_below = |glob: &String| format!("{glob}/**");
        // A `*` at the end of `paths` reaches below by itself.
        let names_end = |glob: &&String| !glob.ends_with('*');
        let below = globs.iter().filter(names_end).map(all_below);
        let below_exceptions = except.iter().map(all_below);
        let text = PolicyRuleText {
            effect: Effect::Deny,
            tool: SHELL.to_owned(),
            paths: globs.iter().cloned().chain(below).collect(),
            env: Vec::new(),
            trust_level: None,
            args_match: None,
            capabilities: Vec::new(),
            mode: None,
        };
        let excepted = except.iter().cloned().chain(below_exceptions).collect();
        let excepted = LazyGlobs::new(excepted, LetterCase::Ignored);
        Ok(Self {
            except: except.to_vec(),
            excepted: Arc::new(excepted),
            key: Some(key),
            ..Self::new(&text, "")?
        })
    }

    /// `expression` is the place of its `args_match` in the set, when it has one.
    fn fit(
        &self,
        target: &RuleTarget<'_>,
        facts: &SessionFacts<'_>,
        expression: Option<usize>,
    ) -> RuleFit {
        let is_met = expression.is_none_or(|at| target.matches.fit(self.effect, at));
        let may_be_met = || {
            self.effect == Effect::Deny && expression.is_some_and(|at| target.matches.may_fit(at))
        };
        if !self.is_for(target.names, facts) || !is_met && !may_be_met() {
            return RuleFit::No;
        }
        match self.fit_paths(target.reach) {
            RuleFit::Yes if !is_met => RuleFit::Perhaps("an argument".to_owned()),
            fit => fit,
        }
    }

    /// Whether it is about the tool, now.
    fn is_for(&self, names: &[String], facts: &SessionFacts<'_>) -> bool {
        names.iter().any(|name| self.tool.fits(name))
            && self
                .trust_level
                .is_none_or(|level| facts.trust.level() <= level)
            && self.env.iter().all(|name| (facts.has_variable)(name))
    }

    fn fit_paths(&self, reach: &Reach) -> RuleFit {
        let fits = |lower: &str| self.paths.iter().any(|glob| glob.fits(lower));
        let is_folder =
            |lower: &str| reach.is_command && self.folders.iter().any(|glob| glob.fits(lower));
        let is_excepted = |lower: &str| self.excepted.is_match(Path::new(lower), false);
        let mut paths = reach.paths.iter().map(|path| path.lower.as_str());
        let is_fit = match self.effect {
            _ if self.paths.is_empty() => true,
            Effect::Deny => paths.any(|path| (fits(path) || is_folder(path)) && !is_excepted(path)),
            Effect::Allow => !reach.paths.is_empty() && reach.unknown.is_empty() && paths.all(fits),
        };
        let doubt = || match self.effect {
            Effect::Deny => reach
                .doubt(&self.paths)
                .or_else(|| reach.doubt(&self.folders)),
            Effect::Allow => None,
        };
        match is_fit {
            true => RuleFit::Yes,
            false => doubt().map_or(RuleFit::No, |doubt| {
                RuleFit::Perhaps(format!("`{}`", doubt.word))
            }),
        }
    }

    /// Whether a redirection is within what it allows: it is for every call, for these paths, or spells it.
    fn allows_write(&self, matches: &Matches, write: usize, expression: Option<usize>) -> bool {
        let spells = |at| {
            let text = self.args_match.as_deref().unwrap_or_default();
            text.contains('>') && matches.spells(write, at)
        };
        expression.is_none_or(spells)
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
            default_mode: Mode::Deny,
            is_trial: false,
            expressions,
            automata: OnceLock::new(),
        })
    }

    /// Which expressions find something in what a command may become.
    fn possible(&self, subject: &RuleSubject<'_>) -> Vec<bool> {
        let parts = subject.line.iter().flat_map(|line| &line.parts);
        let possible = parts.filter_map(|part| Possible::new(part.command, false));
        let possible: Vec<Possible> = possible.collect();
        if possible.is_empty() {
            return Vec::new();
        }
        let make = |text: &String| automaton(text, Reading::Plain);
        let automata = self
            .automata
            .get_or_init(|| self.expressions.patterns().iter().map(make).collect());
        let may_fit = |pattern: &Option<NFA>| possible.iter().any(|p| p.may_fit(pattern.as_ref()));
        automata.iter().map(may_fit).collect()
    }

    /// Whether a rule looks at paths.
    pub(super) fn looks_at_paths(&self) -> bool {
        let mut rules = self.rules();
        rules.any(|rule| !rule.paths.is_empty() || rule.args_match.is_some())
    }

    /// Whether a rule over paths is for commands, so that their words have to be resolved.
    pub(super) fn looks_at_words(&self) -> bool {
        let mut rules = self.rules();
        rules.any(|rule| !rule.paths.is_empty() && rule.tool.fits(SHELL))
    }

    /// The globs over paths of the rules that allow something of the tool with these names, whatever its arguments.
    pub(super) fn allowed_paths<'a>(
        &'a self,
        names: &'a [String],
        facts: &'a SessionFacts<'_>,
    ) -> impl Iterator<Item = &'a Pattern> {
        let allows = move |rule: &&PolicyRule| {
            rule.effect == Effect::Allow && rule.args_match.is_none() && rule.is_for(names, facts)
        };
        self.rules().filter(allows).flat_map(|rule| &rule.paths)
    }

    /// The rules in force.
    fn rules(&self) -> impl Iterator<Item = &PolicyRule> {
        let rules = self.sections.iter().flat_map(|(_, rules)| rules);
        rules.filter(|rule| self.has_in_force(rule))
    }

    /// What the rules say of `subject`, and for each write of its line whether they let `write` do it.
    pub(super) fn check(
        &self,
        subject: &RuleSubject<'_>,
        facts: &SessionFacts<'_>,
    ) -> (Finding, Vec<bool>) {
        let matches = Matches::of(&self.expressions, subject).with_possible(self.possible(subject));
        let writes = self.writes(subject, facts);
        let written: Vec<bool> = writes
            .iter()
            .map(|write| write.says(Verdict::Allow))
            .collect();
        let target = RuleTarget {
            names: &subject.names,
            reach: &Reach::of(subject),
            matches: &matches,
        };
        let ruling = self.ruling(&target, facts, |rule, expression| {
            let mut writes = written.iter().enumerate();
            writes.all(|(idx, is_written)| {
                *is_written || rule.allows_write(&matches, idx, expression)
            })
        });
        let all = || [&ruling].into_iter().chain(&writes);
        let denial = all().find_map(RuleMatch::denial);
        let finding = denial
            .or_else(|| self.default(&ruling))
            .or_else(|| all().find_map(RuleMatch::question))
            .or_else(|| self.default_question(&ruling));
        (finding.unwrap_or_else(|| ruling.rest()), written)
    }

    /// Every redirection of the line as a call of `write`.
    fn writes(&self, subject: &RuleSubject<'_>, facts: &SessionFacts<'_>) -> Vec<RuleMatch> {
        let names = WRITER.map(str::to_owned);
        let writes = subject.line.iter().flat_map(|line| &line.writes);
        let rulings = writes.map(|write| {
            let reach = Reach::of_write(write);
            let target = RuleTarget {
                names: &names,
                matches: &Matches::of_paths(&self.expressions, &reach.paths),
                reach: &reach,
            };
            self.ruling(&target, facts, |_, _| !reach.paths.is_empty())
        });
        rulings.collect()
    }

    /// The first rule that matches; an allow rule only matches if `allows` is true for it.
    fn ruling(
        &self,
        target: &RuleTarget<'_>,
        facts: &SessionFacts<'_>,
        allows: impl Fn(&PolicyRule, Option<usize>) -> bool,
    ) -> RuleMatch {
        let mut ruling = RuleMatch::default();
        for (name, rule, expression) in self.numbered() {
            match rule.fit(target, facts, expression) {
                RuleFit::No => {}
                RuleFit::Perhaps(word) => {
                    ruling.doubt.get_or_insert((name(), word));
                }
                RuleFit::Yes if rule.effect == Effect::Allow && !allows(rule, expression) => {}
                RuleFit::Yes => {
                    ruling.decided = Some((rule.says(), name()));
                    break;
                }
            }
        }
        ruling
    }

    /// Every rule in force in order, with its name in traces and the place of its expression.
    fn numbered(&self) -> impl Iterator<Item = (impl Fn() -> String, &PolicyRule, Option<usize>)> {
        let all = self.all();
        all.filter(|(_, rule, _)| self.has_in_force(rule))
    }

    /// Every rule, those that only observe too.
    fn all(&self) -> impl Iterator<Item = (impl Fn() -> String, &PolicyRule, Option<usize>)> {
        let rules = self.sections.iter().flat_map(|(section, rules)| {
            let rules = rules.iter().enumerate();
            rules.map(move |(idx, rule)| (section, idx, rule))
        });
        let mut n_expressions = 0;
        rules.map(move |(section, idx, rule)| {
            let expression = rule.args_match.is_some().then_some(n_expressions);
            n_expressions += usize::from(expression.is_some());
            let name = move || match rule.key {
                Some(key) => key.to_owned(),
                None => format!("{section} rule {}", idx + 1),
            };
            (name, rule, expression)
        })
    }
}
