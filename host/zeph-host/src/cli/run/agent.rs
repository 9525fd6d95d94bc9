//! `zeph-host run PROMPT`, `--resume`, `--show-prompt`, and the chat: an agent in place of the prompt for tools.

use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;

use zeph_agent::Provider;
use zeph_config::Config;
use zeph_core::id::ConversationId;
use zeph_core::policy::AllowRule;

use super::super::args::RunArgs;
use super::super::context::{self, Context};
use super::super::error::CliError;
use super::super::exit::Exit;
use super::super::out;
use crate::agent::approver::Approver;
use crate::agent::begin::{self, AgentStart, HostAgent};
use crate::agent::chat::{self, ChatOptions};
use crate::agent::events::{self, ApprovalCount, RunEvent, RunStatus, RunUsage};
use crate::agent::headless::{self, OutputForm};
use crate::agent::journal::is_of_schedule;
use crate::agent::models;
use crate::host::Host;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::line_input;
use crate::scheduler::clockwork::Clockwork;

/// Bytes of a prompt that is read from standard input.
const PROMPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What is asked of the agent.
#[derive(Debug)]
enum Wanted {
    /// One prompt.
    Headless(PromptSource),
    /// A conversation at the terminal.
    Chat,
    /// The request that a prompt would make.
    Preview(Option<String>),
}

/// Where the prompt is.
#[derive(Debug)]
enum PromptSource {
    /// On the command line.
    Typed(String),
    /// On standard input.
    Stdin,
}

/// Prints the schema of `--json`.
pub(super) fn schema() -> Result<Exit, CliError> {
    out::json(&events::schema())?;
    Ok(Exit::Success)
}

/// The last lines of a run with `--json` that could not begin.
///
/// Errors: standard output cannot be written.
pub(crate) fn report(error: &CliError) -> Result<(), CliError> {
    let problems = error.problems.join("; ");
    let said: Vec<String> = [problems].into_iter().chain(error.causes()).collect();
    end(Some(said.join(": ")), RunStatus::Error, error.exit())
}

/// The last lines of a run that did nothing.
fn end(problem: Option<String>, status: RunStatus, exit: Exit) -> Result<(), CliError> {
    let error = problem.map(|message| RunEvent::Error {
        message,
        retry_ms: None,
        discards_text: false,
    });
    let result = RunEvent::Result {
        status,
        text: String::new(),
        usage: RunUsage::default(),
        calls: 0,
        approvals: ApprovalCount::default(),
        exit_code: exit.code(),
    };
    let lines = error.iter().chain([&result]).map(RunEvent::line);
    out::data(&lines.collect::<String>())
}

/// Runs the agent.
pub(super) fn run(context: &Context, options: RunArgs) -> Result<Exit, CliError> {
    if options.tui {
        can_draw()?;
    }
    let (wanted, resume) = wanted(&options)?;
    let config = context.config()?;
    let allow = context.allow(&options.allow, &config)?;
    context::block_on_threads(async {
        // From the first moment: a start may take as long as its components take to compile.
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let started = tokio::select! {
            biased;
            signal = interrupts.next() => Err(signal),
            started = start(context, (config, allow), (wanted, resume), &options) => Ok(started?),
        };
        let started = match started {
            Ok(started) => started,
            Err(signal) => return interrupted(signal, options.json),
        };
        let Started {
            host,
            clockwork,
            work,
        } = started;
        let ended = match work {
            Work::Preview(agent, prompt) => preview(&agent, prompt.as_deref()).await,
            Work::Chat(start) => chat(context, &host, (*start, options.tui), &mut interrupts).await,
            Work::Headless(mut agent, prompt) => {
                let form = match options.json {
                    true => OutputForm::Json,
                    false => OutputForm::Text {
                        is_quiet: context.quiet,
                    },
                };
                let shown = (form, options.resume.is_some());
                exit(headless::run(&mut agent, &prompt, shown, &mut interrupts).await)
            }
        };
        if let Some(clockwork) = clockwork {
            clockwork.end().await;
        }
        ended
    })
}

