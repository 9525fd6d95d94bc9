//! How patterns over paths are spelt: `./src/*`, `src//*`, `src/` and `lib/../src` mean what the plain spelling means.
//!
//! The paths of calls are resolved, so a pattern that kept such parts would fit none of them, and a rule that denies would deny nothing.

use std::path::{Path, PathBuf};

use globset::escape;

use super::bad::BadRule;
use super::pattern::SPECIAL;

/// A pattern over paths without `.`, `..`, doubled and closing slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathGlob {
    /// The directory it starts in, as it is called: `/` for an absolute one. None for one that begins with a wildcard, which fits anywhere.
    start: Option<PathBuf>,
    /// What follows the directory.
    rest: String,
}

impl PathGlob {
    /// Reads `text`. A relative pattern starts in `directory`, which is absolute and resolved; without one it starts nowhere.
    ///
    /// Shape: `..` takes the name before it away, as it is written; a closing `/` is omitted, so that the directory itself is meant.
    /// Errors: [`BadRule`] for a `..` behind a part with special characters, since it stands for many names.
    pub(super) fn read(text: &str, directory: &str) -> Result<Self, BadRule> {
        let mut start = match text.chars().next() {
            Some('/') => Some(PathBuf::from("/")),
            None | Some('*' | '{' | '[') => None,
            Some(_) => (!directory.is_empty()).then(|| PathBuf::from(directory)),
        };
        let mut kept: Vec<&str> = Vec::new();
        for part in text.split('/') {
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
        match &self.start {
            None => self.rest.clone(),
            Some(start) => below(&escape(&start.to_string_lossy()), &self.rest),
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
