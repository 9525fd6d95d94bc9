//! What permissions and `--allow` say of a command line: part by part, and of every file it writes to.

use std::path::Path;

use super::{
    Action, PermissionFit, PermissionSource, ShellLists, TextVerdict, denied, is_exactly, sum,
};
use crate::policy::advice;
use crate::policy::allow::AllowRule;
use crate::policy::command::CommandPattern;
use crate::policy::redirection::Write;
use crate::policy::subject::{LinePart, LineTexts, RuleSubject, SHELL, Text, WRITER};
use crate::policy::{Finding, Verdict};

/// The rules and the line they are asked about.
pub(super) struct LineQuery<'a> {
    pub(super) source: &'a PermissionSource,
    /// Every `--allow`.
    pub(super) flags: &'a [AllowRule],
    /// Those for the shell.
    pub(super) own: &'a [&'a AllowRule],
    pub(super) subject: &'a RuleSubject<'a>,
    pub(super) line: &'a LineTexts<'a>,
    /// Where relative patterns over paths start.
    pub(super) directory: &'a Path,
    /// For each write, whether a rule of the policy lets `write` do it.
    pub(super) written: &'a [bool],
}

/// The results for the parts so far.
#[derive(Default)]
struct Tally<'a> {
    said: Vec<TextVerdict>,
    /// Parts that no rule allows.
    parts: Vec<&'a LinePart<'a>>,
    /// Writes that no rule allows.
    writes: Vec<&'a Write<'a>>,
}

impl<'a> LineQuery<'a> {
    /// One word for the whole line.
    pub(super) fn finding(&self) -> Finding {
        let whole = self.whole();
        let decided = self.denial(&whole).or_else(|| self.covered());
        if let Some(finding) = decided.or_else(|| self.doubt()) {
            return finding;
        }
        let mut tally = Tally::default();
        self.required(&mut tally);
        self.questions(&mut tally);
        self.writes(&mut tally);
        // What the text as a whole asks about is answered when every part of it is allowed from outside.
        let is_covered =
            tally.parts.is_empty() && tally.writes.is_empty() && !tally.said.is_empty();
        match &whole {
            TextVerdict::Ask(_) if !is_covered => tally.said.push(whole),
            _ if tally.said.is_empty() => tally.said.push(self.flag_over_text().unwrap_or(whole)),
            _ => {}
        }
        let rules = advice::rules(self.directory, self.line, &tally.parts, &tally.writes);
        sum(tally.said, &self.line.unknown).missing(rules)
    }

    /// A refusal of a part, of a file it writes to, or of the text.
    fn denial(&self, whole: &TextVerdict) -> Option<Finding> {
        let parts = self.line.parts.iter();
        let parts = parts.map(|part| (self.part(part), part.text.given.clone()));
        let writes = self.line.writes.iter().enumerate();
        let writes = writes.map(|(idx, write)| (self.write(idx, write), write.shown()));
        let found = parts.chain(writes).find_map(|(said, what)| match said {
            TextVerdict::Deny(rule) => Some(denied(&rule, &what)),
            _ => None,
        });
        found.or_else(|| match whole {
            TextVerdict::Deny(rule) => Some(self.denied_text(rule)),
            _ => None,
        })
    }

    /// A refusal of the text, in which no part is refused by itself.
    fn denied_text(&self, rule: &str) -> Finding {
        let unknown = self.line.unknown.first();
        match (self.source, unknown) {
            (PermissionSource::Lists(_), Some(unknown)) => {
                let reason = format!(
                    "the line contains what {rule} forbids, and not all that it runs is known (`{}`: {}); remove it from the line, or \
                     have the operator remove the entry (a built-in one of `blocked_commands` with `tools.shell.allowed_commands`)",
                    crate::failure::one_line(&unknown.part, 100),
                    unknown.reason,
                );
                Finding::new(Verdict::Deny, rule.to_owned()).because(reason)
            }
            _ => denied(rule, &self.line.whole.given),
        }
    }

    /// An operator who names the very text, or the whole tool, has nothing left to be asked.
    fn covered(&self) -> Option<Finding> {
        let given = &self.line.whole.given;
        let covers = |rule: &&&AllowRule| rule.is_whole_tool() || rule.is_exactly(given);
        let flag = self.own.iter().find(covers);
        let rule = flag.map(|rule| format!("--allow {}", rule.text()));
        let rule = rule.or_else(|| exact(self.source, &self.line.whole))?;
        Some(Finding::new(Verdict::Allow, rule))
    }

