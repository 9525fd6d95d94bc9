//! What a command prints, held until it has ended; more than can be held is passed on as it comes.

use std::io::{self, Write as _};

/// Most bytes that are held: any build log, and little beside what a build itself takes.
pub(super) const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Room that is added at a time: doubling would take twice what is held.
const GROWTH_BYTES: usize = 1024 * 1024;

/// The output so far.
#[derive(Debug)]
pub(super) struct Gather {
    /// `None` once it is passed on.
    held: Option<Vec<u8>>,
}

impl Gather {
    /// Holds the output, or passes everything on.
    pub(super) fn new(holds: bool) -> Self {
        Self {
            held: holds.then(Vec::new),
        }
    }

    /// Takes what has just arrived.
    ///
    /// Errors: nobody reads what is passed on.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.held {
            None => pass_on(&[bytes]),
            Some(held) if held.len() + bytes.len() <= HELD_BYTES_MAX => {
                if held.capacity() - held.len() < bytes.len() {
                    held.reserve_exact(GROWTH_BYTES + held.len() / 8 + bytes.len());
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

fn pass_on(parts: &[&[u8]]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for part in parts {
        stdout.write_all(part)?;
    }
    stdout.flush()
}
