//! The ignore files of a tree: `.ignore`, `.gitignore`, `.git/info/exclude`, with the precedence of ripgrep.
//!
//! A deeper file wins over one above it, `.ignore` over `.gitignore` wherever they stand, and both over the exclude file.
//! `.gitignore` counts inside a repository and outside of one alike (a tree copied without its `.git` is still listed the
//! same way), but not beyond the top of the repository the entry is in. Files are read through handles, links and
//! anything but regular files are passed over, and so are files that a pattern hides.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use ::ignore::Match;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::super::allowance::{Allowance, Share, Stock};
use super::super::error::Fail;
use super::super::file;
use super::super::policy::{FsPolicy, RootId};
use super::super::sys::{self, Kernel, Meta};
use super::super::touched::{Origin, Told, TouchLog};
use super::frame::Trail;

/// Bytes of an ignore file that count. Real ones have some kilobytes. A file that exceeds what the call may hold in
/// patterns is passed over.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The ignore files that apply in a directory: its own, and those above it.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    /// Bytes of the directory's path below the granted root, its slash included.
    base: usize,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
    /// What the texts count for.
    _shares: Vec<Share>,
}

/// Which of the special names a directory holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present {
    pub(super) ignore: bool,
    pub(super) gitignore: bool,
    pub(super) git: bool,
}

/// What the ignore files say about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreVerdict {
    Silent,
    Ignored,
    /// Named as an exception, which also brings back hidden entries.
    Kept,
}

impl Rules {
    /// The rules that hold above the directory `below` of a root.
    pub(super) fn above(
        policy: &FsPolicy,
        (allowance, touched): (&Allowance, &TouchLog),
        root: RootId,
        below: &str,
    ) -> Result<Option<Arc<Self>>, Fail> {
        let top = policy.root(root);
        let mut rules = None;
        let handle = top.handle().filter(|_| !below.is_empty());
        let Some(handle) = handle else {
            return Ok(rules);
        };
        let trail = Trail {
            touched: touched.clone(),
            root,
            origin: Some(Origin::Root(root)),
        };
        let ends = below.match_indices('/').map(|(at, _)| at);
        for end in [0].into_iter().chain(ends) {
            let part = if end == 0 { "." } else { &below[..end] };
            let Ok(dir) = policy.kernel().open_beneath(handle, part, false) else {
                touched.spoil();
                break;
            };
            let base = if end == 0 { 0 } else { end + 1 };
            trail.look(
                policy,
                dir.as_fd(),
                (&below[..base], ".git"),
                Told::Identity,
            );
            let all = Present {
                ignore: true,
                gitignore: true,
                git: Meta::at(&dir, ".git").is_ok(),
            };
            let shows =
                |name: &str| !policy.hides(&Path::new(&top.path).join(&below[..end]).join(name));
            let place = (dir.as_fd(), &trail, &below[..base]);
            rules = Self::within((policy, allowance), place, base, all, rules, shows);
        }
        Ok(rules)
    }

    /// The rules that hold in the directory `dir`, given those above. `shows` tells which names are not hidden; `above_names` is its path
    /// from where the trail starts, with a slash at the end unless empty.
    pub(super) fn within(
        (policy, allowance): (&FsPolicy, &Allowance),
        (dir, trail, above_names): (BorrowedFd<'_>, &Trail, &str),
        base: usize,
        present: Present,
        above: Option<Arc<Self>>,
        shows: impl Fn(&str) -> bool,
    ) -> Option<Arc<Self>> {
        let mut shares = Vec::new();
        let mut load = |there: bool, name: &str| {
            if !there || !shows(name) {
                return None;
            }
            trail.look(policy, dir, (above_names, name), Told::State);
            let text = read(policy.kernel(), dir, name)?;
            shares.push(allowance.take(Stock::PatternBytes, text.len()).ok()?);
            Some(compile(&text))
        };
        let ignore = load(present.ignore, ".ignore");
        let gitignore = load(present.gitignore, ".gitignore");
        let exclude = load(present.git, ".git/info/exclude");
        if ignore.is_none() && gitignore.is_none() && !present.git {
            return above;
        }
        Some(Arc::new(Self {
            above,
            base,
            ignore: ignore.unwrap_or_else(Gitignore::empty),
            gitignore: gitignore.unwrap_or_else(Gitignore::empty),
            exclude: exclude.unwrap_or_else(Gitignore::empty),
            is_repository: present.git,
            _shares: shares,
        }))
    }

    /// The verdict on the entry at `path`, which is relative to the granted root.
    pub(super) fn verdict(&self, path: &str, is_dir: bool) -> IgnoreVerdict {
        let mut by_git = IgnoreVerdict::Silent;
        let mut by_exclude = IgnoreVerdict::Silent;
        let mut in_repository = true;
        let mut level = Some(self);
        while let Some(rules) = level {
            let below = &path[rules.base..];
            let by_ignore = ask(&rules.ignore, below, is_dir);
            if by_ignore != IgnoreVerdict::Silent {
                return by_ignore;
            }
            if in_repository && by_git == IgnoreVerdict::Silent {
                by_git = ask(&rules.gitignore, below, is_dir);
            }
            if in_repository && by_exclude == IgnoreVerdict::Silent {
                by_exclude = ask(&rules.exclude, below, is_dir);
            }
            in_repository &= !rules.is_repository;
            level = rules.above.as_deref();
        }
        if by_git == IgnoreVerdict::Silent {
            by_exclude
        } else {
            by_git
        }
    }
}

fn ask(rules: &Gitignore, path: &str, is_dir: bool) -> IgnoreVerdict {
    match rules.matched(path, is_dir) {
        Match::None => IgnoreVerdict::Silent,
        Match::Ignore(_) => IgnoreVerdict::Ignored,
        Match::Whitelist(_) => IgnoreVerdict::Kept,
    }
}

/// A line that does not compile is passed over, as git does.
fn compile(text: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new(".");
    for line in text.trim_start_matches('\u{feff}').lines() {
        builder.add_line(None, line).ok();
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn read(kernel: &Kernel, dir: BorrowedFd<'_>, name: &str) -> Option<String> {
    let file = if name.contains('/') {
        open_below(kernel, dir, name)
    } else {
        sys::open_regular(kernel, dir, name)
    };
    let bytes = file::read(file.ok()?, FILE_BYTES_MAX, 0).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn open_below(
    kernel: &Kernel,
    dir: BorrowedFd<'_>,
    path: &str,
) -> Result<std::os::fd::OwnedFd, Errno> {
    let handle = kernel.open_beneath(dir, path, false)?;
    if !Meta::of(&handle)?.is_file() {
        return Err(Errno::NOENT);
    }
    kernel.reopen(&handle, OFlags::RDONLY)
}
