//! Rules over what a call says: `tools.permissions`, or the lists of `tools.shell` in its absence, together with `--allow`.
//!
//! A command line is judged part by part: refused when one part is, allowed only when every part that does something of its own is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::allow::{AllowRule, is_exactly};
use super::bad::BadRule;
use super::command::CommandPattern;
use super::pattern::Pattern;
use super::subject::{Line, Part, Subject, Text, tool_key};
use super::{Finding, Verdict, advice};

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
    action: Action,
}

impl PermissionRule {
    /// Compiles a rule.
    ///
    /// Shape: `pattern` is a glob over the whole text of the command, path, address or argument, without regard to case; `*` is any text. Over
    /// paths a relative pattern starts in `directory`.
    pub fn new(pattern: &str, action: Action, directory: &str) -> Result<Self, BadRule> {
        Ok(Self {
            text: Pattern::new(pattern)?,
            path: Pattern::path(pattern, directory)?,
            action,
        })
    }

    fn fits(&self, lower: &str) -> bool {
        self.text.fits(lower) || self.path.fits(lower)
    }

    fn fits_part(&self, part: &Part<'_>) -> bool {
        let bare = || part.bare.as_ref().is_some_and(|bare| self.text.fits(bare));
        self.text.fits(&part.text.lower) || self.action != Action::Allow && bare()
    }
}

/// The rules of each tool, in order; the first that matches decides.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    tools: BTreeMap<String, Vec<PermissionRule>>,
}

impl Permissions {
    /// Takes the rules of each tool, by its name. `bash`, `sh` and `shell` are one.
    pub fn new(tools: impl IntoIterator<Item = (String, Vec<PermissionRule>)>) -> Self {
        let mut this = Self::default();
        for (tool, rules) in tools {
            let known = this.tools.entry(tool_key(&tool)).or_default();
            known.extend(rules);
        }
        this
    }

    /// Whether nothing of the tool can run, so that nobody needs to know it: its first rule refuses everything.
    pub(super) fn hides(&self, tool: &str) -> bool {
        let first = self.tools.get(tool).and_then(|rules| rules.first());
        first.is_some_and(|rule| rule.action == Action::Deny && rule.text.is_any())
    }

    /// The rules of `tool`.
    fn of(&self, tool: &str) -> &[PermissionRule] {
        self.tools.get(tool).map_or(&[], Vec::as_slice)
    }

    /// Whether there are rules for `tool`: what matches none of them asks.
    pub(super) fn knows(&self, tool: &str) -> bool {
        !self.of(tool).is_empty()
    }
}

/// The lists of `tools.shell`.
#[derive(Debug, Clone, Default)]
pub struct ShellLists {
    /// Commands that never run.
    pub blocked: Vec<CommandPattern>,
    /// Commands that ask.
    pub confirm: Vec<CommandPattern>,
}

/// What stands for permissions.
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

/// What rules say of one text.
enum Said {
    Nothing,
    Allow(String),
    Ask(String),
    Deny(String),
}

/// Asks the rules about `subject`.
pub(super) fn check(
    source: &PermissionSource,
    allow: &[AllowRule],
    subject: &Subject<'_>,
) -> Finding {
    let allow: Vec<&AllowRule> = allow
        .iter()
        .filter(|rule| rule.names(&subject.tool))
        .collect();
    match &subject.line {
        Some(line) => of_line(source, &allow, subject, line),
        None => of_texts(source, &allow, subject),
    }
}

fn of_texts(source: &PermissionSource, allow: &[&AllowRule], subject: &Subject<'_>) -> Finding {
    let rules = match source {
        PermissionSource::Rules(permissions) => permissions.of(&subject.tool),
        PermissionSource::Lists(_) => &[],
    };
    let said: Vec<Said> = subject
        .texts
        .iter()
        .map(|text| {
            let said = first(rules, &subject.tool, |rule| rule.fits(&text.lower));
            if matches!(said, Said::Deny(_)) {
                return said;
            }
            // A call that names no path gives a pattern over paths nothing to fit.
            let mut allow = allow
                .iter()
                .filter(|rule| !rule.has_pattern() || !text.given.is_empty());
            match allow.find(|rule| rule.fits(subject, &text.lower)) {
                Some(rule) => Said::Allow(format!("--allow {}", rule.text())),
                None => said,
            }
        })
        .collect();
    sum(said, &[]).missing(vec![subject.call.name().to_string()])
}

