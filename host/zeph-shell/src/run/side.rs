//! Pipes that never block, read while a run goes on.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::Errno;

/// A pipe for a short message.
pub(super) struct Side {
    pub(super) reader: Option<OwnedFd>,
    pub(super) bytes: Vec<u8>,
    bytes_max: usize,
    pub(super) is_over: bool,
    /// It is left alone until then.
    pub(super) rests_until: Option<Instant>,
}

impl Side {
    pub(super) fn new(reader: Option<OwnedFd>, bytes_max: usize) -> Self {
        Self {
            reader,
            bytes: Vec::new(),
            bytes_max,
            is_over: false,
            rests_until: None,
        }
    }

    /// Reads on when there is too much, so that the writer does not wait, but keeps nothing more.
    pub(super) fn read(&mut self, buffer: &mut [u8]) {
        let Some(n_bytes) = read(&mut self.reader, buffer) else {
            return;
        };
        let n_kept = n_bytes.min(self.bytes_max - self.bytes.len());
        self.bytes.extend_from_slice(&buffer[..n_kept]);
        self.is_over |= n_kept < n_bytes;
    }
}

/// Reads what is there; nothing when there is nothing now. At the end of the stream, or when it cannot be read, closes it.
pub(super) fn read(reader: &mut Option<OwnedFd>, buffer: &mut [u8]) -> Option<usize> {
    let fd = reader.as_ref()?;
    match rustix::io::read(fd, buffer) {
        Ok(n_bytes) if n_bytes > 0 => Some(n_bytes),
        Err(Errno::AGAIN | Errno::INTR) => None,
        Ok(_) | Err(_) => {
            *reader = None;
            None
        }
    }
}
