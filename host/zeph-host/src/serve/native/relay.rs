//! What a native server says without being asked, and what it asks for, on its way to the client.
//!
//! Notices wait in a queue of bounded length and go out in order; of a flood the last are dropped. A client of the new revisions follows
//! lists and resources by `subscriptions/listen`, and is asked in the answer to a call, which waits (`calling/waiting`).

#![expect(
    deprecated,
    reason = "clients of the revisions before 2026-07-28 log, set levels and subscribe"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, LoggingLevel,
    LoggingMessageNotificationParam, ResourceUpdatedNotificationParam,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_core::redact::Redactor;
use zeph_egress::Pending;
use zeph_mcp::client::{Era, ListKind, QuestionKinds, ServerListener, ServerLog};

use crate::known_secrets::KnownSecrets;
use crate::serve::calling::WaitingCalls;
use crate::serve::client::{Client, Way};

/// Notices that wait for a client that reads slowly.
const NOTICES_MAX: usize = 256;

/// Passes on what one server says to the one client of its door.
#[derive(Debug)]
pub(crate) struct Relay {
    notices: mpsc::Sender<Notice>,
    waiting: Mutex<Option<mpsc::Receiver<Notice>>>,
    /// The changes, for clients that follow them by a request.
    changes: broadcast::Sender<Change>,
    client: watch::Sender<Option<Client>>,
    levels: Mutex<Levels>,
    calls: Arc<WaitingCalls>,
    /// What is removed. Not the host itself: that holds this relay, and would never end.
    secrets: OnceLock<Arc<KnownSecrets>>,
    /// How long a person has for an answer.
    patience: Duration,
    /// Cancelled when nobody is asked any more.
    closing: CancellationToken,
    passing: Mutex<JoinSet<()>>,
}

/// Which log messages the client wants.
#[derive(Debug, Default)]
struct Levels {
    /// Since it said so, in the revisions in which it does that once.
    chosen: Option<LoggingLevel>,
    /// For as long as a request is open that says so, in the others.
    asked: Vec<LoggingLevel>,
}

impl Levels {
    /// The most talkative level that was asked for.
    fn wanted(&self) -> Option<LoggingLevel> {
        let asked = self.asked.iter().copied();
        asked.min_by_key(|level| *level as u8).or(self.chosen)
    }
}

/// Until it is dropped, a request is open that wants log messages.
#[derive(Debug)]
pub(in crate::serve) struct WantedLogs {
    relay: Arc<Relay>,
    level: LoggingLevel,
}

impl Drop for WantedLogs {
    fn drop(&mut self) {
        let asked = &mut lock(&self.relay.levels).asked;
        if let Some(idx) = asked.iter().position(|level| *level == self.level) {
            asked.swap_remove(idx);
        }
    }
}

/// Something else than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Prompts,
    Resources,
    Resource(String),
}

#[derive(Debug)]
enum Notice {
    Log(ServerLog),
    Changed(Change),
}

impl Relay {
    /// A relay without a client yet.
    pub(crate) fn new(patience: Duration) -> Arc<Self> {
        let (notices, waiting) = mpsc::channel(NOTICES_MAX);
        Arc::new(Self {
            notices,
            waiting: Mutex::new(Some(waiting)),
            changes: broadcast::channel(NOTICES_MAX).0,
            client: watch::Sender::new(None),
            levels: Mutex::default(),
            calls: Arc::default(),
            secrets: OnceLock::new(),
            patience,
            closing: CancellationToken::new(),
            passing: Mutex::default(),
        })
    }

    /// Removes `secrets` from whatever passes.
    pub(super) fn clean_with(&self, secrets: Arc<KnownSecrets>) {
        // Only the first counts; there is one.
        drop(self.secrets.set(secrets));
    }

    /// The client of a request is the one who is asked from now on.
    pub(super) fn heard(&self, context: &RequestContext<RoleServer>) {
        self.client.send_if_modified(|client| {
            let is_first = client.is_none();
            if is_first {
                *client = Some(Client::of(context));
            }
            is_first
        });
    }

