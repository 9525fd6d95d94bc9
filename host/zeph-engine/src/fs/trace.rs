//! Follows a path by its text, as `realpath` does, and notes what it passes.
//!
//! The answer is only ever used to choose where to open next, or to hide an error; what is opened is decided on its handle.
//! So it does not matter that the tree may change meanwhile.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;

use super::error::Code;
use super::policy::{FsPolicy, RootId};
use super::refusal::NONE;

/// Links followed in one path, as on Linux.
const LINKS_MAX: usize = 40;

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Traced {
    /// The absolute real path; names that do not exist are kept as written.
    pub(super) end: PathBuf,
    /// The path touches something a pattern hides.
    pub(super) through_hidden: bool,
    /// A root without rights that the path touches, when there is one inside another root.
    pub(super) through_shut: Option<RootId>,
}

impl FsPolicy {
    /// Follows `path` from the real directory `start`; the last name only when `follow`.
    pub(super) fn trace(&self, start: &Path, path: &str, follow: bool) -> Result<Traced, Code> {
        let mut end = start.to_path_buf();
        let mut pending: VecDeque<String> = names(path);
        let mut through_hidden = false;
        let mut through_shut = None;
        let mut links = 0;
        let follow_last = follow || path.ends_with('/');
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                end.pop();
                continue;
            }
            end.push(&name);
            through_hidden |= self.hides(&end);
            if self.shuts() && through_shut.is_none() {
                through_shut = self
                    .governing(&end)
                    .filter(|root| self.rights(*root) == NONE);
            }
            if pending.is_empty() && !follow_last {
                break;
            }
            let Ok(target) = rustix::fs::readlinkat(CWD, &end, Vec::with_capacity(128)) else {
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return Err(Code::Loop);
            }
            let target = target.into_string().map_err(|_| Code::NotPermitted)?;
            end.pop();
            if target.starts_with('/') {
                end = PathBuf::from("/");
            }
            for name in names(&target).into_iter().rev() {
                pending.push_front(name);
            }
        }
        Ok(Traced {
            end,
            through_hidden,
            through_shut,
        })
    }
}

fn names(path: &str) -> VecDeque<String> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
        .map(str::to_owned)
        .collect()
}
