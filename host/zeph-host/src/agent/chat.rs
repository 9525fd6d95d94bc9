//! A conversation at the terminal. What is shown is only appended to: scrollback, copying and search keep working. On the full screen
//! (`run --tui`) it is the same conversation in another view.
//!
//! In reading order: `terminal` (what is typed and answered), `command` (what a line means), `screen` (what happens, as it is shown),
//! `exchange` (one turn), `session` (the commands about the conversation), `earlier` (what was said before), `status` (its line); `input` and `question` are a terminal
//! that is appended to, `full` is the full screen.

mod command;
mod earlier;
mod exchange;
mod full;
mod input;
mod question;
mod screen;
mod session;
mod status;
mod terminal;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use zeph_core::id::ConversationId;
use zeph_shell::run::OutputChunk;

use self::command::ChatCommand;
use self::input::Line;
use self::screen::{ChatScreen, remark};
use self::terminal::ChatTerminal;
use super::approver::{Approver, Asked};
use super::begin::{self, AgentStart, HostAgent};
use crate::host::Host;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::render::escape;

/// Pieces of output of commands that wait to be shown; what finds no room is counted, and stands in the result.
const CHUNKS_MAX: usize = 64;

/// What the chat needs to know of its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct ChatOptions {
    /// Where lines are kept.
    pub(crate) history: Option<PathBuf>,
    /// Where relative paths start, for completion and `/export`.
    pub(crate) directory: PathBuf,
    /// Whether colours may be used.
    pub(crate) color: bool,
    /// Whether the whole screen is used.
    pub(crate) is_full: bool,
}

/// What follows a conversation.
enum Next {
    /// The user leaves.
    Quit,
    /// The process was asked to end.
    Ended(Interruption),
    /// A stored conversation goes on.
    Resume(ConversationId),
    /// A new one begins.
    Fresh,
}

/// A conversation and what it is shown with.
struct Chat {
    agent: HostAgent,
    screen: Arc<dyn ChatScreen>,
    questions: mpsc::Receiver<Asked>,
    live: mpsc::Receiver<OutputChunk>,
    options: ChatOptions,
}

/// Talks until the user leaves. Returns the signal that ended it, if one did.
///
/// Errors: when the terminal cannot be used.
pub(crate) async fn serve(
    host: &Host,
    start: AgentStart,
    options: ChatOptions,
    interrupts: &mut Interrupts,
) -> io::Result<Option<Interruption>> {
    let mut terminal = ChatTerminal::open(&options, interrupts)?;
    let (mut resume, mut conversation) = (start.resume, start.conversation);
    let mut provider = start.provider;
    loop {
        let start = AgentStart {
            provider: Arc::clone(&provider),
            approver: Approver::default(),
            live: None,
            resume,
            conversation,
            schedule: None,
        };
        let screen = terminal.screen();
        let mut chat = match Chat::begin(host, start, &options, screen).await {
            Ok(chat) => chat,
            // A session that cannot be read is no reason to leave.
            Err(error) if resume.take().is_some() => {
                terminal.screen().wrong(&error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        chat.greet();
        let next = chat.talk(&mut terminal, interrupts).await;
        let tools = chat.agent.host();
        let ends = tools.host().end_runs(tools.session()).await;
        let show = |end: &String| chat.screen.say(&format!("{}\n", escape(end)));
        ends.iter().for_each(show);
        // The model that `/model` chose stays in use.
        provider = Arc::clone(chat.agent.provider());
        let next = match next {
            // Whatever went wrong then went wrong because of it.
            Err(_) if terminal.is_lost() => Next::Ended(Interruption::HangUp),
            next => next?,
        };
        match next {
            Next::Quit => return Ok(None),
            Next::Ended(interruption) => return Ok(Some(interruption)),
            Next::Resume(id) => resume = Some(id),
            Next::Fresh => resume = None,
        }
        conversation = None;
    }
}

impl Chat {
    async fn begin(
        host: &Host,
        start: AgentStart,
        options: &ChatOptions,
        screen: Arc<dyn ChatScreen>,
    ) -> io::Result<Self> {
        let (approver, questions) = Approver::channel();
        let (sender, live) = mpsc::channel(CHUNKS_MAX);
        let start = AgentStart {
            approver,
            live: Some(sender),
            ..start
        };
        let agent = begin::begin(host, start).await.map_err(io::Error::other)?;
        Ok(Self {
            agent,
            screen,
            questions,
            live,
            options: options.clone(),
        })
    }

    fn greet(&self) {
        let origin = self.agent.provider().origin();
        let n_entries = self.agent.transcript().entries().len();
        let resumed = match n_entries {
            0 => String::new(),
            n => format!(" · resumed with {n} entries"),
        };
        if n_entries > 0 {
            let width = self.screen.width();
            self.screen
                .say(&earlier::shown(self.agent.transcript(), width));
        }
        self.screen.say(&remark(&format!(
            "{} · {}{resumed} · /help explains, /quit leaves",
            origin.provider, origin.model
        )));
        self.screen.status(&self.status());
    }

    async fn talk(
        &mut self,
        terminal: &mut ChatTerminal,
        interrupts: &mut Interrupts,
    ) -> io::Result<Next> {
        loop {
            let line = match terminal.read(interrupts).await? {
                Line::Typed(line) => line,
                Line::Nothing => continue,
                Line::Left => return Ok(Next::Quit),
                Line::Lost(interruption) => return Ok(Next::Ended(interruption)),
            };
            let next = match command::read(&line) {
                Ok(ChatCommand::Nothing) => None,
                Ok(ChatCommand::Prompt(text)) => self.exchange(&text, terminal, interrupts).await?,
                Ok(command) => self.command(command, terminal, interrupts).await?,
                Err(problem) => {
                    self.screen.wrong(&problem);
                    None
                }
            };
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }
}
