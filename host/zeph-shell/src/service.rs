//! A program that lives as long as the host wants it to, in a jail, and is spoken to over its standard streams: an MCP server.
//!
//! It is run like a command (`run`): on a thread of its own, which reads its error stream and waits for its end, so it never blocks the
//! runtime and ends with all it started: when it is stopped or dropped, when it ends by itself, and when the host is killed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;
use zeph_core::execution::NetworkReport;
use zeph_core::exit::CommandExit;
use zeph_core::user::ToolUser;

use crate::jail::{Guard, Jail, JailLabel, Job};
use crate::platform;
use crate::program::ProgramFault;
use crate::run::exit::Evidence;
use crate::run::{
    self, Cause, Life, Plan, Reason, RunEnd, RunLimits, RunStart, RunStop, StreamEnd,
};
use crate::shell::job::{self, JobFault, MARK, refusal, tail, tree};
use crate::spawn::Spawner;

mod ending;

pub use self::ending::end_all;

/// From being asked to end to being killed. Servers save what they have.
const GRACE: Duration = Duration::from_secs(2);

/// A service has no end that it must come to, and what it prints is read by others: the thread of its run keeps nothing of it.
const LIMITS: RunLimits = RunLimits {
    timeout: Duration::from_hours(24 * 365 * 10),
    grace: GRACE,
    output_bytes_max: 0,
    flood_bytes_max: u64::MAX,
};

/// Bytes of the error stream that are kept: its end.
pub const STDERR_BYTES_MAX: usize = 32 * 1024;

/// Starts services, on a thread of its own, which all of them end with at the latest. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Services(Arc<Spawner>);

/// A program to start.
#[derive(Debug)]
pub struct ServiceJob {
    /// A bare name, or an absolute path as seen in the jail.
    pub program: String,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Where it starts; beneath a directory of the jail.
    pub directory: PathBuf,
    /// Variables on top of those that the jail's policy gives; they win over those.
    pub variables: BTreeMap<String, String>,
}

/// The streams of a service. Closing its input is how most servers are told to end.
#[derive(Debug)]
pub struct ServicePipes {
    /// What it reads.
    pub stdin: pipe::Sender,
    /// What it prints. Reading ends when all that holds the stream has ended.
    pub stdout: pipe::Receiver,
}

/// A service. Dropping it ends it, with all it started.
#[derive(Debug)]
pub struct Service {
    stop: Arc<RunStop>,
    stderr: StreamEnd,
    label: Arc<OnceLock<JailLabel>>,
    end: watch::Receiver<Option<Arc<ServiceEnd>>>,
}

/// How a service ended. Nothing of it is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceEnd {
    /// How its program ended; [`CommandExit::Unknown`] when the system does not tell.
    pub exit: CommandExit,
    /// Whether the host ended it.
    pub is_stopped: bool,
    /// Why it never ran, when the jail could not be closed around it or has no such program, in one sentence.
    pub fault: Option<String>,
    /// The end of its error stream, at most [`STDERR_BYTES_MAX`] bytes.
    pub stderr: String,
    /// The hosts it reached, and what was refused.
    pub network: NetworkReport,
    /// What it did to protected places, one sentence each.
    pub findings: Vec<String>,
}

impl Services {
    /// Starts the thread, which starts everything as `user`; without one, as the host's own.
    ///
    /// Errors: the kernel refuses another thread, or the change of user.
    pub fn new(user: Option<&ToolUser>) -> io::Result<Self> {
        Ok(Self(Arc::new(Spawner::new(user)?)))
    }

    /// Ends all that was started here, whether it is held or not, and waits until nothing is left of it; what is started later ends at once.
    /// Blocks, for `patience` at most. Returns whether all are gone.
    pub fn end_all(&self, patience: Duration) -> bool {
        self.0.living.close();
        self.0.living.end(patience)
    }

    /// Starts `job` in `jail`. To be called within a runtime.
    ///
    /// Dropping the future ends what was started.
    /// Errors: [`ProgramFault`]; nothing runs then. What the jail finds out later, such as an interpreter that is not there, ends the
    ///         service: [`ServiceEnd::fault`].
    pub async fn start(
        &self,
        jail: Arc<Jail>,
        job: ServiceJob,
    ) -> Result<(Service, ServicePipes), ProgramFault> {
        let name = job.program.clone();
        let fault = |fault: JobFault| ProgramFault::of(fault, &name);
        let stop = Arc::new(RunStop::new().map_err(|error| fault(error.into()))?);
        let stderr = StreamEnd::new(STDERR_BYTES_MAX);
        let (begun, beginning) = oneshot::channel();
        let (ended, end) = watch::channel(None);
        let life = ending::begin(&stop);
        // From now on it ends when this future does.
        let service = Service {
            stop,
            stderr,
            label: Arc::default(),
            end,
        };
        let started = service.run(Arc::clone(&self.0), (jail, job), begun, (ended, life));
        started.map_err(|error| fault(error.into()))?;
        let gone = |_gone| JobFault::Start(io::Error::other("the thread of a service failed"));
        let ends = beginning.await.map_err(gone).and_then(|begun| begun);
        let pipes = ends.map_err(&fault)?.open();
        Ok((service, pipes.map_err(|error| fault(error.into()))?))
    }
}

impl Service {
    /// How much of the jail stands around it.
    pub fn label(&self) -> JailLabel {
        self.label.get().copied().unwrap_or(JailLabel::None)
    }

    /// The end of what it printed to its error stream so far, at most [`STDERR_BYTES_MAX`] bytes; what is no UTF-8 is U+FFFD.
    pub fn stderr_tail(&self) -> String {
        self.stderr.text()
    }

