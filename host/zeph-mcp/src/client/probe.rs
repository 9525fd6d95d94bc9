//! The first requests over pipes to a server whose generation is not known.
//!
//! The library asks `server/discover` and tries `initialize` after a refusal, or ten seconds of silence. Here silence is taken for a
//! refusal after one second: both requests are on their way then, and the answers decide, in whichever order they come. A server that is
//! slow to start loses nothing by it. One that ends at a request it does not know has to be started again; [`ProbeFindings`] tells.
//! What answers `server/discover` with anything but what it found has refused it: some servers answer all that they do not know with `{}`.
//! That holds over HTTP as well, where silence is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, DiscoverResult, ErrorCode, ErrorData,
    Implementation, InitializeResult, ProtocolVersion, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use tokio::time::{Instant, sleep_until};

use super::desk::as_sent;

/// How long a server may leave one of the two requests unanswered before the other decides.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is known of the two requests.
pub(super) struct Probe {
    stage: Stage,
    /// How long `server/discover` may be left unanswered before `initialize` follows, if it does.
    patience: Option<Duration>,
    findings: Arc<ProbeFindings>,
}

/// What a server that knows the older revisions alone did with `server/discover`.
#[derive(Debug, Default)]
pub(super) struct ProbeFindings {
    /// Its output ended before it answered either request.
    pub(super) is_ended: AtomicBool,
    /// It answered `initialize`, which was sent later, and not this.
    pub(super) is_silent: AtomicBool,
}

/// An error that `initialize` was answered with, and until when the answer to the other request may come.
type Refusal = (Box<ServerJsonRpcMessage>, Instant);

enum Stage {
    /// Nothing was asked, or everything is decided.
    Decided,
    /// `server/discover` may come.
    Waiting,
    /// `server/discover` is on its way.
    Asked {
        id: RequestId,
        until: Option<Instant>,
    },
    /// So is `initialize`.
    Both {
        probe: RequestId,
        handshake: Option<RequestId>,
        refusal: Option<Refusal>,
    },
    /// The late answer to `server/discover` counted; what this request is answered with does not.
    Stateless { handshake: RequestId },
}

impl Probe {
    /// For a server that is asked by both requests.
    pub(super) fn new(findings: Arc<ProbeFindings>) -> Self {
        Self {
            stage: Stage::Waiting,
            patience: Some(PATIENCE),
            findings,
        }
    }

    /// For a server that is asked by one request after the other.
    pub(super) fn patient() -> Self {
        Self {
            stage: Stage::Waiting,
            patience: None,
            findings: Arc::default(),
        }
    }

    /// For a server that is asked in another way.
    pub(super) fn none() -> Self {
        Self {
            stage: Stage::Decided,
            patience: None,
            findings: Arc::default(),
        }
    }

