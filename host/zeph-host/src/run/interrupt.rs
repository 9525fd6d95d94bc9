//! What asks the process to end: signals, and the loss of its terminal.
//!
//! While it listens they no longer end the process by themselves: the listener has to act. `SIGHUP` keeps its
//! default, so that nohup(1) works, unless the whole screen was taken and has to be given back.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::lost::TerminalWatch;

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// `SIGINT`, as Ctrl-C sends it.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
    /// The terminal is gone: `SIGHUP` where it is heard, or no `SIGHUP` ended the process.
    HangUp,
}

/// Hears the signals.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// Where it is heard.
    hang_up: Option<Signal>,
    /// Told once.
    lost: Option<watch::Receiver<bool>>,
}

impl Interrupts {
    /// Begins to listen. Must be called inside a runtime.
    ///
    /// Errors: when the system does not let it; there is no known reason.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: None,
            lost: None,
        })
    }

    /// Hears of the loss of a terminal from now on.
    pub(crate) fn with_terminal(&mut self, watch: &TerminalWatch) {
        self.lost = Some(watch.lost());
    }

    /// Hears `SIGHUP` from now on.
    ///
    /// Errors: when the system does not let it; there is no known reason.
    pub(crate) fn with_hang_up(&mut self) -> io::Result<()> {
        self.hang_up = Some(signal(SignalKind::hangup())?);
        Ok(())
    }

    /// The next signal. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Interruption {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Interruption::Interrupt,
            Some(()) = self.terminate.recv() => Interruption::Terminate,
            () = hung_up(&mut self.hang_up) => Interruption::HangUp,
            () = lost(&mut self.lost) => Interruption::HangUp,
            else => std::future::pending().await,
        }
    }
}

/// Returns when `SIGHUP` came.
async fn hung_up(signal: &mut Option<Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Returns when the terminal is lost, once.
async fn lost(receiver: &mut Option<watch::Receiver<bool>>) {
    let is_lost = match receiver {
        Some(receiver) => receiver.wait_for(|is_lost| *is_lost).await.is_ok(),
        None => false,
    };
    if !is_lost {
        std::future::pending::<()>().await;
    }
    *receiver = None;
}
