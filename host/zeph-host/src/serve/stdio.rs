//! One client, over the standard streams: the usual way an agent starts its servers.

use std::io;
use std::time::Duration;

use rmcp::service::serve_server;
use rmcp::transport::stdio_pipes;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_mcp::stdio::{Connection, Lines};

use super::Server;
use super::conversation::Conversation;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::jsonl::output::consumer_gone;

/// How long calls may go on after the last request, while the client still reads the answers: enough for the input of a script to be
/// answered, and less than clients wait before they kill.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes that may wait for a client: a long result is handed over in few pieces, each of which wakes it up. The kernel gives a user
/// 64 MiB for all pipes.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 256 << 10;

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

/// Serves the client until its input ends, it is gone, or a signal comes. Then every call is cancelled and its end awaited, unless a
/// second signal comes.
///
/// Errors: a thread cannot be started.
pub(crate) async fn serve(
    server: &Server,
    conversation: Conversation,
    (interrupts, draining): (&mut Interrupts, &CancellationToken),
) -> io::Result<Ended> {
    let connection = Connection::default();
    let consumer = consumer_gone()?;
    let gone = connection.gone.clone();
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        consumer.notified().await;
        gone.cancel();
    });
    // What is no pipe, and a kernel that gives no more, change nothing.
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(io::stdout(), PIPE_BYTES);
    let line_bytes_max = server.0.host.config().serve.max_body_bytes;
    let (reader, writer) = stdio_pipes();
    let lines = Lines::new(reader, writer, line_bytes_max, connection.clone());
    let session = conversation.session().clone();
    let handler = server.of_process(conversation, &connection.ended);
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        match serve_server(handler, lines).await {
            Ok(service) => drop(service.waiting().await),
            // Without a first request there is nothing to serve.
            Err(error) => tracing::debug!(%error, "the client has not begun"),
        }
    });
    let ended = until_end(&connection, &mut serving, (&mut *interrupts, draining)).await;
    draining.cancel();
    connection.closing.cancel();
    let closing = async {
        server.close().await;
        // The answers to the calls that were just cancelled.
        serving.join_next().await;
        drop(server.0.host.end_runs(&session).await);
    };
    tokio::select! {
        () = closing => Ok(ended),
        interruption = interrupts.next() => Ok(Ended::Interrupted(interruption)),
    }
}

/// Waits for the end of the input, and a little for what was asked for before it.
async fn until_end(
    connection: &Connection,
    serving: &mut JoinSet<()>,
    (interrupts, draining): (&mut Interrupts, &CancellationToken),
) -> Ended {
    tokio::select! {
        biased;
        interruption = interrupts.next() => return Ended::Interrupted(interruption),
        () = connection.gone.cancelled() => return Ended::OutputClosed,
        () = connection.ended.cancelled() => {}
        // Without a beginning, nothing more is read.
        _ = serving.join_next() => return Ended::AtEnd,
    }
    draining.cancel();
    tokio::select! {
        biased;
        interruption = interrupts.next() => Ended::Interrupted(interruption),
        () = connection.gone.cancelled() => Ended::OutputClosed,
        _ = serving.join_next() => Ended::AtEnd,
        () = tokio::time::sleep(GRACE) => Ended::AtEnd,
    }
}
