//! Compiling in a process of its own, which runs the program of this one. What a compiler takes, some hundred megabytes for a large
//! component, ends with it, and a defect in it ends nothing else and, behind a filter of system calls, reaches nothing else.
//!
//! The component goes to its standard input, the answer to its standard output. Where that is a file, it ends its work even when its host
//! has ended, and the next host finds the answer; its limits of processor time hold all the same.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZero;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rayon::ThreadPoolBuilder;
use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, getrlimit, setrlimit};
use wasmtime::Error;

use super::answer::{self, AnswerFile};

/// The first argument of a program that is to compile. The others are the number of the process that it ends with, or [`NOBODY`], and the
/// size of the component.
const ARGUMENT: &str = "__compile";

/// No process.
const NOBODY: i32 = 0;

/// Whether the program of this process compiles when it is called with [`ARGUMENT`].
static IS_COMPILER: AtomicBool = AtomicBool::new(false);

/// Compiles what standard input brings, when the command line of this process, with its name, is one that this module wrote. Otherwise
/// None, and from then on engines of this process compile by starting its program so.
///
/// To be called by a program before it reads its command line. Without it, components are compiled in the process itself.
///
/// Errors: the host has ended, or a stream is closed. The host is told by an answer that ends too soon.
pub fn compile_if_asked(arguments: &[OsString]) -> Option<io::Result<()>> {
    if let [_, argument, host, n_bytes] = arguments
        && argument == ARGUMENT
        && let Some(host) = host.to_str().and_then(|host| host.parse().ok())
        && let Some(n_bytes) = n_bytes.to_str().and_then(|n_bytes| n_bytes.parse().ok())
    {
        return Some(answer(host, n_bytes));
    }
    IS_COMPILER.store(true, Ordering::Relaxed);
    None
}

/// The artifact of `bytes`, from another process, which leaves it in `left` where that can be written. None where none can be started.
/// Blocks for seconds.
///
/// Errors: the compiler's, or how the process ended instead: by its own limits, or twice, since it may have been the one that a system
/// short of memory picked.
pub(super) fn compile(
    bytes: &[u8],
    left: Option<&AnswerFile>,
) -> Option<wasmtime::Result<Vec<u8>>> {
    if !IS_COMPILER.load(Ordering::Relaxed) {
        return None;
    }
    match compile_once(bytes, left)? {
        Ok(answer) => Some(answer),
        Err(broken) if broken.would_again => Some(Err(broken.error)),
        Err(broken) => {
            tracing::warn!(error = %broken.error, "a component is compiled again");
            // Through a pipe: there may be no room for a file.
            Some(compile_once(bytes, None)?.unwrap_or_else(|broken| Err(broken.error)))
        }
    }
}

/// A process that ended before it answered.
#[derive(Debug)]
struct Broken {
    error: Error,
    /// Whether the next one would end the same way.
    would_again: bool,
}

/// What the compiler answers. None where no process can be started.
///
/// Errors: how the process ended before it did.
fn compile_once(
    bytes: &[u8],
    left: Option<&AnswerFile>,
) -> Option<Result<wasmtime::Result<Vec<u8>>, Broken>> {
    let (mut child, file) = match start(bytes.len(), left) {
        Ok(started) => started,
        Err(error) => {
            tracing::warn!(%error, "no process can be started to compile in");
            return None;
        }
    };
    let sent = child.stdin.take()?.write_all(bytes);
    let answer = sent.and_then(|()| match (child.stdout.take(), file) {
        (Some(output), _) => answer::read(output),
        (None, Some(file)) => {
            child.wait()?;
            answer::read_file(file)
        }
        (None, None) => Err(io::ErrorKind::BrokenPipe.into()),
    });
    if answer.is_err() {
        // It may have ended already.
        drop(child.kill());
    }
    let ended = child.wait();
    let limits = CompilerLimits::of(bytes.len());
    Some(answer.map_err(|error| broken(&error, ended, limits)))
}

/// The process, and the file that it answers in, if not in a pipe.
#[expect(
    clippy::disallowed_methods,
    reason = "it runs nothing but this program, which then compiles"
)]
fn start(
    n_bytes: usize,
    left: Option<&AnswerFile>,
) -> io::Result<(std::process::Child, Option<File>)> {
    use std::os::unix::process::CommandExt as _;

    let mut command = Command::new(program()?);
    let streams = left.and_then(|left| left.streams().ok());
    let (host, file) = match streams {
        Some((file, lock)) => {
            command.stdout(file.try_clone()?).stderr(lock);
            (NOBODY, Some(file))
        }
        None => {
            command.stdout(Stdio::piped()).stderr(Stdio::null());
            (std::process::id().cast_signed(), None)
        }
    };
    command
        .arg0("zeph-host")
        .args([ARGUMENT, &host.to_string(), &n_bytes.to_string()])
        .env_clear()
        .current_dir("/")
        // A Ctrl-C at the terminal is for the host, which may go on.
        .process_group(0)
        .stdin(Stdio::piped());
    Ok((command.spawn()?, file))
}

/// On Linux the file that runs, even when another one has its name by now.
fn program() -> io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => std::env::current_exe(),
    }
}

