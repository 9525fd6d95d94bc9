//! Why a connection is over.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why a connection is over. Its text is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The host closed it.
    Closed,
    /// The server closed its output: it exited, or was killed.
    Exited,
    /// The server's output could not be read, or its input not be written.
    Broken(String),
    /// The server did what no server may do, such as printing megabytes that are no messages.
    Misbehaved(String),
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the host closed it"),
            Self::Exited => f.write_str("the server closed its output"),
            Self::Broken(why) | Self::Misbehaved(why) => f.write_str(why),
        }
    }
}

/// The end of one connection: the first reason counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Ending {
    reason: Arc<OnceLock<EndReason>>,
    token: CancellationToken,
}

impl Ending {
    /// Ends the connection, unless it has ended.
    pub(super) fn end(&self, reason: EndReason) {
        // Only the first is kept.
        let _is_first = self.reason.set(reason).is_ok();
        self.token.cancel();
    }

    /// The reason; `None` while the connection holds.
    pub(super) fn reason(&self) -> Option<EndReason> {
        self.reason.get().cloned()
    }

    /// Waits for the end.
    pub(super) async fn wait(&self) -> EndReason {
        self.token.cancelled().await;
        self.reason().unwrap_or(EndReason::Closed)
    }
}
