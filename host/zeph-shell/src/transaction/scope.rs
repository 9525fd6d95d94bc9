//! Which paths below the root a transaction is about: `tools.shell.transaction_scope`, and what the host excludes. Pure.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::error::ScopeError;

/// The paths that are kept and put back.
///
/// A pattern is relative to the root. One without `/` matches a name at any depth; one with `/` starts at the root. What matches stands
/// for everything below it. `*` does not cross `/`; `**` does.
#[derive(Debug, Clone)]
pub struct SnapshotScope {
    /// `None`: everything.
    within: Option<GlobSet>,
    without: Option<GlobSet>,
}

/// How a scope sees a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeMatch {
    /// It is kept and put back, with all below it that is not excluded.
    Covered,
    /// It is left alone, but things below it may be covered.
    Passed,
    /// It is left alone with everything below it.
    Excluded,
}

impl SnapshotScope {
    /// The whole tree.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            within: None,
            without: None,
        }
    }

    /// Compiles the patterns; `within` empty means the whole tree.
    ///
    /// Errors: the first pattern that does not compile.
    pub fn new(within: &[String], without: &[String]) -> Result<Self, ScopeError> {
        Ok(Self {
            within: compile(within)?,
            without: compile(without)?,
        })
    }

    /// Whether nothing is excluded, so that a covered directory is covered with all below it.
    pub(super) fn excludes_nothing(&self) -> bool {
        self.without.is_none()
    }

    /// How the root itself is seen.
    pub(super) fn root(&self) -> ScopeMatch {
        if self.within.is_none() {
            ScopeMatch::Covered
        } else {
            ScopeMatch::Passed
        }
    }

    /// How `path` is seen when its parent is seen as `parent`.
    pub(super) fn sees(&self, parent: ScopeMatch, path: &Path) -> ScopeMatch {
        if parent == ScopeMatch::Excluded
            || self.without.as_ref().is_some_and(|set| set.is_match(path))
        {
            return ScopeMatch::Excluded;
        }
        let covered = parent == ScopeMatch::Covered
            || self.within.as_ref().is_none_or(|set| set.is_match(path));
        if covered {
            ScopeMatch::Covered
        } else {
            ScopeMatch::Passed
        }
    }
}

fn compile(patterns: &[String]) -> Result<Option<GlobSet>, ScopeError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let fail = |pattern: &str, source| ScopeError {
        pattern: pattern.to_owned(),
        source,
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let anchored = anchor(pattern);
        let glob = GlobBuilder::new(&anchored)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|source| fail(pattern, source))?;
        set.add(glob);
    }
    let set = set
        .build()
        .map_err(|source| fail(&patterns.join(", "), source))?;
    Ok(Some(set))
}

/// The pattern as one over whole paths below the root.
fn anchor(pattern: &str) -> String {
    let trimmed = pattern.trim_start_matches("./").trim_end_matches('/');
    let stem = trimmed.strip_suffix("/**").unwrap_or(trimmed);
    match stem.trim_start_matches('/') {
        "" | "." | "**" => "**".to_owned(),
        name if !trimmed.contains('/') => format!("**/{name}"),
        path => path.to_owned(),
    }
}
