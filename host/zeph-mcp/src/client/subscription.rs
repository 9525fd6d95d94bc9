//! Which changes a server of the stateless revisions tells about: one stream, opened anew when it breaks and when the resources that
//! are subscribed to change.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ErrorCode, ServerCapabilities, SubscribeRequest, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequest, UnsubscribeRequestParams,
};
use rmcp::service::{Peer, ServiceError, Subscription};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::desk::Desk;
use super::ending::Ending;
use super::error::McpError;
use super::listener::{ListKind, ServerListener};
use super::{CallControl, Connection};

/// The first pause before a broken stream is opened again; doubled up to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// How long the server may take to say which changes it tells about.
const ACKNOWLEDGE_PATIENCE: Duration = Duration::from_secs(30);

/// What the stream is kept with.
pub(super) struct Subscriber {
    pub(super) peer: Peer<RoleClient>,
    pub(super) desk: Desk,
    pub(super) listener: Arc<dyn ServerListener>,
    pub(super) capabilities: ServerCapabilities,
    /// The resources that are subscribed to have changed.
    pub(super) renewed: Arc<Notify>,
}

/// Why a stream is over.
enum Over {
    /// The filter has changed.
    Renewed,
    /// It broke, or never came to be.
    Broken,
    /// The server has no such streams.
    Unknown,
}

impl Connection {
    /// Asks to be told of changes of a resource ([`ServerListener::resource_updated`]).
    ///
    /// Errors: any of [`McpError`]. From revision 2026-07-28 on a server that refuses is not noticed.
    pub async fn subscribe(&self, uri: &str) -> Result<(), McpError> {
        let session = &self.0.session;
        session.desk.subscribe(uri, true);
        if self.info().is_stateless {
            self.0.renewed.notify_one();
            return Ok(());
        }
        let params = SubscribeRequestParams::new(uri);
        let request = ClientRequest::SubscribeRequest(SubscribeRequest::new(params));
        let answer = session.ask(request, &CallControl::default()).await;
        if answer.is_err() {
            session.desk.subscribe(uri, false);
        }
        answer.map(drop)
    }

    /// Ends a subscription.
    ///
    /// Errors: any of [`McpError`]. Updates are no longer delivered in any case.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), McpError> {
        let session = &self.0.session;
        session.desk.subscribe(uri, false);
        if self.info().is_stateless {
            self.0.renewed.notify_one();
            return Ok(());
        }
        let params = UnsubscribeRequestParams::new(uri);
        let request = ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(params));
        let answer = session.ask(request, &CallControl::default()).await;
        answer.map(drop)
    }
}

impl Subscriber {
    /// Keeps the stream open until the connection ends.
    pub(super) async fn run(self, ending: Ending) {
        tokio::select! {
            () = self.keep() => {}
            _reason = ending.wait() => {}
        }
    }

    async fn keep(&self) {
        let mut pause = PAUSE_MIN;
        loop {
            let filter = self.filter();
            if filter == SubscriptionFilter::new() {
                self.renewed.notified().await;
                continue;
            }
            let listening = timeout(ACKNOWLEDGE_PATIENCE, self.peer.listen(filter)).await;
            let over = match listening {
                Ok(Ok(stream)) => {
                    let begin = Instant::now();
                    let over = self.until_over(stream).await;
                    if begin.elapsed() > PAUSE_MAX {
                        pause = PAUSE_MIN;
                    }
                    over
                }
                Ok(Err(error)) if is_unknown(&error) => Over::Unknown,
                Ok(Err(_)) | Err(_) => Over::Broken,
            };
            match over {
                Over::Renewed => {}
                Over::Unknown => self.renewed.notified().await,
                Over::Broken => {
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    // What changed meanwhile was not told.
                    self.changed();
                }
            }
        }
    }

    /// Notifications are delivered by the desk; what is left to see here is the end.
    async fn until_over(&self, mut stream: Subscription) -> Over {
        let ended = async { while let Ok(Some(_)) = stream.next().await {} };
        tokio::select! {
            () = ended => Over::Broken,
            () = self.renewed.notified() => Over::Renewed,
        }
    }

    fn filter(&self) -> SubscriptionFilter {
        let can = |list_changed: Option<Option<bool>>| list_changed.flatten().filter(|can| *can);
        let capabilities = &self.capabilities;
        let tools = capabilities.tools.as_ref();
        let prompts = capabilities.prompts.as_ref();
        let resources = capabilities.resources.as_ref();
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = can(tools.map(|tools| tools.list_changed));
        filter.prompts_list_changed = can(prompts.map(|prompts| prompts.list_changed));
        filter.resources_list_changed = can(resources.map(|resources| resources.list_changed));
        let uris = self.desk.subscribed();
        filter.resource_subscriptions = (!uris.is_empty()).then_some(uris);
        filter
    }

    fn changed(&self) {
        let filter = self.filter();
        let lists = [
            (filter.tools_list_changed, ListKind::Tools),
            (filter.prompts_list_changed, ListKind::Prompts),
            (filter.resources_list_changed, ListKind::Resources),
        ];
        for (told, list) in lists {
            if told.is_some() {
                self.listener.changed(list);
            }
        }
        for uri in filter.resource_subscriptions.iter().flatten() {
            self.listener.resource_updated(uri);
        }
    }
}

fn is_unknown(error: &ServiceError) -> bool {
    matches!(error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND)
}
