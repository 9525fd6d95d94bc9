//! Files as `wasi:io` streams. Reads and writes happen in the call that asks for them, so a stream is always ready and
//! never has anything under way.

use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_io::async_trait;

use super::allowance::HandleLease;
use super::file;

/// Most bytes one read or write of a stream moves.
const CHUNK_BYTES_MAX: usize = 1024 * 1024;

/// Reads a file from a position on.
#[derive(Debug)]
pub(super) struct FileInput {
    pub(super) file: Arc<HandleLease>,
    pub(super) position: u64,
}

/// Writes a file from a position on, or at its end.
#[derive(Debug)]
pub(super) struct FileOutput {
    pub(super) file: Arc<HandleLease>,
    pub(super) target: OutputTarget,
    pub(super) failed: bool,
}

/// Where output goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputTarget {
    At(u64),
    End,
}

#[async_trait]
impl Pollable for FileInput {
    async fn ready(&mut self) {}
}

#[async_trait]
impl InputStream for FileInput {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let len = size.min(CHUNK_BYTES_MAX) as u64;
        let read = file::read(&*self.file, len, self.position).map_err(failed)?;
        if read.is_empty() && len > 0 {
            return Err(StreamError::Closed);
        }
        self.position += read.len() as u64;
        Ok(Bytes::from(read))
    }
}

#[async_trait]
impl Pollable for FileOutput {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for FileOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.failed {
            return Err(StreamError::Closed);
        }
        let done = match &mut self.target {
            OutputTarget::End => file::append_all(self.file.as_fd(), &bytes),
            OutputTarget::At(position) => file::write_all(self.file.as_fd(), &bytes, *position)
                .map(|()| {
                    *position += bytes.len() as u64;
                }),
        };
        self.failed = done.is_err();
        done.map_err(failed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        if self.failed {
            Err(StreamError::Closed)
        } else {
            Ok(())
        }
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if self.failed {
            Err(StreamError::Closed)
        } else {
            Ok(CHUNK_BYTES_MAX)
        }
    }
}

/// Keeps the error of the system, from which `filesystem-error-code` makes the code; its text names no path.
fn failed(errno: rustix::io::Errno) -> StreamError {
    StreamError::LastOperationFailed(std::io::Error::from(errno).into())
}
