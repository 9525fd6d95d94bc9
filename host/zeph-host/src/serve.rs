//! The door for clients of the Model Context Protocol: agents and editors.
//!
//! In reading order: `server` (the requests of a client), `origin` (whose they are), `dispatch` (calls), `listed` (the tools as clients see
//! them), `conversation` and `handle` (whose outputs and background runs they are), `places` (how many calls run at once, and who is next), `running`
//! (calls while they run), `progress` (how they are getting on), `calling` (a call with the person behind its client, who is asked by
//! `client` or through `rounds`, with the forms of `approval` and `inquiry`), `tasks` (calls that outlive their request), `exposed` and
//! `search` (a catalog too long to be listed), `resources` (stored outputs), `native` (a server that is served as this one, with what passes
//! through to it), `changes` (other tools than before), `stdio` (one client, over
//! the standard streams), `http` (many, over an endpoint). `acp` is the door for editors, with an agent behind it. How things look in the protocol is the business of `zeph-mcp`.

pub(crate) mod acp;
mod approval;
mod calling;
mod changes;
mod client;
pub(crate) mod conversation;
mod dispatch;
mod exposed;
mod handle;
pub(crate) mod http;
mod inquiry;
mod listed;
pub(crate) mod native;
mod origin;
mod places;
mod progress;
mod resources;
mod rounds;
mod running;
pub(crate) mod search;
mod server;
pub(crate) mod stdio;
mod tasks;
mod unknown;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_mcp::holdings::Holdings;
use zeph_mcp::metrics::Metrics;

use self::conversation::{Conversation, Conversations};
use self::listed::Lists;
use self::native::NativeServer;
use self::origin::{Door, HttpSession};
use self::places::Places;
use self::running::Running;
use self::tasks::Tasks;
use crate::host::Host;
use crate::workspace;

pub(crate) use self::server::Handler;

/// How long a task may take beyond the longest command: to wait for its place and for a person.
const TASK_MARGIN: Duration = Duration::from_secs(1_800);

/// How often it is looked for conversations that nobody uses any more.
const SWEEP_PERIOD: Duration = Duration::from_mins(1);

/// What all clients of one process share. Clones are handles to one.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Host,
    /// The server whose tools are served instead of all.
    pub(crate) native: Option<Arc<NativeServer>>,
    pub(crate) lists: Lists,
    pub(crate) conversations: Conversations,
    pub(crate) places: Places,
    pub(crate) running: Running,
    pub(crate) tasks: Tasks,
    pub(crate) metrics: Arc<Metrics>,
    /// What callers have beyond their requests.
    pub(crate) holdings: Arc<Holdings>,
    /// Cancelled when no call may go on.
    pub(crate) closing: CancellationToken,
    /// Whether clients reach it over HTTP.
    is_over_http: AtomicBool,
    /// What ends conversations and keeps tasks; it ends with the server.
    _sweeping: JoinSet<()>,
}

/// What a server does about tasks of servers that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakesOver {
    /// It makes calls again that may be, and ends other tasks: a replica that clients reach over HTTP.
    Repeats,
    /// It ends tasks whose call is not made again, and leaves the others to the replicas that share keys with it.
    LeavesRepeats,
    /// It ends tasks; those that others may go on with only when none has for long.
    Settles,
}

impl Server {
    /// A server of the tools of `host`. Must be called inside a runtime.
    pub(crate) fn new(host: &Host) -> Self {
        Self::of(host, None)
    }

    /// A server of the tools of one native server. Must be called inside a runtime.
    pub(crate) fn of_native(host: &Host, native: NativeServer) -> Self {
        Self::of(host, Some(Arc::new(native)))
    }

    fn of(host: &Host, native: Option<Arc<NativeServer>>) -> Self {
        let closing = CancellationToken::new();
        let holdings = Arc::<Holdings>::default();
        let shared = Arc::new_cyclic(|shared| Shared {
            host: host.clone(),
            native: native.clone(),
            lists: Lists::new(native),
            conversations: Conversations::default(),
            places: Places::new(host.config().serve.max_concurrent_calls),
            running: Running::new(host, &closing),
            tasks: Tasks::new(
                host.store(),
                host.config().shell.background_timeout + TASK_MARGIN,
                workspace::files(host.config()),
            ),
            metrics: Arc::default(),
            closing,
            is_over_http: AtomicBool::new(false),
            _sweeping: sweeping(Weak::clone(shared), &holdings),
            holdings,
        });
        Self(shared)
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
    pub(crate) fn over_http(&self) -> Handler {
        let door = Door::Http(HttpSession::default());
        Handler::new(&self.0, door, self.0.closing.child_token())
    }

    /// Cancels every call, waits until each has ended, and ends what runs in the background of every conversation.
    ///
    /// Limits: background runs get 8 seconds to end.
    pub(crate) async fn close(&self) {
        self.0.closing.cancel();
        if let Some(native) = &self.0.native {
            native.relay.close();
        }
        self.0.running.ended().await;
        self.0.conversations.close().await;
        self.0.tasks.close().await;
    }
}

impl Shared {
    /// What it looks for among the tasks of servers that ended.
    fn takes_over(&self) -> TakesOver {
        match (
            self.host.seals().are_shared(),
            self.is_over_http.load(Ordering::Relaxed),
        ) {
            (true, true) => TakesOver::Repeats,
            // It would make calls of other callers again with the rights of its own client, and end with that client.
            (true, false) => TakesOver::LeavesRepeats,
            (false, _) => TakesOver::Settles,
        }
    }
}

fn sweeping(shared: Weak<Shared>, holdings: &Arc<Holdings>) -> JoinSet<()> {
    let mut sweeping = JoinSet::new();
    sweeping.spawn(sweep(Weak::clone(&shared)));
    sweeping.spawn(end_revoked(Weak::clone(&shared), Arc::clone(holdings)));
    sweeping.spawn(tasks::keep(shared));
    sweeping
}

/// Ends the conversations of callers that are let in no more, as long as there is a server.
async fn end_revoked(shared: Weak<Shared>, holdings: Arc<Holdings>) {
    loop {
        holdings.revoked().await;
        match shared.upgrade() {
            Some(shared) => shared.conversations.end_revoked(),
            None => return,
        }
    }
}

/// Ends conversations that nobody uses, as long as there is a server.
async fn sweep(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(SWEEP_PERIOD).await;
        match shared.upgrade() {
            Some(shared) => shared.conversations.sweep(Instant::now()),
            None => return,
        }
    }
}
