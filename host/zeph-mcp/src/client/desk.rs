//! What is open between the host and a server: requests of both sides, sinks of progress, subscriptions.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use tokio_util::sync::CancellationToken;
use zeph_core::text::plain_line;

use super::ProgressSink;
use super::cleaning::said;
use super::complaint::Complaints;
use super::listener::{LOG_BYTES_MAX, ListKind, Progress, ServerListener, ServerLog};

/// Most requests of the server that are open.
const QUESTIONS_MAX: usize = 32;

/// Requests that were given up, whose late answers are no surprise.
const GIVEN_UP_MAX: usize = 256;

/// Most characters of a message about progress.
const PROGRESS_CHARS_MAX: usize = 300;

/// What becomes of a message.
pub(super) enum Verdict {
    /// The library's loop takes it.
    Pass(Box<ServerJsonRpcMessage>),
    /// It is dealt with, or means nothing.
    Done,
    /// The connection ends over it: why.
    End(String),
}

/// Where the progress of a request goes: travels in its extensions, which are not sent.
#[derive(Clone)]
pub(super) struct ProgressRoute(pub(super) ProgressSink);

/// The one of a connection.
#[derive(Clone)]
pub(super) struct Desk {
    open: Arc<Mutex<Open>>,
    listener: Arc<dyn ServerListener>,
    complaints: Complaints,
}

#[derive(Default)]
struct Open {
    /// Requests of the host.
    asked: HashMap<RequestId, HostRequest>,
    sinks: HashMap<ProgressToken, ProgressSink>,
    given_up: VecDeque<RequestId>,
    /// Requests of the server, with the work of the host that each may be for.
    questions: HashMap<RequestId, Vec<CancellationToken>>,
    subscribed: HashSet<String>,
}

/// A request of the host.
struct HostRequest {
    progress: Option<ProgressToken>,
    /// Cancelled at its end; none for one that a server has nothing to ask about.
    over: Option<CancellationToken>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    pub(super) fn new(listener: Arc<dyn ServerListener>, complaints: Complaints) -> Self {
        Self {
            open: Arc::default(),
            listener,
            complaints,
        }
    }

    /// Updates of this resource are delivered, or no longer.
    pub(super) fn subscribe(&self, uri: &str, is_wanted: bool) {
        let mut open = self.open();
        if is_wanted {
            open.subscribed.insert(uri.to_owned());
        } else {
            open.subscribed.remove(uri);
        }
    }

    /// The resources that are subscribed to.
    pub(super) fn subscribed(&self) -> Vec<String> {
        self.open().subscribed.iter().cloned().collect()
    }

    /// Whether a request of the server is open: it may be a person who is asked.
    pub(super) fn has_questions(&self) -> bool {
        !self.open().questions.is_empty()
    }

    /// Waits until all that the request `id` of the server may be for is over; for ever when it came while nothing was open.
    pub(super) async fn nobody_waits(&self, id: &RequestId) {
        let work = self.open().questions.get(id).cloned().unwrap_or_default();
        if work.is_empty() {
            return std::future::pending().await;
        }
        for over in work {
            over.cancelled().await;
        }
    }