/// A run that a signal ended before it began.
fn interrupted(signal: Interruption, is_json: bool) -> Result<Exit, CliError> {
    let exit = Exit::Interrupted(signal);
    if is_json {
        end(None, RunStatus::Interrupted, exit)?;
    }
    Ok(exit)
}

/// A host that has started, and what it is for.
struct Started {
    host: Host,
    /// Of a chat.
    clockwork: Option<Clockwork>,
    work: Work,
}

/// What is done with it.
enum Work {
    Preview(Box<HostAgent>, Option<String>),
    Chat(Box<AgentStart>),
    Headless(Box<HostAgent>, String),
}

/// Starts the host, and begins the conversation.
async fn start(
    context: &Context,
    (config, allow): (Config, Vec<AllowRule>),
    (wanted, resume): (Wanted, Option<Resume>),
    options: &RunArgs,
) -> Result<Started, CliError> {
    let host = context.start(config, true, allow, None).await?;
    let clockwork = matches!(wanted, Wanted::Chat).then(|| Clockwork::start(&host));
    let provider = provider(&host, options.provider.as_deref())?;
    // The model is shown the tools once: they have to be there.
    host.settled().await;
    let resume = resumed(&host, resume).await?;
    let start = |approver| AgentStart {
        provider,
        approver,
        live: None,
        resume,
        conversation: options.conversation,
        schedule: None,
    };
    let work = match wanted {
        Wanted::Preview(prompt) => {
            let agent = begun(&host, start(Approver::default())).await?;
            Work::Preview(Box::new(agent), prompt)
        }
        Wanted::Chat => Work::Chat(Box::new(start(Approver::default()))),
        Wanted::Headless(source) => {
            let asked = options.ask.then(super::ask).transpose()?;
            let prompt = prompt(source).await?;
            let agent = begun(&host, start(Approver::with(asked))).await?;
            Work::Headless(Box::new(agent), prompt)
        }
    };
    Ok(Started {
        host,
        clockwork,
        work,
    })
}

/// The prompt, once it is all there.
async fn prompt(source: PromptSource) -> Result<String, CliError> {
    match source {
        PromptSource::Typed(text) => Ok(text),
        PromptSource::Stdin => tokio::task::spawn_blocking(read_prompt)
            .await
            .map_err(|error| CliError::internal("the prompt cannot be read").because(error))?,
    }
}

/// What the options ask for, and which session goes on.
fn wanted(options: &RunArgs) -> Result<(Wanted, Option<Resume>), CliError> {
    let mut prompt = options.prompt.clone();
    let resume = match &options.resume {
        None => None,
        Some(None) => Some(Resume::Last),
        Some(Some(text)) => match text.parse::<ConversationId>() {
            Ok(id) => Some(Resume::Session(id)),
            // `--resume PROMPT`.
            Err(_) if prompt.is_none() => {
                prompt = Some(text.clone());
                Some(Resume::Last)
            }
            Err(error) => {
                let problem = format!("`{text}` is not the ID of a session");
                return Err(CliError::user(problem).because(error));
            }
        },
    };
    if let Some(shown) = &options.show_prompt {
        return Ok((Wanted::Preview(shown.clone().or(prompt)), resume));
    }
    let wanted = match prompt.as_deref() {
        Some("-") => Wanted::Headless(PromptSource::Stdin),
        Some(text) if text.trim().is_empty() => return Err(CliError::user("the prompt is empty")),
        Some(text) => Wanted::Headless(PromptSource::Typed(text.to_owned())),
        None if options.json || !is_at_terminal() => {
            return Err(CliError::user("a prompt is missing")
                .hint("write `zeph-host run \"PROMPT\"`, or `zeph-host run -` to read it from standard input"));
        }
        None => Wanted::Chat,
    };
    Ok((wanted, resume))
}

/// Whether a chat is possible.
pub(super) fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal() && io::stdout().is_terminal()
}

/// Whether the full screen is possible.
fn can_draw() -> Result<(), CliError> {
    let problem = match (is_at_terminal(), line_input::is_dumb()) {
        (false, _) => "`--tui` needs a terminal on standard input, output and error",
        (true, true) => "`--tui` needs a terminal with escape sequences, and TERM is `dumb`",
        (true, false) => return Ok(()),
    };
    Err(CliError::user(problem).hint("`run` without `--tui` does not"))
}

