//! Rules over what a call says: `tools.permissions`, or the lists of `tools.shell` in its absence, together with `--allow`.
//!
//! A command line is judged part by part: refused when one part is, allowed only when every part that does something of its own is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::allow::{AllowRule, is_exactly};
use super::bad::BadRule;
use super::command::CommandPattern;
use super::data_words;
use super::pattern::Pattern;
use super::redirection::{SpelledRedirection, Write};
use super::subject::{LinePart, LineTexts, RuleSubject, SHELL, Text, tool_key};
use super::{Finding, PathLayer, Policy, Verdict};
use crate::command::SimpleCommand;

mod line;

/// What a matching rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It runs without a question.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

/// One rule of a tool.
#[derive(Debug, Clone)]
pub struct PermissionRule {
    text: Pattern,
    path: Pattern,
    /// The redirection that it spells, if it does.
    spelled: Option<SpelledRedirection>,
    action: Action,
    /// The preset it comes from, if it is not the operator's own.
    preset: Option<&'static str>,
    /// Whether it is on trial: it decides nothing.
    observes: bool,
}

impl PermissionRule {
    /// Compiles a rule.
    ///
    /// Shape: `pattern` is a glob over the whole text of the command, path, address or argument, without regard to case; `*` is any text. Over
    /// paths a relative pattern is resolved against `directory`, and `.`, `..`, doubled and closing slashes are dissolved.
    /// Errors: [`BadRule`] if the glob is empty, invalid or longer than 16 KiB, or, unless `tool` is the shell, has `..` behind a wildcard.
    pub fn new(
        tool: &str,
        pattern: &str,
        action: Action,
        directory: &str,
    ) -> Result<Self, BadRule> {
        BadRule::unless_empty(pattern)?;
        Ok(Self {
            text: Pattern::new(pattern)?,
            path: path_pattern(tool, pattern, directory)?,
            spelled: SpelledRedirection::read(pattern, directory)?,
            action,
            preset: None,
            observes: false,
        })
    }

    /// Puts the rule on trial.
    #[must_use]
    pub fn observing(mut self) -> Self {
        self.observes = true;
        self
    }

    /// Whether it is on trial.
    pub fn observes(&self) -> bool {
        self.observes
    }

    /// Marks the rule as one of a preset of the program.
    #[must_use]
    pub fn of_preset(mut self, preset: &'static str) -> Self {
        self.preset = Some(preset);
        self
    }

    /// Its pattern as given.
    pub fn pattern(&self) -> &str {
        &self.text.text
    }

    /// What it does.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The preset it comes from; `None` for the operator's own.
    pub fn preset(&self) -> Option<&'static str> {
        self.preset
    }

    /// What traces and refusals call it.
    fn name(&self, tool: &str) -> String {
        let pattern = &self.text.text;
        match self.preset {
            Some(preset) => format!("tools.permissions_preset \"{preset}\" `{pattern}`"),
            None => format!("tools.permissions.{tool} `{pattern}`"),
        }
    }

    fn fits(&self, lower: &str) -> bool {
        self.text.fits(lower) || self.path.fits(lower)
    }

    fn fits_part(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> bool {
        let spells = |spelled: &SpelledRedirection| spelled.fits_part(line, part);
        let fits = match self.action {
            Action::Allow => {
                part.is_allowed_by(&self.text)
                    || part.is_allowed_plainly_by(&self.text, self.preset.is_some())
            }
            Action::Ask | Action::Deny => part.is_meant_by(&self.text),
        };
        fits || self.spelled.as_ref().is_some_and(spells)
    }

    /// Whether it fits a part, and does so without the words that are only data.
    pub(super) fn fit_part(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> PermissionFit {
        let fit = self.fit_as_written(line, part);
        if fit == PermissionFit::No || self.action == Action::Allow {
            return fit;
        }
        match self.masked(part) {
            Some(masked) => self.fit_as_written(line, &LinePart::new(part.idx, &masked)),
            None => fit,
        }
    }

    /// Whether it fits the text of a line, and not only by words of its parts that are data.
    pub(super) fn fits_whole(&self, line: &LineTexts<'_>) -> bool {
        if !self.text.fits(&line.whole.lower) {
            return false;
        }
        if self.action == Action::Allow || !line.unknown.is_empty() {
            return true;
        }
        let excused = line.parts.iter().filter_map(|part| {
            if self.fit_as_written(line, part) == PermissionFit::No {
                return None;
            }
            let masked = self.masked(part)?;
            let fit = self.fit_as_written(line, &LinePart::new(part.idx, &masked));
            (fit == PermissionFit::No).then_some((part, masked))
        });
        let left = excused.fold(line.whole.given.clone(), |left, (part, masked)| {
            data_words::masked_text(left, part.command, &masked)
        });
        self.text.fits(&left.to_lowercase())
    }

    /// A part without the words that are only data, if it has some.
    fn masked(&self, part: &LinePart<'_>) -> Option<SimpleCommand> {
        data_words::masked(part.command, &self.text.text, self.preset.is_some())
    }

    fn fit_as_written(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> PermissionFit {
        let may_fit = || match self.action {
            Action::Allow => false,
            Action::Ask => part.may_be_asked_by(&self.text),
            Action::Deny => part.may_be_refused_by(&self.text),
        };
        PermissionFit::from(self.fits_part(line, part)).or(may_fit)
    }

    /// Whether it is about a redirection of a line: it spells it, or it is for everything.
    fn fits_write(&self, line: &LineTexts<'_>, write: &Write<'_>) -> bool {
        let spells = |spelled: &SpelledRedirection| spelled.fits(line, write);
        self.text.is_any() || self.spelled.as_ref().is_some_and(spells)
    }
}

/// Compiles `pattern` for the paths of calls of `tool`. A pattern for commands is never read as a path.
pub(super) fn path_pattern(tool: &str, pattern: &str, directory: &str) -> Result<Pattern, BadRule> {
    match tool_key(tool).as_str() {
        SHELL => Pattern::new(pattern),
        _ => Pattern::path(pattern, directory),
    }
}

/// Whether a rule fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermissionFit {
    No,
    /// By what an argument that is not known may be.
    Maybe,
    Yes,
}

impl From<bool> for PermissionFit {
    fn from(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }
}

impl PermissionFit {
    fn or(self, may_fit: impl FnOnce() -> bool) -> Self {
        match self {
            Self::No if may_fit() => Self::Maybe,
            other => other,
        }
    }
}

/// The rules of each tool, in order; the first that matches decides.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    tools: BTreeMap<String, Vec<PermissionRule>>,
}

