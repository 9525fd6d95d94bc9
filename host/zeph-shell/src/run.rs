//! One run of a process, from its start until nothing of it is left: capture, limits, ending.
//!
//! Every run has a thread of its own, which waits for everything at once: output, the end, the deadline, a request to stop. So
//! a run ends within its limits whatever becomes of whoever asked for it. What is run comes from the jail; what it means is
//! for the callers (`shell`, `background`, `hooks`).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

pub(crate) mod capture;
mod drive;
mod end;
pub(crate) mod exit;
pub(crate) mod listen;
mod living;
pub(crate) mod render;
mod side;
pub(crate) mod stop;
mod stream_end;
mod text;

pub use capture::{CapturedOutput, StreamKind};
pub use listen::{OutputChunk, OutputListener};

pub(crate) use end::Tree;
pub use living::end_all;
pub(crate) use living::{Life, LivingRuns};
pub(crate) use stop::{Reason, RunStop};
pub(crate) use stream_end::StreamEnd;

use crate::jail::Guard;
use crate::spawn::{Child, Launch, Spawner};
use capture::Capture;

/// Most bytes a command's shell may say about its directory and variables.
pub(crate) const CONTEXT_BYTES_MAX: usize = 512 * 1024;

/// How long pipes that outlive the main process are read, and how long an ended tree may take to be gone.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// Bounds of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLimits {
    /// From its start; then it is asked to end.
    pub(crate) timeout: Duration,
    /// From being asked to end to being ended.
    pub(crate) grace: Duration,
    /// Output that is kept.
    pub(crate) output_bytes_max: usize,
    /// Output at which it is ended.
    pub(crate) flood_bytes_max: u64,
}

/// What to run and how.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) begin: RunStart,
    /// What belongs to it, and so must not survive it.
    pub(crate) tree: Tree,
    /// The reading end of a pipe on which its shell tells its directory and variables.
    pub(crate) context: Option<OwnedFd>,
    /// Who hears the output while it runs.
    pub(crate) listener: Option<OutputListener>,
    /// Where the end of the error stream is kept for others; there it goes instead of into the capture.
    pub(crate) stderr_end: Option<StreamEnd>,
    /// What the jail must keep until it is over.
    pub(crate) guard: Option<Guard>,
}

/// How a run begins.
#[derive(Debug)]
pub(crate) enum RunStart {
    /// With a process to be started.
    Launch(Launch),
    /// It has begun, in a process that was started before.
    Child(Child),
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By itself.
    Exited,
    /// Its time was over.
    TimedOut,
    /// It was asked to.
    Stopped(Reason),
    /// It printed without end.
    Flooded,
}

/// How the main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitState {
    Code(i32),
    Signal(i32),
    /// It could not be waited for: the kernel did not let it go in time.
    Unknown,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct RunEnd {
    pub(crate) cause: Cause,
    pub(crate) status: ExitState,
    pub(crate) capture: Capture,
    /// What the shell told; `None` when it told more than [`CONTEXT_BYTES_MAX`].
    pub(crate) context: Option<Vec<u8>>,
    /// The jail's, which knows whether the command ran and what it did to protected places.
    pub(crate) guard: Option<Guard>,
    pub(crate) duration: Duration,
}

/// Starts a run on a thread of its own. `plan` is called there, since preparing a jail touches files; `done` is called there
/// with the end, always, and once.
///
/// Errors: the kernel refuses another thread; then `done` is not called.
pub(crate) fn start<E: From<io::Error> + Send + 'static>(
    spawner: Arc<Spawner>,
    limits: RunLimits,
    stop: Arc<RunStop>,
    plan: impl FnOnce() -> Result<Plan, E> + Send + 'static,
    done: impl FnOnce(Result<RunEnd, E>) + Send + 'static,
) -> io::Result<()> {
    let lives = (spawner.living.begin(&stop), living::begin(&stop));
    std::thread::Builder::new()
        .name("zeph-run".to_owned())
        .stack_size(512 * 1024)
        .spawn(move || {
            let ended = plan()
                .and_then(|plan| drive::drive(&spawner, plan, limits, &stop).map_err(E::from));
            done(ended);
            drop(lives);
        })?;
    Ok(())
}

#[cfg(test)]
mod tests;
