//! What every command sees, before anything in it is protected: the system, private places, toolchains, the directories of the policy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::jail::gitconfig::{CleanConfig, Missing};
use crate::jail::mount::{Mode, Mount, NOTHING, within, within_any};
use crate::jail::policy::JailPolicy;
use crate::jail::{Roots, gitconfig, toolchain};

/// The mounts, and the paths of the host among them.
pub(super) struct BaseView {
    pub(super) mounts: Vec<Mount>,
    /// Directories in memory that nothing can be made in once everything stands.
    pub(super) fixed: Vec<Mount>,
    pub(super) visible: Vec<PathBuf>,
    /// What commits of commands are without.
    pub(super) missing: Missing,
}

/// The home inside: where the user's is, unless that is no place for a directory in memory.
pub(super) fn home(policy: &JailPolicy, roots: &Roots) -> PathBuf {
    let home = policy
        .home
        .as_ref()
        .and_then(|home| home.canonicalize().ok());
    let home =
        home.filter(|home| home.components().count() > 1 && !within(Path::new("/usr"), home));
    match home
        .filter(|home| !within_any(home, &roots.writable) && !within_any(home, &roots.readable))
    {
        Some(home) => home,
        None => PathBuf::from("/home/jail"),
    }
}

/// Where temporary files are put when `/tmp` is that of the machine and cannot be changed.
pub(super) fn temporary(roots: &Roots, home: &Path) -> Option<PathBuf> {
    let tmp = Path::new("/tmp");
    let is_fixed = within_any(tmp, &roots.readable) && !within_any(tmp, &roots.writable);
    is_fixed.then(|| home.join(".tmp"))
}

/// The `system`, the private places, the toolchains, the directories of the policy, and the configuration of git.
pub(super) fn base(
    policy: &JailPolicy,
    system: Vec<Mount>,
    roots: &Roots,
    (home, config): (&Path, CleanConfig),
) -> BaseView {
    let mut mounts = system;
    mounts.extend(private_places(policy, home));
    let mut fixed: Vec<PathBuf> = above_given(roots, home).into_iter().collect();
    mounts.extend(fixed.iter().cloned().map(empty));
    mounts.extend(temporary(roots, home).map(Mount::Directory));
    let tools = toolchain::mounts(policy, Some(home), &roots.writable);
    mounts.extend(tools);
    let files = config.files.into_iter();
    mounts.extend(files.map(|(path, bytes)| Mount::File {
        path,
        bytes: bytes.into(),
    }));
    let cache = policy.cache.as_ref().filter(|cache| cache.is_dir());
    // Below its own name the cache is not seen; it is bound to where caches are looked for.
    if let Some(cache) = cache {
        mounts.push(Mount::WriteAt {
            source: cache.clone(),
            path: home.join(".cache"),
        });
    }
    let mut given: Vec<Mount> = roots.readable.iter().cloned().map(Mount::Read).collect();
    given.extend(roots.writable.iter().cloned().map(Mount::Write));
    given.sort_by_key(|mount| mount.path().components().count());
    // Where commands start there is a directory, whether they can read it or not. What they would write there would be lost.
    let is_given = |path: &Path| given.iter().any(|mount| within(path, mount.path()));
    let holds_mount = |path: &Path| mounts.iter().any(|mount| within(mount.path(), path));
    let mut bare: Vec<&PathBuf> = roots.work.iter().filter(|path| !is_given(path)).collect();
    bare.sort_by_key(|path| path.components().count());
    let mut made = Vec::new();
    for path in bare {
        if holds_mount(path) {
            made.push(Mount::Directory(path.clone()));
        } else {
            made.push(empty(path.clone()));
            fixed.push(path.clone());
        }
    }
    made.extend(links(policy, &mounts, &given));
    // A directory there cannot stand on a link.
    let var_tmp = Path::new("/var/tmp");
    let in_var_tmp = |mount: &Mount| within(mount.path(), var_tmp);
    let own = own_mounts(policy).any(|mount| in_var_tmp(&mount));
    if own || within(home, var_tmp) || given.iter().chain(&made).any(in_var_tmp) {
        mounts.retain(|mount| mount.path() != var_tmp);
    }
    mounts.extend(made);
    mounts.extend(given);
    let visible = mounts
        .iter()
        .filter_map(Mount::of_host)
        .map(Path::to_owned)
        .collect();
    BaseView {
        mounts,
        fixed: fixed.into_iter().map(Mount::Fixed).collect(),
        visible,
        missing: config.missing,
    }
}

/// The configuration of git for commands with this home.
pub(super) fn git_config(policy: &JailPolicy, roots: &Roots, home: &Path) -> CleanConfig {
    let mut user = policy.git_user.clone();
    user.home = user.home.or_else(|| policy.home.clone());
    gitconfig::cleaned(&user, home, &roots.writable)
}

/// The uppermost directories of the home on the way to what is given in it: what a command wrote there, beside the directories of the user,
/// would look as if it stayed. Those that begin with a dot are for programs, which keep files of the moment there.
fn above_given(roots: &Roots, home: &Path) -> BTreeSet<PathBuf> {
    let given = || {
        roots
            .work
            .iter()
            .chain(&roots.writable)
            .chain(&roots.readable)
    };
    let tops = given().filter_map(|path| {
        let name = path.strip_prefix(home).ok()?.components().next()?;
        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        let top = home.join(name);
        (!is_hidden && top != *path).then_some(top)
    });
    let tops = tops.filter(|top| !given().any(|path| path == top));
    // One of the toolchains, which is shown as it is.
    tops.filter(|top| *top != home.join("go")).collect()
}

/// A directory in memory that is to become [`Mount::Fixed`].
pub(super) fn empty(path: PathBuf) -> Mount {
    Mount::Memory {
        path,
        bytes: NOTHING,
        mode: Mode::Own,
    }
}

/// Devices, processes, and directories in memory.
fn private_places(policy: &JailPolicy, home: &Path) -> [Mount; 7] {
    let limits = policy.limits;
    let memory = |path: &str, bytes, mode| Mount::Memory {
        path: path.into(),
        bytes,
        mode,
    };
    [
        Mount::Devices("/dev".into()),
        memory("/dev/shm", limits.shm_bytes, Mode::Shared),
        Mount::Fixed("/dev".into()),
        Mount::Processes("/proc".into()),
        // All of it: the files below /proc/sys belong to the host's root, who may be the one who runs this.
        Mount::Fixed("/proc".into()),
        memory("/tmp", limits.tmp_bytes, Mode::Shared),
        Mount::Memory {
            path: home.to_owned(),
            bytes: limits.tmp_bytes,
            mode: Mode::Own,
        },
    ]
}

/// The host's own directories that are given, whatever hides others there.
pub(super) fn own_mounts(policy: &JailPolicy) -> impl Iterator<Item = Mount> {
    let read = policy.own.read.iter().cloned().map(Mount::Read);
    read.chain(policy.own.write.iter().cloned().map(Mount::Write))
}

/// Other names of the directories, where nothing else stands.
fn links(policy: &JailPolicy, mounts: &[Mount], given: &[Mount]) -> Vec<Mount> {
    let shown = || mounts.iter().chain(given);
    let is_taken = |path: &Path| {
        shown().any(|mount| {
            within(mount.path(), path) || mount.of_host().is_some_and(|top| within(path, top))
        })
    };
    let names = policy.spellings.iter();
    let free = names.filter(|(name, target)| !is_taken(name) && !within(target, name));
    let links = free.map(|(name, target)| Mount::Link {
        path: name.clone(),
        target: target.clone(),
    });
    links.collect()
}