fn broken(error: &io::Error, ended: io::Result<ExitStatus>, limits: CompilerLimits) -> Broken {
    let status = match ended {
        Ok(status) if !status.success() => status,
        _ => {
            let error = Error::msg(format!(
                "the process that compiled it cannot be reached: {error}"
            ));
            return Broken {
                error,
                would_again: false,
            };
        }
    };
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    let CompilerLimits {
        cpu_secs,
        data_bytes,
    } = limits;
    let (message, would_again) = match () {
        () if is(Signal::XCPU) => (
            format!(
                "compiling it takes more than {cpu_secs} s of processor time, which a component of its size may not"
            ),
            true,
        ),
        // So it ends, too, where it gets no more memory.
        () if is(Signal::ABORT) => (
            format!(
                "the process that compiled it gave up: {status}. It may take {} MiB of memory",
                data_bytes >> 20
            ),
            true,
        ),
        () => (
            format!("the process that compiled it ended: {status}"),
            false,
        ),
    };
    Broken {
        error: Error::msg(message),
        would_again,
    }
}

/// What the process that compiles may take: many times what one takes for a component that a tool chain made, on a slow machine, too. A
/// component may come from anybody, and all others wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CompilerLimits {
    /// Of all its threads together.
    cpu_secs: u64,
    /// Memory that it can write to; address space that it only reserves does not count.
    data_bytes: u64,
}

/// Processor time of any component, and the bytes of it for which there is a second more.
const CPU_SECS: u64 = 120;
const BYTES_PER_CPU_SEC: u64 = 16 << 10;

/// Memory for any component, and for each byte of it.
const DATA_BYTES: u64 = 2 << 30;
const DATA_BYTES_PER_BYTE: u64 = 64;

/// Seconds after which a process is killed that outlives the first signal.
const CPU_SECS_MORE: u64 = 5;

impl CompilerLimits {
    /// For a component of this size.
    fn of(n_bytes: usize) -> Self {
        let n_bytes = n_bytes as u64;
        Self {
            cpu_secs: CPU_SECS + n_bytes / BYTES_PER_CPU_SEC,
            data_bytes: DATA_BYTES.saturating_add(n_bytes.saturating_mul(DATA_BYTES_PER_BYTE)),
        }
    }

    /// Limits this process. What it cannot limit stays as it is: a component is compiled without, as in a process of the host.
    fn set(self) {
        let cpu = (self.cpu_secs, self.cpu_secs + CPU_SECS_MORE);
        let data = (self.data_bytes, self.data_bytes);
        // A limit that is met ends it with a dump of its memory otherwise.
        let none = (0, 0);
        for (resource, (soft, hard)) in [
            (Resource::Cpu, cpu),
            (Resource::Data, data),
            (Resource::Core, none),
        ] {
            // A limit that is lower already stays.
            let held = getrlimit(resource);
            let lower = |value: u64, held: Option<u64>| held.map_or(value, |held| held.min(value));
            let limit = Rlimit {
                current: Some(lower(soft, held.current)),
                maximum: Some(lower(hard, held.maximum)),
            };
            if let Err(error) = setrlimit(resource, limit) {
                tracing::debug!(%error, ?resource, "a limit stays as it is");
            }
        }
    }
}

/// Reads, compiles and answers.
fn answer(host: i32, n_bytes: usize) -> io::Result<()> {
    if host != NOBODY {
        end_with(host)?;
    }
    CompilerLimits::of(n_bytes).set();
    prepare();
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    if bytes.len() != n_bytes {
        // The host has ended.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    answer::write(io::stdout().lock(), super::artifact(&bytes))
}

/// Confines this process, and starts the threads that compile: how many may run is told by files, which are out of reach then.
fn prepare() {
    let n_threads = thread::available_parallelism().map_or(1, NonZero::get);
    // Where the kernel has no filters of system calls, it compiles without one: a host that starts no process for it has none either.
    #[cfg(target_os = "linux")]
    drop(super::confine::confine());
    // Without them, the first thread compiles alone.
    let threads = ThreadPoolBuilder::new().num_threads(n_threads);
    drop(threads.build_global());
}

/// Ends this process with the one that waits for it.
fn end_with(host: i32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before.
    match getppid().map(Pid::as_raw_pid) == Some(host) {
        true => Ok(()),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use rustix::process::Signal;

    use super::{CompilerLimits, broken};

    #[test]
    fn large_components_may_take_long() {
        let small = CompilerLimits::of(2_000);
        assert_eq!((small.cpu_secs, small.data_bytes >> 20), (120, 2_048));
        let large = CompilerLimits::of(30 << 20);
        assert_eq!((large.cpu_secs, large.data_bytes >> 20), (2_040, 3_968));
    }

    #[test]
    fn a_limit_that_was_met_is_told_and_not_tried_again() {
        let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
        let limits = CompilerLimits::of(0);
        for (signal, expected, would_again) in [
            (
                Signal::XCPU,
                "takes more than 120 s of processor time",
                true,
            ),
            (Signal::ABORT, "It may take 2048 MiB of memory", true),
            (
                Signal::KILL,
                "the process that compiled it ended: signal: 9",
                false,
            ),
            (
                Signal::SEGV,
                "the process that compiled it ended: signal: 11",
                false,
            ),
        ] {
            let ended = Ok(ExitStatus::from_raw(signal.as_raw()));
            let broken = broken(&closed, ended, limits);
            let said = broken.error.to_string();
            assert!(said.contains(expected), "{said}");
            assert_eq!(broken.would_again, would_again, "{said}");
        }
        let unreachable = broken(&closed, Ok(ExitStatus::from_raw(0)), limits);
        assert!(!unreachable.would_again);
    }
}
