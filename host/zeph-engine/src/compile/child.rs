//! Compiling in a process of its own, which runs the program of this one. What a compiler takes, some hundred megabytes for a large
//! component, ends with it, and a defect in it ends nothing else and, behind a filter of system calls, reaches nothing else.
//!
//! The component goes to its standard input. From its standard output come a byte that says what follows, the length of it as eight
//! bytes, the lowest first, and the artifact, or what the compiler says, each cause behind a NUL character.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rayon::ThreadPoolBuilder;
use rustix::process::{Pid, getppid};
use wasmtime::Error;

/// The first argument of a program that is to compile. The second is the number of the process that waits for it.
const ARGUMENT: &str = "__compile";

/// What follows in an answer.
const ARTIFACT: u8 = 1;
const REFUSAL: u8 = 0;

/// Separates causes.
const CAUSE_END: char = '\0';

/// Whether the program of this process compiles when it is called with [`ARGUMENT`].
static IS_COMPILER: AtomicBool = AtomicBool::new(false);

/// Compiles what standard input brings, when the command line of this process, with its name, is one that this module wrote. Otherwise
/// None, and from then on engines of this process compile by starting its program so.
///
/// To be called by a program before it reads its command line. Without it, components are compiled in the process itself.
///
/// Errors: the host has ended, or a stream is closed. The host is told by an answer that ends too soon.
pub fn compile_if_asked(arguments: &[OsString]) -> Option<io::Result<()>> {
    if let [_, argument, host] = arguments
        && argument == ARGUMENT
        && let Some(host) = host.to_str().and_then(|host| host.parse().ok())
    {
        return Some(answer(host));
    }
    IS_COMPILER.store(true, Ordering::Relaxed);
    None
}

/// The artifact of `bytes`, from another process. None where none can be started. Blocks for seconds.
///
/// Errors: the compiler's, or how the process ended instead, twice: it may have been the one that a system short of memory picked.
pub(super) fn compile(bytes: &[u8]) -> Option<wasmtime::Result<Vec<u8>>> {
    if !IS_COMPILER.load(Ordering::Relaxed) {
        return None;
    }
    match compile_once(bytes)? {
        Ok(answer) => Some(answer),
        Err(error) => {
            tracing::warn!(%error, "a component is compiled again");
            Some(compile_once(bytes)?.unwrap_or_else(Err))
        }
    }
}

/// What the compiler answers. None where no process can be started.
///
/// Errors: how the process ended before it did.
fn compile_once(bytes: &[u8]) -> Option<wasmtime::Result<wasmtime::Result<Vec<u8>>>> {
    let mut child = match start() {
        Ok(child) => child,
        Err(error) => {
            tracing::warn!(%error, "no process can be started to compile in");
            return None;
        }
    };
    let (input, output) = (child.stdin.take()?, child.stdout.take()?);
    let answer = ask(input, output, bytes);
    if answer.is_err() {
        // It may have ended already.
        drop(child.kill());
    }
    let ended = child.wait();
    Some(answer.map_err(|error| broken(&error, ended)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "it runs nothing but this program, which then compiles"
)]
fn start() -> io::Result<std::process::Child> {
    use std::os::unix::process::CommandExt as _;

    let mut command = Command::new(program()?);
    command
        .arg0("zeph-host")
        .args([ARGUMENT, &std::process::id().to_string()])
        .env_clear()
        .current_dir("/")
        // A Ctrl-C at the terminal is for the host, which may go on.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn()
}

/// On Linux the file that runs, even when another one has its name by now.
fn program() -> io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok(PathBuf::from("/proc/self/exe")),
        false => std::env::current_exe(),
    }
}

fn ask(
    mut input: impl Write,
    mut output: impl Read,
    bytes: &[u8],
) -> io::Result<wasmtime::Result<Vec<u8>>> {
    input.write_all(bytes)?;
    drop(input);
    let (mut kind, mut length) = ([0], [0; 8]);
    output.read_exact(&mut kind)?;
    output.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
    let mut answer = Vec::new();
    answer.try_reserve_exact(length).map_err(io::Error::other)?;
    output.take(length as u64).read_to_end(&mut answer)?;
    match kind {
        _ if answer.len() < length => Err(io::ErrorKind::UnexpectedEof.into()),
        [ARTIFACT] => Ok(Ok(answer)),
        _ => Ok(Err(refusal(&String::from_utf8_lossy(&answer)))),
    }
}

/// The error whose causes are in `text`, the first one outermost.
fn refusal(text: &str) -> Error {
    let mut causes = text.split(CAUSE_END).map(str::to_owned).rev();
    let root = Error::msg(causes.next().unwrap_or_default());
    causes.fold(root, |cause, error| cause.context(error))
}

fn broken(error: &io::Error, ended: io::Result<ExitStatus>) -> Error {
    match ended {
        Ok(status) if !status.success() => {
            Error::msg(format!("the process that compiled it ended: {status}"))
        }
        _ => Error::msg(format!(
            "the process that compiled it cannot be reached: {error}"
        )),
    }
}

/// Reads, compiles and answers.
fn answer(host: i32) -> io::Result<()> {
    end_with(host)?;
    prepare();
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let (kind, answer) = match super::artifact(&bytes) {
        Ok(artifact) => (ARTIFACT, artifact),
        Err(error) => {
            let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
            (REFUSAL, causes.join(&CAUSE_END.to_string()).into_bytes())
        }
    };
    let mut output = io::stdout().lock();
    output.write_all(&[kind])?;
    output.write_all(&(answer.len() as u64).to_le_bytes())?;
    output.write_all(&answer)?;
    output.flush()
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
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // It may have ended before.
    match getppid().map(Pid::as_raw_pid) == Some(host) {
        true => Ok(()),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}
