//! Starting processes: one long-lived thread starts them all.
//!
//! Why one thread: the kernel ends a jail when the *thread* that started it ends (`PR_SET_PDEATHSIG`), so it must outlive every
//! run; and a descriptor can be made inheritable there for the moment of a start without another start inheriting it too.
//! What is started was made by the jail. This room does not know what a jail is.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rustix::io::FdFlags;
use rustix::process::Pid;

use zeph_core::user::ToolUser;

use crate::platform::{self, Process};
use crate::run::LivingRuns;

/// A process that is ready to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    /// The program, as an absolute path.
    pub(crate) program: PathBuf,
    /// Its arguments, without its name.
    pub(crate) arguments: Vec<OsString>,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub(crate) directory: PathBuf,
    /// Descriptors it inherits, under the numbers they have here.
    pub(crate) inherited: Vec<OwnedFd>,
    /// Its standard input; none is an empty one.
    pub(crate) input: Option<OwnedFd>,
}

/// A process that was started and not yet waited for.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: Pid,
    pub(crate) process: Process,
    /// Never blocks.
    pub(crate) stdout: OwnedFd,
    /// Never blocks.
    pub(crate) stderr: OwnedFd,
}

/// Starts processes on its own thread, which ends when this is dropped. Whatever it started ends then at the latest.
#[derive(Debug)]
pub(crate) struct Spawner {
    /// The runs of what it started that are not over.
    pub(crate) living: Arc<LivingRuns>,
    /// The thread's queue; none before the first process, which many programs never start. Protects the start of the thread.
    requests: Mutex<Option<mpsc::Sender<SpawnRequest>>>,
}

#[derive(Debug)]
struct SpawnRequest {
    launch: Launch,
    reply: mpsc::SyncSender<io::Result<Child>>,
}

impl Spawner {
    /// Starts the thread at once where it has to become one of `user`, which it stays for good: so does whatever it starts.
    ///
    /// Errors: the kernel refuses another thread, or the change of user.
    pub(crate) fn new(user: Option<&ToolUser>) -> io::Result<Self> {
        let requests = user.map(|user| begin(Some(user.clone()))).transpose()?;
        Ok(Self {
            living: Arc::default(),
            requests: Mutex::new(requests),
        })
    }

    /// The queue of the thread, which is started if there is none.
    fn requests(&self) -> io::Result<mpsc::Sender<SpawnRequest>> {
        let requests = self.requests.lock();
        // What holds it cannot panic half way through a change.
        let mut requests = requests.unwrap_or_else(PoisonError::into_inner);
        match &*requests {
            Some(requests) => Ok(requests.clone()),
            None => Ok(requests.insert(begin(None)?).clone()),
        }
    }

    /// Starts a process in a group of its own. Blocks for about a millisecond.
    ///
    /// Errors: those of making pipes and of starting a program; the kernel refuses the thread.
    pub(crate) fn spawn(&self, launch: Launch) -> io::Result<Child> {
        let (reply, answer) = mpsc::sync_channel(1);
        let gone = || io::Error::other("the thread that starts processes has ended");
        self.requests()?
            .send(SpawnRequest { launch, reply })
            .map_err(|_error| gone())?;
        answer.recv().map_err(|_error| gone())?
    }
}

/// Starts the thread, as one of `user`.
fn begin(user: Option<ToolUser>) -> io::Result<mpsc::Sender<SpawnRequest>> {
    let (requests, queue) = mpsc::channel::<SpawnRequest>();
    let (begun, begins) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("zeph-spawn".to_owned())
        .spawn(move || {
            let is_theirs = user.map_or(Ok(()), |user| user.take_thread());
            let may_start = is_theirs.is_ok();
            drop(begun.send(is_theirs));
            if !may_start {
                return;
            }
            for SpawnRequest { launch, reply } in queue {
                // A caller that has gone away drops the child, whose pipes close; its run ends it.
                drop(reply.send(start(launch)));
            }
        })?;
    begins.recv().map_err(io::Error::other)??;
    Ok(requests)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the place where commands are started"
)]
fn start(launch: Launch) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;

    let (stdout, stdout_writer) = platform::pipe()?;
    let (stderr, stderr_writer) = platform::pipe()?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .env_clear()
        .envs(launch.environment)
        .current_dir(&launch.directory)
        .stdin(launch.input.map_or_else(Stdio::null, Stdio::from))
        .stdout(stdout_writer)
        .stderr(stderr_writer)
        // Interrupts of the terminal are for the host, which ends its runs in its own way.
        .process_group(0);
    for descriptor in &launch.inherited {
        rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    let started = command.spawn();
    for descriptor in &launch.inherited {
        rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    let child = started?;
    let pid = Pid::from_child(&child);
    // Nobody has waited for it yet, so the number is still its own.
    let process = match Process::hold(pid) {
        Ok(process) => process,
        Err(error) => {
            end_at_once(child);
            return Err(error);
        }
    };
    Ok(Child {
        pid,
        process,
        stdout,
        stderr,
    })
}

/// Without a descriptor for it a process could not be watched: it does not stay.
fn end_at_once(mut child: std::process::Child) {
    drop(child.kill());
    drop(child.wait());
}
