//! Why a request of the host got no answer, or no more of it.

use std::fmt;
use std::time::Duration;

use zeph_core::network::Destination;

use crate::dial::DialError;
use crate::error::EgressError;

/// Why a request of the host got no answer, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The URL cannot be fetched, or nobody named its host.
    #[error("`{url}` cannot be fetched: {why}")]
    Url {
        /// What was to be fetched.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// Plain HTTP, with a host that the operator named for TLS.
    #[error("`{url}` cannot be fetched: plain HTTP is spoken only where the operator wrote it")]
    Plain {
        /// What was to be fetched.
        url: String,
        /// Host and port.
        destination: Destination,
    },
    /// Resolving, what the addresses are, or connecting.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// TLS, the protocol, or the encoding of the body.
    #[error(transparent)]
    Protocol(EgressError),
    /// It took too long.
    #[error("`{destination}`: {phase} took longer than {} s", limit.as_secs_f64())]
    TimedOut {
        /// What was to be reached.
        destination: Destination,
        /// What took so long.
        phase: OwnPhase,
        /// How long it may take.
        limit: Duration,
    },
    /// The server says no.
    #[error("the answer has status {0}")]
    Status(u16),
    /// The body is too large.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

/// The parts of a request that have a limit of time of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnPhase {
    /// Until there is a connection, TLS included.
    Connect,
    /// Until the header of the answer.
    Headers,
    /// Between two pieces of the body.
    Idle,
    /// From the beginning to the end of the body.
    Total,
}

impl fmt::Display for OwnPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Headers => "the first byte of the answer",
            Self::Idle => "a pause in the answer",
            Self::Total => "the whole answer",
        })
    }
}

impl OwnError {
    /// Whether the server may have seen the request. When it is `false`, nothing was sent.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Url { .. } | Self::Plain { .. } | Self::Dial(_) => false,
            Self::Protocol(EgressError::Tls { .. } | EgressError::Roots(_)) => false,
            Self::Protocol(EgressError::Http { source, .. }) => !source.is_canceled(),
            Self::TimedOut { phase, .. } => *phase != OwnPhase::Connect,
            Self::Protocol(_) | Self::Status(_) | Self::TooLarge(_) => true,
        }
    }
}

impl From<EgressError> for OwnError {
    fn from(error: EgressError) -> Self {
        match error {
            EgressError::Dial(error) => Self::Dial(error),
            EgressError::TimedOut {
                destination,
                key,
                limit,
                ..
            } => Self::TimedOut {
                destination,
                phase: match key {
                    "idle_timeout_secs" => OwnPhase::Idle,
                    _ => OwnPhase::Total,
                },
                limit,
            },
            EgressError::TooLarge { limit, .. } => {
                Self::TooLarge(usize::try_from(limit).unwrap_or(usize::MAX))
            }
            error => Self::Protocol(error),
        }
    }
}
