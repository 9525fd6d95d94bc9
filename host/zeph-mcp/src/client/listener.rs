//! What a server says without being asked, and what it asks for.

use std::fmt::Debug;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, LoggingLevel};
use serde_json::Value;
use zeph_core::redact::Redactor;
use zeph_egress::Pending;

use super::{Era, QuestionKinds};

/// A list that a server says has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// The tools.
    Tools,
    /// The prompts.
    Prompts,
    /// The resources and their templates.
    Resources,
}

/// A log message of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerLog {
    /// How severe the server finds it.
    pub level: LoggingLevel,
    /// The part of the server that wrote it.
    pub logger: Option<String>,
    /// The message: a text or an object, as the server sent it, at most [`LOG_BYTES_MAX`] bytes.
    pub data: Value,
}

/// Most bytes of a log message. A longer one is not delivered.
pub const LOG_BYTES_MAX: usize = 64 * 1024;

/// How far the server is with a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do.
    pub total: Option<f64>,
    /// What it is doing, on one line.
    pub message: Option<String>,
}

/// Receives what a server says, and answers what it asks. By default everything is ignored, and every request is refused.
///
/// The methods without a future are called one after the other while the connection waits, so they must return at once.
/// Requests for completions by the model and for directories are always refused: the protocol has deprecated them.
pub trait ServerListener: Debug + Send + Sync + 'static {
    /// A list has changed.
    fn changed(&self, _list: ListKind) {}

    /// A resource that was subscribed to has changed.
    fn resource_updated(&self, _uri: &str) {}

    /// The server logged something.
    fn logged(&self, _log: ServerLog) {}

    /// Which log messages the server is to send; none where that is its own choice. Asked when a connection has been opened, and with each
    /// request to a server of the stateless revisions, which is told anew with each.
    fn log_level(&self) -> Option<LoggingLevel> {
        None
    }

    /// The server did something wrong, such as printing what is not a message: one line, for the operator. A connection
    /// complains a bounded number of times.
    fn complained(&self, _line: String) {}

    /// Removes secrets from what the server says about itself and from the definitions it lists, before anything is made of them.
    fn redactor(&self) -> Redactor {
        Redactor::default()
    }

    /// Which generations of the protocol are tried with [`Era::Auto`]: a server whose client speaks the older revisions may be of use only in
    /// one of them. Asked once for a connection over pipes, when it is opened, and waited for.
    fn era(&self) -> Pending<'_, Era> {
        Box::pin(std::future::ready(Era::Auto))
    }

    /// The kinds of questions that reach the user, for the server to know. Asked once for a connection, when it is opened with
    /// [`Offers::elicitation`](super::Offers), and waited for.
    fn question_kinds(&self) -> Pending<'_, QuestionKinds> {
        Box::pin(std::future::ready(QuestionKinds::ALL))
    }

    /// The server asks the user. Called only when [`Offers::elicitation`](super::Offers) is given, with a question of these kinds. While it
    /// is open, the limit of time of the calls stands still; the future is dropped when the server withdraws the question, when every call
    /// that was open when it came is over, and when the connection ends.
    fn elicit(&self, _question: ElicitRequestParams) -> Pending<'_, ElicitResult> {
        Box::pin(std::future::ready(ElicitResult::new(
            ElicitationAction::Decline,
        )))
    }
}

/// Ignores and refuses everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deaf;

impl ServerListener for Deaf {}
