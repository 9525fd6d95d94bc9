//! Slash commands: prompts that the host answers, not the model.
//!
//! None of them approves anything: a client may be driven by another model. `/approve` asks the user as a call would.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_acp::update::{AvailableCommand, CommandInput, ToolCallUpdate};
use zeph_core::failure::one_line;
use zeph_core::id::ApprovalId;
use zeph_core::nearest::nearest;

use super::call;
use super::permission;
use super::session::AcpSession;
use super::telling::TurnTelling;
use crate::agent::begin::HostAgent;
use crate::approval::ApprovalQuestion;
use crate::goal::plan;
use crate::run::{catalog, session_commands};

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SlashCommand {
    /// What waits for an answer; with an ID, the user is asked about that call.
    Approve(Option<String>),
    Clear,
    Compact,
    Cost,
    /// Sets or shows the goal.
    Plan(Option<String>),
    Redo,
    Revoke(Option<String>),
    Tools,
    Undo(u32),
}

/// Name, description, and what may follow.
const COMMANDS: [(&str, &str, Option<&str>); 9] = [
    (
        "approve",
        "List the calls that wait for approval, or ask about one of them",
        Some("ID"),
    ),
    (
        "clear",
        "Forget the conversation and the approvals for it",
        None,
    ),
    ("compact", "Have the model sum up the conversation", None),
    ("cost", "Show what the session used up", None),
    (
        "plan",
        "Set a goal, or show it with its tasks",
        Some("GOAL, done, cancel or list"),
    ),
    ("redo", "Put back what the last /undo changed", None),
    (
        "revoke",
        "Mark the result of a call as unacceptable, or revoke an approval",
        Some("ID"),
    ),
    ("tools", "List the tools", None),
    (
        "undo",
        "Put back what the last commands changed",
        Some("how many"),
    ),
];

/// All commands, as clients are told.
pub(super) fn available() -> Vec<AvailableCommand> {
    let shown = COMMANDS
        .iter()
        .map(|(name, description, hint)| AvailableCommand {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            input: hint.map(|hint| CommandInput {
                hint: hint.to_owned(),
            }),
        });
    shown.collect()
}

/// Reads a prompt; `None` when it goes to the model, as one does that begins with a path.
///
/// Errors: one line that says what is wrong.
pub(super) fn read(prompt: &str) -> Option<Result<SlashCommand, String>> {
    let line = prompt.trim().strip_prefix('/')?;
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase());
    let is_meant = || argument.trim().is_empty() || near(name).is_some();
    (is_name && is_meant()).then(|| command(name, argument.trim()))
}

/// The command of this name, or the one whose name is nearest to it.
fn near(name: &str) -> Option<&'static str> {
    nearest(name, COMMANDS.iter().map(|(known, ..)| *known))
}

fn command(name: &str, argument: &str) -> Result<SlashCommand, String> {
    let given = (!argument.is_empty()).then(|| argument.to_owned());
    match (name, given) {
        ("approve", given) => Ok(SlashCommand::Approve(given)),
        ("revoke", given) => Ok(SlashCommand::Revoke(given)),
        ("undo", given) => match given.as_deref().unwrap_or("1").parse() {
            Ok(count) if count > 0 => Ok(SlashCommand::Undo(count)),
            _ => Err("write `/undo` or `/undo N`, N from 1".to_owned()),
        },
        ("clear", None) => Ok(SlashCommand::Clear),
        ("compact", None) => Ok(SlashCommand::Compact),
        ("cost", None) => Ok(SlashCommand::Cost),
        ("plan", given) => Ok(SlashCommand::Plan(given)),
        ("redo", None) => Ok(SlashCommand::Redo),
        ("tools", None) => Ok(SlashCommand::Tools),
        (name, _) if COMMANDS.iter().any(|(known, ..)| *known == name) => {
            Err(format!("`/{name}` takes no argument"))
        }
        (name, _) => {
            let shown = one_line(name, 40);
            let advice = match near(name) {
                Some(near) => format!("did you mean `/{near}`?"),
                None => {
                    let names = COMMANDS.map(|(known, ..)| format!("`/{known}`"));
                    format!("there are: {}", names.join(", "))
                }
            };
            Err(format!("there is no command `/{shown}`; {advice}"))
        }
    }
}

