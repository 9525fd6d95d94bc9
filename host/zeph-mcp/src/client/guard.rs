//! What stands between a transport and the library's loop: which answers were asked for, where notifications go, and how many of them
//! are taken in a second.
//!
//! The library starts a task for every request and notification of the server, in any order, and believes every id. Here
//! notifications are delivered in order and on the spot, so that progress precedes its result; what answers nothing is dropped;
//! and a server that floods is read from more slowly.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, sleep_until};

use super::desk::{Desk, Verdict};
use super::ending::{EndReason, Ending};
use super::error::McpError;
use super::probe::Probe;

/// Most messages in a second that answer nothing, before reading pauses for one.
const UNASKED_MAX: u32 = 2_000;

/// A transport of ours.
pub(super) trait Link: Transport<RoleClient> {
    /// What a failure to send comes to.
    fn explain(error: Self::Error) -> McpError;

    /// What the end of what it receives means.
    fn end_of_stream() -> EndReason;
}

/// A link with its guard.
pub(super) struct Guarded<L> {
    link: L,
    desk: Desk,
    ending: Ending,
    pace: Pace,
    probe: Probe,
}

/// How fast a server may talk without being asked.
struct Pace {
    since: Instant,
    n: u32,
    pause: Option<Instant>,
}

impl Pace {
    /// Counts one message.
    fn count(&mut self) {
        const WINDOW: Duration = Duration::from_secs(1);
        let now = Instant::now();
        if now.duration_since(self.since) > WINDOW {
            (self.since, self.n) = (now, 0);
        }
        self.n += 1;
        if self.n >= UNASKED_MAX {
            (self.since, self.n) = (now + WINDOW, 0);
            self.pause = Some(self.since);
        }
    }

    /// Waits where the server talks too fast. Dropping the future loses nothing.
    async fn keep(&mut self) {
        if let Some(until) = self.pause {
            sleep_until(until).await;
            self.pause = None;
        }
    }
}

impl<L: Link> Guarded<L> {
    pub(super) fn new(link: L, desk: Desk, ending: Ending, probe: Probe) -> Self {
        let pace = Pace {
            since: Instant::now(),
            n: 0,
            pause: None,
        };
        Self {
            link,
            desk,
            ending,
            pace,
            probe,
        }
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        self.pace.keep().await;
        self.link.receive().await
    }
}

impl<L: Link> Transport<RoleClient> for Guarded<L> {
    type Error = McpError;

    fn send(
        &mut self,
        mut item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpError>> + Send + 'static {
        let sending = self.probe.sent(&item).then(|| {
            self.desk.sent(&mut item);
            self.link.send(item)
        });
        let ending = self.ending.clone();
        async move {
            match (ending.reason(), sending) {
                (Some(reason), _) => Err(McpError::Ended(reason)),
                (None, Some(sending)) => sending.await.map_err(L::explain),
                (None, None) => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let ending = self.ending.clone();
        loop {
            let overdue = self.probe.overdue();
            let message = tokio::select! {
                biased;
                _reason = ending.wait() => return None,
                message = self.next() => message,
                () = overdue => match self.probe.replacement() {
                    Some(message) => return Some(message),
                    None => continue,
                },
            };
            let Some(message) = message else {
                self.probe.ended();
                self.ending.end(L::end_of_stream());
                return None;
            };
            let Some(message) = self.probe.received(message) else {
                self.pace.count();
                continue;
            };
            let is_answer = matches!(
                message,
                ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)
            );
            match self.desk.received(message) {
                Verdict::Pass(message) => {
                    if !is_answer {
                        self.pace.count();
                    }
                    return Some(*message);
                }
                Verdict::Done => self.pace.count(),
                Verdict::End(why) => {
                    self.ending.end(EndReason::Misbehaved(why));
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), McpError> {
        self.ending.end(EndReason::Closed);
        self.link.close().await.map_err(L::explain)
    }
}
