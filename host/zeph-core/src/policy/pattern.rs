//! Globs over texts, without regard to case: `*` is any text, spaces and `/` included.
//!
//! Simple commands have patterns of their own (`command.rs`); this is what permissions, allow rules and paths use.

use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobMatcher};
use regex_automata::nfa::thompson::NFA;

use super::bad::BadRule;
use super::options::Apart;
use super::path_glob::PathGlob;
use super::possible::{Reading, automaton};

/// Most bytes of a pattern. The longest useful one is an exact command line; a longer text is a mistake.
const PATTERN_BYTES_MAX: usize = 16 * 1024;

/// Characters with a special meaning.
pub(super) const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A checked glob.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// As it was given; one over paths in its plain spelling.
    pub(super) text: String,
    /// What every text it fits begins with, in lower case.
    fixed: String,
    kind: PatternKind,
    /// Made when it is first asked about a command that is not known in full.
    automaton: OnceLock<Option<NFA>>,
    /// Its short options, and the pattern without them. Made when it is first asked about a command with some.
    apart: OnceLock<Option<Box<(Apart, Pattern)>>>,
}

#[derive(Debug, Clone)]
enum PatternKind {
    /// What stands between the `*` of a pattern without other special characters, in lower case: most patterns. It needs no regular
    /// expression, which would take a hundred times as long to make.
    Pieces(Vec<String>),
    /// Compiled when it is first asked.
    Glob(Glob, OnceLock<GlobMatcher>),
}

impl Pattern {
    /// Reads `text`.
    ///
    /// Shape: `*`, `?`, `[…]`, `{a,b}` and `\` as in other globs.
    /// Errors: what the glob library says, and texts longer than 16 KiB.
    pub(super) fn new(text: &str) -> Result<Self, BadRule> {
        if text.len() > PATTERN_BYTES_MAX {
            let reason = format!("a pattern has at most {PATTERN_BYTES_MAX} bytes");
            return Err(BadRule::new(text, reason));
        }
        let lower = text.to_lowercase();
        // `**` between slashes has a meaning of its own.
        let is_simple = !lower.contains(&SPECIAL[1..]) && !lower.contains("**");
        let kind = if is_simple {
            PatternKind::Pieces(lower.split('*').map(str::to_owned).collect())
        } else {
            let glob = GlobBuilder::new(&lower)
                .build()
                .map_err(|error| BadRule::new(text, error.kind()))?;
            PatternKind::Glob(glob, OnceLock::new())
        };
        let first = lower.find(SPECIAL).unwrap_or(lower.len());
        Ok(Self {
            text: text.to_owned(),
            fixed: lower[..first].to_owned(),
            kind,
            automaton: OnceLock::new(),
            apart: OnceLock::new(),
        })
    }

    /// Compiles a pattern over paths; a relative one starts in `directory`.
    ///
    /// Errors: as [`PathGlob::read`] and [`new`](Self::new).
    pub(super) fn path(text: &str, directory: &str) -> Result<Self, BadRule> {
        Self::of_paths(&PathGlob::read(text, directory)?, directory)
            .map_err(|error| BadRule::new(text, error.reason))
    }

    /// Compiles a pattern over paths that was read with the same `directory`.
    pub(super) fn of_paths(glob: &PathGlob, directory: &str) -> Result<Self, BadRule> {
        let mut pattern = Self::new(&glob.glob())?;
        pattern.text = glob.plain(directory);
        Ok(pattern)
    }

    /// Whether the whole of `lower`, which is in lower case, fits.
    pub(super) fn fits(&self, lower: &str) -> bool {
        match &self.kind {
            PatternKind::Pieces(pieces) => pieces_fit(pieces, lower),
            PatternKind::Glob(glob, matcher) => matcher
                .get_or_init(|| glob.compile_matcher())
                .is_match(lower),
        }
    }

    /// Whether a simple command fits: `cat *` also fits `cat` without arguments.
    pub(super) fn fits_command(&self, lower: &str) -> bool {
        self.fits(lower) || self.text.ends_with(" *") && self.fits(&format!("{lower} "))
    }

