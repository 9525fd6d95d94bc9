//! Why a model did not answer.

use std::fmt;
use std::time::Duration;

/// Why a model did not answer, in one message with what to do about it. No key is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The name of the provider in the configuration.
    pub provider: String,
    /// What kind of failure it is.
    pub kind: ProviderErrorKind,
    /// What happened, in the words of the provider where it has some; one line.
    pub message: String,
    /// The status of its answer, where there is one.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// The settings cannot work: an address that is none, a missing key.
    Settings,
    /// The key is not accepted.
    Authentication,
    /// There is no credit, or the account is closed. Never tried again.
    Billing,
    /// Too many requests.
    RateLimited,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider does not accept the request.
    Request,
    /// The conversation is longer than the context of the model.
    ContextLength,
    /// There is no such model or address.
    NotFound,
    /// There is no connection, or it broke.
    Network,
    /// A limit of time was met.
    Timeout,
    /// The answer ended before its end.
    Cut,
    /// What came is not what the provider's documentation describes.
    Protocol,
}

impl ProviderErrorKind {
    /// Whether the same request may succeed later.
    pub fn is_passing(self) -> bool {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Server => true,
            Self::Network | Self::Timeout | Self::Cut | Self::Protocol => true,
            Self::Settings | Self::Authentication | Self::Billing => false,
            Self::Request | Self::ContextLength | Self::NotFound => false,
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "provider `{}`: {}", self.provider, self.message)?;
        if let Some(status) = self.status {
            write!(f, " (status {status})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ProviderError {}
