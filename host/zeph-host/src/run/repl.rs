//! The door for people: a line editor on a terminal. The editor draws on standard error, results go to standard output.
//!
//! It reads a line, has it understood by `typed`, and makes the call. Ctrl-C clears the line or cancels the running
//! call, Ctrl-D leaves.

mod commands;
mod complete;
mod continuation;
pub(crate) mod editor;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reedline::{ExternalPrinter, Signal};
use serde_json::Value;
use tokio::sync::mpsc;
use zeph_core::call::ToolRequest;
use zeph_core::text::counted;
use zeph_engine::{Listener, Progress};
use zeph_shell::run::{OutputChunk, OutputListener};

use super::interrupt::{EndWatch, Interruption, Interrupts};
use super::line_input::LineInput;
use super::prompt_input::{self, PromptInput};
use super::render::{DIM, RED, YELLOW, escape};
use super::{ask, catalog, one, question, render};
use crate::host::Host;
use crate::session::Session;

/// What the editor needs to know of its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct EditorOptions {
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
    /// The process was asked to end, or the terminal is gone.
    Interrupted(Interruption),
}

/// Pieces of output kept for printing; what finds no room is counted and omitted, and stands in the result.
const CHUNKS_MAX: usize = 64;

/// Progress reports kept for printing; more are dropped.
const PROGRESS_MAX: usize = 16;

