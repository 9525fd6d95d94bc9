//! Which paths a call names, as rules over paths see them: those that are known, and what is known of the others.

use std::borrow::Cow;

use super::pattern::Pattern;
use super::redirection::Write;
use super::subject::{RuleSubject, Text};
use crate::command::{CommandLine, WordPlace, WordPlaces};

/// The paths of a call, or of one redirection in it.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) paths: Vec<Text>,
    /// Those of `paths` that a command works in.
    pub(super) directories: Vec<String>,
    pub(super) unknown: Vec<Doubt>,
    /// Whether it is a command: what a command is pointed at it may go through, folders too.
    pub(super) is_command: bool,
}

/// A path that is known only when the call runs.
#[derive(Debug)]
pub(super) struct Doubt {
    /// The word that names it.
    pub(super) word: String,
    /// In lower case; empty when it may be anything.
    beginnings: Vec<String>,
    end: String,
}

impl Reach {
    /// Of a whole call.
    pub(super) fn of(subject: &RuleSubject<'_>) -> Self {
        let paths = subject
            .call
            .paths
            .iter()
            .map(|path| Text::of_path(path))
            .collect();
        let Some(line) = subject.call.command.as_ref() else {
            return Self {
                paths,
                ..Self::default()
            };
        };
        let mut reach = Self {
            paths,
            is_command: true,
            ..Self::default()
        };
        reach.add_directories(line);
        reach.add_redirections(line);
        line.places
            .words
            .iter()
            .for_each(|word| reach.add_word(word));
        let hidden = line
            .unknown
            .iter()
            .map(|unknown| Doubt::about(&unknown.part));
        reach.unknown.extend(hidden);
        reach
    }

    /// Of a redirection.
    pub(super) fn of_write(write: &Write<'_>) -> Self {
        let mut reach = Self::default();
        match &write.places {
            Some(places) => reach
                .paths
                .extend(places.iter().map(|place| Text::new(place.given.clone()))),
            None => reach.unknown.push(Doubt::about(&write.shown())),
        }
        reach
    }

    fn add_directories(&mut self, line: &CommandLine) {
        match &line.places.directories {
            Some(directories) => {
                let texts = directories.iter().map(|path| Text::of_path(path));
                self.paths.extend(texts);
                let names = directories.iter().map(|path| path.to_string_lossy());
                self.directories.extend(names.map(Cow::into_owned));
            }
            None => self.unknown.push(Doubt::about("the working directory")),
        }
    }

    fn add_redirections(&mut self, line: &CommandLine) {
        for (idx, redirection) in line.redirections.iter().enumerate() {
            match line.places.redirections.get(idx) {
                Some(Some(places)) => self
                    .paths
                    .extend(places.iter().map(|path| Text::of_path(path))),
                _ => self.unknown.push(Doubt::about(&redirection.operator)),
            }
        }
    }

    fn add_word(&mut self, word: &WordPlaces) {
        match &word.place {
            WordPlace::Known(places) => self
                .paths
                .extend(places.iter().map(|path| Text::of_path(path))),
            WordPlace::Unknown => self.unknown.push(Doubt::about(&word.word)),
            WordPlace::Like { beginnings, end } => self.unknown.push(Doubt {
                beginnings: beginnings.iter().map(|text| text.to_lowercase()).collect(),
                end: end.to_lowercase(),
                ..Doubt::about(&word.word)
            }),
        }
    }

    /// The first of the unknown paths that one of `patterns` may fit.
    pub(super) fn doubt(&self, patterns: &[Pattern]) -> Option<&Doubt> {
        let may_fit = |doubt: &&Doubt| patterns.iter().any(|pattern| doubt.may_fit(pattern));
        self.unknown.iter().find(may_fit)
    }
}

impl Doubt {
    fn about(word: &str) -> Self {
        Self {
            word: crate::failure::one_line(word, 200),
            beginnings: Vec::new(),
            end: String::new(),
        }
    }

    /// Whether a path that begins and ends like this may fit `pattern`.
    fn may_fit(&self, pattern: &Pattern) -> bool {
        let (head, tail) = pattern.ends();
        let begins = |text: &String| text.starts_with(head) || head.starts_with(text.as_str());
        let is_end = tail.ends_with(&self.end) || self.end.ends_with(tail);
        is_end && (self.beginnings.is_empty() || self.beginnings.iter().any(begins))
    }
}
