//! Whether a call will fail because of the jail, and what would have to be granted.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use zeph_core::obeyed;
use zeph_jail::plan::{PathAccess, Rule};
use zeph_jail::watch::Wish;

use super::super::mount::within_any;
use super::super::roots::{Roots, refuse_secret, refuse_wide};
use super::process::StoppedThread;
use super::{DeniedPath, PathWatch, holds_credentials};

/// What no grant opens, and what every jail has of its own.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What libraries of the system look for in every process, and do without.
const PROBED: [&str; 5] = [
    "/etc/gitconfig",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
];

/// How often a look from the root of a run is repeated that the kernel gave up because something was renamed or mounted meanwhile, wherever on
/// the machine.
const LOOKS_MAX: usize = 128;

/// Directories of version control, which lie in what they are of.
const CONTROL: [&str; 5] = [".git", ".hg", ".jj", ".sl", ".svn"];

/// What in those names programs to run.
const RUN_BY_CONTROL: [&str; 4] = ["config", "config.worktree", "hgrc", "hooks"];

const HIDDEN: &str =
    "it is hidden (`tools.sandbox.hide`, `tools.file.deny_read`, a rule, or the host's own)";
const CREDENTIALS: &str = "credentials lie there";
const PRIVATE: &str = "it holds your home directory, or belongs to the system";
const OBEYED: &str = "programs outside the sandbox obey it, so it is kept as it is";
const LINKED: &str = "it is granted, and there is a symbolic link in the name that was used";

/// What a call wants of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Look,
    Read,
    Write,
    Create,
    Add,
    Remove,
}

/// Judges the calls of one run.
#[derive(Debug)]
pub(in crate::jail) struct Judge {
    sight: Sight,
    home: Option<PathBuf>,
    hidden: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

/// How it is known what the run can see.
#[derive(Debug)]
enum Sight {
    /// By looking from its own root, which is that of its first process; none before that is known.
    Root(Option<OwnedFd>),
    /// By what Landlock lets through.
    Rules(Vec<Rule>),
}

impl Judge {
    /// Of a run that has a root of its own.
    pub(in crate::jail) fn of_root(roots: &Roots, home: Option<&Path>) -> Self {
        Self::new(Sight::Root(None), roots, home)
    }

    /// Of a run that has only these rules.
    pub(in crate::jail) fn of_rules(rules: &[Rule], roots: &Roots, home: Option<&Path>) -> Self {
        Self::new(Sight::Rules(rules.to_vec()), roots, home)
    }

    fn new(sight: Sight, roots: &Roots, home: Option<&Path>) -> Self {
        Self {
            sight,
            home: home.and_then(|home| home.canonicalize().ok()),
            hidden: roots.hidden.clone(),
            readable: roots.readable.clone(),
            writable: roots.writable.clone(),
        }
    }

    /// Tells `watch` what the call will be refused, if anything.
    pub(super) fn look(
        &mut self,
        thread: &StoppedThread<'_>,
        wish: Wish,
        path: &Path,
        watch: &PathWatch,
    ) {
        if OF_THE_KERNEL.iter().any(|place| path.starts_with(place)) {
            return;
        }
        if let Sight::Root(root @ None) = &mut self.sight {
            match open(&thread.root()) {
                Ok(opened) => *root = Some(opened),
                Err(error) => {
                    watch.fail(format!("what a process sees cannot be looked at: {error}"));
                    return;
                }
            }
        }
        let want = want(thread, wish);
        let lack = self.lack(path, want);
        let lack = lack.map(|(granted, write)| match write {
            true => (repository(granted), write),
            false => (granted, write),
        });
        if lack.is_none() {
            self.see(path, want, watch);
        }
        if let Some((granted, write)) = lack
            && !PROBED.iter().any(|probed| granted == Path::new(probed))
        {
            watch.add(DeniedPath {
                obstacle: self.obstacle(&granted, path, write),
                path: granted,
                write,
                wanted: path.to_owned(),
                is_looked_at: want == Want::Look,
            });
        }
    }

    /// Tells `watch` in which granted directory something is used.
    fn see(&self, path: &Path, want: Want, watch: &PathWatch) {
        if !watch.keeps_used() {
            return;
        }
        let directory = match path.parent() {
            Some(parent) if want != Want::Read || !path.is_dir() => parent,
            _ => path,
        };
        // Granted directories are seen under the names that they have outside.
        let Ok(directory) = directory.canonicalize() else {
            return;
        };
        let granted = self.writable.iter().chain(&self.readable);
        if within_any(&directory, granted) {
            let write = !matches!(want, Want::Look | Want::Read);
            watch.used(&directory, write);
        }
    }

    /// What would have to be granted so that the call works, and whether to be changed; none where the jail is not what it fails of.
    fn lack(&self, path: &Path, want: Want) -> Option<(PathBuf, bool)> {
        let parent = path.parent().unwrap_or(path);
        let outside = || path.canonicalize().ok();
        if matches!(want, Want::Look | Want::Add) && self.has_name(path) {
            return None;
        }
        match (want, self.is_writable(path)) {
            (Want::Read, Some(_)) | (Want::Write | Want::Create, Some(true)) => None,
            (Want::Look | Want::Read, _) => Some((outside()?, false)),
            (Want::Write, _) | (Want::Create, Some(false)) => Some((outside()?, true)),
            (Want::Create | Want::Add, _) if self.is_writable(parent) == Some(true) => None,
            (Want::Create, None) => match outside() {
                Some(there) => Some((there, true)),
                None => self.lack_of_directory(parent),
            },
            (Want::Add, _) => match outside() {
                // What is there outside is looked for by making it.
                Some(there) => Some((there, false)),
                None => self.lack_of_directory(parent),
            },
            (Want::Remove, _) if path.symlink_metadata().is_err() => None,
            (Want::Remove, _) => self.lack_of_directory(parent),
        }
    }

