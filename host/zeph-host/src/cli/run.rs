//! `zeph-host run`: chooses and runs the front end (prompt or JSON lines), and converts its end to an exit code.

pub(super) mod agent;
mod demo;

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reedline::ExternalPrinter;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_core::principal::Principal;
use zeph_plugins::event::{PluginEvent, Tell};

use super::args::RunArgs;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::approval::ApprovalPrompt;
use crate::host::Host;
use crate::run::ask::terminal;
use crate::run::interrupt::Interrupts;
use crate::run::jsonl::{self, JsonLinesEnd, JsonLinesInput, Tally};
use crate::run::line_input;
use crate::run::render::{YELLOW, duration, escape};
use crate::run::repl::{self, Left};
use crate::scheduler::clockwork::Clockwork;
use crate::session::Session;

/// A host that reads calls for less than this runs no scheduled task.
const BATCH_MAX: Duration = Duration::from_secs(5);

/// The history of the line editor, in the state directory.
const HISTORY: &str = "zeph-host/history";

/// The history of a chat, beside it.
const PROMPT_HISTORY: &str = "zeph-host/prompt-history";

/// Lines about plugins that wait to be shown.
const NEWS_MAX: usize = 100;

/// Where requests come from.
enum FrontEnd {
    Terminal,
    Lines(JsonLinesInput),
}

/// Runs the command.
#[inline(never)]
pub(super) fn run(context: &Context, options: RunArgs) -> Result<Exit, CliError> {
    if options.json_schema {
        return agent::schema();
    }
    if options.jsonl_schema {
        out::json(&jsonl::schema::both())?;
        return Ok(Exit::Success);
    }
    context.record(options.record.as_deref())?;
    if options.demo {
        return demo::run(context, &options);
    }
    if options.asks_agent() {
        return agent::run(context, options);
    }
    let door = door(&options)?;
    let config = context.config()?;
    let has_model = config.agent.provider.is_some() && !options.no_model;
    if matches!(door, FrontEnd::Terminal) && has_model {
        if agent::is_at_terminal() {
            return agent::run(context, options);
        }
        out::note("standard output is not a terminal: this is the prompt for tools, not a chat");
    }
    let allow = context.allow(&options.allow, &config)?;
    let bounds = jsonl::JsonLinesOptions {
        jobs: match options.jobs {
            Some(jobs) => NonZeroUsize::new(jobs).unwrap_or(context.surroundings.cores),
            None => config.run.jobs,
        },
        request_bytes_max: config.run.request_bytes_max,
        ask: match options.ask {
            true => Some(ask()?),
            false => None,
        },
    };
    context::block_on_threads(async {
        let news = ExternalPrinter::new(NEWS_MAX);
        let tell = match door {
            FrontEnd::Terminal => Some(tell_editor(context.quiet, &news)),
            FrontEnd::Lines(_) => None,
        };
        let host = context.start(config, true, allow, tell).await?;
        let principal = match door {
            FrontEnd::Terminal => context.operator()?,
            FrontEnd::Lines(_) => Principal::PROGRAM,
        };
        let session = host.open_session(options.conversation, principal).await?;
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let clockwork = match door {
            FrontEnd::Terminal => Clockwork::start(&host),
            FrontEnd::Lines(_) => Clockwork::start_after(&host, BATCH_MAX),
        };
        let ended = match door {
            FrontEnd::Terminal => terminal(context, &host, &session, news, &mut interrupts).await,
            FrontEnd::Lines(input) => {
                let ends = (interrupts, clockwork.draining().clone());
                lines(
                    context,
                    (host.clone(), session.clone()),
                    (bounds, input),
                    ends,
                )
                .await
            }
        };
        clockwork.end().await;
        ended
    })
}

/// The way to the person at the terminal of the process, who need not be at its standard streams.
fn ask() -> Result<ApprovalPrompt, CliError> {
    terminal::at_terminal().map_err(|error| {
        CliError::user("there is no terminal to ask on")
            .because(error)
            .hint("without `--ask` a refused call waits: `zeph-host approve` lets it run when it is made again")
    })
}

