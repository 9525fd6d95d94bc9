//! Globs over texts, without regard to case: `*` is any text, spaces and `/` included.
//!
//! Simple commands have patterns of their own (`command.rs`); this is what permissions, allow rules and paths use.

use globset::{GlobBuilder, GlobMatcher};

use super::bad::BadRule;

/// Most bytes of a pattern. The longest useful one is an exact command line; a longer text is a mistake.
const PATTERN_BYTES_MAX: usize = 16 * 1024;

/// Characters that mean something in a glob.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A compiled glob.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// As it was given.
    pub(super) text: String,
    /// A piece every match must hold, in lower case: most texts are told apart by it, without a regular expression.
    needle: String,
    glob: GlobMatcher,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// Shape: `*`, `?`, `[…]`, `{a,b}` and `\` as in other globs.
    /// Errors: what the glob library says, and texts longer than 16 KiB.
    pub(super) fn new(text: &str) -> Result<Self, BadRule> {
        if text.len() > PATTERN_BYTES_MAX {
            let reason = format!("a pattern has at most {PATTERN_BYTES_MAX} bytes");
            return Err(BadRule::new(text, reason));
        }
        let lower = text.to_lowercase();
        let glob = GlobBuilder::new(&lower)
            .build()
            .map_err(|error| BadRule::new(text, error.kind()))?;
        Ok(Self {
            needle: needle(&lower).to_owned(),
            text: text.to_owned(),
            glob: glob.compile_matcher(),
        })
    }

    /// Compiles a pattern over paths; a relative one starts in `directory`.
    pub(super) fn path(text: &str, directory: &str) -> Result<Self, BadRule> {
        if text.starts_with(['/', '*', '{', '[']) || directory.is_empty() {
            return Self::new(text);
        }
        let joined = format!("{}/{text}", globset::escape(directory));
        let mut pattern = Self::new(&joined).map_err(|error| BadRule::new(text, error.reason))?;
        text.clone_into(&mut pattern.text);
        Ok(pattern)
    }

    /// Whether the whole of `lower`, which is in lower case, fits.
    pub(super) fn fits(&self, lower: &str) -> bool {
        lower.contains(&self.needle) && self.glob.is_match(lower)
    }

    /// Whether it fits everything.
    pub(super) fn is_any(&self) -> bool {
        !self.text.is_empty() && self.text.bytes().all(|byte| byte == b'*')
    }
}

/// The longest piece without special characters. Where alternatives or classes stand no piece is certain.
fn needle(lower: &str) -> &str {
    if lower.contains(['[', '{', '\\']) {
        return "";
    }
    lower
        .split(SPECIAL)
        .max_by_key(|piece| piece.len())
        .unwrap_or("")
}
