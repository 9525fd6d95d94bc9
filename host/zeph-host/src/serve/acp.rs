//! The door for editors: an agent behind the Agent Client Protocol, over the standard streams.
//!
//! In reading order: `door` (the methods), `place` (where a session works, and the host for it), `session` (one conversation),
//! `turn` (a prompt and its end), `telling` (what happens, as updates), `call` (a call as an editor shows it), `permission` (its user is
//! asked), `prompt` (what the user says), `command` (slash commands), `replay` (a stored conversation), `listing` (stored sessions),
//! `option` (mode and model), `schedules` (what was scheduled is run), `terminal` (commands in the editor's terminal, over a `screen`) and `files` (what the editor has open).
//! How things look in the protocol is the business of `zeph-acp`. No lock is held across an await.

mod call;
mod command;
mod door;
mod elicitation;
pub(crate) mod files;
mod listing;
mod option;
mod permission;
pub(crate) mod place;
mod plan;
mod prompt;
mod replay;
mod schedules;
pub(crate) mod screen;
mod session;
mod telling;
pub(crate) mod terminal;
mod turn;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::stdio_pipes;
use tokio::task::JoinSet;
use zeph_acp::connection::{Connection, Inbox};

use self::door::Door;
use self::place::HostSource;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::jsonl::output::consumer_gone;

/// The longest message of a client, in bytes: a prompt with some pictures.
const MESSAGE_BYTES_MAX: usize = 48 << 20;

/// How long what runs may take to end once the client has left.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// How long cancelled turns may take to end: a command gets 7 seconds, and what runs in the background 8 more after them.
const TURNS_PATIENCE: Duration = Duration::from_secs(10);

/// How long the last answers may take to be written.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);

/// How the door was closed.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The input ended.
    AtEnd,
    /// A signal came.
    Interrupted(Interruption),
    /// Nobody reads the answers any more.
    OutputClosed,
}

/// Serves the client on the standard streams until its input ends, it is gone, or a signal comes. Then every turn is cancelled and its
/// end awaited, unless a second signal comes.
///
/// Errors: a thread cannot be started.
pub(crate) async fn serve(
    hosts: Arc<dyn HostSource>,
    interrupts: &mut Interrupts,
) -> io::Result<Ended> {
    let connection = Connection::default();
    let consumer = consumer_gone()?;
    let (reader, writer) = stdio_pipes();
    let mut writing = JoinSet::new();
    let gone = connection.gone().clone();
    writing.spawn(connection.write_to(writer));
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        consumer.notified().await;
        gone.cancel();
    });
    let mut inbox = Inbox::new(reader, MESSAGE_BYTES_MAX, &connection);
    let door = Arc::new(Door::new(connection.clone(), hosts));
    let mut tasks = JoinSet::new();
    let ended = loop {
        tokio::select! {
            biased;
            interruption = interrupts.next() => break Ended::Interrupted(interruption),
            () = connection.gone().cancelled() => break Ended::OutputClosed,
            incoming = inbox.next() => match incoming {
                Ok(Some(incoming)) => {
                    // What has ended makes room for what comes.
                    while tasks.try_join_next().is_some() {}
                    door.take(incoming, &mut tasks);
                }
                Ok(None) => break Ended::AtEnd,
                Err(error) => {
                    tracing::warn!(%error, "the requests cannot be read");
                    break Ended::AtEnd;
                }
            },
            Some(_) = tasks.join_next() => {}
        }
    };
    let closing = async {
        let patient = tokio::time::timeout(END_PATIENCE, door.close(&mut tasks));
        if patient.await.is_err() {
            tracing::warn!("a turn has not ended in time");
        }
        connection.close();
        // A client that does not read is not waited for.
        drop(tokio::time::timeout(FLUSH_PATIENCE, writing.join_next()).await);
    };
    tokio::select! {
        () = closing => Ok(ended),
        interruption = interrupts.next() => Ok(Ended::Interrupted(interruption)),
    }
}
