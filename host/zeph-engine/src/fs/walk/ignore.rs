//! The ignore files of a tree: `.ignore`, `.gitignore`, `.git/info/exclude`, with the precedence of ripgrep.
//!
//! A deeper file wins over one above it, `.ignore` over `.gitignore` wherever they stand, and both over the exclude file.
//! `.gitignore` counts inside a repository and outside of one alike (a tree copied without its `.git` is still listed the
//! same way), but not beyond the top of the repository the entry is in. Where a granted root lies in a repository, the files above it
//! count too: the host reads them, up to the top of the repository, and no guest can. Files are read through handles, links and
//! anything but regular files are passed over, and so are files that a pattern hides.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use ::ignore::Match;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{CWD, OFlags};
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

/// Directories above a granted root in which the top of a repository is looked for.
const LEVELS_MAX: usize = 32;

/// The ignore files that apply in a directory: its own, and those above it.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    /// Bytes of the directory's path below the granted root, its slash included.
    base: usize,
    /// Of a directory above the granted root: the path from it to the root, with a slash at the end.
    from_above: String,
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
        let mut rules = Self::above_root(policy, (allowance, touched), Path::new(&top.path));
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
            let place = (dir.as_fd(), Some(&trail), &below[..base]);
            rules = Self::within((policy, allowance), place, base, all, rules, shows);
        }
        Ok(rules)
    }

    /// The rules above the granted root `top`, when it lies in a repository without being its top.
    fn above_root(
        policy: &FsPolicy,
        (allowance, touched): (&Allowance, &TouchLog),
        top: &Path,
    ) -> Option<Arc<Self>> {
        let is_repository = |directory: &Path| directory.join(".git").symlink_metadata().is_ok();
        if is_repository(top) {
            return None;
        }
        let above: Vec<&Path> = top.ancestors().skip(1).take(LEVELS_MAX).collect();
        let uppermost = above
            .iter()
            .position(|directory| is_repository(directory))?;
        // What is read there is not written down, so no result may be used again.
        touched.spoil();
        let mut rules = None;
        for directory in above[..=uppermost].iter().rev() {
            let from_above = top.strip_prefix(directory).ok()?.to_str()?;
            let Ok(handle) = sys::open_directory(CWD, directory.to_str()?) else {
                continue;
            };
            let present = Present {
                ignore: true,
                gitignore: true,
                git: is_repository(directory),
            };
            let shows = |name: &str| !policy.hides(&directory.join(name));
            let place = (handle.as_fd(), None, "");
            let found = Self::within((policy, allowance), place, 0, present, rules.clone(), shows);
            rules = found.map(|found| match Arc::try_unwrap(found) {
                Ok(own) => Arc::new(Self {
                    from_above: format!("{from_above}/"),
                    ..own
                }),
                // Nothing stands there: those above hold.
                Err(above) => above,
            });
        }
        rules
    }

    /// The rules that hold in the directory `dir`, given those above. `shows` tells which names are not hidden; `above_names` is its path
    /// from where the trail starts, with a slash at the end unless empty.
    pub(super) fn within(
        (policy, allowance): (&FsPolicy, &Allowance),
        (dir, trail, above_names): (BorrowedFd<'_>, Option<&Trail>, &str),
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
            if let Some(trail) = trail {
                trail.look(policy, dir, (above_names, name), Told::State);
            }
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
            from_above: String::new(),
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
            let below = rules.below(path);
            let by_ignore = ask(&rules.ignore, &below, is_dir);
            if by_ignore != IgnoreVerdict::Silent {
                return by_ignore;
            }
            if in_repository && by_git == IgnoreVerdict::Silent {
                by_git = ask(&rules.gitignore, &below, is_dir);
            }
            if in_repository && by_exclude == IgnoreVerdict::Silent {
                by_exclude = ask(&rules.exclude, &below, is_dir);
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

impl Rules {
    /// The path, which is relative to the granted root, as it is from the directory of the rules.
    fn below<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match self.from_above.is_empty() {
            true => Cow::Borrowed(&path[self.base..]),
            false => Cow::Owned(format!("{}{path}", self.from_above)),
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
