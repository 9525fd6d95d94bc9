//! Resolves a path beneath a handle one name at a time, for systems whose kernel cannot do it in one call.
//!
//! No step ever leaves the starting directory: each name is opened without following links, links are read and their
//! text is walked the same way, `..` goes back along the handles that were opened. So a directory swapped for a link
//! between two steps changes what is found, never where it can be.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Meta;

/// Links followed in one resolution, as on Linux.
const LINKS_MAX: usize = 40;

/// Opens what `path` leads to without leaving `start`. `peek` opens one entry as a handle that only names the object.
///
/// Errors: `XDEV` when the path or a link in it leads out of `start`, as `openat2` reports it.
pub(in super::super) fn open_beneath(
    start: BorrowedFd<'_>,
    path: &str,
    follow: bool,
    peek: impl Fn(BorrowedFd<'_>, &str) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let mut pending: VecDeque<String> = names(path);
    let mut must_be_dir = path.ends_with('/');
    let mut stack: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(name) = pending.pop_front() {
        if name == "." {
            continue;
        }
        if name == ".." {
            stack.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let here = stack.last().map_or(start, AsFd::as_fd);
        let found = peek(here, &name)?;
        let last = pending.is_empty();
        match Meta::of(&found)?.kind {
            FileType::Symlink if last && !follow && !must_be_dir => return Ok(found),
            FileType::Symlink => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                let target = rustix::fs::readlinkat(here, name.as_str(), Vec::new())?;
                let target = target.into_string().map_err(|_| Errno::ILSEQ)?;
                if target.starts_with('/') {
                    return Err(Errno::XDEV);
                }
                must_be_dir |= last && target.ends_with('/');
                for name in names(&target).into_iter().rev() {
                    pending.push_front(name);
                }
            }
            FileType::Directory => stack.push(found),
            _ if last && !must_be_dir => return Ok(found),
            _ => return Err(Errno::NOTDIR),
        }
    }
    match stack.pop() {
        Some(top) => Ok(top),
        None => start
            .try_clone_to_owned()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

fn names(path: &str) -> VecDeque<String> {
    path.split('/')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}
