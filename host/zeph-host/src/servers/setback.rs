//! Why a server does not run any more, or not yet, in words that help.

use std::sync::Arc;
use std::time::Duration;

use zeph_core::failure::one_line;
use zeph_mcp::client::McpError;

use super::opener::{OpenFailure, ServerProcess};
use super::set::ChangedServer;

/// Most characters of a reason.
const REASON_CHARS_MAX: usize = 600;

/// Lines at the end of standard error that are searched for an error.
const LAST_LINES: usize = 20;

/// Why a server does not run any more, or not yet.
#[derive(Debug)]
pub(super) enum Setback {
    /// It is not what was accepted.
    Changed(Box<ChangedServer>),
    /// It could not be started.
    Failed(String),
    /// It wants to be left alone for a while.
    Busy {
        /// What it said.
        reason: String,
        /// For how long.
        wait: Duration,
    },
    /// A person has to log in.
    NeedsLogin(String),
    /// It ended after it had been active.
    Ended(String),
}

impl From<OpenFailure> for Setback {
    fn from(failure: OpenFailure) -> Self {
        let OpenFailure::Failed(reason) = failure;
        Self::Failed(reason)
    }
}

/// Of a connection that was not opened.
pub(super) fn failed(error: &McpError, process: Option<&Arc<dyn ServerProcess>>) -> Setback {
    match error {
        McpError::Authorization { .. } => Setback::NeedsLogin(shown(error)),
        McpError::Http {
            retry_after_ms: Some(wait_ms),
            ..
        } => Setback::Busy {
            reason: shown(error),
            wait: Duration::from_millis(*wait_ms),
        },
        McpError::Timeout { .. } => {
            let reason = format!("{} (`mcp.start_timeout`)", shown(error));
            Setback::Failed(with_last_words(reason, process))
        }
        _ => Setback::Failed(with_last_words(shown(error), process)),
    }
}

/// An error on one line.
pub(super) fn shown(error: &McpError) -> String {
    one_line(&error.to_string(), REASON_CHARS_MAX)
}

/// The last line that speaks of an error, of the last few; else the last one. Programs end with their version, or where they were.
fn last_words(stderr: &str) -> Option<&str> {
    let said = || stderr.lines().rev().filter(|line| !line.trim().is_empty());
    let mut last = said().take(LAST_LINES);
    let error = last.find(|line| line.contains("rror:") || line.contains("rror "));
    error.or_else(|| said().next())
}

/// A reason with the last line of standard error, and with what was refused last, which is most often why.
pub(super) fn with_last_words(reason: String, process: Option<&Arc<dyn ServerProcess>>) -> String {
    let Some(process) = process else {
        return reason;
    };
    let stderr = process.stderr();
    let last = last_words(&stderr);
    let mut text = reason;
    if let Some(last) = last {
        text.push_str(&format!("; it said last: {}", one_line(last, 200)));
    }
    if let Some(refused) = process.refused().last() {
        text.push_str(&format!("; {refused}"));
    }
    one_line(&text, REASON_CHARS_MAX)
}
