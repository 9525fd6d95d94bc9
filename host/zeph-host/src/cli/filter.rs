//! `zeph-host filter`: a command of the person's own, or a log, with less of its output.
//!
//! Whatever is wrong with the configuration or the store, the command runs and its output is printed.

mod gather;
pub(super) mod ready;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read as _};
use std::ops::ControlFlow;
use std::sync::Arc;

use zeph_core::command::CommandLine;
use zeph_plugins::refusal::quoted_words;
use zeph_shell::analysis::analyse;
use zeph_shell::plain::{self, PlainEnd, PlainHandle, PlainRun, Streams};

use self::gather::{Gather, HELD_BYTES_MAX};
use self::ready::{Keep, Ready};
use super::args::Filter;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::filtering::standalone::{self, Printed, StandaloneOutput};
use crate::run::interrupt::{Interruption, Interrupts};

/// Bytes of standard input that are printed at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Runs the command.
pub(super) fn run(context: &Context, options: Filter) -> Result<Exit, CliError> {
    if let Some(id) = &options.read {
        return read_back(context, id);
    }
    match &options.as_command {
        Some(command) => log(context, command, &options),
        None => command(context, &options.command),
    }
}

/// Prints a stored output.
fn read_back(context: &Context, id: &str) -> Result<Exit, CliError> {
    let unknown = || CliError::user(format!("there is no stored output `{id}`"));
    let uuid = id.strip_prefix("overflow:").unwrap_or(id);
    let key = uuid.parse().map_err(|_| {
        unknown().hint("the ID is a UUID, as the line below a shortened output has it")
    })?;
    let store = context.store(&context.config()?)?;
    let stored = context::block_on(async {
        let stored = store.overflow(standalone::conversation(), key).await?;
        store.count_read_back(standalone::conversation(), key);
        Ok(stored)
    })?;
    let stored = stored.ok_or_else(|| {
        unknown().hint("outputs are kept for `tools.overflow.retention_days`; those of tools are read with `read_overflow`")
    })?;
    out::bytes(&stored)?;
    Ok(Exit::Success)
}

/// Shortens standard input.
fn log(context: &Context, command: &str, options: &Filter) -> Result<Exit, CliError> {
    let config = match context.config() {
        Ok(config) => config,
        Err(error) => {
            out::error(&error, context.quiet);
            return pass_through(&mut io::stdin().lock()).map(|()| Exit::Success);
        }
    };
    let ready = Ready::new(context, config);
    let (keep, bytes_max) = match options.keep {
        true => (Keep::Stored, held_max(&ready)),
        false => (Keep::Elsewhere, HELD_BYTES_MAX),
    };
    let mut raw = Vec::new();
    gather::make_room(&mut raw, bytes_max.saturating_add(1));
    let mut stdin = io::stdin().lock();
    (&mut stdin)
        .take(bytes_max.saturating_add(1) as u64)
        .read_to_end(&mut raw)
        .map_err(unreadable)?;
    if raw.len() > bytes_max {
        out::bytes(&raw)?;
        pass_through(&mut stdin)?;
        context.notes(&[too_long(bytes_max)]);
        return Ok(Exit::Success);
    }
    let printed = Arc::new(Printed {
        line: analyse(command),
        exit_code: options.exit_code,
        raw,
    });
    let shown = context::block_on(async { Ok(ready.shown(context, &printed, keep).await) })?;
    ready::print(context, &shown, &printed.raw)?;
    Ok(Exit::Success)
}

/// Prints the rest of standard input as it is.
fn pass_through(stdin: &mut io::StdinLock<'_>) -> Result<(), CliError> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match stdin.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n_bytes) => out::bytes(&piece[..n_bytes])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
}

fn unreadable(error: io::Error) -> CliError {
    CliError::internal("standard input cannot be read").because(error)
}