    /// The question about a part that may become what a rule refuses: nothing but the very text lifts it.
    fn doubt(&self) -> Option<Finding> {
        let parts = self.line.parts.iter();
        let mut said = parts.map(|part| (part, self.part(part)));
        let (part, rule) = said.find_map(|(part, said)| match said {
            TextVerdict::Doubt(rule) => Some((part, rule)),
            _ => None,
        })?;
        let reason = format!(
            "what `{}` becomes is known only when it runs, and {rule} may forbid it",
            crate::failure::one_line(&part.text.given, 200)
        );
        let finding = Finding::new(Verdict::Ask, rule).because(reason);
        Some(finding.missing(advice::exactly(self.line)))
    }

    /// Adds the results for the parts that need their own rule.
    fn required(&self, tally: &mut Tally<'a>) {
        for part in self.line.required() {
            let flag = self.flag(part);
            let this = flag.unwrap_or_else(|| self.part(part));
            if !this.is_allow() {
                tally.parts.push(part);
            }
            tally.said.push(this);
        }
    }

    /// Of the others only a question about them in particular counts.
    fn questions(&self, tally: &mut Tally<'a>) {
        let others = self.line.parts.iter();
        for part in others.filter(|part| !self.line.requires(part)) {
            if let Some(rule) = self.asked(part)
                && self.flag(part).is_none()
            {
                tally.parts.push(part);
                tally.said.push(TextVerdict::Ask(rule));
            }
        }
    }

    fn writes(&self, tally: &mut Tally<'a>) {
        for (idx, write) in self.line.writes.iter().enumerate() {
            let this = self.write(idx, write);
            if !this.is_allow() {
                tally.writes.push(write);
            }
            tally.said.push(this);
        }
    }

    /// The `--allow` that lets a part run.
    fn flag(&self, part: &LinePart<'_>) -> Option<TextVerdict> {
        let mut own = self.own.iter();
        let rule = own.find(|rule| rule.fits_part(self.line, part))?;
        Some(TextVerdict::by_flag(rule))
    }

    /// The `--allow` that fits the text.
    fn flag_over_text(&self) -> Option<TextVerdict> {
        let mut own = self.own.iter();
        let rule = own.find(|rule| rule.fits(self.subject, &self.line.whole.lower))?;
        Some(TextVerdict::by_flag(rule))
    }

    /// What the rules say of one simple command.
    fn part(&self, part: &LinePart<'_>) -> TextVerdict {
        match self.source {
            PermissionSource::Rules(permissions) => {
                permissions.ask(&self.subject.names, |rule| rule.fit_part(self.line, part))
            }
            PermissionSource::Lists(lists) => of_lists(lists, |pattern: &CommandPattern| {
                PermissionFit::from(pattern.fits_part(self.line, part))
                    .or(|| pattern.may_fit_part(self.line, part))
            }),
        }
    }

    /// The rule that asks about this simple command, unless it asks about every one.
    fn asked(&self, part: &LinePart<'_>) -> Option<String> {
        match self.source {
            PermissionSource::Rules(permissions) => {
                let rules = permissions.of(SHELL);
                let mut rules = rules.iter();
                let rule =
                    rules.find(|rule| rule.fit_part(self.line, part) != PermissionFit::No)?;
                let asks = rule.action == Action::Ask && !rule.text.is_any();
                asks.then(|| rule.name(SHELL))
            }
            PermissionSource::Lists(_) => match self.part(part) {
                TextVerdict::Ask(rule) => Some(rule),
                TextVerdict::Nothing
                | TextVerdict::Allow(_)
                | TextVerdict::Doubt(_)
                | TextVerdict::Deny(_) => None,
            },
        }
    }

    /// What they say of the text itself. A rule for everything is left to the parts: the text always fits it, and they may fit an
    /// earlier one.
    fn whole(&self) -> TextVerdict {
        let line = self.line;
        match self.source {
            PermissionSource::Rules(permissions) => permissions.ask(&self.subject.names, |rule| {
                let is_for_parts = rule.text.is_any() && !line.parts.is_empty();
                !is_for_parts && rule.fits_whole(line)
            }),
            PermissionSource::Lists(lists) => of_lists(lists, |pattern: &CommandPattern| {
                pattern.fits_whole(line).into()
            }),
        }
    }

