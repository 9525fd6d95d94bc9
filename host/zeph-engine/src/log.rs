//! Where a guest's log lines, standard output and standard error go: the operator's log, capped per call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError};
use zeph_core::id::PluginId;

use crate::bindings::zeph::plugin::log;
use crate::state::GuestState;

/// Most bytes of one log line; a longer one is cut.
const LINE_BYTES_MAX: usize = 4_096;

/// Least bytes a line counts for, however short it is: the operator's log adds about as much to each.
const LINE_BYTES_MIN: u64 = 32;

/// Lines kept for a crash report: Rust panics take two.
const LAST_LINES: usize = 2;

/// The log of one call. Clones share one budget.
#[derive(Clone)]
pub(crate) struct GuestLog(Arc<Mutex<LogState>>);

struct LogState {
    plugin: PluginId,
    bytes_left: u64,
    /// The unfinished line of standard output and error.
    partial: Vec<u8>,
    /// The last lines written to standard output and error: a panic's message, mostly.
    last_lines: VecDeque<String>,
}

impl GuestLog {
    pub(crate) fn new(plugin: PluginId, bytes_max: u64) -> Self {
        Self(Arc::new(Mutex::new(LogState {
            plugin,
            bytes_left: bytes_max,
            partial: Vec::new(),
            last_lines: VecDeque::new(),
        })))
    }

    /// Takes a line of `zeph:plugin/log`.
    pub(crate) fn line(&self, level: tracing::Level, message: &str) {
        self.lock().line(level, message);
    }

    /// The last lines the guest wrote to standard output or error on one line, for a crash report.
    pub(crate) fn last_words(&self) -> Option<String> {
        let mut inner = self.lock();
        inner.flush_partial();
        let lines: Vec<&str> = inner.last_lines.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join(" "))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    fn line(&mut self, level: tracing::Level, message: &str) {
        if self.bytes_left == 0 {
            return;
        }
        let n_bytes = (message.len() as u64 + 1).max(LINE_BYTES_MIN);
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
        // What Rust's panic handler adds about backtraces helps nobody here.
        if !line.starts_with("note: run with `RUST_BACKTRACE") {
            self.last_lines.push_back(line);
        }
        if self.last_lines.len() > LAST_LINES {
            self.last_lines.pop_front();
        }
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

/// `zeph:plugin/log`.
impl log::Host for GuestState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Trace => tracing::Level::TRACE,
            log::Level::Debug => tracing::Level::DEBUG,
            log::Level::Info => tracing::Level::INFO,
            log::Level::Warn => tracing::Level::WARN,
            log::Level::Error => tracing::Level::ERROR,
        };
        self.log.line(level, &message);
        Ok(())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestLog {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests;
