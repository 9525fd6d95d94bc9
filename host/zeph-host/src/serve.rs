//! The door for clients of the Model Context Protocol: agents and editors.
//!
//! In reading order: `server` (the requests of a client), `listed` (the tools as clients see them), `conversation` (whose outputs and
//! background runs they are), `places` (how many calls run at once, and who is next), `running` (calls while they run), `progress`
//! (how they are getting on), `resources` (stored outputs), `changes` (other tools than before), `stdio` (one client, over the
//! standard streams). How things look in the protocol is the business of `zeph-mcp`.

mod changes;
pub(crate) mod conversation;
mod listed;
mod places;
mod progress;
mod resources;
mod running;
mod server;
pub(crate) mod stdio;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::conversation::{Conversation, Conversations};
use self::listed::Lists;
use self::places::Places;
use self::running::Running;
use self::server::Door;
use crate::host::Host;

pub(crate) use self::server::Handler;

/// What all clients of one process share. Clones are handles to one.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) lists: Lists,
    pub(crate) conversations: Conversations,
    pub(crate) places: Places,
    pub(crate) running: Running,
    /// Cancelled when no call may go on.
    pub(crate) closing: CancellationToken,
}

impl Server {
    /// A server of the tools of `host`.
    pub(crate) fn new(host: &Host) -> Self {
        let closing = CancellationToken::new();
        Self(Arc::new(Shared {
            host: host.clone(),
            lists: Lists::default(),
            conversations: Conversations::default(),
            places: Places::new(host.config().serve.max_concurrent_calls),
            running: Running::new(host, &closing),
            closing,
        }))
    }

    /// Answers the one client of this process, whose conversation is `conversation`, until `stop`.
    pub(crate) fn of_process(
        &self,
        conversation: Conversation,
        stop: &CancellationToken,
    ) -> Handler {
        let door = Door::Process(Arc::new(conversation));
        Handler::new(&self.0, door, stop.child_token())
    }

    /// Answers requests that came over HTTP: one, or those of a session of the old revisions. The endpoint puts a
    /// [`Caller`](zeph_mcp::caller::Caller) into the parts of each; a request without one is refused.
    #[expect(dead_code, reason = "the endpoint is on its way")]
    pub(crate) fn over_http(&self) -> Handler {
        let door = Door::Http(server::HttpSession::default());
        Handler::new(&self.0, door, self.0.closing.child_token())
    }

    /// Cancels every call, waits until each has ended, and ends what runs in the background of every conversation.
    ///
    /// Limits: background runs get 8 seconds to end.
    pub(crate) async fn close(&self) {
        self.0.closing.cancel();
        self.0.running.ended().await;
        self.0.conversations.close().await;
    }
}
