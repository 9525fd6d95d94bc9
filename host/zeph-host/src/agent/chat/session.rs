//! The commands about the conversation.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_agent::event::Observer;
use zeph_agent::message::{ItemView, Turn};
use zeph_agent::transcript::Transcript;
use zeph_core::failure::one_line;
use zeph_core::id::{ApprovalId, ConversationId};
use zeph_core::text::counted;
use zeph_store::SessionRecord;

use super::command::{ChatCommand, HELP};
use super::screen::remark;
use super::terminal::ChatTerminal;
use super::{Chat, Next};
use crate::agent::{begin, models};
use crate::approval;
use crate::clock::now_ms;
use crate::goal::plan;
use crate::run::interrupt::Interrupts;
use crate::run::render::escape;
use crate::run::{catalog, session_commands, table};

/// Files under standard names that one conversation is exported to.
const EXPORTS_MAX: u32 = 100;

/// Sessions that `/resume` lists.
const SESSIONS_MAX: u32 = 20;

impl Chat {
    /// Carries out a command; what follows when the conversation is over.
    ///
    /// Errors: when the terminal cannot be used.
    pub(super) async fn command(
        &mut self,
        command: ChatCommand,
        terminal: &mut ChatTerminal,
        interrupts: &mut Interrupts,
    ) -> io::Result<Option<Next>> {
        let screen = Arc::clone(&self.screen);
        let width = screen.width();
        let host = self.agent.host().host().clone();
        let session = self.agent.host().session().clone();
        match command {
            ChatCommand::Quit => return Ok(Some(Next::Quit)),
            ChatCommand::Clear => return self.clear().await.map(Some),
            ChatCommand::Resume(Some(id)) => return Ok(self.resumed(&id).await),
            ChatCommand::Help => screen.page(HELP)?,
            ChatCommand::Tools => screen.page(&catalog::list(&host.catalog(), width))?,
            ChatCommand::Cost => screen.page(&format!("{}\n", escape(&self.cost())))?,
            ChatCommand::Stats => screen.page(&self.stats())?,
            ChatCommand::Model(name) => self.model(name.as_deref())?,
            ChatCommand::Resume(None) => self.sessions().await?,
            ChatCommand::Approve(None) => match session_commands::approvals(&host, width).await {
                Ok(page) => screen.page(page.as_str())?,
                Err(error) => screen.wrong(&error.to_string()),
            },
            ChatCommand::Approve(Some(which)) => self.approve(&which, terminal).await?,
            ChatCommand::Revoke(id) => self.revoke(id.as_deref()).await?,
            ChatCommand::Undo(count) => {
                screen.page(&session_commands::undo(&session, count).await)?;
            }
            ChatCommand::Redo => screen.page(&session_commands::redo(&session).await)?,
            ChatCommand::Plan(argument) => {
                match plan::command(&host, &session, argument.as_deref()).await {
                    Ok(text) => screen.page(&text)?,
                    Err(problem) => screen.wrong(&problem),
                }
            }
            ChatCommand::Compact => self.compact(interrupts).await,
            ChatCommand::Export(file) => self.export(file.as_deref()),
            ChatCommand::Nothing | ChatCommand::Prompt(_) => {}
        }
        Ok(None)
    }

    async fn clear(&mut self) -> io::Result<Next> {
        let tools = self.agent.host();
        match session_commands::clear(tools.host(), tools.session()).await {
            Ok(_) => self.screen.page("a new conversation begins\n")?,
            Err(error) => self.screen.wrong(&error.to_string()),
        }
        Ok(Next::Fresh)
    }

    /// The status line, and what of it is not known, or only about.
    fn cost(&self) -> String {
        let status = self.status();
        let prices = self.agent.provider().prices();
        let mut text = status.to_string();
        if prices.input.is_none() || prices.output.is_none() {
            text.push_str(
                "\nthe cost is not known: the provider has no `price_input` and `price_output`",
            );
        }
        if status.usage.estimated > 0 {
            text.push_str(&format!(
                "\n~ about: {} of these tokens are estimated from bytes, because the provider did not report them",
                status.usage.estimated
            ));
        }
        text
    }

