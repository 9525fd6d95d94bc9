//! The jail: what a command may see, change and reach, made into a process that is ready to be started.
//!
//! It decides nothing about commands and starts none: `prepare` gives a program with arguments, descriptors and a guard, and whoever
//! starts processes starts it. Three walls stand one behind the other: the namespaces and mounts of bubblewrap, then Landlock
//! and the system call filter that the inner stage (`zeph-jail`) puts on before it becomes the command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};

mod policy;
mod prepared;

pub use policy::{EnvironmentPolicy, JailPolicy, Limits, Mode, Network};
pub use prepared::{Finding, Guard, Prepared, Start};

/// Where a job's `rc` is found inside the jail; the value for `BASH_ENV`.
pub const RC_PATH: &str = "/run/zeph/rc";

/// How much of the jail stands around a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// Nothing; only where the operator switched the jail off. Every result says so.
    None,
    /// Landlock and the system call filter, without namespaces. Every result says so.
    LandlockOnly,
    /// Namespaces and mounts, Landlock, the system call filter.
    Full,
}

impl Label {
    /// The word that results and reports carry: `full`, `landlock-only` or `none`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::LandlockOnly => "landlock-only",
            Self::None => "none",
        }
    }
}

/// One command to be run in the jail.
#[derive(Debug)]
pub struct Job<'a> {
    /// The program: an absolute path as seen inside the jail, for example `/bin/bash`.
    pub program: &'a Path,
    /// Its arguments, without its name. Nobody else on the machine can read them from the jail's command line.
    pub arguments: &'a [OsString],
    /// Where it starts; beneath a root of the policy.
    pub directory: &'a Path,
    /// Variables set on top of the scrubbed environment. They win over it, but injectors among them are dropped.
    pub variables: &'a BTreeMap<String, String>,
    /// Descriptors the command gets besides its standard streams, with the number each has inside: 3 to 63, each once.
    pub files: Vec<(OwnedFd, RawFd)>,
    /// Bytes of a file that stands read-only at [`RC_PATH`], with `BASH_ENV` naming it.
    pub rc: Option<&'a [u8]>,
}

/// Why no jail can be made. The texts are fit for a model: they name no path that the job or the policy did not name.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// The platform offers neither namespaces nor Landlock.
    #[error(
        "this machine cannot jail commands ({missing}); `zeph-host doctor` tells how to get it"
    )]
    Unavailable {
        /// What is missing, in a few words.
        missing: String,
    },
    /// A root is too wide to be given to a command.
    #[error("`{}` is too wide a directory for commands: {reason}", path.display())]
    RootTooWide {
        /// The root of the policy.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// A root does not exist or is no directory.
    #[error("`{}` is not a directory that commands could work in", path.display())]
    RootMissing {
        /// The root of the policy.
        path: PathBuf,
    },
    /// The job's directory lies in no root.
    #[error("`{}` lies outside the directories commands may work in", path.display())]
    DirectoryOutside {
        /// The job's directory.
        path: PathBuf,
    },
    /// A job asked for something impossible.
    #[error("the command cannot be jailed: {reason}")]
    BadJob {
        /// What.
        reason: &'static str,
    },
    /// The system refused a step of the preparation.
    #[error("cannot {step} for the jail")]
    System {
        /// The step.
        step: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A jail for the commands of one configuration. Cheap to share; a job is prepared without changing it.
#[derive(Debug)]
pub struct Jail {
    policy: JailPolicy,
}

impl Jail {
    /// Makes a jail of `policy`. Looks at the platform once.
    pub fn new(policy: JailPolicy) -> Self {
        Self { policy }
    }

    /// The policy the jail was made from.
    pub fn policy(&self) -> &JailPolicy {
        &self.policy
    }

    /// Makes everything ready for `job`: what is returned has only to be started, on a thread that outlives the run. Blocks for
    /// a few milliseconds.
    ///
    /// Errors: `JailError`; nothing has run then.
    pub fn prepare(&self, _job: Job<'_>) -> Result<Prepared, JailError> {
        Err(JailError::Unavailable {
            missing: "not built yet".to_owned(),
        })
    }
}

/// Says in one sentence what of the jail a command ran into, judging by the end of what it wrote to its error stream. Names
/// only paths that stand in `tail` already.
///
/// Shape:  `None` when nothing in `tail` looks like the jail's doing.
/// Limits: looks at the last 16 KiB.
pub fn explain(_tail: &str, _policy: &JailPolicy) -> Option<String> {
    None
}
