//! What a jail said of its limits: once, and again when there is more of it. Nobody can do anything about most of it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::aftermath::AftermathFinding;
use super::commits::CommitWatch;
use super::survey::{Survey, lies_in_fetched};

/// What was said already.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Protects the directories of which was said that they are too full to be looked through.
    unread: Mutex<HashSet<PathBuf>>,
    /// Protects the most files of which was said that they are not compared.
    n_left_out: Mutex<usize>,
    /// Whether was said what commits are without.
    has_told_commits: AtomicBool,
    /// Protects the files of a home of commands of which was said that they ended with a command.
    ended: Mutex<HashSet<PathBuf>>,
    /// Whether was said that what commands leave in `/tmp` ends with them, of something that none of them named.
    has_told_temporary: AtomicBool,
}

/// Files that should stay as they are and are not even compared, because there are too many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// One of them; none where all are compared.
    pub(super) first: Option<PathBuf>,
    pub(super) n: usize,
}

impl Told {
    /// Whether `survey` left more directories unread than was told. Packages count the first time only: they come and go.
    pub(super) fn has_more(&self, survey: &Survey) -> bool {
        let told = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = told.is_empty();
        survey.unread.iter().any(|folder| {
            let is_known = folder.ancestors().any(|above| told.contains(above));
            !is_known && (is_first || !lies_in_fetched(folder, &survey.roots))
        })
    }

    /// What to say of commits, the first time.
    pub(super) fn commits(&self, watch: &CommitWatch) -> Option<AftermathFinding> {
        if self.has_told_commits.load(Ordering::Relaxed) {
            return None;
        }
        let found = watch.told()?;
        self.has_told_commits.store(true, Ordering::Relaxed);
        Some(found)
    }

    /// Whether it was not said yet that `path` ended with a command; it is now.
    pub(super) fn is_new(&self, path: &Path) -> bool {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.insert(path.to_owned())
    }

    /// Whether it was not said yet that what lies in `/tmp` ends with its command; it is now.
    pub(super) fn is_first_temporary(&self) -> bool {
        !self.has_told_temporary.swap(true, Ordering::Relaxed)
    }

    /// Notes directories that are told now.
    pub(super) fn note(&self, unread: &[&PathBuf]) {
        let mut told = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(unread.iter().copied().cloned());
    }

    /// What to say of files that are not compared, if there are more of them than was told.
    pub(super) fn left_out(&self, left_out: &LeftOut) -> Option<AftermathFinding> {
        let path = left_out.first.clone()?;
        let mut told = self
            .n_left_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if left_out.n <= *told {
            return None;
        }
        *told = left_out.n;
        let which = match left_out.n - 1 {
            0 => " should stay as it is".to_owned(),
            1 => " and 1 more file should stay as they are".to_owned(),
            more => format!(" and {more} more files should stay as they are"),
        };
        let text = format!(
            "`{}`{which}, but there are too many such files to compare each: a change is neither prevented nor told",
            path.display()
        );
        Some(AftermathFinding { path, text })
    }
}

#[cfg(test)]
mod tests {
    use super::{LeftOut, Told};

    /// Of `n` files that are not compared, after one another in one jail, and what is said.
    #[test]
    fn files_that_are_not_compared_are_told_when_they_become_more() {
        let told = Told::default();
        for (n, expect) in [
            (0, None),
            (1, Some("`/work/f` should stay as it is")),
            (1, None),
            (2, Some("`/work/f` and 1 more file should stay as they are")),
            (1, None),
            (2, None),
            (
                9,
                Some("`/work/f` and 8 more files should stay as they are"),
            ),
        ] {
            let first = (n > 0).then(|| "/work/f".into());
            let said = told.left_out(&LeftOut { first, n });
            let text = said.map(|finding| finding.text);
            match expect {
                Some(start) => assert!(
                    text.as_ref().is_some_and(|text| text.starts_with(start)),
                    "{n}: {text:?}"
                ),
                None => assert_eq!(text, None, "{n}"),
            }
        }
    }
}
