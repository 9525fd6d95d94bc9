//! From what can be started to a server that is spoken to, in the generation of the protocol that it knows: of those that a wrapped server
//! knows, in that of its client.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zeph_mcp::client::{Connection, ConnectionOptions, Era, McpError, ServerListener};

use super::keeper::Keeper;
use super::listener::Ears;
use super::opener::{Launch, LaunchPlan, OpenedServer, ServerProcess};
use super::pin;
use super::setback::{Setback, failed};

impl Keeper {
    /// Runs the server and shakes hands with it. One that ends at the request of the newer revisions is run once more, as one of the older; one
    /// that refuses the older revisions of its client, as one of the newer.
    pub(super) async fn connected(
        &self,
        launch: &dyn Launch,
        plan: &LaunchPlan,
        ears: &Arc<Ears>,
    ) -> Result<(Connection, Option<Arc<dyn ServerProcess>>), Setback> {
        let was_older = self.is_older(plan).await;
        let mut is_older = was_older;
        let mut is_newer = false;
        loop {
            let OpenedServer { transport, process } = launch.open().await?;
            self.note_start(process.as_ref()).await;
            let listener: Arc<dyn ServerListener> = Arc::clone(ears) as _;
            let options = ConnectionOptions {
                era: match (is_older, is_newer) {
                    (true, _) => Era::Initialize,
                    (false, true) => Era::Discover,
                    (false, false) => Era::Auto,
                },
                ..self.room.options.clone()
            };
            let opened = Connection::open(transport, options, listener).await;
            match opened {
                Ok(connection) => {
                    let is_older = is_older || connection.is_silent_at_probe();
                    self.note_older(plan, (was_older, is_older)).await;
                    return Ok((connection, process));
                }
                Err(McpError::EndedAtProbe) if !is_older => {
                    is_older = true;
                    self.ended(process).await;
                }
                // It was asked for the generation of its client alone.
                Err(error)
                    if !is_older
                        && !is_newer
                        && matches!(error, McpError::Refused(_))
                        && ears.era().await == Era::Initialize =>
                {
                    is_newer = true;
                    self.ended(process).await;
                }
                Err(error) => {
                    self.note_older(plan, (was_older, false)).await;
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

    /// Keeps what stands around a server that is served alone: nobody asks the host that runs it.
    async fn note_start(&self, process: Option<&Arc<dyn ServerProcess>>) {
        if !self.room.keeps_changes {
            return;
        }
        let process = process.cloned();
        let (opener, name) = (self.room.opener.clone(), self.name.clone());
        let noted = pin::blocking(move || {
            opener.note_start(&name, process.as_deref());
            Ok(())
        });
        drop(noted.await);
    }

    /// Whether it was found to know the older revisions alone, by this process or an earlier one.
    async fn is_older(&self, plan: &LaunchPlan) -> bool {
        if self.is_older.load(Ordering::Relaxed) {
            return true;
        }
        let (opener, name, plan) = (self.room.opener.clone(), self.name.clone(), plan.clone());
        let asked = pin::blocking(move || Ok(opener.is_older(&name, &plan)));
        asked.await.unwrap_or_default()
    }

    async fn note_older(&self, plan: &LaunchPlan, (was_older, is_older): (bool, bool)) {
        self.is_older.store(is_older, Ordering::Relaxed);
        if was_older == is_older {
            return;
        }
        let (opener, name, plan) = (self.room.opener.clone(), self.name.clone(), plan.clone());
        let noted = pin::blocking(move || {
            opener.note_older(&name, &plan, is_older);
            Ok(())
        });
        drop(noted.await);
    }

    /// Ends a process, and keeps what it said last.
    pub(super) async fn ended(&self, process: Option<Arc<dyn ServerProcess>>) {
        self.note_last(process.as_ref());
        if let Some(process) = process {
            process.end().await;
        }
    }
}