    fn stats(&self) -> String {
        let spending = self.agent.spending();
        let asked = self.agent.host().approver().asked();
        let about = spending.usage.mark();
        let per_hundred = asked.saturating_mul(100) / spending.calls.max(1);
        format!(
            "{}\n{} · {} · {} ({per_hundred} per 100 calls)\n\
             {about}input {} · cache read {} · cache written {} · {about}output {}\n",
            escape(&self.status().to_string()),
            counted(spending.requests, "request", "requests"),
            counted(spending.calls, "call", "calls"),
            counted(asked, "question", "questions"),
            spending.usage.input,
            spending.usage.cache_read,
            spending.usage.cache_write,
            spending.usage.output,
        )
    }

    fn model(&mut self, name: Option<&str>) -> io::Result<()> {
        let host = self.agent.host().host().clone();
        let Some(name) = name else {
            let used = self.agent.provider().origin().provider.clone();
            let rows: Vec<[String; 3]> = host
                .config()
                .providers
                .iter()
                .map(|one| {
                    let mark = if one.name == used { "in use" } else { "" };
                    [one.name.clone(), one.model.clone(), mark.to_owned()]
                })
                .collect();
            let table = table::render(["NAME", "MODEL", ""], &rows, self.screen.width());
            return self.screen.page(&table);
        };
        match models::provider(&host, Some(name)) {
            Ok(provider) => {
                let origin = provider.origin();
                self.agent.journal().uses(&origin.provider, &origin.model);
                let line = format!("{} · {}\n", escape(&origin.provider), escape(&origin.model));
                self.agent.use_provider(provider);
                self.screen.page(&line)
            }
            Err(missing) => {
                let problem = format!("{}; {}", missing.problem, missing.hint);
                self.screen.wrong(&problem);
                Ok(())
            }
        }
    }

    /// The sessions of this directory.
    async fn sessions(&self) -> io::Result<()> {
        let tools = self.agent.host();
        let directory = begin::directory(tools.host().config());
        let listed = tools
            .host()
            .store()
            .list_sessions(Some(directory), SESSIONS_MAX);
        match listed.await {
            Ok(sessions) if sessions.is_empty() => {
                self.screen.page("no session of this directory is stored\n")
            }
            Ok(sessions) => {
                let rows: Vec<[String; 4]> = sessions.iter().map(row).collect();
                let head = ["ID", "MODEL", "USED", "FIRST PROMPT"];
                let table = table::render(head, &rows, self.screen.width());
                self.screen.page(&table)
            }
            Err(error) => {
                self.screen.wrong(&error.to_string());
                Ok(())
            }
        }
    }

    async fn resumed(&self, id: &str) -> Option<Next> {
        let store = self.agent.host().host().store();
        let Ok(id) = id.parse::<ConversationId>() else {
            self.screen
                .wrong("that is not the ID of a session; `/resume` lists them");
            return None;
        };
        match store.session(id).await {
            Ok(Some(_)) => Some(Next::Resume(id)),
            Ok(None) => {
                self.screen
                    .wrong("there is no such session; `/resume` lists them");
                None
            }
            Err(error) => {
                self.screen.wrong(&error.to_string());
                None
            }
        }
    }

    async fn approve(&self, which: &str, terminal: &mut ChatTerminal) -> io::Result<()> {
        let host = self.agent.host().host();
        let request = match session_commands::waiting(host, Some(which)).await {
            Ok(request) => request,
            Err(problem) => {
                self.screen.wrong(&problem);
                return Ok(());
            }
        };
        let page = session_commands::request(&request, self.screen.width());
        let answer = terminal.decide(page.as_str())?;
        let answer = (answer, approval::at_prompt());
        match session_commands::answer(host, &request, answer).await {
            Ok(text) => self.screen.page(&text),
            Err(error) => {
                let problem = format!("the answer cannot be recorded: {error}");
                self.screen.wrong(&problem);
                Ok(())
            }
        }
    }

    async fn revoke(&self, id: Option<&str>) -> io::Result<()> {
        let tools = self.agent.host();
        let Some(approval) = id.and_then(|id| id.parse::<ApprovalId>().ok()) else {
            let revoked = session_commands::revoke(tools.host(), tools.session(), id).await;
            return match revoked {
                Ok(text) => self.screen.page(&text),
                Err(problem) => {
                    self.screen.wrong(&problem);
                    Ok(())
                }
            };
        };
        match tools.host().store().revoke_approval(approval).await {
            Ok(true) => self.screen.page("revoked\n"),
            Ok(false) => {
                self.screen
                    .wrong("there is no such approval; `/approve` lists them");
                Ok(())
            }
            Err(error) => {
                self.screen.wrong(&error.to_string());
                Ok(())
            }
        }
    }

