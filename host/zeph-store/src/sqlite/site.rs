//! The words for what SQLite says: what could not be done, and where.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ErrorCode;

use super::signs::note_damage;
use crate::error::{ErrorSource, StoreError};
use crate::open::MEMORY;
use crate::operations::OperationFault;

/// Where an error of SQLite belongs: the file it concerns, and how long it waited for others.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The database file, or `:memory:`.
    pub(crate) path: PathBuf,
    /// How long SQLite waits for other processes.
    pub(crate) busy_timeout: Duration,
}

impl Site {
    /// Turns an error of SQLite into one that says what could not be done, and where.
    pub(crate) fn error(&self, operation: &'static str, source: rusqlite::Error) -> StoreError {
        let path = self.path.clone();
        let code = source.sqlite_error_code();
        let source = ErrorSource::from(source);
        match code {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt {
                operation,
                path,
                source,
            },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                StoreError::ReadOnly {
                    operation,
                    path,
                    source,
                }
            }
            Some(ErrorCode::DiskFull) => StoreError::DiskFull {
                operation,
                path,
                source,
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
                operation,
                path,
                waited: self.busy_timeout,
                source,
            },
            _ => StoreError::Database {
                operation,
                path,
                source,
            },
        }
    }

    /// Puts the fault of an operation into words. Damage is noted beside the file: a start looks at a few pages only, and not where it was met.
    pub(crate) fn told(&self, operation: &'static str, fault: OperationFault) -> StoreError {
        let error = self.worded(operation, fault);
        if matches!(error, StoreError::Corrupt { .. }) && self.path.as_os_str() != MEMORY {
            note_damage(&self.path);
        }
        error
    }

    fn worded(&self, operation: &'static str, fault: OperationFault) -> StoreError {
        match fault {
            OperationFault::Line(error) | OperationFault::Told(error) => error,
            OperationFault::Moved => StoreError::Moved {
                operation,
                path: self.path.clone(),
            },
            OperationFault::Database(source) => match source.downcast::<rusqlite::Error>() {
                Ok(source) => self.error(operation, *source),
                Err(source) => StoreError::Database {
                    operation,
                    path: self.path.clone(),
                    source,
                },
            },
        }
    }
}

/// Whether the same may well succeed later: a disk has room again, is written again, or answers again, and others end what they do.
pub(super) fn is_passing(fault: &OperationFault) -> bool {
    let OperationFault::Database(source) = fault else {
        return false;
    };
    let error = source.downcast_ref::<rusqlite::Error>();
    let code = error.and_then(rusqlite::Error::sqlite_error_code);
    matches!(
        code,
        Some(
            ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
        )
    )
}

impl From<rusqlite::Error> for OperationFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Box::new(error))
    }
}
