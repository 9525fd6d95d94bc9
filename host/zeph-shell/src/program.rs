//! One program run for a tool: no shell, no state of a turn, in the jail it is given. What it may be was decided before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::oneshot;
use uuid::Uuid;
use zeph_core::execution::PrivateFile;
use zeph_core::exit::CommandExit;
use zeph_core::failure::one_line;
/// How the reason begins why a program did not run that the jail was made for: it, or the interpreter that it names, is not there.
pub use zeph_jail::NOT_STARTED;

use crate::jail::{Jail, JailError, JailLabel, JailPolicy, Job};
use crate::run::exit::Evidence;
use crate::run::{self, CapturedOutput, Cause, Plan, Reason, RunEnd, RunLimits, RunStart, RunStop};
use crate::shell::job::{JobFault, MARK, refusal, tail, tree};
use crate::shell::{FLOOD_BYTES_MAX, Shell, ShellState};

/// From being asked to end to being killed: its result is waited for.
const GRACE: Duration = Duration::from_millis(500);

/// Bytes of output that are kept of both streams together. Of more, the beginning and the end are.
pub const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// A program to run.
#[derive(Debug)]
pub struct ProgramJob {
    /// Its bare name.
    pub program: String,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Where it starts; beneath a root of the jail.
    pub directory: PathBuf,
    /// What it reads from standard input.
    pub input: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
}

/// A program that has ended, with all it started.
#[derive(Debug)]
pub struct ProgramOutcome {
    /// How.
    pub end: ProgramEnd,
    /// What it printed.
    pub captured: CapturedOutput,
    /// The private files that were opened while it ran, by it or by another program.
    pub private_files: Vec<PrivateFile>,
    /// The jail it ran in.
    pub label: JailLabel,
    /// How long it took.
    pub duration: Duration,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// By itself.
    Exited(CommandExit),
    /// Its time was over.
    TimedOut,
    /// It printed more than [`FLOOD_BYTES_MAX`].
    Flooded,
    /// Its caller wanted it to.
    Stopped,
}

/// Why a program did not run, in words for a model.
#[derive(Debug, thiserror::Error)]
pub enum ProgramFault {
    /// There is none of that name where commands look for programs.
    #[error("there is no program `{0}` on the search path of commands")]
    NotFound(String),
    /// It is there for the host, and not in the jail: the file, or the interpreter that the file names.
    #[error(
        "`{0}` cannot be started in the sandbox: the program, or the interpreter that it names, is not there"
    )]
    NotInJail(String),
    /// It cannot start in that directory.
    #[error("{0}")]
    Directory(String),
    /// The jail cannot be made.
    #[error("{0}")]
    Jail(String),
}

impl Shell {
    /// What its commands may see, change and reach.
    pub fn jail_policy(&self) -> &JailPolicy {
        self.0.jail.policy()
    }

    /// Runs `job` in `jail` until it has ended, or until `stopped` returns.
    ///
    /// Dropping the future ends it too.
    /// Errors: [`ProgramFault`]; nothing ran then.
    /// Limits: returns at most the timeout + 5 seconds after it was called, and nothing of it is left then.
    pub async fn run_program(
        &self,
        jail: Arc<Jail>,
        job: ProgramJob,
        stopped: impl Future<Output = ()>,
    ) -> Result<ProgramOutcome, ProgramFault> {
        let stop = Arc::new(RunStop::new().map_err(not_started)?);
        let _ends_with_the_caller = StopOnDrop(Arc::clone(&stop));
        let (sender, mut end) = oneshot::channel();
        let name = job.program.clone();
        let started = self
            .0
            .start_program(jail, job, Arc::clone(&stop), move |ended| {
                // Nobody may be waiting any more.
                drop(sender.send(ended));
            });
        started.map_err(not_started)?;
        let ended = tokio::select! {
            biased;
            ended = &mut end => ended,
            () = stopped => {
                stop.stop(Reason::Cancelled);
                end.await
            }
        };
        let gone = || JobFault::Start(io::Error::other("the thread of a run failed"));
        let ended = ended.unwrap_or_else(|_gone| Err(gone()));
        ended.map_err(|fault| ProgramFault::of(fault, &name))
    }
}

struct StopOnDrop(Arc<RunStop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop(Reason::Cancelled);
    }
}

