//! Notices that the terminal on standard input is gone while the program lives on: its window was closed and no hang-up signal
//! came, or the program was left in the background by a shell that has ended.
//!
//! The line editor cannot do this itself: it reads on for ever after an error of the terminal. So the watch takes the terminal
//! from under it. From then on reading finds nothing and the editor sees its break signal.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::watch;

/// How often a silent terminal is checked: some kinds of hang-up are not signalled.
const PERIOD: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// Whether the terminal of this process is lost. Several watches may look at one terminal, and only one can take it away.
static LOST: AtomicBool = AtomicBool::new(false);

/// Watches the terminal on standard input until it is dropped.
#[derive(Debug)]
pub(crate) struct TerminalWatch {
    shared: Arc<WatchState>,
    lost: watch::Receiver<bool>,
    /// Closed when the watch ends; its thread hears of it.
    _ends: PipeWriter,
}

#[derive(Debug)]
struct WatchState {
    /// Whether an editor reads. A program in the background that does not read has lost nothing.
    is_reading: AtomicBool,
    /// Makes the editor return.
    breaks: Arc<AtomicBool>,
    lost: watch::Sender<bool>,
}

impl TerminalWatch {
    /// Begins to watch; `breaks` is set once the terminal is lost.
    ///
    /// Errors: the kernel refuses a pipe or a thread.
    pub(crate) fn start(breaks: Arc<AtomicBool>) -> io::Result<Self> {
        let (end, ends) = io::pipe()?;
        let (sender, lost) = watch::channel(false);
        let shared = Arc::new(WatchState {
            is_reading: AtomicBool::new(false),
            breaks,
            lost: sender,
        });
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("zeph-terminal".to_owned())
            .spawn(move || of_thread.watch(end.as_fd()))?;
        Ok(Self {
            shared,
            lost,
            _ends: ends,
        })
    }

    /// Whether the terminal is gone; looks at it.
    pub(crate) fn is_lost(&self) -> bool {
        if self.shared.is_gone() {
            self.shared.lose();
        }
        *self.lost.borrow()
    }

    /// Becomes true when the terminal is lost.
    pub(crate) fn lost(&self) -> watch::Receiver<bool> {
        self.lost.clone()
    }

    /// Reads with an editor, which returns when the terminal is lost meanwhile.
    pub(crate) fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.shared.is_reading.store(true, Ordering::Release);
        let read = read();
        self.shared.is_reading.store(false, Ordering::Release);
        read
    }
}

impl WatchState {
    /// Looks until the terminal is lost or `end` is closed.
    fn watch(&self, end: BorrowedFd<'_>) {
        loop {
            let stdin = rustix::stdio::stdin();
            let mut watched = [
                PollFd::from_borrowed_fd(end, PollFlags::IN),
                // A hang-up is reported without being asked for; input is the editor's.
                PollFd::from_borrowed_fd(stdin, PollFlags::empty()),
            ];
            match poll(&mut watched, Some(&PERIOD)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return tracing::warn!(%error, "the terminal cannot be watched"),
            }
            if !watched[0].revents().is_empty() {
                return;
            }
            if self.is_gone() {
                return self.lose();
            }
        }
    }

    fn is_gone(&self) -> bool {
        if LOST.load(Ordering::Acquire) {
            return true;
        }
        let stdin = rustix::stdio::stdin();
        let mut watched = [PollFd::from_borrowed_fd(stdin, PollFlags::empty())];
        let nothing = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let is_hung_up = poll(&mut watched, Some(&nothing)).is_ok_and(|n_ready| n_ready > 0);
        // Reading no byte fails like any other read, and takes none from the editor. In the background of a terminal whose shell has
        // ended no other sign is given; where the shell is there, it stops the program as every read does.
        let cannot_read = || {
            self.is_reading.load(Ordering::Acquire)
                && rustix::io::read(stdin, &mut [0_u8; 0]) == Err(Errno::IO)
        };
        is_hung_up || cannot_read()
    }

    /// Takes the terminal from under the editor and tells everybody.
    fn lose(&self) {
        if self.lost.send_replace(true) {
            return;
        }
        self.breaks.store(true, Ordering::Release);
        if LOST.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = replace_stdin() {
            tracing::warn!(%error, "a lost terminal cannot be given up");
        }
    }
}

/// Puts in the place of standard input what never has anything to read and never ends.
fn replace_stdin() -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    rustix::stdio::dup2_stdin(&reader)?;
    // Without a writer it would be at its end. It is closed with the process.
    std::mem::forget(writer);
    Ok(())
}