    /// The client wants log messages of this level and above from now on.
    pub(super) fn set_level(&self, level: LoggingLevel) {
        lock(&self.levels).chosen = Some(level);
    }

    /// A client of the new revisions wants them while one request is open.
    pub(super) fn want_logs(
        self: &Arc<Self>,
        level: LoggingLevel,
        peer: Peer<RoleServer>,
    ) -> WantedLogs {
        lock(&self.levels).asked.push(level);
        self.tell(peer);
        WantedLogs {
            relay: Arc::clone(self),
            level,
        }
    }

    /// Whether a log message of this level is for the client. One of the new revisions gets none that no request asked for; for others the
    /// server looks at the level.
    fn wants(&self, level: LoggingLevel) -> bool {
        let client = self.client.borrow();
        let is_stateless = client.as_ref().is_some_and(|client| client.is_stateless);
        let wanted = lock(&self.levels).wanted();
        !is_stateless || wanted.is_some_and(|wanted| wanted as u8 <= level as u8)
    }

    /// Begins to tell `peer` what the server says without being asked: to a client of the new revisions, which follows changes by a request,
    /// its log messages alone.
    pub(in crate::serve) fn tell(self: &Arc<Self>, peer: Peer<RoleServer>) {
        let Some(mut waiting) = lock(&self.waiting).take() else {
            return;
        };
        self.pass_on(async move {
            while let Some(notice) = waiting.recv().await {
                if pass(&peer, notice).await.is_err() {
                    return;
                }
            }
        });
    }

    /// The client, which is waited for; none when the door closes before there is one.
    async fn first_client(&self) -> Option<Client> {
        let mut client = self.client.subscribe();
        tokio::select! {
            client = client.wait_for(Option::is_some) => client.ok()?.clone(),
            () = self.closing.cancelled() => None,
        }
    }

    /// Follows the changes.
    pub(super) fn follow(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// The calls of clients that are asked in the answer to one.
    pub(super) fn calls(&self) -> Arc<WaitingCalls> {
        Arc::clone(&self.calls)
    }

    /// Asks nobody any more.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits for that.
    pub(super) async fn closed(&self) {
        self.closing.cancelled().await;
    }

    fn notice(&self, notice: Notice) {
        if let Notice::Changed(change) = &notice {
            // Nobody may follow.
            drop(self.changes.send(change.clone()));
            let client = self.client.borrow();
            if client.as_ref().is_some_and(|client| client.is_stateless) {
                return;
            }
        }
        if self.notices.try_send(notice).is_err() {
            tracing::debug!("a notice of an MCP server is dropped: its client does not read them");
        }
    }

    fn redactor(&self) -> Redactor {
        let secrets = self.secrets.get();
        secrets.map(|known| known.redactor()).unwrap_or_default()
    }

    fn clean(&self, text: &str) -> String {
        self.redactor().text(text).into_owned()
    }

    async fn ask(&self, question: ElicitRequestParams) -> Option<ElicitResult> {
        if self.calls.is_open() {
            let question = self.clean_question(question);
            return self.calls.ask(question, self.patience).await;
        }
        let client = self.client.borrow().clone()?;
        if client.way != Way::Now {
            tracing::warn!(
                "an MCP server asks its user something, and the client shows no forms in the middle of this request"
            );
            return None;
        }
        self.put(client, self.clean_question(question)).await
    }

    /// Puts `question` to the user of `client`. When this future is dropped, the client is told to take the form away.
    async fn put(&self, client: Client, question: ElicitRequestParams) -> Option<ElicitResult> {
        let (stop, patience) = (self.closing.child_token(), self.patience);
        let _withdrawn = stop.clone().drop_guard();
        let (answer, answered) = oneshot::channel();
        self.pass_on(async move {
            let given = client.put(question, patience, &stop).await;
            // The server may not want to know any more.
            drop(answer.send(given));
        });
        answered.await.ok()?
    }

    /// Has `work` go on beside what asked for it, for as long as there is a relay.
    fn pass_on(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut passing = lock(&self.passing);
        while passing.try_join_next().is_some() {}
        passing.spawn(work);
    }

    /// Without known secrets: those of the server are not for the user, and others are none of its business.
    fn clean_question(&self, question: ElicitRequestParams) -> ElicitRequestParams {
        match question {
            ElicitRequestParams::FormElicitationParams {
                meta,
                message,
                requested_schema,
            } => ElicitRequestParams::FormElicitationParams {
                meta,
                message: self.clean(&message),
                requested_schema: self.clean_form(requested_schema),
            },
            ElicitRequestParams::UrlElicitationParams {
                meta,
                message,
                url,
                elicitation_id,
            } => ElicitRequestParams::UrlElicitationParams {
                meta,
                message: self.clean(&message),
                url: self.clean(&url),
                elicitation_id: self.clean(&elicitation_id),
            },
            // The connection puts no others.
            other => other,
        }
    }

    /// One without secrets keeps the order of its fields.
    fn clean_form(&self, form: ElicitationSchema) -> ElicitationSchema {
        let redactor = self.redactor();
        let Ok(sent) = serde_json::to_value(&form) else {
            return form;
        };
        let mut clean = sent.clone();
        redactor.clean_json(&mut clean);
        match clean == sent {
            true => form,
            // What is no form any more asks for nothing.
            false => serde_json::from_value(clean)
                .unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new())),
        }
    }
}

