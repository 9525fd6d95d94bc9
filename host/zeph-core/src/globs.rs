//! Many patterns that are matched at once, read and compiled when something is first compared with them.
//!
//! A process for one call compares few paths or none. To make expressions of patterns takes it longer than all the rest of reading them, and
//! to compile those longer still. The first paths are therefore compared with the ends of the patterns: nearly all fit none.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use globset::{Error, Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// What a pattern without them cannot have wrong: classes, choices and escapes.
const MARKS: [char; 5] = ['[', ']', '{', '}', '\\'];

/// Whether upper and lower case differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LetterCase {
    /// They do.
    #[default]
    Counts,
    /// They do not.
    Ignored,
}

/// How many paths are compared with the ends of the patterns alone, as long as these tell that none can match.
const UNCOMPILED_MAX: usize = 64;

/// Patterns over paths, in which only `**` reaches beyond a `/`. Made without compiling them.
#[derive(Debug, Default)]
pub struct LazyGlobs {
    texts: Vec<String>,
    case: LetterCase,
    n_uncompiled: AtomicUsize,
    /// None inside: one cannot be read, or together they are more than can be compiled.
    set: OnceLock<Option<GlobSet>>,
}

/// Whether `text` is a pattern, without making an expression of one that can be nothing else.
///
/// Errors: what is wrong with it.
pub fn check(text: &str) -> Result<(), Error> {
    match text.contains(MARKS) && !has_plain_choices(text) {
        true => read(text, LetterCase::Counts).map(drop),
        false => Ok(()),
    }
}

/// Whether all marks are those of choices, closed and none within another: nothing can be wrong with these.
fn has_plain_choices(text: &str) -> bool {
    let mut is_open = false;
    let is_plain = text.chars().all(|c| match c {
        '{' => !std::mem::replace(&mut is_open, true),
        '}' => std::mem::replace(&mut is_open, false),
        '[' | ']' | '\\' => false,
        _ => true,
    });
    is_plain && !is_open
}