/// Shows plugin events as lines above the prompt. More than a screenful is omitted.
fn tell_editor(quiet: bool, news: &ExternalPrinter<String>) -> Tell {
    let news = news.sender();
    Arc::new(move |event: &PluginEvent| {
        if quiet {
            return;
        }
        let line = format!("{YELLOW}note:{YELLOW:#} {}", escape(&event.to_string()));
        match line_input::is_dumb() {
            true => repl::say(&format!("{line}\n")),
            false => drop(news.try_send(line)),
        }
    })
}

/// A file when one is named; the editor when standard input is a terminal; else standard input as JSON lines.
///
/// Errors: the file cannot be read, or the editor has no terminal to draw on.
fn door(options: &RunArgs) -> Result<FrontEnd, CliError> {
    if let Some(path) = &options.calls {
        return open(path).map(|file| FrontEnd::Lines(JsonLinesInput::File(file)));
    }
    if options.jsonl || !io::stdin().is_terminal() {
        return Ok(FrontEnd::Lines(JsonLinesInput::Stdin));
    }
    // The editor reads standard input and draws on standard error.
    match io::stderr().is_terminal() {
        true => Ok(FrontEnd::Terminal),
        false => Err(CliError::user(
            "standard error is not a terminal, where the prompt would be shown",
        )
        .hint("`--jsonl` reads calls from the terminal as lines of JSON")),
    }
}

fn open(path: &Path) -> Result<File, CliError> {
    let problem = || format!("the calls in `{}` cannot be read", path.display());
    let file = File::open(path).map_err(|error| CliError::user(problem()).because(error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            Err(CliError::user(problem()).because(io::Error::from(io::ErrorKind::IsADirectory)))
        }
        _ => Ok(file),
    }
}

async fn terminal(
    context: &Context,
    host: &Host,
    session: &Session,
    news: ExternalPrinter<String>,
    interrupts: &mut Interrupts,
) -> Result<Exit, CliError> {
    let state = context.surroundings.state_home.as_ref();
    let options = repl::EditorOptions {
        history: state.map(|state| state.join(HISTORY)),
        directory: context.directory(host.config()),
        color: anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never,
        width: out::width(),
    };
    match repl::serve(host, session, options, news, interrupts).await {
        Ok(Left::Asked) => Ok(Exit::Success),
        Ok(Left::Interrupted(interruption)) => Ok(Exit::Interrupted(interruption)),
        Err(error) => Err(CliError::terminal(error)),
    }
}

async fn lines(
    context: &Context,
    (host, session): (Host, Session),
    (bounds, input): (jsonl::JsonLinesOptions, JsonLinesInput),
    (mut interrupts, draining): (Interrupts, CancellationToken),
) -> Result<Exit, CliError> {
    let started = Instant::now();
    // On a thread of the runtime: the calls then begin where they are read, without waking another one.
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let ends = (&mut interrupts, &draining);
        jsonl::serve(&host, &session, bounds, input, ends).await
    });
    let served = serving.join_next().await;
    let served = served.unwrap_or_else(|| Ok(Err(io::Error::other("it has ended"))));
    let (ended, tally) = served
        .map_err(|error| CliError::internal("the calls are served no longer").because(error))?
        .map_err(|error| CliError::internal("a thread cannot be started").because(error))?;
    if !context.quiet && io::stderr().is_terminal() {
        summarise(&tally, started);
    }
    match ended {
        JsonLinesEnd::AtEnd => Ok(Exit::Success),
        JsonLinesEnd::Interrupted(interruption) => Ok(Exit::Interrupted(interruption)),
        JsonLinesEnd::OutputClosed => Ok(Exit::BrokenPipe),
        JsonLinesEnd::Input(error) => {
            Err(CliError::user("the calls cannot be read").because(error))
        }
        JsonLinesEnd::Output(error) => Err(CliError::stdout(error)),
    }
}

fn summarise(tally: &Tally, started: Instant) {
    out::remark(&format!("{tally} in {}", duration(started.elapsed())));
}
