//! How patterns over paths are spelt: `./src/*`, `src//*`, `src/` and `lib/../src` mean what the plain spelling means.
//!
//! The paths of calls are resolved, so a pattern that kept such parts would fit none of them, and a rule that denies would deny nothing.

use std::path::{Path, PathBuf};

use globset::escape;

use super::bad::BadRule;
use super::pattern::SPECIAL;
use crate::globs::leading_brace;

/// Most braces that begin one in another. Each is read by a call of its own.
const BRACES_MAX: usize = 8;

/// A pattern over paths without `.`, `..`, doubled and closing slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathGlob {
    /// The directory it starts in, as it is called: `/` for an absolute one. None for one that begins with `*`, which fits anywhere, and for
    /// one that begins with a brace whose alternatives start in several places.
    start: Option<PathBuf>,
    /// What follows the directory.
    rest: String,
}

impl PathGlob {
    /// Reads `text`. A relative pattern starts in `directory`, which is absolute and resolved; without one it starts nowhere.
    ///
    /// Shape: `..` takes the name before it away, as it is written; a closing `/` is omitted, so that the directory itself is meant.
    /// Errors: [`BadRule`] for a `..` behind a part with special characters, since it stands for many names, and for more than 8 braces that
    /// begin one in another.
    pub(super) fn read(text: &str, directory: &str) -> Result<Self, BadRule> {
        Self::nested(text, directory, BRACES_MAX)
    }

    /// Reads `text`, which may begin with as many braces one in another as `n_braces`.
    fn nested(text: &str, directory: &str, n_braces: usize) -> Result<Self, BadRule> {
        if let Some(brace) = leading_brace(text).filter(|_| !directory.is_empty()) {
            return Self::of_brace(text, brace, directory, n_braces);
        }
        let start = match text.chars().next() {
            Some('/') => Some(PathBuf::from("/")),
            None | Some('*' | '{') => None,
            Some('[') if begins_with_slash(text) => None,
            Some(_) => (!directory.is_empty()).then(|| PathBuf::from(directory)),
        };
        Self::dissolved(text, text, start)
    }

    /// Reads `text`, which begins with a brace. Each alternative is read by itself: it may start elsewhere.
    fn of_brace(
        text: &str,
        (alternatives, rest): (Vec<&str>, &str),
        directory: &str,
        n_braces: usize,
    ) -> Result<Self, BadRule> {
        let Some(n_braces) = n_braces.checked_sub(1) else {
            return Err(BadRule::new(text, "too many braces begin one in another"));
        };
        let is_plain = |text: &&str| !text.contains(['/', '*', '{', '[', '.', '\\']);
        if alternatives.iter().all(is_plain) {
            return Self::dissolved(text, text, Some(PathBuf::from(directory)));
        }
        // What stands in the same part belongs to each alternative.
        let is_simple = |at: &usize| !rest[..*at].contains(SPECIAL);
        let end = rest.find('/').filter(is_simple).unwrap_or(rest.len());
        let read = |end: &str| -> Result<Vec<String>, BadRule> {
            let globs = alternatives.iter().map(|alternative| {
                let text = format!("{alternative}{end}");
                Self::nested(&text, directory, n_braces).map(|glob| glob.alternative())
            });
            globs.collect()
        };
        let (mut globs, mut behind) = (read(&rest[..end])?, &rest[end..]);
        // Below the root, the slash between the two is there already.
        if globs.iter().any(|glob| glob == "/") {
            (globs, behind) = (read(rest)?, "");
        }
        Self::behind(text, &format!("{{{}}}", globs.join(",")), behind)
    }

    /// The pattern `text` whose first part is the brace `first`, with `rest` behind it.
    fn behind(text: &str, first: &str, rest: &str) -> Result<Self, BadRule> {
        let behind = Self::dissolved(text, &format!("*{rest}"), None)?;
        let rest = behind.rest.strip_prefix('*').unwrap_or_default();
        Ok(Self {
            start: None,
            rest: format!("{first}{rest}"),
        })
    }

    /// Dissolves what stands for nothing in `parts`, which `text` was read as.
    fn dissolved(text: &str, parts: &str, mut start: Option<PathBuf>) -> Result<Self, BadRule> {
        let mut kept: Vec<&str> = Vec::new();
        for part in parts.split('/') {
            match (part, kept.last(), &mut start) {
                ("" | ".", ..) => {}
                ("..", Some(last), _) if last.contains(SPECIAL) => {
                    let reason = "it has `..` behind a wildcard; write the path without it";
                    return Err(BadRule::new(text, reason));
                }
                ("..", Some(last), _) if *last != ".." => drop(kept.pop()),
                // Above the root is the root.
                ("..", None, Some(start)) => drop(start.pop()),
                _ => kept.push(part),
            }
        }
        Ok(Self {
            start,
            rest: kept.join("/"),
        })
    }

    /// As it is matched.
    pub(super) fn glob(&self) -> String {
        self.behind_start(|start| start)
    }

    /// As it is matched in a brace, where a comma of the directory would divide it.
    fn alternative(&self) -> String {
        self.behind_start(|start| start.replace(',', "[,]"))
    }

    fn behind_start(&self, quoted: impl Fn(String) -> String) -> String {
        match &self.start {
            None => self.rest.clone(),
            Some(start) => below(&quoted(escape(&start.to_string_lossy())), &self.rest),
        }
    }

    /// As it would be written where relative patterns start in `directory`.
    pub(super) fn plain(&self, directory: &str) -> String {
        let is_relative = directory != "/" && self.start.as_deref() == Some(Path::new(directory));
        match self.rest.as_str() {
            "" if is_relative => ".".to_owned(),
            rest if is_relative => rest.to_owned(),
            _ => self.glob(),
        }
    }

    /// The folder that a pattern over all below it is about.
    pub(super) fn folder(&self) -> Option<Self> {
        let rest = all_below(&self.rest)?;
        let names_one = match &self.start {
            None => !rest.is_empty(),
            Some(start) => !rest.is_empty() || start.parent().is_some(),
        };
        (names_one && !rest.ends_with('*')).then(|| Self {
            start: self.start.clone(),
            rest: rest.to_owned(),
        })
    }

    /// The one file or folder it is about, with all below it.
    pub(super) fn tree(&self) -> Option<PathBuf> {
        let rest = all_below(&self.rest).unwrap_or(&self.rest);
        let tree: PathBuf = self.start.as_ref()?.join(rest).components().collect();
        (tree.parent().is_some() && !rest.contains(SPECIAL)).then_some(tree)
    }
}

/// Whether the class that `text` begins with holds the slash.
fn begins_with_slash(text: &str) -> bool {
    let class = text.split(']').next();
    class.is_some_and(|class| class.contains('/'))
}

/// What stands before the `/**` or `/*` at the end of `rest`.
fn all_below(rest: &str) -> Option<&str> {
    match rest {
        "*" | "**" => Some(""),
        _ => rest.strip_suffix("/**").or_else(|| rest.strip_suffix("/*")),
    }
}

fn below(start: &str, rest: &str) -> String {
    match rest {
        "" => start.to_owned(),
        _ => format!("{}/{rest}", start.trim_end_matches('/')),
    }
}
