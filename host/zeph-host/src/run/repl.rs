//! The door for people: a line editor on a terminal. The editor draws on standard error, results go to standard output.
//!
//! It reads a line, has it understood by `typed`, and makes the call. Ctrl-C clears the line or cancels the running
//! call, Ctrl-D leaves.

mod complete;
mod editor;
mod unfinished;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{Reedline, Signal};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zeph_engine::{Listener, Progress};

use super::interrupt::{Interruption, Interrupts};
use super::render::{DIM, RED, YELLOW, escape};
use super::typed::{self, Typed};
use super::{catalog, one, render};
use crate::host::Host;
use crate::session::Session;

/// What the editor needs to know of its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Where lines are kept; none when there is no state directory.
    pub(crate) history: Option<PathBuf>,
    /// Where relative paths start, for completion.
    pub(crate) directory: PathBuf,
    /// Whether the editor may use colours.
    pub(crate) color: bool,
    /// Width of the terminal in characters.
    pub(crate) width: Option<usize>,
}

/// How the person left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// With `/quit` or Ctrl-D.
    Asked,
    /// The process was asked to end.
    Terminated,
}

/// Progress reports kept for printing; more are dropped.
const PROGRESS_MAX: usize = 16;

const HELP: &str = "\
Type a call:
  read path=README.md limit=20          values are text where the tool wants text, else JSON
  grep pattern=\"two words\" path=src     quotes for spaces
  write {\"path\": \"a\", \"content\": \"b\"}   JSON; it may span lines until its braces close
Commands:
  /tools        the tools            /tool NAME    one tool with its parameters
  /help         this text            /quit         leave (or Ctrl-D)
Tab completes names, parameters and paths. Ctrl-C cancels the running call. Up and Ctrl-R find earlier lines;
a line that begins with a space is not kept.
";

/// Reads and makes calls until the person leaves.
///
/// Errors: when the terminal or standard output cannot be used.
pub(crate) async fn serve(
    host: &Host,
    session: &Session,
    options: Options,
    interrupts: &mut Interrupts,
) -> io::Result<Left> {
    let is_ending = Arc::new(AtomicBool::new(false));
    let _watcher = end_on_terminate(&is_ending)?;
    let catalog = Arc::new(host.catalog().clone());
    let mut editor = editor::new(catalog, &options, &is_ending);
    say(&format!(
        "{DIM}{} tools; /help explains, /quit leaves{DIM:#}\n",
        host.catalog().tools().len()
    ));
    loop {
        let line = match read_line(&mut editor)? {
            Signal::Success(line) => line,
            Signal::CtrlD => return Ok(Left::Asked),
            Signal::ExternalBreak(_) => return Ok(Left::Terminated),
            _ => continue,
        };
        match typed::read(&line, host.catalog()) {
            Ok(Typed::Nothing) => {}
            Ok(Typed::Quit) => return Ok(Left::Asked),
            Ok(Typed::Help) => print(HELP)?,
            Ok(Typed::Tools) => print(&catalog::list(host.catalog(), options.width))?,
            Ok(Typed::Tool(name)) => match host.catalog().resolve(&name) {
                Ok(tool) => print(&catalog::show(tool, options.width, false))?,
                Err(failure) => wrong(&failure.message),
            },
            Ok(Typed::Call { tool, arguments }) => {
                if call(host, session, &tool, arguments, interrupts).await?
                    == Some(Interruption::Terminate)
                {
                    return Ok(Left::Terminated);
                }
            }
            Err(problem) => wrong(&problem),
        }
    }
}

/// Waits for a line. The editor blocks its thread; the others of the runtime go on.
fn read_line(editor: &mut Reedline) -> io::Result<Signal> {
    tokio::task::block_in_place(|| editor.read_line(&editor::Zeph)).map_err(io::Error::other)
}

/// Sets the flag when the process is asked to end: at the prompt nobody else hears it, and the terminal has to be given
/// back in order.
fn end_on_terminate(is_ending: &Arc<AtomicBool>) -> io::Result<JoinSet<()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let is_ending = Arc::clone(is_ending);
    let mut watcher = JoinSet::new();
    watcher.spawn(async move {
        terminate.recv().await;
        is_ending.store(true, Ordering::Relaxed);
    });
    Ok(watcher)
}

/// Makes one call and shows its progress and its result. Returns the signal that came meanwhile.
async fn call(
    host: &Host,
    session: &Session,
    tool: &str,
    arguments: Value,
    interrupts: &mut Interrupts,
) -> io::Result<Option<Interruption>> {
    let (sender, mut progress) = mpsc::channel(PROGRESS_MAX);
    let listener = Some(Listener::new(sender));
    let shown = async {
        while let Some(report) = progress.recv().await {
            say(&progress_line(&report));
        }
    };
    let called = one::call(
        host,
        session,
        one::typed(tool, arguments),
        listener,
        interrupts,
    );
    let (called, ()) = tokio::join!(called, shown);
    match &called.report {
        Some(report) => print(&render::report(tool, report))?,
        None => wrong("the call was left to itself"),
    }
    Ok(called.interruption)
}

fn progress_line(report: &Progress) -> String {
    let message = escape(&report.message);
    match (report.completed, report.total) {
        (Some(completed), Some(total)) => format!("{DIM}{message} ({completed}/{total}){DIM:#}\n"),
        (Some(completed), None) => format!("{DIM}{message} ({completed}){DIM:#}\n"),
        _ => format!("{DIM}{message}{DIM:#}\n"),
    }
}

/// Writes data.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// One helpful line about what was typed.
fn wrong(problem: &str) {
    say(&format!("{RED}?{RED:#} {}\n", escape(problem)));
}

/// Tells the person something beside the data.
fn say(text: &str) {
    drop(anstream::stderr().lock().write_all(text.as_bytes()));
}

/// Tells the person that the history is not kept.
fn without_history(reason: &dyn std::fmt::Display) {
    let reason = escape(&reason.to_string());
    say(&format!(
        "{YELLOW}note:{YELLOW:#} the history is not kept: {reason}\n"
    ));
}
