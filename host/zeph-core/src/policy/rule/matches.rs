//! Which expressions match which text of a call.

use regex::{RegexSet, SetMatches};

use super::Effect;
use crate::policy::redirection::Write;
use crate::policy::subject::{LineTexts, RuleSubject, Text};

/// Each text is looked at once, however many expressions there are.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// Every text on its own; what denies looks at all of them.
    any: Vec<SetMatches>,
    /// What an allowing rule must match, without exception.
    required: Vec<SetMatches>,
    /// For each write of a line, its commands with the redirection.
    spelled: Vec<Vec<SetMatches>>,
    /// Which expressions find something in what a command of a line may become.
    possible: Vec<bool>,
}

impl Matches {
    /// Of a call.
    pub(super) fn of(set: &RegexSet, subject: &RuleSubject<'_>) -> Self {
        if set.is_empty() {
            return Self::default();
        }
        let values = subject.call.arguments.values.values();
        let strings = values.filter_map(|value| value.as_str());
        let mut this = Self {
            any: strings.map(|text| set.matches(text)).collect(),
            ..Self::default()
        };
        match &subject.line {
            Some(line) => this.add_line(set, line),
            None => {
                let texts = subject.texts.iter();
                this.required
                    .extend(texts.map(|text| set.matches(&text.given)));
            }
        }
        this
    }

    /// Of paths.
    pub(super) fn of_paths(set: &RegexSet, paths: &[Text]) -> Self {
        if set.is_empty() {
            return Self::default();
        }
        Self {
            required: paths.iter().map(|path| set.matches(&path.given)).collect(),
            ..Self::default()
        }
    }

    fn add_line(&mut self, set: &RegexSet, line: &LineTexts<'_>) {
        let bare = line.parts.iter().filter_map(|part| part.bare.as_ref());
        self.any.extend(bare.map(|bare| set.matches(bare)));
        let without = line.parts.iter();
        let without = without.filter_map(|part| part.without_globals.as_ref());
        self.any
            .extend(without.map(|text| set.matches(&text.given)));
        let others = line.parts.iter().filter(|part| !line.requires(part));
        self.any
            .extend(others.map(|part| set.matches(&part.text.given)));
        let required = line.required();
        let required = required.iter().map(|part| set.matches(&part.text.given));
        self.required.extend(required);
        self.spelled = line
            .writes
            .iter()
            .map(|write| spelled(set, line, write))
            .collect();
    }

    /// Adds which expressions match what a command may become.
    pub(super) fn with_possible(self, possible: Vec<bool>) -> Self {
        Self { possible, ..self }
    }

    /// Whether the expression at `at` may be met, by arguments that are not known.
    pub(super) fn may_fit(&self, at: usize) -> bool {
        self.possible.get(at).copied().unwrap_or_default()
    }

    /// Whether the expression at `at` is met.
    pub(super) fn fit(&self, effect: Effect, at: usize) -> bool {
        let matched = |matches: &SetMatches| matches.matched(at);
        let spelled = || self.spelled.iter().flatten();
        match effect {
            Effect::Deny => self
                .any
                .iter()
                .chain(&self.required)
                .chain(spelled())
                .any(matched),
            Effect::Allow => !self.required.is_empty() && self.required.iter().all(matched),
        }
    }

    /// Whether the expression at `at` is met by a command of a write together with the redirection.
    pub(super) fn spells(&self, write: usize, at: usize) -> bool {
        let spelled = self.spelled.get(write);
        spelled.is_some_and(|texts| texts.iter().any(|matches| matches.matched(at)))
    }
}

/// `ls > notes`, for every command the redirection is for.
fn spelled(set: &RegexSet, line: &LineTexts<'_>, write: &Write<'_>) -> Vec<SetMatches> {
    let commands = write.redirection.commands.clone();
    let parts = commands.filter_map(|idx| line.parts.get(idx));
    let texts = parts.map(|part| format!("{} {}", part.text.given, write.shown()));
    texts.map(|text| set.matches(&text)).collect()
}
