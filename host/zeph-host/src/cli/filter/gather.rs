//! What a command prints, held until it has ended; more than can be held is passed on as it comes.

use std::io::{self, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Most bytes that are held: any build log, and little beside what a build itself takes.
pub(super) const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Outputs up to this many bytes get what room they need; longer ones get all there may be at once.
const GROWTH_BYTES: usize = 1024 * 1024;

/// Makes room for `bytes_max` bytes in all. The system gives pages when they are written to; growing step by step would copy what is
/// there each time, and both copies take memory. Where so much cannot be had, it grows all the same.
pub(super) fn make_room(held: &mut Vec<u8>, bytes_max: usize) {
    let more = bytes_max.saturating_sub(held.len());
    // Without it nothing is lost but memory.
    let _grows = held.try_reserve_exact(more);
}

/// The output so far.
#[derive(Debug)]
pub(super) struct Gather {
    /// `None` once it is passed on.
    held: Option<Vec<u8>>,
    held_max: usize,
}

impl Gather {
    /// Holds up to `held_max` bytes, and passes everything on when there are more; with 0, from the first byte on.
    pub(super) fn new(held_max: usize) -> Self {
        Self {
            held: (held_max > 0).then(Vec::new),
            held_max,
        }
    }

    /// Takes what has just arrived.
    ///
    /// Errors: standard output or standard error is closed.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.held {
            None => pass_on(&[bytes]),
            Some(held) if held.len() + bytes.len() <= self.held_max => {
                if is_unread() {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                if held.capacity() - held.len() < bytes.len() {
                    match held.len() + bytes.len() < GROWTH_BYTES {
                        true => held.reserve_exact(GROWTH_BYTES - held.len()),
                        false => make_room(held, self.held_max),
                    }
                }
                held.extend_from_slice(bytes);
                Ok(())
            }
            Some(_) => {
                let held = self.held.take().unwrap_or_default();
                pass_on(&[&held, bytes])
            }
        }
    }

    /// All of it; `None` when it was passed on.
    pub(super) fn into_held(self) -> Option<Vec<u8>> {
        self.held
    }
}

/// Whether the reader of standard output is gone. A command would notice it at its next line, and does so here.
fn is_unread() -> bool {
    let stdout = io::stdout();
    let mut waits = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut waits, Some(&at_once)).is_ok() && waits[0].revents().contains(PollFlags::ERR)
}

fn pass_on(parts: &[&[u8]]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for part in parts {
        stdout.write_all(part)?;
    }
    stdout.flush()
}
