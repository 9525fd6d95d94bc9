//! A run that is ready to be started, and what must be kept until it has ended.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tempfile::TempDir;

use super::Label;
use super::aftermath::{Aftermath, Finding};
use super::cgroup::Group;

/// Most bytes of a reason.
const REASON_BYTES_MAX: usize = 1024;

/// A run that is ready to be started.
///
/// Whoever starts it clears the environment, sets `environment`, gives it a standard input of `/dev/null`, and makes every
/// descriptor of `inherited` inheritable under its own number for the moment of the start. The inner stage gives the job's
/// files their numbers and closes all others.
#[derive(Debug)]
pub struct Prepared {
    /// The program to start, as an absolute path.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: PathBuf,
    /// Descriptors it inherits, under the numbers they have here. To be closed once it has started.
    pub inherited: Vec<OwnedFd>,
    /// How much of the jail stands around it.
    pub label: Label,
    /// To be kept until the run has ended.
    pub guard: Guard,
}

/// What outlives the start: the cgroup, the reading end of the status pipe, what to look at afterwards.
///
/// Dropping it ends what is left in the run's cgroup and removes the cgroup.
#[derive(Debug)]
pub struct Guard {
    pub(super) status: Option<OwnedFd>,
    pub(super) group: Group,
    pub(super) aftermath: Aftermath,
    /// The private directory of a run that has no mounts of its own; removed with the guard.
    pub(super) scratch: Option<TempDir>,
}

/// Whether a command ever ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// It ran.
    Ran,
    /// The jail could not be closed, so it did not run.
    Refused {
        /// Which step failed, in one line; `None` when the outer stage failed before it could tell (then its error stream
        /// tells).
        reason: Option<String>,
    },
}

impl Guard {
    /// Tells whether the command ran. To be asked once the started process has ended, and once. Never blocks.
    pub fn start(&mut self) -> Start {
        let Some(status) = self.status.take() else {
            return Start::Ran;
        };
        let mut bytes = [0; REASON_BYTES_MAX];
        let length = rustix::io::read(&status, &mut bytes).unwrap_or(0);
        started(&bytes[..length])
    }

    /// Ends every process of the run's cgroup; without one it does nothing. Never blocks for long; may be called again.
    pub fn kill(&self) {
        self.group.kill();
    }

    /// Looks at the protected places after the run, undoes what the command made there, and says so. To be called when no process
    /// of the run is left.
    ///
    /// Limits: a system call for each directory of the survey, and at most 100,000 entries of directories that changed are read.
    pub fn finish(self) -> Vec<Finding> {
        let findings = self.aftermath.look();
        drop(self.group);
        // What cannot be removed is left to the system's own cleaning of temporary files.
        drop(self.scratch.map(TempDir::close));
        findings
    }
}

/// What the inner stage told: ready and nothing more, or what failed.
fn started(told: &[u8]) -> Start {
    match told {
        [zeph_jail::READY] => Start::Ran,
        [] => Start::Refused { reason: None },
        [zeph_jail::READY, reason @ ..] | reason => Start::Refused {
            reason: Some(String::from_utf8_lossy(reason).trim().to_owned()),
        },
    }
}
