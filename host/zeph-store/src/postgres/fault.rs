//! The words for what the server says: what could not be done, and where. And what to make of it: whether trying again can help.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::error::{ErrorSource, StoreError};
use crate::operations::OperationFault;
use crate::store::Job;

/// Where an error of the server belongs: the server, and how long it was waited for others.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The server as it may be shown.
    pub(crate) server: String,
    /// How long a statement waits for those of others.
    pub(super) busy_timeout: Duration,
}

/// The server cannot be reached, did not answer, or does not let this host in; in words.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{said}")]
pub(crate) struct Away {
    said: String,
    why: AwayReason,
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AwayReason {
    /// Nobody answers.
    Silent,
    /// It answered, and there is nothing to wait for: the user, the password or the database is another.
    Refused,
    /// It answered, and has no connection left.
    Full,
}

impl Away {
    pub(super) fn new(said: impl Into<String>) -> Self {
        Self {
            said: said.into(),
            why: AwayReason::Silent,
        }
    }

    /// No connection could be made.
    pub(super) fn of_connect(error: &tokio_postgres::Error) -> Self {
        let code = error.code().map_or("", SqlState::code);
        let why = match code {
            // Invalid authorisation, no such database, no right to connect to it.
            "3D000" | "42501" => AwayReason::Refused,
            _ if code.starts_with("28") => AwayReason::Refused,
            "53300" => AwayReason::Full,
            _ => AwayReason::Silent,
        };
        Self {
            said: words_of(error),
            why,
        }
    }

    /// Whether the server has no connection left.
    pub(super) fn is_full(&self) -> bool {
        self.why == AwayReason::Full
    }
}

/// What an error means for the transaction it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The connection is of no use any more.
    Lost,
    /// Others were in the way, or a statement has to be prepared anew: the same may well succeed now.
    Passing,
    /// What several jobs record together does not fit: it may fit job by job.
    Apart,
    /// It would fail again.
    Final,
}

/// What an error means.
pub(super) fn trouble(error: &tokio_postgres::Error) -> Trouble {
    let Some(code) = error.code() else {
        return match error.is_closed() || is_of_connection(error) {
            true => Trouble::Lost,
            false => Trouble::Final,
        };
    };
    match code.code() {
        // A server that only reads took over; another one writes.
        "25006" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Trouble::Lost,
        code if code.starts_with("08") => Trouble::Lost,
        "40001" | "40P01" | "26000" => Trouble::Passing,
        // What a statement gives has changed since it was prepared.
        "0A000" => Trouble::Passing,
        _ => Trouble::Final,
    }
}

/// Whether the disk of the server has no room.
pub(super) fn is_disk_full(fault: &OperationFault) -> bool {
    let OperationFault::Database(source) = fault else {
        return false;
    };
    let error = source.downcast_ref::<tokio_postgres::Error>();
    error.is_some_and(|error| error.code() == Some(&SqlState::DISK_FULL))
}

/// Whether it came from the connection and not from values or rows.
fn is_of_connection(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<std::io::Error>())
}

impl Site {
    fn path(&self) -> PathBuf {
        PathBuf::from(&self.server)
    }

    /// The server cannot be reached.
    pub(super) fn away(
        &self,
        operation: &'static str,
        source: impl Into<ErrorSource>,
    ) -> StoreError {
        StoreError::ServerAway {
            operation,
            server: self.server.clone(),
            source: source.into(),
        }
    }

    /// Turns an error of the server into one that says what could not be done, and where.
    pub(super) fn error(
        &self,
        operation: &'static str,
        error: tokio_postgres::Error,
    ) -> StoreError {
        let path = self.path();
        let is_lost = trouble(&error) == Trouble::Lost;
        let code = error.code().cloned();
        let source = source_of(error);
        match code {
            Some(SqlState::READ_ONLY_SQL_TRANSACTION) => StoreError::ServerReadOnly {
                operation,
                server: self.server.clone(),
                source,
            },
            Some(
                SqlState::LOCK_NOT_AVAILABLE
                | SqlState::QUERY_CANCELED
                | SqlState::T_R_DEADLOCK_DETECTED
                | SqlState::T_R_SERIALIZATION_FAILURE,
            ) => StoreError::Busy {
                operation,
                path,
                waited: self.busy_timeout,
                source,
            },
            Some(SqlState::DISK_FULL) => StoreError::DiskFull {
                operation,
                path,
                source,
            },
            _ if is_lost => self.away(operation, source),
            _ => StoreError::Database {
                operation,
                path,
                source,
            },
        }
    }

    /// Answers a job that was run.
    pub(super) fn answer(&self, job: Box<dyn Job>) {
        job.answer(&|operation, fault| self.told(operation, fault));
    }

    /// Puts the fault of an operation into words.
    pub(crate) fn told(&self, operation: &'static str, fault: OperationFault) -> StoreError {
        let source = match fault {
            OperationFault::Line(error) | OperationFault::Told(error) => return error,
            OperationFault::Moved => {
                return self.away(operation, Away::new("it was replaced"));
            }
            OperationFault::Database(source) => source,
        };
        let source = match source.downcast::<tokio_postgres::Error>() {
            Ok(error) => return self.error(operation, *error),
            Err(source) => source,
        };
        let server = self.server.clone();
        match source.downcast_ref::<Away>().map(|away| away.why) {
            Some(AwayReason::Refused) => StoreError::ServerRefused {
                operation,
                server,
                source,
            },
            Some(AwayReason::Full) => StoreError::ServerFull {
                operation,
                server,
                source,
            },
            Some(AwayReason::Silent) => self.away(operation, source),
            None => StoreError::Database {
                operation,
                path: self.path(),
                source,
            },
        }
    }
}

/// What the server said, without what the library puts before it; values of rows, which are in its details, are left out.
fn source_of(error: tokio_postgres::Error) -> ErrorSource {
    match error.as_db_error() {
        Some(said) => format!("{} (SQLSTATE {})", said.message(), said.code().code()).into(),
        None => {
            let text = error.to_string();
            error.into_source().unwrap_or_else(|| text.into())
        }
    }
}

impl From<tokio_postgres::Error> for OperationFault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

impl From<Away> for OperationFault {
    fn from(away: Away) -> Self {
        Self::Database(Box::new(away))
    }
}

/// The same fault again, for several callers: what the server says cannot be cloned.
pub(super) fn copy_of(fault: &OperationFault) -> OperationFault {
    match fault {
        OperationFault::Database(source) => match source.downcast_ref::<Away>() {
            Some(away) => away.clone().into(),
            None => OperationFault::Database(words_of(source.as_ref()).into()),
        },
        OperationFault::Moved => OperationFault::Moved,
        OperationFault::Line(error) | OperationFault::Told(error) => {
            OperationFault::Database(words_of(error).into())
        }
    }
}

/// An error and its causes in one line.
pub(super) fn words_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(&format!(": {source}"));
        cause = source.source();
    }
    text
}
