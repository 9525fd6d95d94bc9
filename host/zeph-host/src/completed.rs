//! What ended in the background, as messages for the model: recorded, shortened and cut like any output.

use std::time::Duration;

use zeph_core::exit::CommandExit;
use zeph_core::output::Outcome;
use zeph_shell::analysis::analyse;
use zeph_shell::background::Completed;

use crate::filtering::{self, Subject};
use crate::host::Inner;
use crate::overflow;
use crate::session::Session;
use crate::shell::Facts;

/// The messages that are due, in the order in which the runs ended.
pub(crate) async fn tell(host: &Inner, session: &Session) -> Vec<String> {
    let mut messages = Vec::new();
    for completed in session.shell().take_completed() {
        messages.push(message(host, session, completed).await);
    }
    messages
}

async fn message(host: &Inner, session: &Session, completed: Completed) -> String {
    let header = completed.header();
    let duration: Duration = completed.duration;
    let facts = completed.label.map(|label| Facts {
        exit_code: completed.exit_code,
        truncated: completed.truncated,
        label,
    });
    let run_id = completed.run_id.to_string();
    // 5 filter, 7 overflow: a command is the same in the background.
    let subject = match &completed.command {
        Some(command) => Subject::Command(Box::new(analyse(command))),
        None => Subject::Other,
    };
    let exit_code = completed.exit.and_then(CommandExit::code);
    let shown = filtering::stage(host, session, subject, exit_code, completed.output).await;
    let mut output = overflow::fit(host, session, shown, completed.notes).await;
    let text = std::mem::take(&mut output.text);
    if let Some(failure) = completed.failure {
        output.outcome = Outcome::Failed(failure);
    }
    host.audit
        .completed(session, &run_id, facts, &output, duration)
        .await;
    format!("{header}\n{text}")
}
