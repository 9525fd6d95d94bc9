//! The commands of a session at the line editor: asks where it has to, and prints what `session_commands` says.

use std::io;

use super::{print, say, wrong};
use crate::approval;
use crate::goal::plan;
use crate::host::Host;
use crate::run::prompt_input::PromptInput;
use crate::run::{ask, session_commands};
use crate::session::Session;

/// Carries out a command of the session; others are none of its business.
///
/// Errors: when the terminal or standard output cannot be used.
pub(super) async fn run(
    host: &Host,
    session: &Session,
    command: PromptInput,
    width: Option<usize>,
) -> io::Result<()> {
    let said = match command {
        PromptInput::Approve(which) => return approve(host, which.as_deref(), width).await,
        PromptInput::Approvals => session_commands::approvals(host, width)
            .await
            .map(|page| page.as_str().to_owned())
            .map_err(|error| error.to_string()),
        PromptInput::Clear => session_commands::clear(host, session)
            .await
            .map_err(|error| error.to_string()),
        PromptInput::Plan(argument) => plan::command(host, session, argument.as_deref()).await,
        PromptInput::Revoke(call) => session_commands::revoke(host, session, call.as_deref()).await,
        PromptInput::Undo(count) => Ok(session_commands::undo(session, count).await),
        PromptInput::Redo => Ok(session_commands::redo(session).await),
        _ => Ok(String::new()),
    };
    match said {
        Ok(text) => print(&text),
        Err(problem) => {
            wrong(&problem);
            Ok(())
        }
    }
}

/// Shows the call, asks, and records the answer.
async fn approve(host: &Host, which: Option<&str>, width: Option<usize>) -> io::Result<()> {
    let request = match session_commands::waiting(host, which).await {
        Ok(request) => request,
        Err(problem) => {
            wrong(&problem);
            return Ok(());
        }
    };
    say(session_commands::request(&request, width).as_str());
    let answer = tokio::task::block_in_place(ask::about_call)?;
    let answer = (answer, approval::at_prompt());
    match session_commands::answer(host, &request, answer).await {
        Ok(text) => print(&text),
        Err(error) => {
            wrong(&format!("the answer cannot be recorded: {error}"));
            Ok(())
        }
    }
}