fn of_line(
    source: &PermissionSource,
    allow: &[&AllowRule],
    subject: &Subject<'_>,
    line: &Line<'_>,
) -> Finding {
    let tool = &subject.tool;
    let every = || line.parts.iter();
    let whole = of_whole(source, tool, line);
    if let Said::Deny(rule) = &whole {
        return denied(rule, &line.whole.given);
    }
    for part in every() {
        if let Said::Deny(rule) = of_part(source, tool, part) {
            return denied(&rule, &part.text.given);
        }
    }
    // An operator who names the very text, or the whole tool, has nothing left to be asked.
    let given = &line.whole.given;
    let covers = |rule: &&&AllowRule| rule.is_whole_tool() || rule.is_exactly(given);
    if let Some(rule) = allow.iter().find(covers) {
        return Finding::new(Verdict::Allow, format!("--allow {}", rule.text()));
    }
    if let Some(rule) = exact(source, tool, &line.whole) {
        return Finding::new(Verdict::Allow, rule);
    }
    let required = line.required();
    let mut said: Vec<Said> = Vec::new();
    let mut missing = Vec::new();
    for part in &required {
        let fits = |rule: &&&AllowRule| rule.fits(subject, &part.text.lower);
        let this = match allow.iter().find(fits) {
            Some(rule) => Said::Allow(format!("--allow {}", rule.text())),
            None => of_part(source, tool, part),
        };
        if !matches!(this, Said::Allow(_)) {
            missing.push(*part);
        }
        said.push(this);
    }
    // Of the others only a question about them in particular counts.
    for part in line.parts.iter().filter(|part| !line.requires(part)) {
        let is_allowed = || {
            allow
                .iter()
                .any(|rule| rule.fits(subject, &part.text.lower))
        };
        if let Some(rule) = asked(source, tool, part)
            && !is_allowed()
        {
            missing.push(part);
            said.push(Said::Ask(rule));
        }
    }
    // What the text as a whole asks about is answered when every part of it is allowed from outside.
    let is_covered = missing.is_empty() && !said.is_empty();
    if let (Said::Ask(rule), false) = (&whole, is_covered) {
        said.push(Said::Ask(rule.clone()));
    }
    if said.is_empty() {
        let fits = |rule: &&&AllowRule| rule.fits(subject, &line.whole.lower);
        said.push(match allow.iter().find(fits) {
            Some(rule) => Said::Allow(format!("--allow {}", rule.text())),
            None => whole,
        });
    }
    let rules = advice::rules(line, &missing);
    sum(said, line.unknown).missing(rules)
}

/// What the rules say of one simple command.
fn of_part(source: &PermissionSource, tool: &str, part: &Part<'_>) -> Said {
    match source {
        PermissionSource::Rules(permissions) => {
            first(permissions.of(tool), tool, |rule| rule.fits_part(part))
        }
        PermissionSource::Lists(lists) => {
            of_lists(lists, |pattern: &CommandPattern| pattern.fits_part(part))
        }
    }
}

/// The rule that asks about this simple command, unless it asks about every one.
fn asked(source: &PermissionSource, tool: &str, part: &Part<'_>) -> Option<String> {
    match source {
        PermissionSource::Rules(permissions) => {
            let rules = permissions.of(tool);
            let rule = rules.iter().find(|rule| rule.fits_part(part))?;
            let asks = rule.action == Action::Ask && !rule.text.is_any();
            asks.then(|| named(tool, &rule.text.text))
        }
        PermissionSource::Lists(_) => match of_part(source, tool, part) {
            Said::Ask(rule) => Some(rule),
            Said::Nothing | Said::Allow(_) | Said::Deny(_) => None,
        },
    }
}

/// What they say of the text itself. A rule for everything is left to the parts: the text always fits it, and they may fit an earlier one.
fn of_whole(source: &PermissionSource, tool: &str, line: &Line<'_>) -> Said {
    match source {
        PermissionSource::Rules(permissions) => first(permissions.of(tool), tool, |rule| {
            let is_for_parts = rule.text.is_any() && !line.parts.is_empty();
            !is_for_parts && rule.text.fits(&line.whole.lower)
        }),
        PermissionSource::Lists(lists) => {
            of_lists(lists, |pattern: &CommandPattern| pattern.fits_whole(line))
        }
    }
}

/// The rule that allows exactly this text, when it is the first to fit it.
fn exact(source: &PermissionSource, tool: &str, whole: &Text) -> Option<String> {
    let PermissionSource::Rules(permissions) = source else {
        return None;
    };
    let rule = permissions
        .of(tool)
        .iter()
        .find(|rule| is_exactly(&rule.text.text, &whole.given) || rule.text.fits(&whole.lower))?;
    let is_exact = rule.action == Action::Allow && is_exactly(&rule.text.text, &whole.given);
    is_exact.then(|| named(tool, &rule.text.text))
}

fn first(rules: &[PermissionRule], tool: &str, fits: impl Fn(&PermissionRule) -> bool) -> Said {
    let Some(rule) = rules.iter().find(|rule| fits(rule)) else {
        return Said::Nothing;
    };
    let name = named(tool, &rule.text.text);
    match rule.action {
        Action::Allow => Said::Allow(name),
        Action::Ask => Said::Ask(name),
        Action::Deny => Said::Deny(name),
    }
}

fn named(tool: &str, pattern: &str) -> String {
    format!("tools.permissions.{tool} `{pattern}`")
}

fn of_lists(lists: &ShellLists, fits: impl Fn(&CommandPattern) -> bool) -> Said {
    if let Some(pattern) = lists.blocked.iter().find(|pattern| fits(pattern)) {
        return Said::Deny(format!("tools.shell.blocked_commands `{}`", pattern.text()));
    }
    match lists.confirm.iter().find(|pattern| fits(pattern)) {
        Some(pattern) => Said::Ask(format!("tools.shell.confirm_patterns `{}`", pattern.text())),
        None => Said::Nothing,
    }
}

/// One word for all: refused when one is, else asked when one is, else allowed when all are.
fn sum(said: Vec<Said>, unknown: &[crate::command::Unknown]) -> Finding {
    let mut asks = None;
    let mut allows = None;
    let mut n_allowed = 0;
    let n_said = said.len();
    for said in said {
        match said {
            Said::Deny(rule) => return denied(&rule, ""),
            Said::Ask(rule) => asks = asks.or(Some(rule)),
            Said::Allow(rule) => {
                n_allowed += 1;
                allows = allows.or(Some(rule));
            }
            Said::Nothing => {}
        }
    }
    if let Some(rule) = asks {
        let reason = format!("it needs a person's agreement ({rule})");
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