    async fn compact(&mut self, interrupts: &mut Interrupts) {
        let cancel = CancellationToken::new();
        let screen = Arc::clone(&self.screen);
        let ended = {
            let observer: &dyn Observer = &*screen;
            let compacting = self.agent.compact_now(observer, &cancel);
            let mut compacting = std::pin::pin!(compacting);
            loop {
                tokio::select! {
                    biased;
                    ended = &mut compacting => break ended,
                    _ = interrupts.next() => cancel.cancel(),
                }
            }
        };
        match ended {
            Ok(true) => {}
            Ok(false) => screen.say(&remark("there is nothing to make shorter")),
            Err(status) => screen.wrong(&status.to_string()),
        }
    }

    /// Writes the conversation to a new file: the one that was named, or the first free of the standard names.
    fn export(&self, file: Option<&str>) {
        let conversation = self.agent.host().session().conversation;
        let names: Vec<String> = match file {
            Some(name) => vec![name.to_owned()],
            None => (1..=EXPORTS_MAX)
                .map(|number| export_name(conversation, number))
                .collect(),
        };
        let text = markdown(self.agent.transcript());
        let mut written = Ok(());
        let mut path = self.options.directory.clone();
        for name in names {
            path = self.options.directory.join(name);
            written = write(&path, &text);
            let error = written.as_ref().err().map(io::Error::kind);
            if error != Some(io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        match written {
            Ok(()) => {
                let written = format!("written to {}", path.display());
                self.screen.say(&remark(&written));
            }
            Err(error) => {
                let problem = format!("`{}` cannot be written: {error}", path.display());
                self.screen.wrong(&problem);
            }
        }
    }
}

/// The standard name of an export. The end of an ID tells conversations apart; its beginning is the time.
fn export_name(conversation: ConversationId, number: u32) -> String {
    let id = conversation.to_string();
    let end = id.rsplit('-').next().unwrap_or_default();
    match number {
        1 => format!("zeph-session-{end}.md"),
        _ => format!("zeph-session-{end}-{number}.md"),
    }
}

fn row(session: &SessionRecord) -> [String; 4] {
    let minutes = (now_ms() - session.last_used_at_ms).max(0) / 60_000;
    let used = match minutes {
        0..120 => format!("{minutes} min ago"),
        120..2_880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1_440),
    };
    [
        session.conversation.to_string(),
        session.model.clone(),
        used,
        session.title.clone(),
    ]
}

/// Writes a new file that only its owner can read; one that is there stays as it is.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file?.write_all(text.as_bytes())
}

/// The conversation as Markdown.
fn markdown(transcript: &Transcript) -> String {
    let mut text = String::from("# Session\n");
    for turn in transcript.turns() {
        match turn {
            Turn::User(user) => {
                for result in &user.results {
                    let shown = result.to_text();
                    text.push_str(&format!(
                        "\n<details><summary>Result of {}</summary>\n\n",
                        result.name
                    ));
                    text.push_str(&fenced(&shown));
                    text.push_str("\n</details>\n");
                }
                for said in user
                    .content
                    .iter()
                    .filter_map(zeph_agent::message::Block::as_text)
                {
                    text.push_str(&format!("\n## User\n\n{said}\n"));
                }
            }
            Turn::Assistant(answer) => {
                for item in &answer.items {
                    match &item.view {
                        ItemView::Text(said) => text.push_str(&format!("\n## Model\n\n{said}\n")),
                        ItemView::Call(call) => {
                            let arguments = call.arguments.to_json();
                            let line = one_line(&arguments, 2_000);
                            text.push_str(&format!(
                                "\nCall of `{}`:\n\n{}\n",
                                call.name,
                                fenced(&line)
                            ));
                        }
                        ItemView::Thinking(_) | ItemView::Opaque => {}
                    }
                }
            }
        }
    }
    text
}

/// A text in a fence that is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.lines().map(|line| {
        let rest = line.trim_start();
        rest.len() - rest.trim_start_matches('`').len()
    });
    let fence = "`".repeat(longest.max().unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}
