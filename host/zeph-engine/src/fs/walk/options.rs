//! The entries that a walk omits, as its guest requests.

use ::ignore::Match;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::super::allowance::{Allowance, Share, Stock};
use crate::bindings::zeph::plugin::walk::{Options, WalkError};

/// Globs one walk takes. More are a program's mistake, and compiling them is not free.
const GLOBS_MAX: usize = 1024;

/// The options of a walk, compiled.
#[derive(Debug)]
pub(super) struct WalkFilters {
    pub(super) depth_max: usize,
    pub(super) standard: bool,
    pub(super) sizes: bool,
    only: Option<Gitignore>,
    skip: Gitignore,
    /// What the globs count for.
    _share: Share,
}

impl WalkFilters {
    pub(super) fn new(options: &Options, allowance: &Allowance) -> Result<Self, WalkError> {
        let Options {
            max_depth,
            only,
            skip,
            standard_filters,
            sizes,
        } = options;
        if only.len() + skip.len() > GLOBS_MAX {
            return Err(WalkError::Limit);
        }
        let n_bytes = only.iter().chain(skip).map(String::len).sum();
        let share = allowance.take(Stock::PatternBytes, n_bytes);
        Ok(Self {
            _share: share.map_err(|_| WalkError::Limit)?,
            depth_max: max_depth.map_or(usize::MAX, |depth| depth as usize),
            standard: *standard_filters,
            sizes: *sizes,
            only: if only.is_empty() {
                None
            } else {
                Some(compile(only)?)
            },
            skip: compile(skip)?,
        })
    }

    /// Whether the entry at `path`, relative to the walk's root, is omitted.
    pub(super) fn skips(&self, path: &str, is_dir: bool) -> bool {
        self.skip.matched(path, is_dir).is_ignore()
    }

    /// Whether the walk wants what is not a directory at `path`, given whether it wants all of the directory it is in.
    pub(super) fn wants(&self, path: &str, inherited: bool) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| verdict(only, path, false, inherited))
    }

    /// Whether the walk wants all files in the directory at `path`, given the same of the one above.
    pub(super) fn wants_all(&self, path: &str, inherited: bool) -> bool {
        self.only
            .as_ref()
            .is_some_and(|only| verdict(only, path, true, inherited))
    }

    /// Directories are results only when no particular files were asked for.
    pub(super) fn yields_directories(&self) -> bool {
        self.only.is_none()
    }
}

fn verdict(only: &Gitignore, path: &str, is_dir: bool, inherited: bool) -> bool {
    match only.matched(path, is_dir) {
        Match::Ignore(_) => true,
        Match::Whitelist(_) => false,
        Match::None => inherited,
    }
}

fn compile(globs: &[String]) -> Result<Gitignore, WalkError> {
    // Paths are matched as they are, relative to the walk's root: `.` tells the matcher that there is nothing to strip.
    let mut builder = GitignoreBuilder::new(".");
    for glob in globs {
        builder
            .add_line(None, glob)
            .map_err(|_| WalkError::InvalidGlob)?;
    }
    builder.build().map_err(|_| WalkError::InvalidGlob)
}