    /// Whether the run can know that something has this name.
    fn has_name(&self, path: &Path) -> bool {
        match &self.sight {
            Sight::Root(_) => self.is_writable(path).is_some(),
            // Landlock keeps no secret of names.
            Sight::Rules(_) => path.symlink_metadata().is_ok(),
        }
    }

    /// The directory that a name is to be added to or removed from, or the nearest one above it that is there.
    fn lack_of_directory(&self, directory: &Path) -> Option<(PathBuf, bool)> {
        if self.is_writable(directory) == Some(true) {
            return None;
        }
        let there = directory.ancestors().find_map(|one| {
            let real = one.canonicalize().ok()?;
            real.is_dir().then_some(real)
        });
        there.map(|there| (there, true))
    }

    /// Whether the run can change what is at a path; none where it sees nothing there.
    fn is_writable(&self, path: &Path) -> Option<bool> {
        match &self.sight {
            Sight::Root(None) => None,
            Sight::Root(Some(root)) => {
                match look_from(root, path) {
                    Ok(there) => {
                        let about = rustix::fs::fstatvfs(&there).ok()?;
                        Some(!about.f_flag.contains(StatVfsMountFlags::RDONLY))
                    }
                    Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => None,
                    // For another reason than the jail.
                    Err(_) => Some(true),
                }
            }
            Sight::Rules(rules) => {
                let real = path.canonicalize().ok()?;
                let given: Vec<PathAccess> = rules
                    .iter()
                    .filter(|rule| real.starts_with(as_path(&rule.path)))
                    .map(|rule| rule.access)
                    .collect();
                let is_read = |access: &PathAccess| *access != PathAccess::List;
                let is_written =
                    |access: &PathAccess| !matches!(access, PathAccess::List | PathAccess::Read);
                given
                    .iter()
                    .any(is_read)
                    .then(|| given.iter().any(is_written))
            }
        }
    }

    /// Why no grant is to be proposed.
    fn obstacle(&self, granted: &Path, wanted: &Path, write: bool) -> Option<&'static str> {
        let home = self.home.as_deref();
        let below = home.and_then(|home| granted.strip_prefix(home).ok());
        let below = below.or_else(|| granted.strip_prefix("/").ok());
        let is_wide = match write {
            true => refuse_wide(granted, home).is_err(),
            false => refuse_secret(granted, home).is_err(),
        };
        let given = match write {
            true => within_any(granted, &self.writable),
            false => within_any(granted, self.writable.iter().chain(&self.readable)),
        };
        if within_any(granted, &self.hidden) {
            Some(HIDDEN)
        } else if holds_credentials(granted, home) || holds_credentials(wanted, home) {
            Some(CREDENTIALS)
        } else if is_wide {
            Some(PRIVATE)
        } else if write && (below.and_then(obeyed::name_of).is_some() || runs_programs(wanted)) {
            Some(OBEYED)
        } else if given {
            Some(if write { OBEYED } else { LINKED })
        } else {
            None
        }
    }
}

/// The directory that a directory of version control is in, for what lies in the latter: it is kept whole only where the jail knows what it
/// belongs to.
fn repository(path: PathBuf) -> PathBuf {
    let is_of_control = |one: &&Path| {
        let name = one.file_name();
        name.is_some_and(|name| CONTROL.iter().any(|control| name == *control))
    };
    let outermost = path.ancestors().filter(is_of_control).last();
    let repository = outermost.and_then(Path::parent).map(Path::to_owned);
    repository.unwrap_or(path)
}

/// Whether version control runs what is said there.
fn runs_programs(path: &Path) -> bool {
    path.ancestors().any(|one| {
        let parent = one.parent().and_then(Path::file_name);
        let is_in_control =
            parent.is_some_and(|name| CONTROL.iter().any(|control| name == *control));
        let name = one.file_name();
        is_in_control && name.is_some_and(|name| RUN_BY_CONTROL.iter().any(|run| name == *run))
    })
}

fn want(thread: &StoppedThread<'_>, wish: Wish) -> Want {
    match wish {
        Wish::Look => Want::Look,
        Wish::Read => Want::Read,
        Wish::Write => Want::Write,
        Wish::Create => Want::Create,
        Wish::Add => Want::Add,
        Wish::Remove => Want::Remove,
        Wish::Mode(argument) => match thread.number(argument) & libc::W_OK {
            0 => Want::Look,
            _ => Want::Write,
        },
        Wish::Flags(argument) => {
            let flags = thread.number(argument);
            let has = |flag: i32| flags & flag != 0;
            match flags & libc::O_ACCMODE {
                _ if has(libc::O_PATH) => Want::Read,
                _ if has(libc::O_CREAT) => Want::Create,
                libc::O_RDONLY if !has(libc::O_TRUNC) => Want::Read,
                _ => Want::Write,
            }
        }
    }
}

/// Opens what a process sees at `path` whose root is `root`. With `..` in the path, the kernel gives up where a rename or a mount came between.
fn look_from(root: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let look = || rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
    for _ in 1..LOOKS_MAX {
        match look() {
            Err(rustix::io::Errno::AGAIN) => {}
            done => return done,
        }
    }
    look()
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests;
