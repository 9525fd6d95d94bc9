//! Why a request to a server failed.

use std::time::Duration;

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};

use super::ending::EndReason;

/// Most characters of a server's own words in a message.
pub(super) const WORDS_CHARS_MAX: usize = 600;

/// "Invalid Request" of JSON-RPC.
const INVALID_REQUEST: i32 = -32600;

/// What kind of failure a server reported, or had.
///
/// Source: "MCP Error Codes" of the tool-system specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum McpErrorCode {
    /// A temporary failure; the same request is likely to succeed.
    Transient,
    /// The server wants fewer requests.
    RateLimited,
    /// The parameters are invalid.
    InvalidInput,
    /// The server wants other credentials.
    AuthFailure,
    /// The server failed.
    ServerError,
    /// The tool or the resource does not exist.
    NotFound,
    /// The host does not allow what the server asked for.
    PolicyBlocked,
}

impl McpErrorCode {
    /// Every code, in the order of the specification.
    pub const ALL: [Self; 7] = [
        Self::Transient,
        Self::RateLimited,
        Self::InvalidInput,
        Self::AuthFailure,
        Self::ServerError,
        Self::NotFound,
        Self::PolicyBlocked,
    ];

    /// Its snake_case name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::RateLimited => "rate_limited",
            Self::InvalidInput => "invalid_input",
            Self::AuthFailure => "auth_failure",
            Self::ServerError => "server_error",
            Self::NotFound => "not_found",
            Self::PolicyBlocked => "policy_blocked",
        }
    }

    /// Whether the same request may succeed if it is repeated.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Transient | Self::RateLimited | Self::ServerError
        )
    }

    /// The category of a call that failed this way.
    pub fn category(self) -> ErrorCategory {
        match self {
            Self::Transient => ErrorCategory::NetworkError,
            Self::RateLimited => ErrorCategory::RateLimited,
            Self::InvalidInput => ErrorCategory::InvalidParameters,
            Self::AuthFailure | Self::PolicyBlocked => ErrorCategory::PolicyBlocked,
            Self::ServerError => ErrorCategory::ServerError,
            Self::NotFound => ErrorCategory::ToolNotFound,
        }
    }

    /// Classifies the code of a JSON-RPC error.
    pub fn from_rpc(code: i32) -> Self {
        match code {
            -32602 | INVALID_REQUEST => Self::InvalidInput,
            -32601 | -32002 => Self::NotFound,
            // "Request timeout" of several SDKs.
            -32001 => Self::Transient,
            _ => Self::ServerError,
        }
    }

    /// Classifies an HTTP status of 400 and above.
    pub fn from_http_status(status: u16) -> Self {
        match status {
            400 | 422 => Self::InvalidInput,
            401 | 403 | 407 => Self::AuthFailure,
            404 | 410 => Self::NotFound,
            408 | 425 | 502..=504 => Self::Transient,
            429 => Self::RateLimited,
            _ => Self::ServerError,
        }
    }
}

