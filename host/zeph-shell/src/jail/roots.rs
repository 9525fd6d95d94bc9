//! What a policy names, as it really is: found when the host starts and held, none within another, none that holds more than a
//! project. Of each run it is asked what still stands where it was found; what does not is not given.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::Access;
use zeph_core::git_config::GitUser;
use zeph_jail::plan::{MountCheck, MountMode};

use super::JailError;
use super::aftermath::AftermathFinding;
use super::mount::{within, within_any};
use super::policy::JailPolicy;
use super::system;
use crate::held_object::{FollowedName, HeldObject, Id};

/// Directories that a root must not be or contain: the system's.
const SYSTEM: [&str; 15] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys",
    "/tmp", "/usr", "/var", "/var/tmp",
];

/// Directories that nothing may be given from, even a part.
const NEVER: [&str; 5] = ["/proc", "/sys", "/dev", "/boot", "/run"];

/// What a policy names, held since the host started.
#[derive(Debug)]
pub(super) struct GrantedPaths {
    /// Where commands may work.
    work: Vec<HeldObject>,
    /// What they may change; none lies within another.
    write: Vec<HeldObject>,
    /// What they may read besides; none lies within another, or within what may be changed.
    read: Vec<HeldObject>,
    hidden: Vec<FollowedName>,
    /// What is hidden of the system, looked for when the first command is to run: nothing that ran before could change it.
    keys: OnceLock<Vec<FollowedName>>,
    protected: Vec<FollowedName>,
    git_user: GitUser,
}

/// What of it stands when a command is to run.
#[derive(Debug, Clone)]
pub(super) struct Roots {
    /// Where commands may work, whether they can read there or not.
    pub(super) work: Vec<PathBuf>,
    /// To be changed.
    pub(super) writable: Vec<PathBuf>,
    /// To be read.
    pub(super) readable: Vec<PathBuf>,
    /// Not to be seen, none within another.
    pub(super) hidden: Vec<PathBuf>,
    /// Not to be changed.
    pub(super) protected: Vec<PathBuf>,
    /// What does not stand any more.
    pub(super) lost: Vec<PathBuf>,
    /// The user whose configuration of git counts.
    pub(super) git_user: GitUser,
    objects: HashMap<PathBuf, Id>,
}

impl GrantedPaths {
    /// Finds what `policy` names. What `allow_read` and `allow_write` name and does not exist is omitted.
    ///
    /// Errors: a root does not exist, belongs to what is hidden, or a directory is too wide.
    pub(super) fn open(policy: &JailPolicy) -> Result<Self, JailError> {
        let home = policy
            .home
            .as_ref()
            .and_then(|home| home.canonicalize().ok());
        let mut work = Vec::new();
        for root in &policy.roots {
            let missing = || JailError::RootMissing { path: root.clone() };
            let real = root.canonicalize().map_err(|_| missing())?;
            let held = HeldObject::open(&real)
                .ok()
                .filter(HeldObject::is_directory);
            work.push(held.ok_or_else(missing)?);
            if within_any(&real, &policy.hidden) {
                return Err(JailError::RootHidden { path: root.clone() });
            }
        }
        let write = existing(policy.allow_write.as_deref().unwrap_or(&policy.roots));
        for root in work.iter().chain(&write) {
            refuse_wide(root.path(), home.as_deref())?;
        }
        let mut read = existing(policy.allow_read.as_deref().unwrap_or(&policy.roots));
        for place in &read {
            refuse_secret(place.path(), home.as_deref())?;
        }
        let write = outermost(write);
        read.retain(|place| !write.iter().any(|root| within(place.path(), root.path())));
        Ok(Self {
            work,
            write,
            read: outermost(read),
            hidden: followed(&policy.hidden),
            keys: OnceLock::new(),
            protected: followed(&policy.protected),
            git_user: policy.git_user.clone(),
        })
    }

    /// What stands now.
    pub(super) fn now(&self) -> Roots {
        let all = |followed: &[FollowedName]| -> Vec<PathBuf> {
            followed.iter().flat_map(FollowedName::places).collect()
        };
        let keys = self.keys.get_or_init(|| followed(&secrets()));
        let hidden = outermost_paths([all(&self.hidden), all(keys)].concat());
        let mut roots = Roots {
            work: Vec::new(),
            writable: Vec::new(),
            readable: Vec::new(),
            protected: all(&self.protected),
            lost: Vec::new(),
            git_user: self.git_user.clone(),
            objects: HashMap::new(),
            hidden,
        };
        roots.work = roots.standing(&self.work);
        roots.writable = roots.standing(&self.write);
        roots.readable = roots.standing(&self.read);
        roots.lost.sort();
        roots.lost.dedup();
        roots
    }
}

impl Roots {
    /// Of paths that nothing stands at.
    #[cfg(test)]
    pub(super) fn of_paths(work: &[&str]) -> Self {
        let work: Vec<PathBuf> = work.iter().map(PathBuf::from).collect();
        Self {
            writable: work.clone(),
            work,
            readable: Vec::new(),
            hidden: Vec::new(),
            protected: Vec::new(),
            lost: Vec::new(),
            git_user: GitUser::default(),
            objects: HashMap::new(),
        }
    }