/// Carries a command out, unless it is cancelled already; what its user is told.
pub(super) async fn run(
    session: &Arc<AcpSession>,
    agent: &mut HostAgent,
    command: SlashCommand,
    telling: &TurnTelling,
    cancel: &CancellationToken,
) -> String {
    let host = session.host();
    if cancel.is_cancelled() {
        return String::new();
    }
    match command {
        SlashCommand::Approve(None) => match session_commands::approvals(host, None).await {
            Ok(page) => fenced(page.as_str()),
            Err(error) => error.to_string(),
        },
        SlashCommand::Approve(Some(which)) => approve(session, &which, cancel).await,
        SlashCommand::Clear => {
            if let Err(problem) = agent.clear().await {
                return format!("the conversation is not cleared: {problem}");
            }
            let text = session_commands::clear(host, session.calls()).await;
            text.unwrap_or_else(|error| error.to_string())
        }
        SlashCommand::Compact => match agent.compact_now(telling, cancel).await {
            Ok(true) => "the conversation is shorter now".to_owned(),
            Ok(false) => "there is nothing to make shorter".to_owned(),
            Err(status) => status.to_string(),
        },
        SlashCommand::Cost => cost(agent),
        SlashCommand::Plan(argument) => {
            let told = plan::command(host, session.calls(), argument.as_deref()).await;
            session.tell_plan(false);
            told.map_or_else(|problem| problem, |page| fenced(&page))
        }
        SlashCommand::Redo => session_commands::redo(session.calls()).await,
        SlashCommand::Undo(count) => session_commands::undo(session.calls(), count).await,
        SlashCommand::Revoke(id) => revoke(session, id.as_deref()).await,
        SlashCommand::Tools => fenced(&catalog::list(&host.catalog(), None)),
    }
}

fn cost(agent: &HostAgent) -> String {
    let spending = agent.spending();
    let about = spending.usage.mark();
    let cost = agent.cost().map(|cost| format!(" · {about}{cost}"));
    format!(
        "{} · {about}{} tokens{} · {} requests · {} calls",
        agent.provider().origin().model,
        spending.usage.total(),
        cost.unwrap_or_default(),
        spending.requests,
        spending.calls
    )
}

/// Asks the user about a call that waits. An answer that comes after `cancel` is none.
async fn approve(session: &Arc<AcpSession>, which: &str, cancel: &CancellationToken) -> String {
    let host = session.host();
    let request = match session_commands::waiting(host, Some(which)).await {
        Ok(request) => request,
        Err(problem) => return problem,
    };
    let question = ApprovalQuestion {
        call: request.call.clone(),
        reason: request.reason.clone(),
        rules: request.rules.clone(),
        trace: Vec::new(),
        is_once: false,
    };
    let tool = request.call.tool.as_str();
    let described = ToolCallUpdate {
        tool_call_id: request.id.to_string(),
        title: Some(tool.to_owned()),
        kind: Some(call::kind(tool)),
        ..ToolCallUpdate::default()
    };
    let answer = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        answer = permission::ask(session, described, &question) => answer,
    };
    let Some(answer) = answer else {
        return "nobody answered; the call waits".to_owned();
    };
    let answer = (answer, permission::agreement(session));
    match session_commands::answer(host, &request, answer).await {
        Ok(text) => text,
        Err(error) => format!("the answer cannot be recorded: {error}"),
    }
}

async fn revoke(session: &AcpSession, id: Option<&str>) -> String {
    let Some(approval) = id.and_then(|id| id.parse::<ApprovalId>().ok()) else {
        let revoked = session_commands::revoke(session.host(), session.calls(), id).await;
        return revoked.unwrap_or_else(|problem| problem);
    };
    match session.host().store().revoke_approval(approval).await {
        Ok(true) => "revoked".to_owned(),
        Ok(false) => "there is no such approval; `/approve` lists them".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A page of ours as a block of Markdown.
fn fenced(page: &str) -> String {
    let shown = anstream::adapter::strip_str(page).to_string();
    format!("```\n{}\n```\n", shown.trim_end().replace("```", "` ` `"))
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, SlashCommand, available, read};

    #[test]
    fn a_prompt_is_a_command_or_goes_to_the_model() {
        assert_eq!(read("fix it"), None);
        assert_eq!(read("/etc/hosts has a typo"), None);
        assert_eq!(read(" /undo 2 "), Some(Ok(SlashCommand::Undo(2))));
        assert_eq!(read("/clear"), Some(Ok(SlashCommand::Clear)));
        assert!(matches!(read("/clear now"), Some(Err(_))));
        assert!(matches!(read("/undo 0"), Some(Err(_))));
        let Some(Err(problem)) = read("/toools") else {
            panic!("no problem");
        };
        assert!(problem.contains("`/tools`"), "{problem}");
        assert_eq!(read("/tmp is full, why?"), None);
        let Some(Err(problem)) = read("/help") else {
            panic!("no problem");
        };
        assert!(problem.contains("`/approve`, `/clear`"), "{problem}");
    }

    #[test]
    fn every_command_is_announced_without_its_slash_and_read() {
        assert_eq!(available().len(), COMMANDS.len());
        for command in available() {
            assert!(!command.name.contains('/'));
            let with = read(&format!("/{} 1", command.name));
            let without = read(&format!("/{}", command.name));
            assert!(
                matches!(with, Some(Ok(_))) || matches!(without, Some(Ok(_))),
                "{}",
                command.name
            );
        }
    }
}