/// Why a request to a server has no result.
///
/// Messages hold what the server said on one line, without control characters, and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The server answered the request with an error.
    #[error("the server answered with error {rpc_code}: {message}")]
    ToolCall {
        /// What it comes to.
        code: McpErrorCode,
        /// The code of the JSON-RPC error.
        rpc_code: i32,
        /// The server's words.
        message: String,
    },
    /// The connection could not be opened.
    #[error("the server did not start: {0}")]
    Start(String),
    /// It answered the handshake with an error.
    #[error("the server did not start: {0}")]
    Refused(String),
    /// It ended when it was asked for its revisions, or before: servers of the older ones do, where they know no request but `initialize`.
    #[error("the server did not start: it closed its output before it answered")]
    EndedAtProbe,
    /// The connection is over.
    #[error("the connection to the server has ended: {0}")]
    Ended(EndReason),
    /// The server has not answered in time.
    #[error("the server has not answered within {} s", limit.as_secs_f32())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// The caller cancelled the request.
    #[error("the call was cancelled")]
    Cancelled,
    /// A remote server refused with a status.
    #[error("the server answered with HTTP status {status}{}", wait(*retry_after_ms))]
    Http {
        /// At least 400.
        status: u16,
        /// How long it wants to be left alone, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// A remote server answers that it is elsewhere, where the host does not go on its own.
    #[error(
        "the server answered with HTTP status {status} that it is at `{url}`; if it is to be reached there, set that as its `url`"
    )]
    Moved {
        /// 300 to 399.
        status: u16,
        /// Where it says it is.
        url: String,
    },
    /// A remote server wants credentials.
    #[error("the server requires authorization")]
    Authorization {
        /// The value of `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The request could not be sent.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The answer is not what the protocol calls for.
    #[error("the server's answer cannot be used: {0}")]
    BadAnswer(String),
    /// To answer, the server asked for what it was not given.
    #[error("the server asked for {0}, which it was not given")]
    NotGiven(&'static str),
    /// The request itself is wrong.
    #[error("{0}")]
    InvalidInput(String),
    /// The server does not offer what was asked for.
    #[error("the server does not offer {0}")]
    NotOffered(&'static str),
}

/// How long a server wants to be left alone, in words.
fn wait(retry_after_ms: Option<u64>) -> String {
    let seconds = retry_after_ms.map(|ms| ms.div_ceil(1_000));
    seconds.map_or_else(String::new, |seconds| {
        format!("; it can be asked again in {seconds} s")
    })
}

/// The scopes that a challenge asks for, as options of `mcp login`. What is no scope is omitted, and so is what is too long.
fn scopes(challenge: Option<&str>) -> String {
    let quoted = challenge.and_then(|challenge| challenge.split_once("scope=\""));
    let asked = quoted.and_then(|(_, rest)| rest.split('"').next());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":._-/".contains(&byte);
    let asked = asked.unwrap_or_default().split_whitespace();
    let usable = asked.filter(|scope| scope.len() <= 100 && scope.bytes().all(is_plain));
    usable
        .take(8)
        .map(|scope| format!(" --scope {scope}"))
        .collect()
}

impl McpError {
    /// The code of the specification; `None` for a call that was cancelled.
    pub fn code(&self) -> Option<McpErrorCode> {
        Some(match self {
            Self::ToolCall { code, .. } => *code,
            Self::Http { status, .. } => McpErrorCode::from_http_status(*status),
            Self::Timeout { .. } | Self::Ended(_) | Self::Unreachable(_) => McpErrorCode::Transient,
            Self::Start(_)
            | Self::Refused(_)
            | Self::EndedAtProbe
            | Self::Moved { .. }
            | Self::BadAnswer(_) => McpErrorCode::ServerError,
            Self::Authorization { .. } => McpErrorCode::AuthFailure,
            Self::NotGiven(_) => McpErrorCode::PolicyBlocked,
            Self::InvalidInput(_) => McpErrorCode::InvalidInput,
            Self::NotOffered(_) => McpErrorCode::NotFound,
            Self::Cancelled => return None,
        })
    }

    /// The category of a call that failed this way.
    pub fn category(&self) -> ErrorCategory {
        match self {
            Self::Timeout { .. } => ErrorCategory::Timeout,
            Self::Http { status, .. } => ErrorCategory::from_http_status(*status),
            // The same call would be answered the same way.
            Self::BadAnswer(_) | Self::Moved { .. } => ErrorCategory::PermanentFailure,
            // What servers refuse this way may have nothing to do with the arguments.
            Self::ToolCall {
                rpc_code: INVALID_REQUEST,
                ..
            } => ErrorCategory::PermanentFailure,
            _ => self
                .code()
                .map_or(ErrorCategory::Cancelled, McpErrorCode::category),
        }
    }

    /// The failure of a call. `server`: the name the operator gave it; `program`: how the host is called here.
    pub fn failure(&self, server: &str, program: &str) -> ToolFailure {
        let message = match self {
            Self::Authorization { challenge } => {
                let scopes = scopes(challenge.as_deref());
                format!(
                    "MCP server `{server}`: {self}; the operator can log in with `{program} mcp login {server}{scopes}`"
                )
            }
            _ => format!("MCP server `{server}`: {self}"),
        };
        let mut failure = ToolFailure::new(self.category(), ErrorPhase::Execution, message);
        // An answer that breaks the protocol is the server's own doing; what else fails may be due to the request or to what lies between.
        failure.is_arguable = !matches!(self, Self::BadAnswer(_));
        if let Self::Http {
            status,
            retry_after_ms,
        } = self
        {
            failure.http_status = Some(*status);
            failure.retry_after_ms = *retry_after_ms;
        }
        failure
    }

    pub(super) fn bad_answer(why: impl AsRef<str>) -> Self {
        Self::BadAnswer(one_line(why.as_ref(), WORDS_CHARS_MAX))
    }

    pub(super) fn start(why: impl AsRef<str>) -> Self {
        Self::Start(one_line(why.as_ref(), WORDS_CHARS_MAX))
    }
}
