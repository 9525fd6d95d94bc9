//! Pipes that never block, read while a run goes on.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::buffer::spare_capacity;
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

    /// Reads on when there is too much, so that the writer does not wait, but keeps nothing more. Says whether anything was there.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>) -> bool {
        if !read(&mut self.reader, buffer) {
            return false;
        }
        let n_kept = buffer.len().min(self.bytes_max - self.bytes.len());
        self.bytes.extend_from_slice(&buffer[..n_kept]);
        self.is_over |= n_kept < buffer.len();
        true
    }
}

/// Reads what is there into a buffer, in the place of what it held and as much as it has room for; says whether that is anything. At the
/// end of the stream, or when it cannot be read, closes it.
pub(super) fn read(reader: &mut Option<OwnedFd>, buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    let Some(fd) = reader.as_ref() else {
        return false;
    };
    match rustix::io::read(fd, spare_capacity(buffer)) {
        Ok(n_bytes) if n_bytes > 0 => true,
        Err(Errno::AGAIN | Errno::INTR) => false,
        Ok(_) | Err(_) => {
            *reader = None;
            false
        }
    }
}