    /// Whether a command has the short options it spells, in whatever way they are written there, and fits it otherwise.
    pub(super) fn fits_options(&self, command: &Apart) -> bool {
        let make = || {
            let apart = Apart::of_pattern(&self.text)?;
            let rest = Self::new(apart.rest()).ok()?;
            Some(Box::new((apart, rest)))
        };
        let apart = self.apart.get_or_init(make).as_deref();
        apart.is_some_and(|(apart, rest)| command.is_meant_by(apart, rest))
    }

    /// What every text that fits begins and ends with, in lower case.
    pub(super) fn ends(&self) -> (&str, &str) {
        match &self.kind {
            PatternKind::Pieces(pieces) => (
                pieces.first().map_or("", String::as_str),
                pieces.last().map_or("", String::as_str),
            ),
            PatternKind::Glob(glob, _) => plain_ends(glob.glob()),
        }
    }

    /// As it is matched: absolute where it was relative to a directory, in lower case.
    pub(super) fn matched(&self) -> String {
        match &self.kind {
            PatternKind::Pieces(pieces) => pieces.join("*"),
            PatternKind::Glob(glob, _) => glob.glob().to_owned(),
        }
    }

    /// Whether it fits one text alone.
    pub(super) fn is_literal(&self) -> bool {
        !self.text.contains(SPECIAL)
    }

    /// Whether everything that fits is below the path `lower`, which is in lower case.
    pub(super) fn lies_below(&self, lower: &str) -> bool {
        let rest = self.fixed.strip_prefix(lower);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The pattern as an automaton over bytes in lower case; `None` when it would be too large.
    pub(super) fn automaton(&self) -> Option<&NFA> {
        let make = || {
            let expression = match &self.kind {
                PatternKind::Pieces(pieces) => {
                    let pieces: Vec<String> = pieces.iter().map(|p| regex::escape(p)).collect();
                    format!("(?-u)^{}$", pieces.join(".*"))
                }
                PatternKind::Glob(glob, _) => glob.regex().to_owned(),
            };
            automaton(&expression, Reading::Glob)
        };
        self.automaton.get_or_init(make).as_ref()
    }

    /// Whether it names the program: nothing that begins otherwise fits.
    pub(super) fn names(&self, program: &str) -> bool {
        self.fixed
            .strip_prefix(program)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }

    /// The long options that it spells, in lower case.
    pub(super) fn long_options(&self) -> Vec<String> {
        let lower = self.text.to_lowercase();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let options = lower.match_indices("--").map(|(at, _)| {
            let rest = &lower[at..];
            &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
        });
        options.map(str::to_owned).collect()
    }

    /// Whether a text that begins with `name` can fit: a quick look before a long one.
    pub(super) fn may_begin_with(&self, name: &str) -> bool {
        match &self.kind {
            PatternKind::Pieces(pieces) => {
                let first = pieces.first().map_or("", String::as_str);
                first.starts_with(name) || name.starts_with(first)
            }
            PatternKind::Glob(..) => true,
        }
    }

    /// Whether it fits everything.
    pub(super) fn is_any(&self) -> bool {
        !self.text.is_empty() && self.text.bytes().all(|byte| byte == b'*')
    }
}

/// The text before the first and behind the last special character.
fn plain_ends(glob: &str) -> (&str, &str) {
    let head = glob.find(SPECIAL).map_or(glob, |at| &glob[..at]);
    let tail = glob.rfind(SPECIAL).map_or(glob, |at| &glob[at + 1..]);
    (head, tail)
}

/// The first piece at the start, the last at the end, the others between them in order: the leftmost place for each leaves the most
/// text for the rest.
fn pieces_fit(pieces: &[String], lower: &str) -> bool {
    let [first, middle @ .., last] = pieces else {
        return pieces.first().is_some_and(|only| only == lower);
    };
    let Some(rest) = lower.strip_prefix(first.as_str()) else {
        return false;
    };
    let Some(mut rest) = rest.strip_suffix(last.as_str()) else {
        return false;
    };
    middle.iter().all(|piece| match rest.find(piece.as_str()) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}