impl ServerListener for Relay {
    fn changed(&self, list: ListKind) {
        match list {
            // They are announced when the catalog has changed.
            ListKind::Tools => {}
            ListKind::Prompts => self.notice(Notice::Changed(Change::Prompts)),
            ListKind::Resources => self.notice(Notice::Changed(Change::Resources)),
        }
    }

    fn resource_updated(&self, uri: &str) {
        self.notice(Notice::Changed(Change::Resource(self.clean(uri))));
    }

    fn log_level(&self) -> Option<LoggingLevel> {
        lock(&self.levels).wanted()
    }

    fn logged(&self, mut log: ServerLog) {
        if !self.wants(log.level) {
            return;
        }
        let redactor = self.redactor();
        if let Some(logger) = &mut log.logger {
            redactor.clean(logger);
        }
        redactor.clean_json(&mut log.data);
        self.notice(Notice::Log(log));
    }

    /// That of the client: a server that knows both asks and logs in the way of the one it is spoken to in.
    fn era(&self) -> Pending<'_, Era> {
        Box::pin(async move {
            match self.first_client().await {
                Some(client) if !client.is_stateless => Era::Initialize,
                _ => Era::Auto,
            }
        })
    }

    /// Those of the client: what a server is told at its beginning it cannot be told otherwise later.
    fn question_kinds(&self) -> Pending<'_, QuestionKinds> {
        Box::pin(async move {
            let client = self.first_client().await;
            client.map_or(QuestionKinds::default(), |client| client.question_kinds())
        })
    }

    fn elicit(&self, question: ElicitRequestParams) -> Pending<'_, ElicitResult> {
        Box::pin(async move {
            let answer = self.ask(question).await;
            answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel))
        })
    }
}

/// Tells the client.
///
/// Errors: it is gone.
async fn pass(peer: &Peer<RoleServer>, notice: Notice) -> Result<(), rmcp::ServiceError> {
    match notice {
        Notice::Log(ServerLog {
            level,
            logger,
            data,
        }) => {
            let mut message = LoggingMessageNotificationParam::new(level, data);
            message.logger = logger;
            peer.notify_logging_message(message).await
        }
        Notice::Changed(Change::Prompts) => peer.notify_prompt_list_changed().await,
        Notice::Changed(Change::Resources) => peer.notify_resource_list_changed().await,
        Notice::Changed(Change::Resource(uri)) => {
            let updated = ResourceUpdatedNotificationParam::new(uri);
            peer.notify_resource_updated(updated).await
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Every change is complete before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