impl Permissions {
    /// Takes the rules of each tool, by its name. `bash`, `sh` and `shell` are one. All of them decide, those on trial too: who
    /// makes the rules that decide omits these.
    pub fn new(tools: impl IntoIterator<Item = (String, Vec<PermissionRule>)>) -> Self {
        let mut this = Self::default();
        for (tool, rules) in tools {
            let known = this.tools.entry(tool_key(&tool)).or_default();
            known.extend(rules);
        }
        this
    }

    /// Whether no call of the tool with these names can run, because its first rule denies everything. Models are not shown it.
    pub(super) fn hides(&self, names: &[String]) -> bool {
        names.iter().any(|name| {
            let first = self.of(name).first();
            first.is_some_and(|rule| rule.action == Action::Deny && rule.text.is_any())
        })
    }

    /// Every rule, by the name of its tool, in the order they are asked.
    pub fn rules(&self) -> impl Iterator<Item = (&str, &[PermissionRule])> {
        let tools = self.tools.iter();
        tools.map(|(tool, rules)| (tool.as_str(), rules.as_slice()))
    }

    /// The patterns over paths of the rules that allow something of the tool with these names.
    pub(super) fn allowed_paths<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = &'a Pattern> {
        let rules = names.iter().flat_map(|name| self.of(name));
        rules
            .filter(|rule| rule.action == Action::Allow)
            .map(|rule| &rule.path)
    }

    /// The rules under one name.
    fn of(&self, name: &str) -> &[PermissionRule] {
        self.tools.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether there are rules for the tool with these names: what matches none of them asks.
    pub(super) fn knows(&self, names: &[String]) -> bool {
        names.iter().any(|name| !self.of(name).is_empty())
    }

    /// The rules under each of the names as layers over paths; empty lists where nothing is hidden.
    pub(super) fn layers(&self, names: &[String]) -> Vec<Vec<PathLayer>> {
        let of_name = |name: &String| {
            let rules = self.of(name);
            let n_layers = rules.iter().rposition(|rule| rule.action == Action::Deny);
            let rules = rules.iter().take(n_layers.map_or(0, |last| last + 1));
            let layers = rules.map(|rule| PathLayer {
                hides: rule.action == Action::Deny,
                globs: vec![rule.path.matched()],
            });
            layers.collect()
        };
        names.iter().map(of_name).collect()
    }

    /// The result of the first rule that fits under each of the names; the strictest applies.
    fn ask<F: Into<PermissionFit>>(
        &self,
        names: &[String],
        fit: impl Fn(&PermissionRule) -> F,
    ) -> TextVerdict {
        let said = names.iter().map(|name| first(self.of(name), name, &fit));
        said.fold(TextVerdict::Nothing, TextVerdict::or_stricter)
    }
}

/// The lists of `tools.shell`.
#[derive(Debug, Clone, Default)]
pub struct ShellLists {
    /// Commands that never run.
    pub blocked: Vec<CommandPattern>,
    /// Commands that ask.
    pub confirm: Vec<CommandPattern>,
    /// Whether `blocked` asks instead.
    pub blocked_asks: bool,
    /// Whether `confirm` refuses instead.
    pub confirm_denies: bool,
}

/// Where permissions come from.
#[derive(Debug, Clone)]
pub enum PermissionSource {
    /// `tools.permissions`.
    Rules(Permissions),
    /// The lists, because there are no permissions.
    Lists(ShellLists),
}

impl Default for PermissionSource {
    fn default() -> Self {
        Self::Lists(ShellLists::default())
    }
}

