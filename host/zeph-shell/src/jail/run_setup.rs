//! A run that is ready to be started, and what must be kept until it has ended.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tempfile::TempDir;
use zeph_core::execution::{NetworkReport, PrivateFile};
use zeph_core::user::{ToolUser, run_as};

use super::aftermath::{Aftermath, AftermathFinding};
use super::cgroup::Cgroup;
use super::command_note::CommandMark;
use super::explain::RunWalls;
use super::outlet::channel;
use super::own_places::OwnPlaces;
use super::private::OpenWatch;
use super::{JailLabel, OpenOutlet};

/// Said when the process that ends a run was ended itself.
const LEFT: &str = "the process that ends what a command leaves behind was killed: programs that the command started may still run";

/// Most bytes of a reason.
const REASON_BYTES_MAX: usize = 1024;

/// A run that is ready to be started.
///
/// The caller that starts it clears the environment, sets `environment`, gives it a standard input of `/dev/null`, and makes every
/// descriptor of `inherited` inheritable under its own number for the moment of the start. The inner stage gives the job's
/// files their numbers and closes all others.
#[derive(Debug)]
pub struct PreparedRun {
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
    pub label: JailLabel,
    /// To be kept until the run has ended.
    pub guard: Guard,
}

/// What outlives the start: the cgroup, the reading end of the status pipe, what to look at afterwards.
///
/// Dropping it ends what is left in the run's cgroup and removes the cgroup.
#[derive(Debug)]
pub struct Guard {
    pub(super) told: StageReport,
    pub(super) whole: Whole,
    pub(super) group: Cgroup,
    pub(super) aftermath: Aftermath,
    /// What only it had.
    pub(super) own: OwnPlaces,
    /// Hears of private files that are opened.
    pub(super) opened: Option<OpenWatch>,
    /// Whose rights the run had, with which it is looked at.
    pub(super) user: Option<ToolUser>,
    /// The private directory of a run that has no mounts of its own; removed with the guard.
    pub(super) scratch: Option<TempDir>,
    /// What stood in its way.
    pub(super) walls: RunWalls,
    /// The way out of the run, where it has one.
    pub(super) outlet: Option<Box<dyn OpenOutlet>>,
}

/// What the inner stage tells.
#[derive(Debug, Default)]
pub(super) struct StageReport {
    /// Never blocks.
    status: Option<OwnedFd>,
    bytes: Vec<u8>,
    /// The directories that only the command has, as far as they were handed over.
    places: Vec<OwnedFd>,
    is_closed: bool,
}

/// Who makes sure that nothing of a run is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// The end of its namespace.
    ByTheKernel,
    /// The inner stage, which says so at its end.
    ByTheInnerStage,
    /// Nobody; what is left is looked for.
    Unknown,
}

impl StageReport {
    pub(super) fn on(status: OwnedFd) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }

    /// Where more may be told.
    pub(super) fn awaited(&self) -> Option<&OwnedFd> {
        self.status.as_ref().filter(|_| !self.is_closed)
    }

    /// All that was told until now.
    pub(super) fn read(&mut self) -> &[u8] {
        while let Some(status) = self.awaited() {
            let mut bytes = [0; REASON_BYTES_MAX];
            let left = REASON_BYTES_MAX - self.bytes.len();
            let Ok((length, places)) = channel::receive(status, &mut bytes[..left]) else {
                break;
            };
            // They come with a byte of their own.
            let told = &bytes[usize::from(!places.is_empty()).min(length)..length];
            self.bytes.extend_from_slice(told);
            self.places.extend(places);
            self.is_closed = length == 0;
        }
        &self.bytes
    }
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

impl Start {
    /// Why it did not run, in one line; `None` when it ran. `stderr` is what it printed.
    pub fn refusal(self, stderr: &str) -> Option<String> {
        match self {
            Self::Ran => None,
            Self::Refused { reason } => {
                let printed = || stderr.lines().next().unwrap_or_default().to_owned();
                Some(reason.unwrap_or_else(printed))
            }
        }
    }
}