    /// Notes what the host sends.
    pub(super) fn sent(&self, message: &mut ClientJsonRpcMessage) {
        let mut open = self.open();
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let is_handshake = matches!(request.request, ClientRequest::InitializeRequest(_));
                if is_handshake {
                    // A server that is slow to start answers the probe before it, which counts no more.
                    let probes: Vec<RequestId> = open.asked.drain().map(|(id, _)| id).collect();
                    probes.into_iter().for_each(|id| open.give_up(id));
                }
                let token = request.request.get_meta().get_progress_token();
                let route = request.request.extensions_mut().remove::<ProgressRoute>();
                if let (Some(token), Some(route)) = (&token, route) {
                    open.sinks.insert(token.clone(), route.0);
                }
                let asked = HostRequest {
                    progress: token,
                    over: is_work(&request.request).then(CancellationToken::new),
                };
                open.asked.insert(request.id.clone(), asked);
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && open.close(id)
                {
                    open.give_up(id.clone());
                }
            }
            ClientJsonRpcMessage::Response(answer) => {
                open.questions.remove(&answer.id);
            }
            ClientJsonRpcMessage::Error(answer) => {
                if let Some(id) = &answer.id {
                    open.questions.remove(id);
                }
            }
        }
    }

    /// Decides about what the server sent.
    pub(super) fn received(&self, message: ServerJsonRpcMessage) -> Verdict {
        match &message {
            ServerJsonRpcMessage::Response(answer) => self.answer(answer.id.clone(), message),
            ServerJsonRpcMessage::Error(answer) => match answer.id.clone() {
                Some(id) => self.answer(id, message),
                None => Verdict::Pass(Box::new(message)),
            },
            ServerJsonRpcMessage::Request(request) => {
                let mut open = self.open();
                if open.questions.len() >= QUESTIONS_MAX {
                    return Verdict::End(format!(
                        "the server has more than {QUESTIONS_MAX} requests to the host open"
                    ));
                }
                let work = open.asked.values().filter_map(|asked| asked.over.clone());
                let work: Vec<CancellationToken> = work.collect();
                if open.questions.contains_key(&request.id) {
                    drop(open);
                    self.complaints
                        .add("the server sent two requests with one id");
                    return Verdict::Done;
                }
                open.questions.insert(request.id.clone(), work);
                Verdict::Pass(Box::new(message))
            }
            ServerJsonRpcMessage::Notification(_) => self.notification(message),
        }
    }

    fn answer(&self, id: RequestId, message: ServerJsonRpcMessage) -> Verdict {
        let id = as_sent(id);
        let mut open = self.open();
        if open.close(&id) {
            return Verdict::Pass(Box::new(with_id(message, id)));
        }
        let was_given_up = open.given_up.contains(&id);
        drop(open);
        if !was_given_up {
            self.complaints
                .add("the server answered a request that was not made, or answered one twice");
        }
        Verdict::Done
    }

    fn notification(&self, message: ServerJsonRpcMessage) -> Verdict {
        let ServerJsonRpcMessage::Notification(notification) = &message else {
            return Verdict::Done;
        };
        match &notification.notification {
            ServerNotification::ProgressNotification(progress) => self.progress(&progress.params),
            ServerNotification::LoggingMessageNotification(log) => self.log(&log.params),
            ServerNotification::ToolListChangedNotification(_) => {
                self.listener.changed(ListKind::Tools);
            }
            ServerNotification::PromptListChangedNotification(_) => {
                self.listener.changed(ListKind::Prompts);
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                self.listener.changed(ListKind::Resources);
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                let uri = &updated.params.uri;
                if self.open().subscribed.contains(uri) {
                    self.listener.resource_updated(uri);
                }
            }
            ServerNotification::CancelledNotification(cancelled) => {
                if let Some(id) = &cancelled.params.request_id {
                    self.open().questions.remove(id);
                }
                return Verdict::Pass(Box::new(message));
            }
            ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                return Verdict::Pass(Box::new(message));
            }
            // Extensions that were not asked for.
            _ => {}
        }
        Verdict::Done
    }

    fn progress(&self, params: &ProgressNotificationParam) {
        // Called without the lock: the sink may make a request.
        let sink = self.open().sinks.get(&params.progress_token).cloned();
        if let Some(sink) = sink {
            let message = params.message.as_deref();
            sink(Progress {
                progress: params.progress,
                total: params.total,
                message: message.map(|message| plain_line(message, PROGRESS_CHARS_MAX)),
            });
        }
    }

    fn log(&self, params: &LoggingMessageNotificationParam) {
        if params.data.to_string().len() > LOG_BYTES_MAX {
            self.complaints
                .add(format!("a log message has more than {LOG_BYTES_MAX} bytes"));
            return;
        }
        let logger = params.logger.as_deref();
        self.listener.logged(ServerLog {
            level: params.level,
            logger: logger.map(|logger| plain_line(logger, 100)),
            data: said(params.data.clone()),
        });
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Whether the request was open; it no longer is.
    fn close(&mut self, id: &RequestId) -> bool {
        let Some(HostRequest { progress, over }) = self.asked.remove(id) else {
            return false;
        };
        if let Some(token) = &progress {
            self.sinks.remove(token);
        }
        if let Some(over) = over {
            over.cancel();
        }
        true
    }

    fn give_up(&mut self, id: RequestId) {
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(id);
    }
}

/// Whether a server may ask its user something for this request.
fn is_work(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::CallToolRequest(_)
            | ClientRequest::GetPromptRequest(_)
            | ClientRequest::ReadResourceRequest(_)
    )
}

/// The id as the host wrote it: some servers turn numbers into texts.
pub(super) fn as_sent(id: RequestId) -> RequestId {
    match &id {
        RequestId::String(text) => text.parse().map_or(id.clone(), RequestId::Number),
        RequestId::Number(_) => id,
    }
}

fn with_id(mut message: ServerJsonRpcMessage, id: RequestId) -> ServerJsonRpcMessage {
    match &mut message {
        ServerJsonRpcMessage::Response(answer) => answer.id = id,
        ServerJsonRpcMessage::Error(answer) => answer.id = Some(id),
        _ => {}
    }
    message
}

#[cfg(test)]
mod tests;