/// The alternatives of the brace that `text` begins with, without empty ones, and what stands behind it.
pub fn leading_brace(text: &str) -> Option<(Vec<&str>, &str)> {
    if !text.starts_with('{') {
        return None;
    }
    let (mut depth, mut begin, mut found) = (0_usize, 1, Vec::new());
    let (mut is_escaped, mut is_class) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if std::mem::take(&mut is_escaped) => {}
            ']' => is_class = false,
            _ if is_class => {}
            '\\' => is_escaped = true,
            '[' => is_class = true,
            '{' => depth += 1,
            ',' | '}' if depth == 1 => {
                found.push(&text[begin..at]);
                begin = at + 1;
                if c == '}' {
                    found.retain(|alternative| !alternative.is_empty());
                    return (!found.is_empty()).then_some((found, &text[begin..]));
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

impl LazyGlobs {
    /// The patterns, which [`check`] has passed.
    pub fn new(texts: Vec<String>, case: LetterCase) -> Self {
        Self {
            texts,
            case,
            n_uncompiled: AtomicUsize::new(0),
            set: OnceLock::new(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether one of them matches `path`; `otherwise` when they cannot be compiled: the caller says which answer is the safe one.
    pub fn is_match(&self, path: &Path, otherwise: bool) -> bool {
        if self.texts.is_empty() || self.is_apart(path) {
            return false;
        }
        let set = self
            .set
            .get_or_init(|| compile(&self.texts, self.case).ok());
        match set {
            Some(set) => set.is_match(path),
            None => otherwise,
        }
    }
}

impl LazyGlobs {
    /// Whether `path` ends like none of the patterns. Of the first paths only: it is slower than to compare with what is compiled.
    fn is_apart(&self, path: &Path) -> bool {
        self.set.get().is_none()
            && self.n_uncompiled.fetch_add(1, Ordering::Relaxed) < UNCOMPILED_MAX
            && !(self.texts.iter()).any(|text| ends_alike(text, self.case, path))
    }
}

/// Whether `path` ends with what stands behind the last wildcard of a pattern, without which it cannot match.
fn ends_alike(text: &str, case: LetterCase, path: &Path) -> bool {
    if text.contains(MARKS) {
        return true;
    }
    let end = match text.rsplit_once(['*', '?']) {
        // `**/` stands for no directory as well.
        Some((_, end)) => end.trim_start_matches('/'),
        None => text,
    };
    let path = path.as_os_str().as_encoded_bytes();
    let Some(start) = path.len().checked_sub(end.len()) else {
        return false;
    };
    match case {
        LetterCase::Counts => path[start..] == *end.as_bytes(),
        LetterCase::Ignored if !end.is_ascii() || !path.is_ascii() => true,
        LetterCase::Ignored => path[start..].eq_ignore_ascii_case(end.as_bytes()),
    }
}

fn compile(texts: &[String], case: LetterCase) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        set.add(read(text, case)?);
    }
    set.build()
}

fn read(text: &str, case: LetterCase) -> Result<Glob, Error> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .case_insensitive(case == LetterCase::Ignored)
        .build()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::{LazyGlobs, LetterCase, check, ends_alike, read};

    fn globs(texts: &[&str]) -> LazyGlobs {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        LazyGlobs::new(texts, LetterCase::Counts)
    }

    #[test]
    fn what_cannot_be_compiled_answers_as_is_safe() {
        let good = globs(&["/a/*", "**/b"]);
        for (path, expected) in [("/a/x", true), ("/c/b", true), ("/c", false)] {
            for otherwise in [true, false] {
                assert_eq!(
                    good.is_match(Path::new(path), otherwise),
                    expected,
                    "{path}"
                );
            }
        }
        // Each is small; together they are beyond what the compiler takes.
        let large = format!("/{}*", "[α-ω]?".repeat(2_000));
        for bad in [globs(&vec![large.as_str(); 200]), globs(&["/b", "/{a"])] {
            assert!(bad.is_match(Path::new("/a"), true));
            assert!(!bad.is_match(Path::new("/a"), false));
        }
        assert!(LazyGlobs::default().is_empty());
        assert!(!LazyGlobs::default().is_match(Path::new("/a"), true));
    }

    /// What is not read is believed to be a pattern.
    #[test]
    fn a_pattern_that_is_not_read_would_be_one() {
        let parts = [
            "", "a", "/", "*", "**", "***", "?", "!", "-", "^", "$", "(", ")", ",", ".", "|", "+",
            "~", "é", "\0", "[", "]", "{", "}", "\\",
        ];
        let mut n_wrong = 0;
        for first in parts {
            for second in parts {
                for third in parts {
                    let text = format!("{first}{second}{third}");
                    for case in [LetterCase::Counts, LetterCase::Ignored] {
                        let read = read(&text, case);
                        assert_eq!(check(&text).is_ok(), read.is_ok(), "{text:?}");
                        n_wrong += usize::from(read.is_err());
                    }
                }
            }
        }
        assert!(n_wrong > 100, "{n_wrong}");
    }

    #[test]
    fn case_and_separators_are_as_paths_have_them() {
        let texts = vec!["/A/*".to_owned()];
        let ignored = LazyGlobs::new(texts, LetterCase::Ignored);
        assert!(ignored.is_match(Path::new("/a/B"), false));
        assert!(!ignored.is_match(Path::new("/a/B/c"), true));
        assert!(!globs(&["/A/*"]).is_match(Path::new("/a/B"), true));
    }

    proptest! {
        #[test]
        fn what_ends_unlike_a_pattern_does_not_match(
            parts in proptest::collection::vec("[aAb./*?]|\\*\\*/|é|\u{212a}|k|\\{a,b\\}", 0..6),
            path in "[aAbBkK./é\u{212a}]{0,6}",
            ignores_case: bool,
        ) {
            let case = if ignores_case { LetterCase::Ignored } else { LetterCase::Counts };
            let text = parts.concat();
            if let Ok(glob) = read(&text, case) {
                let path = Path::new(&path);
                let is_match = glob.compile_matcher().is_match(path);
                prop_assert!(!is_match || ends_alike(&text, case, path), "{text:?} {path:?}");
                let lazy = LazyGlobs::new(vec![text], case);
                prop_assert_eq!(lazy.is_match(path, !is_match), is_match);
            }
        }
    }
}
