//! Paths of the jail: files and directory trees, with a wildcard at most in the last part.
//!
//! A jail is built from paths and not from patterns, so a wildcard is expanded when the configuration is read.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};
use zeph_core::failure::one_line;

use super::paths::{PathBase, spellings};

/// Paths one wildcard may stand for. Each becomes a mount of every command, and a jail with more would be slow to build.
const EXPANDED_MAX: usize = 256;

/// What a text of `allow_read` or `allow_write` names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RootPlace {
    /// Canonical paths, at least one.
    Existing(Vec<PathBuf>),
    /// Nothing is there.
    Missing,
}

impl PathBase<'_> {
    /// The existing paths `text` names: `~`, `~/…`, absolute, or relative to the base directory; `*` and its like stand for
    /// names in one folder (not those that begin with a dot), and a closing `/**` for the folder itself.
    ///
    /// Errors: in words, for a text that can never name anything.
    pub(crate) fn places(&self, text: &str) -> Result<RootPlace, String> {
        let text = tree(text)?;
        let Some((folder, pattern)) = self.wildcard(text)? else {
            return literal(&self.absolute(text)?);
        };
        let Ok(entries) = std::fs::read_dir(&folder) else {
            return Ok(RootPlace::Missing);
        };
        let with_dots = text
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('.'));
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_hidden = name.to_string_lossy().starts_with('.');
            if !pattern.is_match(&name) || (is_hidden && !with_dots) {
                continue;
            }
            if found.len() == EXPANDED_MAX {
                return Err(format!(
                    "`{}` stands for more than {EXPANDED_MAX} paths; name the folder",
                    shown(text)
                ));
            }
            // What is gone again, or is a symlink to nothing, is not there.
            found.extend(std::fs::canonicalize(entry.path()));
        }
        found.sort();
        Ok(match found.as_slice() {
            [] => RootPlace::Missing,
            _ => RootPlace::Existing(found),
        })
    }

    /// The path `text` names, whether something is there or not: as written and, last, as it resolves now when that differs.
    pub(crate) fn named(&self, text: &str) -> Result<Vec<PathBuf>, String> {
        let text = tree(text)?;
        let path = self.absolute(text)?;
        if has_wildcard(text) && std::fs::symlink_metadata(&path).is_err() {
            return Err(format!(
                "`{}` has a wildcard; name the path itself, since a jail is built from paths",
                shown(text)
            ));
        }
        Ok(spellings(&path))
    }

    /// Folder and pattern of a path whose last part has a wildcard.
    fn wildcard(&self, text: &str) -> Result<Option<(PathBuf, GlobMatcher)>, String> {
        let (folder, name) = match text.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((folder, name)) => (folder, name),
            None => (".", text),
        };
        if has_wildcard(folder) || name.contains("**") {
            return Err(format!(
                "`{}`: a wildcard can only be in the last part of the path, since a jail is built from paths",
                shown(text)
            ));
        }
        if !has_wildcard(name) {
            return Ok(None);
        }
        match Glob::new(name) {
            Ok(glob) => Ok(Some((self.absolute(folder)?, glob.compile_matcher()))),
            Err(error) => Err(format!(
                "`{}` is not a pattern: {}",
                shown(text),
                error.kind()
            )),
        }
    }
}

/// The canonical path of what is at `path`.
pub(crate) fn literal(path: &Path) -> Result<RootPlace, String> {
    match std::fs::canonicalize(path) {
        Ok(path) => Ok(RootPlace::Existing(vec![path])),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RootPlace::Missing),
        Err(error) => Err(format!(
            "`{}` cannot be used: {error}",
            shown(&path.to_string_lossy())
        )),
    }
}

/// A text without a closing `/**`: a folder is meant with all that is below it.
fn tree(text: &str) -> Result<&str, String> {
    match text.strip_suffix("/**") {
        _ if text.is_empty() => {
            Err("an empty path; write `.` for the working directory".to_owned())
        }
        Some("") => Ok("/"),
        Some(folder) => Ok(folder),
        None => Ok(text),
    }
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

fn shown(text: &str) -> String {
    one_line(text, 200)
}
