//! The shell of the host: takes authorised calls of `bash`, `list_runs` and `kill_run`, and gives back how they ended.
//!
//! A command is prepared by the jail, run by `run`, and hands its state on through the `turn` of its session. Nothing is
//! decided here: that a call may run is proved by its type.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zeph_core::execution::{HostUse, PrivateFile};
use zeph_core::exit::CommandExit;
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_core::policy::AuthorizedCall;
use zeph_core::user::ToolUser;

pub(crate) mod ahead;
mod bare;
mod bash;
mod failure;
pub(crate) mod job;
mod runs;
mod session;
mod turn_file;
mod work;

pub use session::ShellSession;
pub use work::ShellWork;

use ahead::First;
use work::ShellRequest;

use crate::hooks::Hooks;
use crate::jail::{Jail, JailLabel};
use crate::run::OutputListener;
use crate::spawn::Spawner;

/// Output at which a command is ended. The longest output that is kept is a hundredth of it; a program that prints more has
/// lost its way, and reading it keeps a processor busy.
pub const FLOOD_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How a shell runs commands. The defaults stand in `config/default.toml`.
#[derive(Debug, Clone)]
pub struct ShellConfig {
    /// How long a command may take that asks for no other time (`tools.shell.timeout`).
    pub timeout: Duration,
    /// The longest time a command may ask for (`tools.shell.timeout_max`).
    pub timeout_max: Duration,
    /// How long a command in the background may take (`tools.shell.background_timeout_secs`).
    pub background_timeout: Duration,
    /// Commands of one session in the background at one time (`tools.shell.max_background_runs`).
    pub background_runs_max: usize,
    /// Bytes of output that are kept, both streams together (`limits.output_bytes`). Of more, head and tail are kept.
    pub output_bytes_max: u64,
    /// Bytes of output at which a command is ended, see [`FLOOD_BYTES_MAX`].
    pub flood_bytes_max: u64,
    /// Whether commands and hooks see the turn, the goal and the skill (`tools.shell.enable_execution_context`).
    pub enable_execution_context: bool,
    /// What runs when a command changed its directory, or files were changed.
    pub hooks: Hooks,
}

impl ShellConfig {
    /// How long a foreground command may take that asks for so many seconds.
    pub fn timeout_of(&self, asked_secs: Option<u64>) -> Duration {
        let timeout = asked_secs.map_or(self.timeout, Duration::from_secs);
        timeout.min(self.timeout_max)
    }
}

/// The shell of one configuration. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shell(pub(crate) Arc<ShellState>);

#[derive(Debug)]
pub(crate) struct ShellState {
    pub(crate) config: ShellConfig,
    pub(crate) jail: Arc<Jail>,
    pub(crate) spawner: Arc<Spawner>,
    /// Makes a job of the jail ready.
    pub(crate) prepare: job::Prepare,
    /// For jails that are made ahead.
    pub(crate) seats: ahead::Seats,
    /// The jail of the first session, until that takes it. The lock is held for the moment of taking it.
    pub(crate) first: Mutex<Option<First>>,
    /// Commands in the background of all sessions.
    pub(crate) n_background: AtomicUsize,
}

/// The caller's hold on a running call.
pub struct RunControl {
    /// Returns once the caller wants the call to end.
    pub cancelled: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Receives the output while the command runs.
    pub on_output: Option<OutputListener>,
    /// What earlier outputs of the turn held, as JSON: the command reads it in a file of its own (`ZEPH_TURN_STATE`), where it is told its
    /// turn at all.
    pub turn_state: Option<Arc<[u8]>>,
}

/// How a call ended.
#[derive(Debug)]
pub struct ShellEnd {
    /// The text and the envelope of a command that exited with 0; else how it failed.
    pub result: Result<RawOutput, ToolFailure>,
    /// What a command that failed or was ended had printed, shaped like a result.
    pub partial: Option<RawOutput>,
    /// How a command ended that was not ended by the host.
    pub exit: Option<CommandExit>,
    /// Whether output was omitted, because there was more than `output_bytes_max`.
    pub truncated: bool,
    /// The jail it ran in; nothing when nothing ran.
    pub label: Option<JailLabel>,
    /// What the caller should know, one sentence each.
    pub notes: Vec<String>,
    /// From where to where, when the next command of the turn starts elsewhere.
    pub changed_directory: Option<(PathBuf, PathBuf)>,
    /// The hosts that the command reached.
    pub hosts: Vec<HostUse>,
    /// The private files that were opened while the command ran, by it or by another program (`JailPolicy::private`).
    pub private_files: Vec<PrivateFile>,
    /// The run that goes on in the background.
    pub run_id: Option<uuid::Uuid>,
}