    /// Asks it to end, and kills it 0.5 seconds later. Never blocks; [`Self::ended`] tells when it is gone.
    pub fn stop(&self) {
        self.stop.stop(Reason::Shutdown);
    }

    /// Waits until it has ended, with all it started. May be asked often.
    pub async fn ended(&self) -> Arc<ServiceEnd> {
        let mut end = self.end.clone();
        let ended = end.wait_for(Option::is_some).await;
        let known = ended.ok().and_then(|end| end.clone());
        known.unwrap_or_else(|| Arc::new(ServiceEnd::of_fault("the host lost it".to_owned())))
    }

    /// How it ended; none while it runs. Never blocks.
    pub fn end(&self) -> Option<Arc<ServiceEnd>> {
        self.end.borrow().clone()
    }

    /// Runs it on a thread of its own, which tells `begun` once the process has been started, and `ended` at its end.
    ///
    /// Errors: the kernel refuses another thread; then nothing is told.
    fn run(
        &self,
        spawner: Arc<Spawner>,
        (jail, job): (Arc<Jail>, ServiceJob),
        begun: oneshot::Sender<Result<PipeEnds, JobFault>>,
        (ended, life): (watch::Sender<Option<Arc<ServiceEnd>>>, Life),
    ) -> io::Result<()> {
        let starter = Arc::clone(&spawner);
        let (stderr, of_end) = (self.stderr.clone(), self.stderr.clone());
        let (label, of_label) = (Arc::clone(&self.label), Arc::clone(&self.label));
        let plan = move || match plan(&starter, &jail, &job, stderr) {
            Ok((plan, pipes, found)) => {
                let _ = label.set(found);
                // A caller that has gone away has stopped it.
                drop(begun.send(Ok(pipes)));
                Ok(plan)
            }
            Err(fault) => {
                drop(begun.send(Err(fault)));
                Err(JobFault::NotClosed("it was not started".to_owned()))
            }
        };
        let done = move |end: Result<RunEnd, JobFault>| {
            let label = of_label.get().copied().unwrap_or(JailLabel::None);
            let end = match end {
                Ok(end) => finish(end, label, of_end.text()),
                Err(fault) => ServiceEnd::of_fault(fault.to_string()),
            };
            ended.send_replace(Some(Arc::new(end)));
            drop(life);
        };
        run::start(spawner, LIMITS, Arc::clone(&self.stop), plan, done)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ServiceEnd {
    fn of_fault(fault: String) -> Self {
        Self {
            exit: CommandExit::Unknown,
            is_stopped: false,
            fault: Some(fault),
            stderr: String::new(),
            network: NetworkReport::default(),
            findings: Vec::new(),
        }
    }
}

/// The host's ends of the streams.
struct PipeEnds {
    stdin: OwnedFd,
    stdout: OwnedFd,
}

impl PipeEnds {
    fn open(self) -> io::Result<ServicePipes> {
        Ok(ServicePipes {
            stdin: pipe::Sender::from_owned_fd(self.stdin)?,
            stdout: pipe::Receiver::from_owned_fd(self.stdout)?,
        })
    }
}

/// Starts the process; its run begins with it.
fn plan(
    spawner: &Spawner,
    jail: &Jail,
    job: &ServiceJob,
    stderr: StreamEnd,
) -> Result<(Plan, PipeEnds, JailLabel), JobFault> {
    let mark = Uuid::new_v4();
    let arguments: Vec<OsString> = job.arguments.iter().map(OsString::from).collect();
    let mut variables = job.variables.clone();
    variables.insert(MARK.to_owned(), mark.to_string());
    let jailed = Job {
        program: Path::new(&job.program),
        arguments: &arguments,
        directory: &job.directory,
        variables: &variables,
        files: Vec::new(),
        rc: None,
        made: None,
    };
    let (mut launch, label, guard) = job::in_the_jail(jail, jailed)?;
    let (input, stdin) = io::pipe()?;
    launch.input = Some(input.into());
    let nothing = platform::nameless_file()?;
    let mut child = spawner.spawn(launch)?;
    let stdout = std::mem::replace(&mut child.stdout, nothing.into());
    let plan = Plan {
        begin: RunStart::Child(child),
        tree: tree(label, mark),
        context: None,
        listener: None,
        stderr_end: Some(stderr),
        guard,
    };
    let pipes = PipeEnds {
        stdin: stdin.into(),
        stdout,
    };
    Ok((plan, pipes, label))
}

fn finish(ended: RunEnd, label: JailLabel, stderr: String) -> ServiceEnd {
    let evidence = Evidence {
        text: "",
        reported: None,
        stderr: tail(&stderr),
        is_namespace: label == JailLabel::Full,
    };
    let exit = run::exit::of(ended.status, evidence);
    let (fault, network, findings) = after(ended.guard, ended.cause, &stderr);
    ServiceEnd {
        exit,
        is_stopped: matches!(ended.cause, Cause::Stopped(_)),
        fault,
        stderr,
        network,
        findings,
    }
}

/// What the jail knows at the end: why nothing ran, if nothing did, what went through the exit, what became of protected places.
fn after(
    guard: Option<Guard>,
    cause: Cause,
    stderr: &str,
) -> (Option<String>, NetworkReport, Vec<String>) {
    let Some(mut guard) = guard else {
        return (None, NetworkReport::default(), Vec::new());
    };
    let network = guard.close_outlet();
    let fault = refusal(&mut guard, cause, stderr);
    let findings = guard.finish().into_iter().map(|finding| finding.text);
    (fault, network, findings.collect())
}

#[cfg(test)]
mod tests;
