//! What asks the process to end: signals, and the loss of its terminal.
//!
//! While it listens they no longer end the process by themselves: the listener has to act. `SIGHUP` is heard unless the process was
//! started to ignore it, so that nohup(1) works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

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
            hang_up: hang_up()?,
            lost: None,
        })
    }

    /// Hears of the loss of a terminal from now on.
    pub(crate) fn with_terminal(&mut self, watch: &TerminalWatch) {
        self.lost = Some(watch.lost());
    }

    /// Hears `SIGHUP` from now on, whatever the process was started to do.
    ///
    /// Errors: when the system does not let it; there is no known reason.
    pub(crate) fn with_hang_up(&mut self) -> io::Result<()> {
        self.hang_up = Some(signal(SignalKind::hangup())?);
        Ok(())
    }

    /// Forgets Ctrl-C that came while nothing ran that it could end.
    pub(crate) fn forget_interrupt(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(())) = self.interrupt.poll_recv(&mut context) {}
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

/// Sets a flag when the process is asked to end, for what blocks its thread and hears of nothing else.
#[derive(Debug)]
pub(crate) struct EndWatch {
    is_hung_up: Arc<AtomicBool>,
    _task: JoinSet<()>,
}

impl EndWatch {
    /// Begins to listen, until it is dropped.
    ///
    /// Errors: when the system does not let it; there is no known reason.
    pub(crate) fn start(is_ending: &Arc<AtomicBool>) -> io::Result<Self> {
        let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, hang_up()?);
        let (is_hung_up, is_ending) = (Arc::<AtomicBool>::default(), Arc::clone(is_ending));
        let hung = Arc::clone(&is_hung_up);
        let mut task = JoinSet::new();
        task.spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                () = hung_up(&mut hang_up) => hung.store(true, Ordering::Release),
            }
            is_ending.store(true, Ordering::Release);
        });
        Ok(Self {
            is_hung_up,
            _task: task,
        })
    }

    /// What came, once the flag is set.
    pub(crate) fn came(&self) -> Interruption {
        match self.is_hung_up.load(Ordering::Acquire) {
            true => Interruption::HangUp,
            false => Interruption::Terminate,
        }
    }
}

/// `SIGHUP`, unless the process was started to ignore it.
fn hang_up() -> io::Result<Option<Signal>> {
    let hung_up = SignalKind::hangup();
    match ignores(hung_up.as_raw_value()) {
        Some(false) => signal(hung_up).map(Some),
        Some(true) | None => Ok(None),
    }
}

/// Whether this process ignores a signal; none where the system does not tell.
fn ignores(number: i32) -> Option<bool> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    let bit = u32::try_from(number).ok()?.checked_sub(1)?;
    Some(ignored.checked_shr(bit)? & 1 == 1)
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::ignores;

    #[test]
    fn what_a_process_ignores_is_known() {
        // Every Rust program ignores it from its start.
        const SIGPIPE: i32 = 13;
        const SIGKILL: i32 = 9;
        assert_eq!(ignores(SIGPIPE), Some(true));
        assert_eq!(ignores(SIGKILL), Some(false));
        assert_eq!(ignores(0), None);
    }
}