impl Shell {
    /// Makes a shell whose commands run in `jail`.
    ///
    /// Errors: the kernel refuses another thread.
    pub fn new(config: ShellConfig, jail: Arc<Jail>) -> std::io::Result<Self> {
        Ok(Self(Arc::new(ShellState {
            config,
            spawner: Arc::new(Spawner::new(jail.policy().user.as_ref())?),
            jail,
            prepare: job::in_the_jail,
            seats: ahead::Seats::default(),
            first: Mutex::default(),
            n_background: AtomicUsize::new(0),
        })))
    }

    /// Ends all that runs here, commands in the background too, awaited or not, and waits until nothing is left of it; what is
    /// started later ends at once. Blocks, for `patience` at most. Returns whether all is gone.
    pub fn end_all(&self, patience: std::time::Duration) -> bool {
        self.0.spawner.living.close();
        self.0.spawner.living.end(patience)
    }

    /// Whether a command runs in the background, of whichever session.
    pub fn has_background(&self) -> bool {
        self.0.n_background.load(Ordering::SeqCst) > 0
    }

    /// Begins to look at the machine and to make the jail of the first session's first command, beside whatever else a start of the
    /// program does. Nothing runs in it before that command was decided about; without one it is taken down again.
    pub fn expect_command(&self) {
        *self.first() = First::begin(&self.0);
    }

    fn first(&self) -> MutexGuard<'_, Option<First>> {
        // Nothing that holds it can panic half way through a change.
        self.0.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user that commands run as; none is the host's own.
    pub fn user(&self) -> Option<&ToolUser> {
        self.0.jail.policy().user.as_ref()
    }

    /// How it runs commands.
    pub fn config(&self) -> &ShellConfig {
        &self.0.config
    }

    /// Runs an authorised call of one of [`tools`](crate::tools::tools): a command is the text that was analysed and decided about.
    ///
    /// Dropping the future ends the command too. Limits: returns at most the timeout + 7 seconds after it was called, and
    /// nothing of the command is left then.
    pub async fn call(
        &self,
        call: AuthorizedCall<ShellWork>,
        session: &ShellSession,
        control: RunControl,
    ) -> ShellEnd {
        match (&call.work().0, call.command()) {
            (ShellRequest::Bash(options), Some(line)) => {
                bash::call(self, &line.text, *options, session, control).await
            }
            (ShellRequest::Bash(_), None) => {
                ShellEnd::failed(failure::invalid("there is no command"))
            }
            (ShellRequest::ListRuns, _) => runs::list(session),
            (ShellRequest::KillRun(run), _) => runs::kill(run, session).await,
        }
    }
}

impl Default for RunControl {
    /// The control of a call that is not cancelled and whose output is not watched.
    fn default() -> Self {
        Self {
            cancelled: Box::pin(std::future::pending()),
            on_output: None,
            turn_state: None,
        }
    }
}

impl std::fmt::Debug for RunControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunControl")
            .field("on_output", &self.on_output)
            .finish_non_exhaustive()
    }
}

impl ShellEnd {
    /// Of a call that ran nothing.
    fn failed(failure: ToolFailure) -> Self {
        Self::plain(Err(failure))
    }

    /// Of a call that ran no command.
    fn plain(result: Result<RawOutput, ToolFailure>) -> Self {
        Self {
            result,
            partial: None,
            exit: None,
            truncated: false,
            label: None,
            notes: Vec::new(),
            changed_directory: None,
            hosts: Vec::new(),
            private_files: Vec::new(),
            run_id: None,
        }
    }
}

#[cfg(test)]
mod tests;