/// The result of rules for one text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TextVerdict {
    Nothing,
    Allow(String),
    Ask(String),
    /// A rule refuses some of what the command may become.
    Doubt(String),
    Deny(String),
}

impl TextVerdict {
    /// The stricter of both; anything is stricter than nothing.
    fn or_stricter(self, other: Self) -> Self {
        let rank = |said: &Self| match said {
            Self::Nothing => 0,
            Self::Allow(_) => 1,
            Self::Ask(_) => 2,
            Self::Doubt(_) => 3,
            Self::Deny(_) => 4,
        };
        match rank(&other) > rank(&self) {
            true => other,
            false => self,
        }
    }

    fn is_allow(&self) -> bool {
        matches!(self, Self::Allow(_))
    }

    fn by_flag(rule: &AllowRule) -> Self {
        Self::Allow(format!("--allow {}", rule.text()))
    }
}

/// Asks the rules about `subject`. `written` says for each write of its line whether a rule of the policy lets `write` do it.
pub(super) fn check(policy: &Policy, subject: &RuleSubject<'_>, written: &[bool]) -> Finding {
    check_with((&policy.permissions, policy), subject, written)
}

/// Asks other rules than those of the policy.
pub(super) fn check_with(
    (source, policy): (&PermissionSource, &Policy),
    subject: &RuleSubject<'_>,
    written: &[bool],
) -> Finding {
    let flags = &policy.allow;
    let of_tool = |rule: &&AllowRule| subject.names.iter().any(|name| rule.names(name));
    let own: Vec<&AllowRule> = flags.iter().filter(of_tool).collect();
    match &subject.line {
        Some(line) => {
            let asked = line::LineQuery {
                source,
                flags,
                own: &own,
                subject,
                line,
                directory: &policy.directory,
                written,
            };
            asked.finding()
        }
        None => of_texts(source, &own, subject),
    }
}

fn of_texts(source: &PermissionSource, allow: &[&AllowRule], subject: &RuleSubject<'_>) -> Finding {
    let of_text = |text: &Text| {
        let said = match source {
            PermissionSource::Rules(permissions) => {
                permissions.ask(&subject.names, |rule| rule.fits(&text.lower))
            }
            PermissionSource::Lists(_) => TextVerdict::Nothing,
        };
        if matches!(said, TextVerdict::Deny(_)) {
            return said;
        }
        // A call that names no path gives a pattern over paths nothing to fit.
        let mut allow = allow
            .iter()
            .filter(|rule| !rule.has_pattern() || !text.given.is_empty());
        let fitting = allow.find(|rule| rule.fits(subject, &text.lower));
        fitting.map_or(said, |rule| TextVerdict::by_flag(rule))
    };
    let said = subject.texts.iter().map(of_text).collect();
    sum(said, &[]).missing(vec![subject.call.name().to_string()])
}

fn first<F: Into<PermissionFit>>(
    rules: &[PermissionRule],
    name: &str,
    fit: impl Fn(&PermissionRule) -> F,
) -> TextVerdict {
    let mut found = rules.iter().map(|rule| (rule, fit(rule).into()));
    let Some((rule, fit)) = found.find(|(_, fit)| *fit != PermissionFit::No) else {
        return TextVerdict::Nothing;
    };
    let name = rule.name(name);
    match rule.action {
        Action::Allow => TextVerdict::Allow(name),
        Action::Ask => TextVerdict::Ask(name),
        Action::Deny if fit == PermissionFit::Maybe => TextVerdict::Doubt(name),
        Action::Deny => TextVerdict::Deny(name),
    }
}

/// One word for all: refused when one is, else asked when one is, else allowed when all are.
fn sum(said: Vec<TextVerdict>, unknown: &[crate::command::Unknown]) -> Finding {
    let mut asks = None;
    let mut allows = None;
    let mut n_allowed = 0;
    let n_said = said.len();
    for said in said {
        match said {
            TextVerdict::Deny(rule) => return denied(&rule, ""),
            TextVerdict::Ask(rule) | TextVerdict::Doubt(rule) => asks = asks.or(Some(rule)),
            TextVerdict::Allow(rule) => {
                n_allowed += 1;
                allows = allows.or(Some(rule));
            }
            TextVerdict::Nothing => {}
        }
    }
    if let Some(rule) = asks {
        let reason = format!("it needs approval ({rule})");
        return Finding::new(Verdict::Ask, rule).because(reason);
    }
    match allows {
        Some(rule) if n_allowed == n_said && unknown.is_empty() => {
            Finding::new(Verdict::Allow, rule)
        }
        Some(rule) if n_allowed == n_said => {
            Finding::pass("all that is known of it is allowed").by(rule)
        }
        Some(rule) => Finding::pass("only a part of it is allowed").by(rule),
        None => Finding::pass("no rule matches"),
    }
}

fn denied(rule: &str, what: &str) -> Finding {
    let what = crate::failure::one_line(what, 200);
    let reason = if what.is_empty() {
        format!("{rule} forbids it")
    } else {
        format!("`{what}` is forbidden by {rule}")
    };
    Finding::new(Verdict::Deny, rule.to_owned()).because(reason)
}
