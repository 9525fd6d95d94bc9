//! The client behind a request: what it can, and how its user is asked.

use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use tokio_util::sync::CancellationToken;
use zeph_core::failure::one_line;
use zeph_mcp::client::QuestionKinds;

/// Most characters of what a client calls itself in the record.
const NAME_CHARS_MAX: usize = 80;

/// How the user of a client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Not at all: it shows no forms.
    Nobody,
    /// While the call waits (revisions that begin with `initialize`).
    Now,
    /// The call ends, and is made again with the answers (2026-07-28 and later).
    Later,
}

/// A client, as one request shows it.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// None where no request of it is at hand.
    peer: Option<Peer<RoleServer>>,
    pub(super) way: Way,
    /// Whether it speaks a revision without `initialize` (2026-07-28 or later).
    pub(super) is_stateless: bool,
    /// Whether it shows addresses that its user is asked to go to.
    opens_addresses: bool,
    /// Whether it declared the extension for tasks.
    pub(super) has_tasks: bool,
    /// What it calls itself, with its version.
    pub(super) name: Option<String>,
}

impl Client {
    /// Of the request with this context.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let version = context.protocol_version();
        let is_stateless = version
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let way = match (shows_forms(&capabilities), is_stateless) {
            (false, _) => Way::Nobody,
            (true, false) => Way::Now,
            (true, true) => Way::Later,
        };
        let name = context.client_info().map(|client| {
            one_line(
                &format!("{} {}", client.name, client.version),
                NAME_CHARS_MAX,
            )
        });
        let kinds = capabilities.elicitation.as_ref();
        Self {
            peer: Some(context.peer.clone()),
            way,
            is_stateless,
            opens_addresses: kinds.is_some_and(|kinds| kinds.url.is_some()),
            has_tasks: capabilities.supports_tasks(),
            name,
        }
    }

    /// One that asks later what became of its call; its user is reached in `way`.
    pub(super) fn absent(way: Way, name: Option<String>) -> Self {
        Self {
            peer: None,
            way,
            is_stateless: way == Way::Later,
            opens_addresses: false,
            has_tasks: true,
            name,
        }
    }

    /// The questions of others that it puts to its user.
    pub(super) fn question_kinds(&self) -> QuestionKinds {
        let forms = self.way != Way::Nobody;
        QuestionKinds {
            forms,
            addresses: forms && self.opens_addresses,
        }
    }

    /// Puts `form` to the user and waits, at most `patience`; `None` when nobody answers, or `stop` comes first. The client is told to
    /// take the form away then.
    ///
    /// To be awaited in the task that serves the request, so that the form goes out on the request's own stream.
    pub(super) async fn put(
        &self,
        form: ElicitRequestParams,
        patience: Duration,
        stop: &CancellationToken,
    ) -> Option<ElicitResult> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
        let options = PeerRequestOptions::with_timeout(patience);
        let peer = self.peer.as_ref()?;
        let sent = peer.send_cancellable_request(request, options).await;
        let sent = sent.map_err(|error| unanswered(&error)).ok()?;
        let id = sent.id.clone();
        let answered = tokio::select! {
            answered = sent.await_response() => answered,
            () = stop.cancelled() => {
                let reason = "nobody waits for the answer any more".to_owned();
                let withdrawn = CancelledNotificationParam::new(Some(id), Some(reason));
                // A client that is gone has taken the form along.
                drop(peer.notify_cancelled(withdrawn).await);
                return None;
            }
        };
        match answered {
            Ok(ClientResult::ElicitResult(answer)) => Some(answer),
            Ok(_) => {
                tracing::debug!("a client answered a form with something else");
                None
            }
            Err(error) => {
                unanswered(&error);
                None
            }
        }
    }
}

/// A client that names no mode shows forms: there was no other mode once.
fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let modes = capabilities.elicitation.as_ref();
    modes.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

fn unanswered(error: &ServiceError) {
    tracing::info!(%error, "a form was not answered");
}
