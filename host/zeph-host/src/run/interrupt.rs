//! The signals that ask the process to end.
//!
//! While it listens they no longer end the process by themselves: whoever listens has to act. `SIGHUP` keeps its
//! default, so that nohup(1) works.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// `SIGINT`, as Ctrl-C sends it.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
}

/// Hears the signals.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Begins to listen. Must be called inside a runtime.
    ///
    /// Errors: when the system does not let it; there is no known reason.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next signal. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Interruption {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Interruption::Interrupt,
            Some(()) = self.terminate.recv() => Interruption::Terminate,
            else => std::future::pending().await,
        }
    }
}
