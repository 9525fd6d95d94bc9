//! Where a guest's log lines, standard output and standard error go: the operator's log, capped per call.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError};
use zeph_core::id::PluginId;

/// Most bytes of one log line; a longer one is cut.
const LINE_BYTES_MAX: usize = 4_096;

/// The log of one call. Clones share one budget.
#[derive(Clone)]
pub(crate) struct GuestLog(Arc<Mutex<Inner>>);

struct Inner {
    plugin: PluginId,
    bytes_left: u64,
    /// The unfinished line of standard output and error.
    partial: Vec<u8>,
    /// The last whole line written to standard error: a panic's message, mostly.
    last_line: Option<String>,
}

impl GuestLog {
    pub(crate) fn new(plugin: PluginId, bytes_max: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            plugin,
            bytes_left: bytes_max,
            partial: Vec::new(),
            last_line: None,
        })))
    }

    /// Takes a line of `zeph:plugin/log`.
    pub(crate) fn line(&self, level: tracing::Level, message: &str) {
        self.lock().line(level, message);
    }

    /// The last line the guest wrote to standard output or error, for a crash report.
    pub(crate) fn last_line(&self) -> Option<String> {
        let mut inner = self.lock();
        inner.flush_partial();
        inner.last_line.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn line(&mut self, level: tracing::Level, message: &str) {
        if self.bytes_left == 0 {
            return;
        }
        let n_bytes = message.len() as u64 + 1;
        if n_bytes > self.bytes_left {
            self.bytes_left = 0;
            tracing::warn!(plugin = %self.plugin, "log cut at its limit (`limits.log_bytes`)");
            return;
        }
        self.bytes_left -= n_bytes;
        let end = message.floor_char_boundary(LINE_BYTES_MAX);
        let text = message[..end].escape_debug();
        let plugin = &self.plugin;
        match level {
            tracing::Level::ERROR => tracing::error!(%plugin, "{text}"),
            tracing::Level::WARN => tracing::warn!(%plugin, "{text}"),
            tracing::Level::INFO => tracing::info!(%plugin, "{text}"),
            tracing::Level::DEBUG => tracing::debug!(%plugin, "{text}"),
            tracing::Level::TRACE => tracing::trace!(%plugin, "{text}"),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' || self.partial.len() == LINE_BYTES_MAX {
                self.flush_partial();
            }
            if *byte != b'\n' {
                self.partial.push(*byte);
            }
        }
    }

    fn flush_partial(&mut self) {
        if self.partial.is_empty() {
            return;
        }
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
        self.line(tracing::Level::INFO, &line);
        self.last_line = Some(line);
    }
}

/// Standard output and error of a guest.
impl StdoutStream for GuestLog {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

impl IsTerminal for GuestLog {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl OutputStream for GuestLog {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        let mut inner = self.lock();
        // Past the budget bytes are dropped, not refused: a chatty guest still finishes its work.
        if inner.bytes_left > 0 {
            inner.write(&bytes);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(64 * 1024)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestLog {
    async fn ready(&mut self) {}
}
