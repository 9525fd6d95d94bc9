//! The stream on which a server of a session speaks unasked, and the requests that wait until it is open.

use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification};
use tokio::sync::watch;
use tokio::time::timeout;

/// The longest that requests wait: some servers answer the stream's request only when they have something to say.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is known of the stream. The library asks for it beside the first request of a session; a server that has it answered later loses
/// what it says for that request, a question for instance, and both sides wait.
#[derive(Debug)]
pub(super) struct AnnouncementStream {
    is_awaited: watch::Sender<bool>,
}

impl AnnouncementStream {
    pub(super) fn new() -> Self {
        Self {
            is_awaited: watch::Sender::new(false),
        }
    }

    /// Before `message` is sent in a session: a request waits until the stream is open, or refused.
    pub(super) async fn before(&self, message: &ClientJsonRpcMessage) {
        if !matches!(message, ClientJsonRpcMessage::Request(_)) {
            return;
        }
        let mut awaited = self.is_awaited.subscribe();
        let opened = awaited.wait_for(|is_awaited| !is_awaited);
        if timeout(PATIENCE, opened).await.is_err() {
            self.is_awaited.send_replace(false);
        }
    }

    /// After `message` was accepted in a session: at the end of the handshake the stream is asked for.
    pub(super) fn after(&self, message: &ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Notification(sent) = message
            && matches!(
                sent.notification,
                ClientNotification::InitializedNotification(_)
            )
        {
            self.is_awaited.send_replace(true);
        }
    }

    /// The server has answered the request for the stream, or cannot.
    pub(super) fn answered(&self) {
        self.is_awaited.send_replace(false);
    }
}
