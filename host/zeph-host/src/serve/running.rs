//! The calls of all clients while they run.
//!
//! A call that runs is never dropped: whatever becomes of the request, it is cancelled and its end awaited, so that its audit row is
//! completed and nothing of it is left running.

use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zeph_core::call::ToolRequest;

use crate::calls::{CallControl, CallReport, RunningCall};
use crate::host::Host;
use crate::serve::places::Place;
use crate::session::Session;

/// The calls that run.
#[derive(Debug)]
pub(crate) struct Running {
    host: Host,
    /// Cancelled when every call has to end.
    closing: CancellationToken,
    /// Held by each call; closed once nothing can begin any more.
    held: Mutex<Option<mpsc::Sender<()>>>,
    /// Ends when no call holds it.
    idle: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

impl Running {
    pub(crate) fn new(host: &Host, closing: &CancellationToken) -> Self {
        let (held, idle) = mpsc::channel(1);
        Self {
            host: host.clone(),
            closing: closing.clone(),
            held: Mutex::new(Some(held)),
            idle: tokio::sync::Mutex::new(idle),
        }
    }

    /// Makes a call and waits for its end, which `cancelled` brings about at once; so does dropping the future.
    ///
    /// `None` when the server is being closed: then it is not made.
    pub(crate) async fn call(
        &self,
        session: &Session,
        request: ToolRequest,
        (place, control): (Place, CallControl),
        cancelled: &CancellationToken,
    ) -> Option<CallReport> {
        let held = {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.clone()?
        };
        let asked = session.asks(request);
        let (host, session) = (self.host.clone(), session.clone());
        let (cancelled, closing) = (cancelled.clone(), self.closing.clone());
        let cancel = control.cancel.clone();
        let call = async move {
            let _held = (held, place);
            let cancel = control.cancel.clone();
            let call = host.call_of(&session, asked, control);
            tokio::pin!(call);
            tokio::select! {
                report = &mut call => return report,
                () = cancelled.cancelled() => cancel.cancel(),
                () = closing.cancelled() => cancel.cancel(),
            }
            call.await
        };
        Some(RunningCall::new(&self.host, cancel, call).await)
    }

    /// Lets nothing begin any more, and waits until nothing runs.
    pub(crate) async fn ended(&self) {
        let held = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.take()
        };
        drop(held);
        // Nothing is ever sent: it returns once every sender is gone.
        self.idle.lock().await.recv().await;
    }
}
