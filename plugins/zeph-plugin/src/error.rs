//! How a tool says that it failed: one plain sentence and a category of the host's taxonomy.
//!
//! Pick the category by what helps the model next. The host derives from it whether a retry makes sense and what to advise; it
//! knows more categories, which are its own to give.

use std::io;

use crate::{Category, ToolError};

impl ToolError {
    /// A failure of `category`.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self {
            category,
            message: message.into(),
            http_status: None,
            retry_after_ms: None,
        }
    }

    /// The arguments cannot be used; other values may help.
    pub fn invalid_parameters(message: impl Into<String>) -> Self {
        Self::new(Category::InvalidParameters, message)
    }

    /// A value inside an open part of the schema has the wrong type. The host has checked all the rest.
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new(Category::TypeMismatch, message)
    }

    /// The call asks for something outside the plugin's rights.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Category::PolicyBlocked, message)
    }

    /// What the call names does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Category::PermanentFailure, message)
    }

    /// Trying again without a change would fail again.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(Category::PermanentFailure, message)
    }

    /// Something the call depends on failed; trying again may help.
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(Category::ServerError, message)
    }

    /// The far side cannot be reached; trying again may help.
    pub fn network(message: impl Into<String>) -> Self {
        Self::new(Category::NetworkError, message)
    }

    /// The far side said that the work was called off.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(Category::Cancelled, message)
    }

    /// A time limit passed.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(Category::Timeout, message)
    }

    /// The far side asks to wait, for `retry_after_ms` milliseconds when it said how long.
    pub fn rate_limited(message: impl Into<String>, retry_after_ms: Option<u64>) -> Self {
        Self {
            retry_after_ms,
            ..Self::new(Category::RateLimited, message)
        }
    }

    /// The far side answered with an HTTP `status` of 400 and above.
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        let category = match status {
            400 | 422 => Category::InvalidParameters,
            401 | 403 => Category::PolicyBlocked,
            429 => Category::RateLimited,
            500..=599 => Category::ServerError,
            _ => Category::PermanentFailure,
        };
        Self {
            http_status: Some(status),
            ..Self::new(category, message)
        }
    }

    /// An operating-system error, told as `message` and classified by its kind.
    pub fn io(kind: io::ErrorKind, message: impl Into<String>) -> Self {
        Self::new(category_of(kind), message)
    }
}

impl From<io::Error> for ToolError {
    fn from(error: io::Error) -> Self {
        Self::io(error.kind(), error.to_string())
    }
}

/// Source: "I/O Error Classification" of the host's error taxonomy.
fn category_of(kind: io::ErrorKind) -> Category {
    use io::ErrorKind as Kind;
    match kind {
        Kind::TimedOut => Category::Timeout,
        Kind::ConnectionRefused
        | Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::NotConnected
        | Kind::AddrInUse
        | Kind::AddrNotAvailable
        | Kind::HostUnreachable
        | Kind::NetworkUnreachable
        | Kind::NetworkDown
        | Kind::BrokenPipe => Category::NetworkError,
        Kind::WouldBlock | Kind::Interrupted => Category::ServerError,
        Kind::PermissionDenied => Category::PolicyBlocked,
        _ => Category::PermanentFailure,
    }
}