fn read_prompt() -> Result<String, CliError> {
    let mut text = String::new();
    let read = io::stdin()
        .take(PROMPT_BYTES_MAX + 1)
        .read_to_string(&mut text);
    read.map_err(|error| CliError::user("the prompt cannot be read").because(error))?;
    if text.len() as u64 > PROMPT_BYTES_MAX {
        return Err(CliError::user(format!(
            "the prompt is longer than {PROMPT_BYTES_MAX} bytes"
        )));
    }
    match text.trim().is_empty() {
        true => Err(CliError::user("the prompt is empty")),
        false => Ok(text),
    }
}

/// Sessions that are looked at for the last one of a person: schedules begin some, too.
const LOOKED_AT_MAX: u32 = 1_000;

/// Which session goes on.
#[derive(Debug, Clone, Copy)]
enum Resume {
    /// The last one of this directory that no schedule began.
    Last,
    /// This one.
    Session(ConversationId),
}

async fn resumed(host: &Host, resume: Option<Resume>) -> Result<Option<ConversationId>, CliError> {
    let store = host.store();
    match resume {
        None => Ok(None),
        Some(Resume::Session(id)) => match store.session(id).await? {
            Some(_) => Ok(Some(id)),
            None => Err(CliError::user(format!("there is no session `{id}`"))
                .hint("`/resume` in a chat lists the sessions")),
        },
        Some(Resume::Last) => {
            let directory = begin::directory(host.config());
            let last = store.list_sessions(Some(directory), LOOKED_AT_MAX).await?;
            let mut own = last.iter().filter(|session| !is_of_schedule(session));
            let last = own.next().map(|session| session.conversation);
            last.map(Some)
                .ok_or_else(|| CliError::user("there is no session of this directory to resume"))
        }
    }
}

fn provider(host: &Host, name: Option<&str>) -> Result<Arc<dyn Provider>, CliError> {
    models::provider(host, name)
        .map_err(|missing| CliError::start(missing.problem).hint(missing.hint))
}

async fn begun(host: &Host, start: AgentStart) -> Result<HostAgent, CliError> {
    let agent = begin::begin(host, start).await;
    agent.map_err(|problem| CliError::internal(format!("the session cannot begin: {problem}")))
}

async fn preview(agent: &HostAgent, prompt: Option<&str>) -> Result<Exit, CliError> {
    let user = prompt.map(|prompt| begin::user_entry(agent.host(), prompt).0);
    let mut body = agent.preview(user).await.body;
    body.push('\n');
    out::data(&body)?;
    Ok(Exit::Success)
}

fn exit(end: headless::RunEnd) -> Result<Exit, CliError> {
    let is_hung_up = end.interruption == Some(Interruption::HangUp);
    if let Some(error) = end.output.filter(|_| !is_hung_up) {
        return Err(CliError::stdout(error));
    }
    if let Some(interruption) = end.interruption {
        return Ok(Exit::Interrupted(interruption));
    }
    if let Some(message) = end.message {
        out::remark(&message);
    }
    Ok(match end.status {
        RunStatus::Done => Exit::Success,
        RunStatus::ApprovalNeeded => Exit::Confirm,
        RunStatus::Interrupted => Exit::Interrupted(Interruption::Interrupt),
        _ => Exit::Failure,
    })
}

async fn chat(
    context: &Context,
    host: &Host,
    (start, is_full): (AgentStart, bool),
    interrupts: &mut Interrupts,
) -> Result<Exit, CliError> {
    let state = context.surroundings.state_home.as_ref();
    let options = ChatOptions {
        history: state.map(|state| state.join(super::PROMPT_HISTORY)),
        directory: context.directory(host.config()),
        color: anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        is_full,
    };
    match chat::serve(host, start, options, interrupts).await {
        Ok(None) => Ok(Exit::Success),
        Ok(Some(interruption)) => Ok(Exit::Interrupted(interruption)),
        Err(error) => Err(CliError::terminal(error)),
    }
}
