//! The directories of a policy as they really are: resolved, none within another, none that holds more than a project.

use std::path::{Path, PathBuf};

use super::JailError;
use super::mount::{within, within_any};
use super::policy::JailPolicy;

/// Directories that a root must not be or contain: the system's.
const SYSTEM: [&str; 15] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys",
    "/tmp", "/usr", "/var", "/var/tmp",
];

/// Directories that nothing may be given from, even a part.
const NEVER: [&str; 5] = ["/proc", "/sys", "/dev", "/boot", "/run"];

/// The resolved directories of a policy.
#[derive(Debug, Clone)]
pub(super) struct Roots {
    /// To be changed; the first ones are where commands work.
    pub(super) writable: Vec<PathBuf>,
    /// To be read.
    pub(super) readable: Vec<PathBuf>,
}

impl Roots {
    /// Resolves the directories of `policy`. What `allow_read` and `allow_write` name and does not exist is left out.
    ///
    /// Errors: a root does not exist, or a directory is too wide.
    pub(super) fn of(policy: &JailPolicy) -> Result<Self, JailError> {
        let home = policy
            .home
            .as_ref()
            .and_then(|home| home.canonicalize().ok());
        let mut writable = Vec::new();
        for root in &policy.roots {
            let missing = || JailError::RootMissing { path: root.clone() };
            let real = root.canonicalize().map_err(|_| missing())?;
            if !real.is_dir() {
                return Err(missing());
            }
            writable.push(real);
        }
        let existing = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths
                .iter()
                .filter_map(|path| path.canonicalize().ok())
                .collect()
        };
        writable.extend(existing(&policy.allow_write));
        for root in &writable {
            refuse_wide(root, home.as_deref())?;
        }
        let writable = outermost(writable);
        let mut readable = existing(&policy.allow_read);
        for root in &readable {
            refuse_secret(root, home.as_deref())?;
        }
        readable.retain(|path| !within_any(path, &writable));
        Ok(Self {
            writable,
            readable: outermost(readable),
        })
    }

    /// The directory of a job, resolved.
    ///
    /// Errors: it lies in no root, or is gone.
    pub(super) fn directory(&self, directory: &Path) -> Result<PathBuf, JailError> {
        let outside = || JailError::DirectoryOutside {
            path: directory.to_owned(),
        };
        let real = directory.canonicalize().map_err(|_| outside())?;
        let inside = within_any(&real, self.writable.iter().chain(&self.readable));
        match inside && real.is_dir() {
            true => Ok(real),
            false => Err(outside()),
        }
    }
}

fn refuse_wide(root: &Path, home: Option<&Path>) -> Result<(), JailError> {
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

fn refuse_secret(path: &Path, home: Option<&Path>) -> Result<(), JailError> {
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
fn outermost(paths: Vec<PathBuf>) -> Vec<PathBuf> {
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