/// Runs a command and prints less of its output.
fn command(context: &Context, words: &[OsString]) -> Result<Exit, CliError> {
    let ready = match context.config() {
        Ok(config) => Some(Ready::new(context, config)),
        Err(error) => {
            out::error(&error, context.quiet);
            None
        }
    };
    context::block_on(async {
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let line = analyse(&quoted_words(
            words.iter().map(|word| word.to_string_lossy()),
        ));
        let run = match plain::start(words, streams(ready.as_ref(), &line)) {
            Ok(run) => run,
            Err(error) => return Ok(not_started(context, words, error)),
        };
        let held_max = ready.as_ref().map_or(0, held_max);
        let (end, gather) = until_over(run, held_max, &mut interrupts).await?;
        let exit = Exit::OfCommand(end.shell_code());
        let printed = match (ready, gather.into_held()) {
            (Some(ready), Some(raw)) => {
                let printed = Printed {
                    line,
                    exit_code: end.code(),
                    raw,
                };
                print_less(context, &ready, printed, &mut interrupts).await
            }
            (Some(_), None) => {
                context.notes(&[too_long(held_max)]);
                Ok(())
            }
            (None, _) => Ok(()),
        };
        match printed {
            // The command has ended; that nobody reads what it said is not its failure.
            Err(error) if error.exit() == Exit::BrokenPipe => Ok(exit),
            Err(error) if exit != Exit::OfCommand(0) => {
                out::error(&error, context.quiet);
                Ok(exit)
            }
            printed => printed.map(|()| exit),
        }
    })
}

/// Prints the filtered output; all of it if filtering is interrupted.
async fn print_less(
    context: &Context,
    ready: &Ready,
    printed: Printed,
    interrupts: &mut Interrupts,
) -> Result<(), CliError> {
    let printed = Arc::new(printed);
    let shown = tokio::select! {
        biased;
        shown = ready.shown(context, &printed, Keep::Stored) => shown,
        _signal = interrupts.next() => StandaloneOutput::default(),
    };
    ready::print(context, &shown, &printed.raw)
}

/// A person who watches sees a command work, unless there is something to leave out of what it prints.
fn streams(ready: Option<&Ready>, line: &CommandLine) -> Streams {
    let has_rule = ready.is_some_and(|ready| ready.filtering.acts_on(line));
    match out::stdout_is_terminal() && !has_rule {
        true => Streams::Own,
        false => Streams::Heard,
    }
}

/// What is too long to be kept is not shortened either, so there is no reason to hold it back.
fn held_max(ready: &Ready) -> usize {
    let kept_max = usize::try_from(ready.config.overflow.max_bytes).unwrap_or(usize::MAX);
    HELD_BYTES_MAX.min(kept_max)
}

fn too_long(bytes_max: usize) -> String {
    format!("the output was passed on as it came: it has more than {bytes_max} bytes")
}

/// As env(1) and shells say it.
fn not_started(context: &Context, words: &[OsString], error: io::Error) -> Exit {
    let code = match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    let program = words.first().map(|word| word.to_string_lossy());
    let problem = format!("`{}` cannot be run", program.unwrap_or_default());
    out::error(&CliError::user(problem).because(error), context.quiet);
    Exit::OfCommand(code)
}

/// Gathers what the command prints until it has ended. A signal for this process is for the command.
async fn until_over(
    run: PlainRun,
    held_max: usize,
    interrupts: &mut Interrupts,
) -> Result<(PlainEnd, Gather), CliError> {
    let cannot =
        |error: io::Error| CliError::internal("the command could not be watched").because(error);
    let handle = run.handle().map_err(cannot)?;
    let mut over = tokio::task::spawn_blocking(move || {
        let mut gather = Gather::new(held_max);
        let end = run.until_over(|_, bytes| match gather.take(bytes) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_closed) => ControlFlow::Break(()),
        });
        (end, gather)
    });
    loop {
        tokio::select! {
            biased;
            ended = &mut over => {
                let (end, gather) = ended
                    .map_err(|error| CliError::internal("the command could not be watched").because(error))?;
                return Ok((end.map_err(cannot)?, gather));
            }
            signal = interrupts.next() => pass_on(signal, &handle),
        }
    }
}

fn pass_on(signal: Interruption, handle: &PlainHandle) {
    match signal {
        // A terminal tells everyone in its foreground, the command too.
        Interruption::Interrupt if io::stderr().is_terminal() => {}
        Interruption::Interrupt => handle.interrupt(),
        Interruption::Terminate | Interruption::HangUp => handle.terminate(),
    }
}