    /// Notes what the host sends; false for what must not be sent.
    pub(super) fn sent(&mut self, message: &ClientJsonRpcMessage) -> bool {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                self.asked(&request.request, &request.id);
                true
            }
            ClientJsonRpcMessage::Notification(notification) => {
                let is_handshake = matches!(
                    notification.notification,
                    ClientNotification::InitializedNotification(_)
                );
                !(is_handshake && matches!(self.stage, Stage::Stateless { .. }))
            }
            _ => true,
        }
    }

    fn asked(&mut self, request: &ClientRequest, id: &RequestId) {
        match (request, &mut self.stage) {
            // A second one is about another revision.
            (ClientRequest::DiscoverRequest(_), Stage::Waiting | Stage::Asked { .. }) => {
                self.stage = Stage::Asked {
                    id: id.clone(),
                    until: self.patience.map(|patience| Instant::now() + patience),
                };
            }
            (ClientRequest::InitializeRequest(_), Stage::Both { handshake, .. }) => {
                *handshake = Some(id.clone());
            }
            (ClientRequest::InitializeRequest(_), Stage::Waiting | Stage::Asked { .. }) => {
                self.stage = Stage::Decided;
            }
            _ => {}
        }
    }

    /// What the library gets for what came; none when that decides nothing.
    pub(super) fn received(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> Option<ServerJsonRpcMessage> {
        let id = match &message {
            ServerJsonRpcMessage::Response(answer) => as_sent(answer.id.clone()),
            ServerJsonRpcMessage::Error(answer) => match answer.id.clone() {
                Some(id) => as_sent(id),
                None => return Some(message),
            },
            _ => return Some(message),
        };
        let stage = std::mem::replace(&mut self.stage, Stage::Decided);
        let (stage, message) = match stage {
            Stage::Both {
                probe,
                handshake: Some(handshake),
                refusal,
            } => {
                let is_handshake = id == handshake;
                let (stage, message) = both((probe, handshake, refusal), &id, message);
                if is_handshake && matches!(stage, Stage::Decided) {
                    self.findings.is_silent.store(true, Ordering::Relaxed);
                }
                (stage, message)
            }
            Stage::Stateless { handshake } if handshake == id => {
                (Stage::Stateless { handshake }, None)
            }
            Stage::Asked { id: asked, .. } if asked == id => {
                (Stage::Waiting, Some(found_or_refused(message)))
            }
            stage => (stage, Some(message)),
        };
        self.stage = stage;
        message
    }

    /// Waits until what is on its way has taken too long; for ever when nothing is.
    pub(super) fn overdue(&self) -> impl Future<Output = ()> + Send + use<> {
        let until = match &self.stage {
            Stage::Asked { until, .. } => *until,
            Stage::Both { refusal, .. } => refusal.as_ref().map(|(_, until)| *until),
            _ => None,
        };
        async move {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        }
    }

    /// What the library gets in the place of what has taken too long.
    pub(super) fn replacement(&mut self) -> Option<ServerJsonRpcMessage> {
        match std::mem::replace(&mut self.stage, Stage::Decided) {
            Stage::Asked { id, .. } => {
                self.stage = Stage::Both {
                    probe: id.clone(),
                    handshake: None,
                    refusal: None,
                };
                Some(unknown(id, "no answer"))
            }
            Stage::Both {
                refusal: Some((refusal, _)),
                ..
            } => Some(*refusal),
            stage => {
                self.stage = stage;
                None
            }
        }
    }

    /// The server's output is over.
    pub(super) fn ended(&self) {
        let is_open = matches!(self.stage, Stage::Asked { .. } | Stage::Both { .. });
        self.findings.is_ended.store(is_open, Ordering::Relaxed);
    }
}

/// The answer to `server/discover`: what was found, or a refusal.
fn found_or_refused(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        ServerJsonRpcMessage::Response(answer)
            if !matches!(answer.result, ServerResult::DiscoverResult(_)) =>
        {
            unknown(answer.id, "another answer")
        }
        message => message,
    }
}

/// A refusal of `server/discover`, as a server that does not know it words it.
fn unknown(id: RequestId, why: &'static str) -> ServerJsonRpcMessage {
    let refusal = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
    ServerJsonRpcMessage::error(refusal, Some(id))
}

/// An answer while both requests are on their way.
fn both(
    (probe, handshake, refusal): (RequestId, RequestId, Option<Refusal>),
    id: &RequestId,
    message: ServerJsonRpcMessage,
) -> (Stage, Option<ServerJsonRpcMessage>) {
    let is_probe = *id == probe;
    match message {
        ServerJsonRpcMessage::Response(answer) if is_probe => match answer.result {
            ServerResult::DiscoverResult(found) if is_stateless(&found) => {
                let result = ServerResult::InitializeResult(as_handshake(found));
                let answer = ServerJsonRpcMessage::response(result, handshake.clone());
                (Stage::Stateless { handshake }, Some(answer))
            }
            _ => refused(refusal),
        },
        ServerJsonRpcMessage::Error(_) if is_probe => refused(refusal),
        message @ ServerJsonRpcMessage::Error(_) if *id == handshake => {
            let refusal = Some((Box::new(message), Instant::now() + PATIENCE));
            let handshake = Some(handshake);
            let stage = Stage::Both {
                probe,
                handshake,
                refusal,
            };
            (stage, None)
        }
        message => (Stage::Decided, Some(message)),
    }
}

/// `server/discover` was refused: what `initialize` is answered with decides.
fn refused(refusal: Option<Refusal>) -> (Stage, Option<ServerJsonRpcMessage>) {
    (Stage::Decided, refusal.map(|(refusal, _)| *refusal))
}

fn is_stateless(found: &DiscoverResult) -> bool {
    found.supported_versions.contains(&ProtocolVersion::LATEST)
}

/// What the library takes for the answer to `initialize`: of a revision without it, it goes on as after `server/discover`.
fn as_handshake(found: DiscoverResult) -> InitializeResult {
    let named = found.server_info();
    let mut result = InitializeResult::new(found.capabilities)
        .with_protocol_version(ProtocolVersion::LATEST)
        .with_server_info(named.unwrap_or_else(|| Implementation::new("", "")));
    result.instructions = found.instructions;
    result.meta = found.meta;
    result
}