    fn standing(&mut self, held: &[HeldObject]) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for one in held {
            let path = one.path().to_owned();
            if !one.stands() {
                self.lost.push(path);
            } else if !within_any(&path, &self.hidden) {
                self.objects.insert(path.clone(), one.id());
                paths.push(path);
            }
        }
        paths
    }

    /// The object that stands at a path of the policy.
    pub(super) fn object(&self, path: &Path) -> Option<Id> {
        self.objects.get(path).copied()
    }

    /// The directory of a job, resolved.
    ///
    /// Errors: it lies in no root, or is gone, or its root was exchanged.
    pub(super) fn directory(&self, directory: &Path) -> Result<PathBuf, JailError> {
        let outside = || JailError::DirectoryOutside {
            path: directory.to_owned(),
        };
        if let Some(lost) = self.lost.iter().find(|lost| within(directory, lost)) {
            return Err(JailError::RootReplaced { path: lost.clone() });
        }
        let real = directory.canonicalize().map_err(|_| outside())?;
        let all = [&self.work, &self.writable, &self.readable];
        let inside = within_any(&real, all.into_iter().flatten());
        match inside && real.is_dir() {
            true => Ok(real),
            false => Err(outside()),
        }
    }

    /// What the inner stage makes sure of.
    pub(super) fn checks(&self) -> Vec<MountCheck> {
        let readable = self.readable.iter().map(|path| (path, MountMode::ReadOnly));
        let writable = self.writable.iter().map(|path| (path, MountMode::Any));
        let all = readable.chain(writable).filter_map(|(path, mount)| {
            let (device, inode) = self.object(path)?;
            Some(MountCheck {
                path: path.as_os_str().as_bytes().to_vec(),
                device,
                inode,
                mount,
            })
        });
        all.collect()
    }

    /// A sentence for each place that is not given any more.
    pub(super) fn findings(&self) -> Vec<AftermathFinding> {
        let text = |path: &Path| {
            format!(
                "`{}` is not what it was when the host started, so commands do not get it; start the host anew if it is meant",
                path.display()
            )
        };
        let findings = self.lost.iter().map(|path| AftermathFinding {
            path: path.clone(),
            text: text(path),
        });
        findings.collect()
    }
}

/// Keys of the machine that lie among settings which commands see, and that the user of commands can read: only some users can, root
/// among them.
fn secrets() -> Vec<PathBuf> {
    let is_seen = |path: &PathBuf| {
        let mut wanted = [Access::READ_OK, Access::EXEC_OK].into_iter();
        wanted.any(|access| rustix::fs::access(path.as_path(), access).is_ok())
    };
    let mut found = system::secrets(Path::new("/etc"));
    found.retain(is_seen);
    found
}

fn followed(paths: &[PathBuf]) -> Vec<FollowedName> {
    paths.iter().map(|path| FollowedName::new(path)).collect()
}

/// What is there of `paths`, held.
fn existing(paths: &[PathBuf]) -> Vec<HeldObject> {
    let real = paths.iter().filter_map(|path| path.canonicalize().ok());
    real.filter_map(|path| HeldObject::open(&path).ok())
        .collect()
}

pub(super) fn refuse_wide(root: &Path, home: Option<&Path>) -> Result<(), JailError> {
    let reason = if SYSTEM.iter().any(|system| within(Path::new(system), root)) {
        "it holds parts of the system"
    } else if home.is_some_and(|home| within(home, root)) {
        "it holds your home directory with everything private in it; work in a folder of it"
    } else if NEVER.iter().any(|never| within(root, Path::new(never))) {
        "it belongs to the kernel or to running services"
    } else if ["/usr", "/etc"]
        .iter()
        .any(|system| within(root, Path::new(system)))
    {
        "it is a part of the system"
    } else {
        return Ok(());
    };
    Err(JailError::RootTooWide {
        path: root.to_owned(),
        reason,
    })
}

pub(super) fn refuse_secret(path: &Path, home: Option<&Path>) -> Result<(), JailError> {
    let reason = if path.components().count() == 1 {
        "it holds everything"
    } else if home.is_some_and(|home| within(home, path)) {
        "it holds your home directory with everything private in it"
    } else if NEVER
        .iter()
        .any(|never| within(path, Path::new(never)) || within(Path::new(never), path))
    {
        "it belongs to the kernel or to running services"
    } else {
        return Ok(());
    };
    Err(JailError::RootTooWide {
        path: path.to_owned(),
        reason,
    })
}

/// Without those that lie within others, in the order given.
fn outermost(held: Vec<HeldObject>) -> Vec<HeldObject> {
    let paths: Vec<PathBuf> = held.iter().map(|one| one.path().to_owned()).collect();
    let mut kept = outermost_paths(paths);
    let is_kept = |one: &HeldObject| {
        let place = kept.iter().position(|path| path == one.path());
        place.map(|idx| kept.swap_remove(idx)).is_some()
    };
    held.into_iter().filter(is_kept).collect()
}

/// The same of paths.
pub(super) fn outermost_paths(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in &paths {
        let covered = paths
            .iter()
            .any(|other| other != path && within(path, other));
        if !covered && !kept.contains(path) {
            kept.push(path.clone());
        }
    }
    kept
}