impl Guard {
    /// Keeps the note that the command runs for as long.
    pub(crate) fn noted(mut self, command: Option<CommandMark>) -> Self {
        self.aftermath.note(command);
        self
    }

    /// Tells whether the command ran. To be asked once the started process has ended. Never blocks.
    pub fn start(&mut self) -> Start {
        match self.told.status {
            Some(_) => started(self.told.read()),
            None => Start::Ran,
        }
    }

    /// Whether it is certain that nothing of the run is left. To be asked once the started process has ended. Never blocks.
    pub fn is_whole(&mut self) -> bool {
        match self.whole {
            Whole::ByTheKernel => true,
            Whole::ByTheInnerStage => self.told.read().ends_with(&[zeph_jail::WHOLE]),
            Whole::Unknown => false,
        }
    }

    /// Closes the way out of the run and says what went through it. To be asked once the started process has ended. Never blocks.
    pub fn close_outlet(&mut self) -> NetworkReport {
        let outlet = self.outlet.take();
        outlet.map(|outlet| outlet.close()).unwrap_or_default()
    }

    /// The private files that were opened while the run went on, by it or by another program. To be asked once the started process has ended. Never blocks.
    pub fn private_files(&self) -> Vec<PrivateFile> {
        self.opened
            .as_ref()
            .map(OpenWatch::opened)
            .unwrap_or_default()
    }

    /// What stood in the way of the run.
    pub fn walls(&self) -> RunWalls {
        self.walls.clone()
    }

    /// Ends every process of the run's cgroup; without one it does nothing. Never blocks for long; may be called again.
    pub fn kill(&self) {
        self.group.kill();
    }

    /// What `command` left where nothing stays, if the caller should know of it. To be asked when no process of the run is left.
    pub(crate) fn left_behind(&mut self, command: &str) -> Option<AftermathFinding> {
        self.told.read();
        let (own, handed, scratch) = (&self.own, &self.told.places, self.scratch.as_ref());
        let look = || own.left(handed, scratch.map(TempDir::path));
        let left = run_as(self.user.as_ref(), look).unwrap_or_default();
        self.aftermath.left_behind(own, left, command)
    }

    /// Looks at the protected places after the run, undoes what the command made there, and says so. To be called when no process
    /// of the run is left.
    ///
    /// Limits: a system call for each directory of the survey, and at most 100,000 entries of directories that changed are read.
    pub fn finish(mut self) -> Vec<AftermathFinding> {
        let is_whole = self.is_whole() || self.whole == Whole::Unknown;
        let aftermath = self.aftermath;
        let looked = run_as(self.user.as_ref(), || aftermath.look());
        let mut findings = looked.unwrap_or_else(|error| vec![unseen(&error)]);
        if !is_whole {
            findings.push(AftermathFinding {
                path: PathBuf::new(),
                text: LEFT.to_owned(),
            });
        }
        drop(self.group);
        // What cannot be removed is left to the system's own cleaning of temporary files.
        let scratch = self.scratch;
        drop(run_as(self.user.as_ref(), || scratch.map(TempDir::close)));
        findings
    }
}

fn unseen(error: &std::io::Error) -> AftermathFinding {
    AftermathFinding {
        path: PathBuf::new(),
        text: format!("what the command did to protected places could not be looked at: {error}"),
    }
}

/// What the inner stage told: ready and nothing more, or what failed.
fn started(told: &[u8]) -> Start {
    match told.strip_suffix(&[zeph_jail::WHOLE]).unwrap_or(told) {
        [zeph_jail::READY] => Start::Ran,
        [] => Start::Refused { reason: None },
        [zeph_jail::READY, reason @ ..] | reason => Start::Refused {
            reason: Some(String::from_utf8_lossy(reason).trim().to_owned()),
        },
    }
}