impl ShellState {
    /// Errors: the kernel refuses another thread; then `done` is not called.
    fn start_program(
        self: &Arc<Self>,
        jail: Arc<Jail>,
        job: ProgramJob,
        stop: Arc<RunStop>,
        done: impl FnOnce(Result<ProgramOutcome, JobFault>) + Send + 'static,
    ) -> io::Result<()> {
        let limits = RunLimits {
            timeout: job.timeout,
            grace: GRACE,
            output_bytes_max: OUTPUT_BYTES_MAX,
            flood_bytes_max: FLOOD_BYTES_MAX,
        };
        let label = Arc::new(OnceLock::new());
        let of_plan = Arc::clone(&label);
        let inner = Arc::clone(self);
        run::start(
            Arc::clone(&self.spawner),
            limits,
            stop,
            move || {
                let (plan, label) = inner.plan_program(&jail, &job)?;
                let _ = of_plan.set(label);
                Ok(plan)
            },
            move |ended: Result<RunEnd, JobFault>| {
                let label = label.get().copied().unwrap_or(JailLabel::None);
                done(ended.and_then(|ended| finish(ended, label)));
            },
        )
    }

    fn plan_program(&self, jail: &Jail, job: &ProgramJob) -> Result<(Plan, JailLabel), JobFault> {
        let mark = Uuid::new_v4();
        let arguments: Vec<OsString> = job.arguments.iter().map(OsString::from).collect();
        let jailed = Job {
            program: Path::new(&job.program),
            arguments: &arguments,
            directory: &job.directory,
            variables: &BTreeMap::from([(MARK.to_owned(), mark.to_string())]),
            files: Vec::new(),
            rc: None,
            made: None,
        };
        let (mut launch, label, guard) = (self.prepare)(jail, jailed)?;
        launch.input = input(&job.input)?;
        let plan = Plan {
            begin: RunStart::Launch(launch),
            tree: tree(label, mark),
            context: None,
            listener: None,
            stderr_end: None,
            guard,
        };
        Ok((plan, label))
    }
}

/// A file without a name that holds `bytes`; none for an empty input.
fn input(bytes: &[u8]) -> io::Result<Option<OwnedFd>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Some(file.into()))
}

fn finish(ended: RunEnd, label: JailLabel) -> Result<ProgramOutcome, JobFault> {
    let captured = ended.capture.finish();
    let mut private_files = Vec::new();
    if let Some(mut guard) = ended.guard {
        if let Some(reason) = refusal(&mut guard, ended.cause, &captured.stderr) {
            return Err(JobFault::NotClosed(reason));
        }
        private_files = guard.private_files();
        // What it did to protected places is undone.
        drop(guard.finish());
    }
    let evidence = Evidence {
        text: "",
        reported: None,
        stderr: tail(&captured.stderr),
        is_namespace: label == JailLabel::Full,
    };
    let end = match ended.cause {
        Cause::Exited => ProgramEnd::Exited(run::exit::of(ended.status, evidence)),
        Cause::TimedOut => ProgramEnd::TimedOut,
        Cause::Flooded => ProgramEnd::Flooded,
        Cause::Stopped(_) => ProgramEnd::Stopped,
    };
    Ok(ProgramOutcome {
        end,
        captured,
        private_files,
        label,
        duration: ended.duration,
    })
}

fn not_started(error: io::Error) -> ProgramFault {
    ProgramFault::of(JobFault::Start(error), "")
}

impl ProgramFault {
    /// The chain of causes goes to the log.
    pub(crate) fn of(fault: JobFault, name: &str) -> Self {
        match fault {
            JobFault::Jail(JailError::NoProgram { .. }) => Self::NotFound(one_line(name, 100)),
            JobFault::Jail(
                error @ (JailError::DirectoryOutside { .. } | JailError::RootReplaced { .. }),
            ) => Self::Directory(error.to_string()),
            JobFault::Jail(JailError::System { .. }) | JobFault::Start(_) => {
                tracing::error!(
                    error = &fault as &dyn std::error::Error,
                    "a program cannot be started"
                );
                Self::Jail("the program could not be started; the host's log tells why".to_owned())
            }
            JobFault::Jail(error) => Self::Jail(error.to_string()),
            JobFault::NotClosed(reason) if reason.starts_with(NOT_STARTED) => {
                Self::NotInJail(one_line(name, 100))
            }
            JobFault::NotClosed(reason) => Self::Jail(format!(
                "the program did not run, because it or its jail cannot be used: {}",
                one_line(&reason, 300)
            )),
        }
    }
}