    /// What the rules say of a redirection: those for the shell that spell it, and those for writing the file. Either allows it; a
    /// refusal of either stands.
    fn write(&self, idx: usize, write: &Write<'_>) -> TextVerdict {
        let places = write.places.as_deref().unwrap_or_default();
        let (spelled, written) = match self.source {
            PermissionSource::Rules(permissions) => {
                let spelled = |rule: &super::PermissionRule| rule.fits_write(self.line, write);
                let writer = WRITER.map(str::to_owned);
                let of_place =
                    |place: &Text| permissions.ask(&writer, |rule| rule.fits(&place.lower));
                (
                    permissions.ask(&self.subject.names, spelled),
                    weakest(places.iter().map(of_place)),
                )
            }
            PermissionSource::Lists(_) => (TextVerdict::Nothing, TextVerdict::Nothing),
        };
        match (spelled, written) {
            (TextVerdict::Deny(rule), _) | (_, TextVerdict::Deny(rule)) => TextVerdict::Deny(rule),
            (TextVerdict::Allow(rule), _) | (_, TextVerdict::Allow(rule)) => {
                TextVerdict::Allow(rule)
            }
            (spelled, written) => self
                .allowed_write(idx, write)
                .unwrap_or(spelled.or_stricter(written)),
        }
    }

    /// What else lets it be written: a flag, or a rule of the policy for `write`.
    fn allowed_write(&self, idx: usize, write: &Write<'_>) -> Option<TextVerdict> {
        let places = write.places.as_deref().unwrap_or_default();
        let flag = self.flags.iter().find(|rule| {
            let writes = WRITER.iter().any(|name| rule.names(name));
            (writes && rule.fits_places(places))
                || (rule.names(SHELL) && rule.spells(self.line, write))
        });
        let of_policy = || TextVerdict::Allow("a rule of the policy for `write`".to_owned());
        let is_written = self.written.get(idx).copied().unwrap_or_default();
        flag.map(TextVerdict::by_flag)
            .or_else(|| is_written.then(of_policy))
    }
}

/// What holds for all of them: refused when one is, allowed only when all are, nothing when there are none.
fn weakest(said: impl Iterator<Item = TextVerdict>) -> TextVerdict {
    let worse = |one: TextVerdict, other: TextVerdict| match (one, other) {
        (TextVerdict::Deny(rule), _) | (_, TextVerdict::Deny(rule)) => TextVerdict::Deny(rule),
        (TextVerdict::Doubt(rule), _) | (_, TextVerdict::Doubt(rule)) => TextVerdict::Doubt(rule),
        (TextVerdict::Ask(rule), _) | (_, TextVerdict::Ask(rule)) => TextVerdict::Ask(rule),
        (TextVerdict::Nothing, _) | (_, TextVerdict::Nothing) => TextVerdict::Nothing,
        (allowed, _) => allowed,
    };
    said.reduce(worse).unwrap_or(TextVerdict::Nothing)
}

/// The rule that allows exactly this text, when it is the first to fit it.
fn exact(source: &PermissionSource, whole: &Text) -> Option<String> {
    let PermissionSource::Rules(permissions) = source else {
        return None;
    };
    let is_exact = |text: &str| is_exactly(text, &whole.given);
    let fits =
        |rule: &super::PermissionRule| is_exact(&rule.text.text) || rule.text.fits(&whole.lower);
    let rule = permissions.of(SHELL).iter().find(|rule| fits(rule))?;
    let allows = rule.action == Action::Allow && is_exact(&rule.text.text);
    allows.then(|| rule.name(SHELL))
}

fn of_lists(lists: &ShellLists, fit: impl Fn(&CommandPattern) -> PermissionFit) -> TextVerdict {
    let lists = [
        ("blocked_commands", &lists.blocked, !lists.blocked_asks),
        ("confirm_patterns", &lists.confirm, lists.confirm_denies),
    ];
    let first = |wanted: &dyn Fn(PermissionFit, bool) -> bool| {
        lists.iter().find_map(|(list, patterns, denies)| {
            let mut patterns = patterns.iter();
            let pattern = patterns.find(|pattern| wanted(fit(pattern), *denies))?;
            Some(format!("tools.shell.{list} `{}`", pattern.text()))
        })
    };
    if let Some(rule) = first(&|fit, denies| denies && fit == PermissionFit::Yes) {
        return TextVerdict::Deny(rule);
    }
    if let Some(rule) = first(&|fit, denies| denies && fit == PermissionFit::Maybe) {
        return TextVerdict::Doubt(rule);
    }
    match first(&|fit, denies| !denies && fit != PermissionFit::No) {
        Some(rule) => TextVerdict::Ask(rule),
        None => TextVerdict::Nothing,
    }
}