const HELP: &str = "\
Type a call:
  read path=README.md limit=20           values are text where the tool wants
                                         text, else JSON
  grep pattern=\"two words\" path=src     quotes for spaces
  write {\"path\": \"a\", \"content\": \"b\"}
                                         JSON; it may span lines until its
                                         braces close
Commands:
  /tools         the tools
  /tool NAME     one tool with its parameters
  /approvals     what waits for you
  /approve [ID]  let a program's call run (the newest without ID)
  /revoke [ID]   deny such calls as the last one, or as call ID;
                 `zeph-host forgive` takes that back
  /plan [TEXT]   the goal; with TEXT, set one; `done` and `cancel` end it,
                 `list` shows all
  /undo [N]      put back what the last commands changed; /redo takes that back
  /runs          what runs in the background
  /kill ID       end it
  /clear         begin a new turn: nothing counted, nothing approved for the
                 session
  /help          this text
  /quit          leave (or Ctrl-D)
Tab completes names, parameters and paths. Ctrl-C cancels the running call. Up
and Ctrl-R find earlier lines; a line that begins with a space is not kept.
";

/// Reads and makes calls until the person leaves. `news` are lines that are shown while the person types.
///
/// Errors: when the terminal or standard output cannot be used.
pub(crate) async fn serve(
    host: &Host,
    session: &Session,
    options: EditorOptions,
    news: ExternalPrinter<String>,
    interrupts: &mut Interrupts,
) -> io::Result<Left> {
    let is_ending = Arc::new(AtomicBool::new(false));
    // At the prompt nobody else hears it, and the terminal has to be given back in order.
    let ending = EndWatch::start(&is_ending)?;
    let editor = |behind: &_| editor::new(host.clone(), &options, news, behind);
    let mut input = LineInput::open(editor, is_ending, continuation::is_whole)?;
    interrupts.with_terminal(input.watch());
    let n_tools = match host.plugins().is_settled {
        true => counted(host.catalog().tools().len(), "tool", "tools"),
        false => "plugins are being compiled, commands run already".to_owned(),
    };
    say(&format!(
        "{DIM}{n_tools}; /help explains, /quit leaves{DIM:#}\n"
    ));
    let lines = (&mut input, &ending);
    let left = serve_lines(host, session, &options, lines, interrupts).await;
    let ends = host.end_runs(session).await;
    if input.is_lost() {
        // Whatever went wrong then went wrong because of it.
        return Ok(Left::Interrupted(Interruption::HangUp));
    }
    for end in ends {
        print(&format!("{}\n", escape(&end)))?;
    }
    left
}

async fn serve_lines(
    host: &Host,
    session: &Session,
    options: &EditorOptions,
    (input, ending): (&mut LineInput, &EndWatch),
    interrupts: &mut Interrupts,
) -> io::Result<Left> {
    loop {
        let read = read_line(input)?;
        interrupts.forget_interrupt();
        let line = match read {
            Signal::Success(line) => line,
            Signal::CtrlD => return Ok(Left::Asked),
            Signal::ExternalBreak(_) => return Ok(Left::Interrupted(ending.came())),
            _ => continue,
        };
        // A call of a tool that is denied is made too, and says so.
        let mut typed = prompt_input::read(&line, &host.whole_catalog());
        if typed.is_err() && !host.plugins().is_settled {
            // It may name a tool whose plugin is still being compiled.
            let signal = tokio::select! {
                () = host.settled() => None,
                signal = interrupts.next() => Some(signal),
            };
            match signal {
                None => {}
                Some(Interruption::Interrupt) => {
                    input.forget();
                    say("cancelled: plugins are still being compiled\n");
                    continue;
                }
                Some(ends) => return Ok(Left::Interrupted(ends)),
            }
            typed = prompt_input::read(&line, &host.whole_catalog());
        }
        if typed.is_err() {
            let catalog = host.whole_catalog();
            let is_line = |text: &str| prompt_input::read(text, &catalog).is_ok();
            if let Some(lines) = continuation::several(&line, is_line) {
                input.put(lines);
                continue;
            }
        }
        let tools = host.catalog();
        match typed {
            Ok(PromptInput::Nothing) => {}
            Ok(PromptInput::Quit) => return Ok(Left::Asked),
            Ok(PromptInput::Help) => print(HELP)?,
            Ok(PromptInput::Tools) => print(&catalog::list(&tools, options.width))?,
            Ok(PromptInput::Tool(name)) => match tools.resolve(&name) {
                Ok(tool) => print(&catalog::show(tool, options.width, false))?,
                Err(failure) => wrong(&failure.message),
            },
            Ok(
                command @ (PromptInput::Approve(_)
                | PromptInput::Approvals
                | PromptInput::Undo(_)
                | PromptInput::Revoke(_)
                | PromptInput::Redo
                | PromptInput::Plan(_)
                | PromptInput::Clear),
            ) => commands::run(host, session, command, options.width).await?,
            Ok(PromptInput::Call { tool, arguments }) => {
                match call(host, session, &tool, arguments, interrupts).await? {
                    None => {}
                    Some(Interruption::Interrupt) => input.forget(),
                    Some(ends) => return Ok(Left::Interrupted(ends)),
                }
            }
            Err(problem) => wrong(&problem),
        }
    }
}

/// Waits for a line. The editor blocks its thread; the others of the runtime go on.
fn read_line(input: &mut LineInput) -> io::Result<Signal> {
    tokio::task::block_in_place(|| input.read(&editor::Zeph))
}

/// Makes one call and shows its progress and its result; when a plugin lacks a right, asks and tries again. Returns the signal
/// that came meanwhile.
async fn call(
    host: &Host,
    session: &Session,
    tool: &str,
    arguments: Value,
    interrupts: &mut Interrupts,
) -> io::Result<Option<Interruption>> {
    let mut request = one::typed(tool, arguments);
    loop {
        let (called, has_printed) = call_once(host, session, request.clone(), interrupts).await?;
        let Some(report) = &called.report else {
            wrong("the call was abandoned");
            return Ok(called.interruption);
        };
        if let Some(asked) = &report.asked {
            let (answers, interruption) = question::put(tool, asked, interrupts).await?;
            if let Some(Interruption::Terminate | Interruption::HangUp) = interruption {
                return Ok(interruption);
            }
            request.answers = Some(answers);
            continue;
        }
        if let Some(wanted) = ask::about(report) {
            say(&ask::question(host, wanted));
            let answer = tokio::task::block_in_place(|| ask::answer(session))?;
            if let Some(lifetime) = answer {
                match host.grant(wanted, lifetime).await {
                    Ok(()) => continue,
                    Err(error) => wrong(&format!("it cannot be granted: {error}")),
                }
            }
        }
        print(&match has_printed {
            OutputDisplay::Yes => render::after_output(tool, report),
            OutputDisplay::No => render::report(tool, report),
        })?;
        return Ok(called.interruption);
    }
}

async fn call_once(
    host: &Host,
    session: &Session,
    request: ToolRequest,
    interrupts: &mut Interrupts,
) -> io::Result<(one::SingleCallEnd, OutputDisplay)> {
    let (sender, mut progress) = mpsc::channel(PROGRESS_MAX);
    let (output, mut chunks) = mpsc::channel(CHUNKS_MAX);
    let watching = one::Watching {
        listener: Some(Listener::new(sender)),
        on_output: Some(OutputListener::new(output)),
    };
    let shown = async {
        while let Some(report) = progress.recv().await {
            say(&progress_line(&report));
        }
    };
    let printed = async {
        let mut has_printed = OutputDisplay::No;
        while let Some(chunk) = chunks.recv().await {
            has_printed = OutputDisplay::Yes;
            print(&chunk_text(&chunk))?;
        }
        io::Result::Ok(has_printed)
    };
    let called = one::call(host, session, request, watching, interrupts);
    let (called, (), has_printed) = tokio::join!(called, shown, printed);
    Ok((called, has_printed?))
}

/// Whether the output of a command was shown while it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputDisplay {
    Yes,
    No,
}

/// A piece of output as the terminal shows it.
fn chunk_text(chunk: &OutputChunk) -> String {
    let skipped = match chunk.n_skipped {
        0 => String::new(),
        n_skipped => {
            let bytes = counted(n_skipped, "byte", "bytes");
            format!("\n{DIM}[{bytes} not shown]{DIM:#}\n")
        }
    };
    format!("{skipped}{}", escape(&chunk.text))
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
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// One helpful line about what was typed.
fn wrong(problem: &str) {
    say(&format!("{RED}?{RED:#} {}\n", escape(problem)));
}

/// Tells the person something beside the data.
pub(crate) fn say(text: &str) {
    drop(anstream::stderr().lock().write_all(text.as_bytes()));
}

/// Tells the person that the history is not kept.
fn without_history(reason: &dyn std::fmt::Display) {
    let reason = escape(&reason.to_string());
    say(&format!(
        "{YELLOW}note:{YELLOW:#} the history is not kept: {reason}\n"
    ));
}
