//! The eleven categories of failure, and what follows from each: retry, reformat, blame, advice.
//!
//! Source: the error taxonomy of the tool-system specification.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// Why a call did not succeed. Serialised as its snake_case label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    /// The request names a tool that the catalog does not contain.
    ToolNotFound,
    /// An argument is missing or has an invalid value.
    InvalidParameters,
    /// An argument has the wrong JSON type.
    TypeMismatch,
    /// A rule, a grant, a limit of rights or a sandbox forbids it.
    PolicyBlocked,
    /// The call needs approval.
    ConfirmationRequired,
    /// The same call would fail again.
    PermanentFailure,
    /// The caller cancelled the call.
    Cancelled,
    /// Too many requests, or a resource is exhausted.
    RateLimited,
    /// The remote side, or the host itself, failed.
    ServerError,
    /// The network failed.
    NetworkError,
    /// A time limit was reached.
    Timeout,
}

/// The part of an agent's work that a failure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorDomain {
    /// Choosing a tool.
    Planning,
    /// Filling in its arguments.
    Reflection,
    /// Running it.
    Action,
    /// The infrastructure.
    System,
}

/// The part of a call in which a failure occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorPhase {
    /// Before the arguments were read: unknown tool, no permission.
    Setup,
    /// Reading the arguments.
    ParamHandling,
    /// Running the tool.
    Execution,
    /// Reading the result of the tool.
    ResultInterpretation,
}

impl ErrorCategory {
    /// Every category, in the order of the specification.
    pub const ALL: [Self; 11] = [
        Self::ToolNotFound,
        Self::InvalidParameters,
        Self::TypeMismatch,
        Self::PolicyBlocked,
        Self::ConfirmationRequired,
        Self::PermanentFailure,
        Self::Cancelled,
        Self::RateLimited,
        Self::ServerError,
        Self::NetworkError,
        Self::Timeout,
    ];

    /// The snake_case name used in feedback, audit and protocols.
    pub fn label(self) -> &'static str {
        match self {
            Self::ToolNotFound => "tool_not_found",
            Self::InvalidParameters => "invalid_parameters",
            Self::TypeMismatch => "type_mismatch",
            Self::PolicyBlocked => "policy_blocked",
            Self::ConfirmationRequired => "confirmation_required",
            Self::PermanentFailure => "permanent_failure",
            Self::Cancelled => "cancelled",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
            Self::NetworkError => "network_error",
            Self::Timeout => "timeout",
        }
    }

    /// Whether the same call may succeed if it is repeated.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::ServerError | Self::NetworkError | Self::Timeout
        )
    }

    /// Whether the model caused the failure and should reconsider.
    pub fn is_quality_failure(self) -> bool {
        matches!(
            self,
            Self::ToolNotFound | Self::InvalidParameters | Self::TypeMismatch
        )
    }

    /// Whether other arguments may help.
    pub fn asks_for_reformat(self) -> bool {
        matches!(self, Self::InvalidParameters | Self::TypeMismatch)
    }

    /// The domain it belongs to.
    pub fn domain(self) -> ErrorDomain {
        match self {
            Self::ToolNotFound => ErrorDomain::Planning,
            Self::InvalidParameters | Self::TypeMismatch => ErrorDomain::Reflection,
            Self::PolicyBlocked
            | Self::ConfirmationRequired
            | Self::PermanentFailure
            | Self::Cancelled => ErrorDomain::Action,
            Self::RateLimited | Self::ServerError | Self::NetworkError | Self::Timeout => {
                ErrorDomain::System
            }
        }
    }

    /// One sentence of advice for the model.
    pub fn suggestion(self) -> &'static str {
        match self {
            Self::ToolNotFound => "Check the tool name against the list of tools.",
            Self::InvalidParameters => "Review the tool schema and provide correct parameters.",
            Self::TypeMismatch => "Check parameter types against the tool schema.",
            Self::PolicyBlocked => {
                "This operation is blocked by security policy. Try an alternative approach."
            }
            Self::ConfirmationRequired => "This operation requires user confirmation.",
            Self::PermanentFailure => {
                "This resource is not available. Try an alternative approach."
            }
            Self::Cancelled => "Operation was cancelled by the user.",
            Self::RateLimited => "Rate limit exceeded. Wait, then make the call again.",
            Self::ServerError => "Server error. The same call may succeed when made again.",
            Self::NetworkError => "Network error. The same call may succeed when made again.",
            Self::Timeout => "Operation timed out. Allow more time or ask for less.",
        }
    }

    /// Classifies an HTTP status of 400 and above.
    ///
    /// Source: "HTTP Status Classification" of the specification.
    pub fn from_http_status(status: u16) -> Self {
        match status {
            400 | 422 => Self::InvalidParameters,
            401 | 403 => Self::PolicyBlocked,
            429 => Self::RateLimited,
            500..=599 => Self::ServerError,
            _ => Self::PermanentFailure,
        }
    }

    /// Classifies an operating-system error.
    pub fn from_io_kind(kind: io::ErrorKind) -> Self {
        use io::ErrorKind as Kind;
        match kind {
            Kind::TimedOut => Self::Timeout,
            Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected
            | Kind::AddrInUse
            | Kind::AddrNotAvailable
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::BrokenPipe => Self::NetworkError,
            Kind::WouldBlock | Kind::Interrupted => Self::ServerError,
            Kind::PermissionDenied => Self::PolicyBlocked,
            _ => Self::PermanentFailure,
        }
    }
}

impl fmt::Display for ErrorCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests;
