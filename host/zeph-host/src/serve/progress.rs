//! Tells a client how a call is getting on, when it asked for that.
//!
//! Two sources: what a guest reports, and what a running command prints. The first messages go out as they come; then at most so many a
//! second, the newest first, so that neither a chatty guest nor a flood of output costs more than a few lines.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use zeph_core::failure::one_line;
use zeph_engine::{Listener, Progress};
use zeph_shell::run::{OutputChunk, OutputListener};

/// Reports that wait to be passed on; more are dropped.
const PENDING_MAX: usize = 64;

/// Messages that go out as they come.
const BURST: u32 = 16;

/// One more message each time this has passed.
const PERIOD: Duration = Duration::from_millis(100);

/// Most characters of a message: a line of a terminal, twice.
const MESSAGE_CHARS_MAX: usize = 200;

/// Passes reports on until the call has ended.
pub(crate) struct Reporter {
    task: JoinHandle<()>,
}

impl Reporter {
    /// Begins to report to the client of a request; `None` when it did not ask for it.
    pub(crate) fn of(
        context: &RequestContext<RoleServer>,
    ) -> Option<(Self, Listener, OutputListener)> {
        let token = context.meta.get_progress_token()?;
        let (listener, reports) = mpsc::channel(PENDING_MAX);
        let (output, chunks) = mpsc::channel(PENDING_MAX);
        let teller = Teller {
            peer: context.peer.clone(),
            token,
            last: 0.0,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "it may outlive its request, and ends with the channels of the call"
        )]
        let task = tokio::spawn(pass_on(teller, reports, chunks));
        Some((
            Self { task },
            Listener::new(listener),
            OutputListener::new(output),
        ))
    }

    /// Waits until everything has been told: nothing may come after the answer.
    pub(crate) async fn told(self) {
        drop(self.task.await);
    }

    /// Tells nothing more, though the call goes on.
    pub(crate) fn stop(self) {
        self.task.abort();
    }
}

struct Teller {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// Of the last message; the next one has to be greater.
    last: f64,
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    /// How far it is, when the source knows.
    completed: Option<f64>,
    total: Option<f64>,
    text: String,
}

async fn pass_on(
    mut teller: Teller,
    mut reports: mpsc::Receiver<Progress>,
    mut chunks: mpsc::Receiver<OutputChunk>,
) {
    let mut budget = Budget::new(Instant::now());
    let mut pending: Option<Message> = None;
    let mut n_bytes = 0;
    loop {
        if let Some(message) = pending.take_if(|_| budget.take(Instant::now())) {
            teller.tell(message).await;
        }
        tokio::select! {
            Some(report) = reports.recv() => pending = Some(of_guest(report)),
            Some(chunk) = chunks.recv() => {
                n_bytes += chunk.text.len() as u64 + chunk.n_skipped;
                pending = of_command(&chunk.text, n_bytes).or(pending);
            }
            () = budget.refilled(), if pending.is_some() => {}
            else => break,
        }
    }
    if let Some(message) = pending {
        teller.tell(message).await;
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 the last digits of a progress mean nothing"
)]
fn of_guest(report: Progress) -> Message {
    Message {
        completed: report.completed.map(|n| n as f64),
        total: report.total.map(|n| n as f64),
        text: report.message,
    }
}

/// The last line that a command printed, at the number of bytes until then.
#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 the last digits of a progress mean nothing"
)]
fn of_command(text: &str, n_bytes: u64) -> Option<Message> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(Message {
        completed: Some(n_bytes as f64),
        total: None,
        text: one_line(line, MESSAGE_CHARS_MAX),
    })
}

impl Teller {
    async fn tell(&mut self, message: Message) {
        let Some(progress) = next(self.last, message.completed) else {
            return;
        };
        self.last = progress;
        let mut param = ProgressNotificationParam::new(self.token.clone(), progress);
        param.total = message.total;
        param.message = Some(message.text).filter(|text| !text.is_empty());
        // A client that does not listen any longer gets nothing.
        drop(self.peer.notify_progress(param).await);
    }
}

/// What comes after `last`, which may only grow; `None` for a report that goes back.
fn next(last: f64, completed: Option<f64>) -> Option<f64> {
    match completed {
        // The beginning is told too, and is not more than nothing.
        Some(completed) if completed == 0.0 && last == 0.0 => Some(0.0),
        Some(completed) => (completed > last).then_some(completed),
        None => Some(last + 1.0),
    }
}

/// How many messages may go out now.
struct Budget {
    left: u32,
    refill: Instant,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            refill: now + PERIOD,
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        while self.refill <= now && self.left < BURST {
            self.left += 1;
            self.refill += PERIOD;
        }
        if self.left == BURST {
            self.refill = now + PERIOD;
        }
        let has_some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_some
    }

    async fn refilled(&self) {
        if self.left == 0 {
            tokio::time::sleep_until(self.refill).await;
        }
    }
}

#[cfg(test)]
mod tests;
