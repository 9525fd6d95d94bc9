//! Programs that a guest runs: `zeph:plugin/process`.
//!
//! The engine starts none. It hands each wish to the caller, through a queue, and waits for the answer; what may run, and how,
//! is decided there. A guest that ends while it waits takes its wish back.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::bindings::zeph::plugin::process;
use crate::missing_grant::{MissingGrant, Refusals};
use crate::state::GuestState;

/// Most bytes of standard input.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// Most arguments, and bytes of all of them: what a system takes in one command line.
const ARGUMENTS_MAX: usize = 4_096;
const ARGUMENT_BYTES_MAX: usize = 128 * 1024;

/// What is kept of the call's time: the program is ended, and what it printed is handed to the guest, which makes a result of it.
const END_TIME: Duration = Duration::from_secs(2);

/// A program that a guest wants to run.
#[derive(Debug, Default)]
pub struct ProgramRun {
    /// As the guest named it, with its arguments.
    pub program: String,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Where it is to start, as the guest wrote it; none for the first granted directory.
    pub directory: Option<String>,
    /// Its standard input.
    pub input: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
}

/// A wish that waits for its answer.
#[derive(Debug)]
pub struct ProgramRequest {
    /// What is to run.
    pub run: ProgramRun,
    reply: oneshot::Sender<ProgramResult>,
}

/// How it went.
pub type ProgramResult = Result<ProgramCompleted, ProgramError>;

/// Where wishes go: room for one, since a guest waits for the answer.
pub type ProgramQueue = mpsc::Sender<ProgramRequest>;

/// A program that has ended.
#[derive(Debug)]
pub struct ProgramCompleted {
    /// How.
    pub end: ProgramEnd,
    /// Its standard output.
    pub stdout: PrintedText,
    /// Its standard error.
    pub stderr: PrintedText,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this code.
    Exited(i32),
    /// By this signal; 0 when that is not known.
    Killed(i32),
    /// Its time was over.
    TimedOut,
    /// It printed without end.
    Flooded,
}

/// What a program printed.
#[derive(Debug, Default)]
pub struct PrintedText {
    /// The text.
    pub text: String,
    /// Bytes missing from it.
    pub n_omitted: u64,
}

/// Why a program did not run, in one plain sentence for the guest.
#[derive(Debug)]
pub enum ProgramError {
    /// No grant allows it.
    NotGranted,
    /// A rule of the operator forbids it.
    Forbidden(String),
    /// There is none of that name.
    NotFound(String),
    /// The directory cannot be used.
    Invalid(String),
    /// There is no jail to run it in.
    Unavailable(String),
}

impl ProgramRequest {
    /// Answers the guest. One that does not wait any more hears nothing.
    pub fn answer(self, result: ProgramResult) {
        drop(self.reply.send(result));
    }

    /// Returns once the guest does not wait any more.
    pub async fn abandoned(&mut self) {
        self.reply.closed().await;
    }
}

/// A guest's way to programs.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    queue: Option<ProgramQueue>,
    refusals: Refusals,
}

impl Programs {
    /// Of a call whose programs are run by who reads `queue`; without one none is.
    pub(crate) fn new(queue: Option<ProgramQueue>) -> Self {
        Self {
            queue,
            refusals: Refusals::default(),
        }
    }

    /// What was refused so far. Leaves nothing behind.
    pub(crate) fn take_refused(&mut self) -> Vec<MissingGrant> {
        std::mem::take(&mut self.refusals).into_list()
    }

    async fn run(&mut self, run: ProgramRun) -> ProgramResult {
        let words = std::iter::once(&run.program).chain(&run.arguments);
        let line: Vec<String> = words.cloned().collect();
        let result = match &self.queue {
            Some(queue) => {
                let (reply, answer) = oneshot::channel();
                let gone = || ProgramError::Unavailable("the call is ending".to_owned());
                let sent = queue.send(ProgramRequest { run, reply }).await;
                sent.map_err(|_gone| gone())?;
                answer.await.unwrap_or_else(|_gone| Err(gone()))
            }
            None => Err(ProgramError::NotGranted),
        };
        if let Err(ProgramError::NotGranted) = result {
            self.refusals.program(line);
        }
        result
    }
}

impl process::Host for GuestState {
    async fn run(
        &mut self,
        program: String,
        arguments: Vec<String>,
        options: process::Options,
    ) -> wasmtime::Result<Result<process::Completed, process::RunError>> {
        if let Err(message) = check(&program, &arguments, &options) {
            return Ok(Err(error(process::RunErrorKind::Invalid, message)));
        }
        let left = self.limiter.time_left();
        let most = left.saturating_sub(END_TIME.min(left / 2));
        let wanted = options.timeout_ms.map(Duration::from_millis);
        let run = ProgramRun {
            program,
            arguments,
            directory: options.directory,
            input: options.input,
            timeout: wanted.map_or(most, |wanted| wanted.min(most)),
        };
        let result = self.programs.run(run).await;
        Ok(result
            .map(process::Completed::from)
            .map_err(process::RunError::from))
    }
}

/// What no command line can be.
fn check(program: &str, arguments: &[String], options: &process::Options) -> Result<(), String> {
    let n_bytes: usize = arguments.iter().map(String::len).sum();
    let words = || arguments.iter().map(String::as_str).chain([program]);
    if options.input.len() > INPUT_BYTES_MAX {
        return Err(format!("the input has more than {INPUT_BYTES_MAX} bytes"));
    }
    if arguments.len() > ARGUMENTS_MAX || n_bytes > ARGUMENT_BYTES_MAX {
        return Err(format!(
            "a program gets at most {ARGUMENTS_MAX} arguments of {ARGUMENT_BYTES_MAX} bytes together"
        ));
    }
    match words().any(|word| word.contains('\0')) {
        true => Err("an argument holds a NUL character".to_owned()),
        false => Ok(()),
    }
}

fn error(kind: process::RunErrorKind, message: String) -> process::RunError {
    process::RunError { kind, message }
}

impl From<ProgramCompleted> for process::Completed {
    fn from(completed: ProgramCompleted) -> Self {
        let printed = |printed: PrintedText| process::Printed {
            text: printed.text,
            omitted: printed.n_omitted,
        };
        Self {
            end: match completed.end {
                ProgramEnd::Exited(code) => process::End::Exited(code),
                ProgramEnd::Killed(signal) => process::End::Killed(signal),
                ProgramEnd::TimedOut => process::End::TimedOut,
                ProgramEnd::Flooded => process::End::Flooded,
            },
            stdout: printed(completed.stdout),
            stderr: printed(completed.stderr),
        }
    }
}

impl From<ProgramError> for process::RunError {
    fn from(refused: ProgramError) -> Self {
        use process::RunErrorKind as Kind;
        let not_granted = || "the program was not granted with these arguments".to_owned();
        match refused {
            ProgramError::NotGranted => error(Kind::Denied, not_granted()),
            ProgramError::Forbidden(message) => error(Kind::Denied, message),
            ProgramError::NotFound(message) => error(Kind::NotFound, message),
            ProgramError::Invalid(message) => error(Kind::Invalid, message),
            ProgramError::Unavailable(message) => error(Kind::Unavailable, message),
        }
    }
}
