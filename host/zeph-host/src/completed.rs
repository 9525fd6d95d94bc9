//! What ended in the background, as messages for the model: recorded, and cut like any output.

use std::time::Duration;

use zeph_shell::background::Completed;

use crate::filtering::Shown;
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
        exit_code: Some(completed.exit_code),
        truncated: completed.truncated,
        label,
    });
    let run_id = completed.run_id.to_string();
    let output = overflow::fit(
        host,
        session,
        Shown::whole(completed.output),
        completed.notes,
    )
    .await;
    host.audit
        .completed(session, &run_id, facts, &output, duration)
        .await;
    format!("{header}\n{}", output.text)
}
