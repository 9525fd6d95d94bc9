//! From what can be started to a server that is spoken to, in the generation of the protocol that it knows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zeph_mcp::client::{Connection, ConnectionOptions, Era, McpError, ServerListener};

use super::keeper::Keeper;
use super::listener::Ears;
use super::opener::{Launch, OpenedServer, ServerProcess};
use super::setback::{Setback, failed};

impl Keeper {
    /// Runs the server and shakes hands with it. One that ends at the request of the newer revisions is run once more, as one of the older.
    pub(super) async fn connected(
        &self,
        launch: &dyn Launch,
        ears: &Arc<Ears>,
    ) -> Result<(Connection, Option<Arc<dyn ServerProcess>>), Setback> {
        let mut era = match self.is_older.load(Ordering::Relaxed) {
            true => Era::Initialize,
            false => Era::Auto,
        };
        loop {
            let OpenedServer { transport, process } = launch.open().await?;
            let listener: Arc<dyn ServerListener> = Arc::clone(ears) as _;
            let options = ConnectionOptions {
                era,
                ..self.room.options.clone()
            };
            let opened = Connection::open(transport, options, listener).await;
            let is_older = opened.is_ok() && era == Era::Initialize;
            self.is_older.store(is_older, Ordering::Relaxed);
            match opened {
                Ok(connection) => return Ok((connection, process)),
                Err(McpError::EndedAtProbe) if era == Era::Auto => {
                    era = Era::Initialize;
                    self.ended(process).await;
                }
                Err(error) => {
                    // Why it never ran is known at its end.
                    if let Some(process) = &process {
                        process.end().await;
                    }
                    self.note_last(process.as_ref());
                    return Err(failed(&error, process.as_ref()));
                }
            }
        }
    }

    /// Ends a process, and keeps what it said last.
    pub(super) async fn ended(&self, process: Option<Arc<dyn ServerProcess>>) {
        self.note_last(process.as_ref());
        if let Some(process) = process {
            process.end().await;
        }
    }
}
