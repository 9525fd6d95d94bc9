//! What is made of what a server says: no known secret is kept of it, a change of its lists is looked at, its complaints go to the log, and
//! it may ask for nothing.

use std::sync::Arc;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use tokio::sync::Notify;
use zeph_core::id::ServerName;
use zeph_core::redact::Redactor;
use zeph_egress::Pending;
use zeph_mcp::client::{Era, ListKind, QuestionKinds, ServerListener, ServerLog};

use crate::known_secrets::KnownSecrets;

/// Listens to one server, and passes on to the listener of the host, if it has one.
#[derive(Debug)]
pub(crate) struct Ears {
    server: ServerName,
    changed: Notify,
    secrets: Arc<KnownSecrets>,
    next: Option<Arc<dyn ServerListener>>,
}

impl Ears {
    /// Passes everything on to `next`. `secrets` are removed from what the server offers.
    pub(crate) fn new(
        server: ServerName,
        secrets: Arc<KnownSecrets>,
        next: Option<Arc<dyn ServerListener>>,
    ) -> Self {
        Self {
            server,
            changed: Notify::new(),
            secrets,
            next,
        }
    }

    /// Waits for a change that was not heard of yet.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl ServerListener for Ears {
    fn changed(&self, list: ListKind) {
        // Resources are not pinned, but their templates are.
        self.changed.notify_one();
        if let Some(next) = &self.next {
            next.changed(list);
        }
    }

    fn resource_updated(&self, uri: &str) {
        if let Some(next) = &self.next {
            next.resource_updated(uri);
        }
    }

    fn logged(&self, log: ServerLog) {
        if let Some(next) = &self.next {
            next.logged(log);
        }
    }

    #[expect(deprecated, reason = "wrapped servers log this way")]
    fn log_level(&self) -> Option<rmcp::model::LoggingLevel> {
        self.next.as_ref()?.log_level()
    }

    fn complained(&self, line: String) {
        tracing::warn!(server = %self.server, line, "an MCP server does what it should not");
        if let Some(next) = &self.next {
            next.complained(line);
        }
    }

    fn redactor(&self) -> Redactor {
        self.secrets.redactor()
    }

    fn era(&self) -> Pending<'_, Era> {
        match &self.next {
            Some(next) => next.era(),
            None => Box::pin(std::future::ready(Era::Auto)),
        }
    }

    fn question_kinds(&self) -> Pending<'_, QuestionKinds> {
        match &self.next {
            Some(next) => next.question_kinds(),
            None => Box::pin(std::future::ready(QuestionKinds::default())),
        }
    }

    fn elicit(&self, question: ElicitRequestParams) -> Pending<'_, ElicitResult> {
        match &self.next {
            Some(next) => next.elicit(question),
            None => Box::pin(std::future::ready(ElicitResult::new(
                ElicitationAction::Decline,
            ))),
        }
    }
}
