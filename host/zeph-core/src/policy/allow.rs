//! `TOOL` or `TOOL:PATTERN`: calls an operator lets run without asking, for one run of the program.

use super::bad::BadRule;
use super::pattern::Pattern;
use super::permission::path_pattern;
use super::redirection::{SpelledRedirection, Write};
use super::subject::{LinePart, LineTexts, RuleSubject, Text, tool_key};

/// Calls that run without asking.
#[derive(Debug, Clone)]
pub struct AllowRule {
    text: String,
    tool: Pattern,
    pattern: Option<Patterns>,
}

/// One pattern as it is for each kind of text.
#[derive(Debug, Clone)]
struct Patterns {
    text: Pattern,
    path: Pattern,
    spelled: Option<SpelledRedirection>,
}

impl AllowRule {
    /// Reads `TOOL` or `TOOL:PATTERN`.
    ///
    /// Shape: both parts are globs, matched without regard to case. `PATTERN` is matched against each simple command of a
    /// command line, or every path the call names (absolute, resolved), or the address of `fetch` and `web_scrape`, or every string argument; all must
    /// match. A relative pattern over paths is resolved against `directory`, and `.`, `..`, doubled and closing slashes are dissolved.
    /// Errors: [`BadRule`] if a glob is invalid, too long or has `..` behind a wildcard, or a part is empty.
    pub fn parse(text: &str, directory: &str) -> Result<Self, BadRule> {
        let (tool, pattern) = match text.split_once(':') {
            Some((tool, pattern)) => (tool, Some(pattern)),
            None => (text, None),
        };
        if tool.is_empty() || pattern == Some("") {
            return Err(BadRule::new(text, "write `TOOL` or `TOOL:PATTERN`"));
        }
        let whole = |error: BadRule| BadRule::new(text, error.reason);
        let pattern = pattern.map(|pattern| Patterns::new(tool, pattern, directory));
        Ok(Self {
            text: text.to_owned(),
            tool: Pattern::new(&tool_key(tool)).map_err(whole)?,
            pattern: pattern.transpose().map_err(whole)?,
        })
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is about the tool at all.
    pub(super) fn names(&self, tool: &str) -> bool {
        self.tool.fits(tool)
    }

    /// Whether it lets every call of the tool run, whatever its arguments.
    pub(super) fn is_whole_tool(&self) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.text.is_any())
    }

    /// Whether the pattern is this very text, so that nothing about it has to be understood.
    pub(super) fn is_exactly(&self, text: &str) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_some_and(|pattern| is_exactly(&pattern.text.text, text))
    }

    /// Whether a text of a call of `subject` fits; `lower` is in lower case.
    pub(super) fn fits(&self, subject: &RuleSubject<'_>, lower: &str) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        // Patterns over a call that names paths are patterns over paths.
        match (&subject.line, subject.paths.is_empty()) {
            (None, false) => pattern.path.fits(lower),
            (Some(_), _) => pattern.text.fits_command(lower),
            (None, true) => pattern.text.fits(lower),
        }
    }

    /// Whether it lets a part of a line run, whatever of it is not known.
    pub(super) fn fits_part(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> bool {
        let spelled = self
            .pattern
            .as_ref()
            .and_then(|pattern| pattern.spelled.as_ref());
        let pattern = self.pattern.as_ref();
        let fits = |pattern: &Pattern| {
            part.is_allowed_by(pattern) || part.is_allowed_plainly_by(pattern, false)
        };
        pattern.is_none_or(|pattern| fits(&pattern.text))
            || spelled.is_some_and(|spelled| spelled.fits_part(line, part))
    }

    /// Whether it spells a redirection of a line.
    pub(super) fn spells(&self, line: &LineTexts<'_>, write: &Write<'_>) -> bool {
        let spelled = self
            .pattern
            .as_ref()
            .and_then(|pattern| pattern.spelled.as_ref());
        spelled.is_some_and(|spelled| spelled.fits(line, write))
    }

    /// Whether every path of `places` fits it.
    pub(super) fn fits_places(&self, places: &[Text]) -> bool {
        let fits = |place: &Text| {
            let pattern = self.pattern.as_ref();
            pattern.is_none_or(|pattern| pattern.path.fits(&place.lower))
        };
        !places.is_empty() && places.iter().all(fits)
    }

    /// Its pattern over paths, when it has one.
    pub(super) fn path(&self) -> Option<&Pattern> {
        self.pattern.as_ref().map(|pattern| &pattern.path)
    }

    /// Whether it has a pattern.
    pub(super) fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }
}

impl Patterns {
    fn new(tool: &str, pattern: &str, directory: &str) -> Result<Self, BadRule> {
        Ok(Self {
            text: Pattern::new(pattern)?,
            path: path_pattern(tool, pattern, directory)?,
            spelled: SpelledRedirection::read(pattern, directory)?,
        })
    }
}

/// Whether `pattern`, plain or with its special characters escaped, is `text`.
pub(super) fn is_exactly(pattern: &str, text: &str) -> bool {
    pattern == text || pattern == escape(text)
}

/// `text` as a pattern that fits nothing else.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
