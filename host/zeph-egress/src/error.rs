//! Why a request did not get an answer.

use std::io;
use std::time::Duration;

use tokio_rustls::rustls;
use zeph_core::category::ErrorCategory;
use zeph_core::network::{Destination, HostAccess};
use zeph_core::text::counted;

use crate::dial::DialError;

/// Why there is no answer, or no more of it. Each message says what would help.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// No grant of the call covers it.
    #[error("{access} was not granted{}", closed.as_ref().map(|why| format!(", and {why}")).unwrap_or_default())]
    NotGranted {
        /// The grant that would.
        access: HostAccess,
        /// Why that grant alone would not do, and what the operator writes besides.
        closed: Option<String>,
    },
    /// The request is one that is never sent.
    #[error("{0}")]
    Request(String),
    /// Resolving, checking or connecting.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The handshake.
    #[error("TLS with `{destination}` failed: {source}")]
    Tls {
        /// What was to be reached.
        destination: Destination,
        /// Of the handshake.
        source: io::Error,
    },
    /// The certificates to trust cannot be read.
    #[error("`tools.egress.ca_file` cannot be used: {0}")]
    Roots(String),
    /// It took too long.
    #[error("`{destination}`: {what} took longer than {} s (`tools.egress.{key}`)", limit.as_secs_f64())]
    TimedOut {
        /// What was to be reached.
        destination: Destination,
        /// What took so long.
        what: &'static str,
        /// The key that bounds it.
        key: &'static str,
        /// How long it may take.
        limit: Duration,
    },
    /// Something has more bytes than it may.
    #[error("{what} is larger than {limit} bytes (`tools.egress.{key}`)")]
    TooLarge {
        /// What has.
        what: &'static str,
        /// The key that bounds it.
        key: &'static str,
        /// Most bytes.
        limit: u64,
    },
    /// The call has made all its requests.
    #[error("the call made more than {} (`tools.egress.max_requests`)", counted(*.0, "request", "requests"))]
    Requests(u32),
    /// It was sent from one place to the next.
    #[error("it was redirected more than {} (`tools.egress.max_redirects`)", counted(*.0, "time", "times"))]
    Redirects(u32),
    /// It was sent somewhere that is no place.
    #[error("`{destination}` redirects to what cannot be followed: {why}")]
    Redirect {
        /// Who sent it there.
        destination: Destination,
        /// What is wrong.
        why: String,
    },
    /// It answered with another protocol.
    #[error("`{0}` switches to another protocol, which no request asks for")]
    Upgrade(Destination),
    /// The body is encoded in a way that is not decoded.
    #[error(
        "the body has the content encoding `{0}`; gzip, deflate, br and zstd are decoded, and no more than one of them"
    )]
    Encoding(String),
    /// The body is not what its encoding says.
    #[error("the body cannot be decoded: {0}")]
    Decode(io::Error),
    /// The connection or the protocol broke.
    #[error("`{destination}`: {}", reason(source))]
    Http {
        /// What was to be reached.
        destination: Destination,
        /// Of the protocol.
        source: hyper::Error,
    },
}

/// What is wrong with the certificate of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFault {
    /// No trusted authority vouches for it.
    Issuer,
    /// It has expired, is for another host, or cannot be used for another reason.
    Certificate,
}

impl EgressError {
    /// What is wrong with the certificate of the server; `None` for any other error.
    pub fn certificate_fault(&self) -> Option<CertificateFault> {
        let Self::Tls { source, .. } = self else {
            return None;
        };
        match source.get_ref()?.downcast_ref()? {
            rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => {
                Some(CertificateFault::Issuer)
            }
            rustls::Error::InvalidCertificate(_) => Some(CertificateFault::Certificate),
            _ => None,
        }
    }

    /// The category of a call that fails by it.
    pub fn category(&self) -> ErrorCategory {
        match self {
            Self::NotGranted { .. } | Self::Request(_) | Self::Requests(_) => {
                ErrorCategory::PolicyBlocked
            }
            Self::Dial(error) => error.category(),
            Self::TimedOut { .. } => ErrorCategory::Timeout,
            Self::Roots(_) => ErrorCategory::ServerError,
            Self::TooLarge { .. } | Self::Redirects(_) | Self::Redirect { .. } => {
                ErrorCategory::PermanentFailure
            }
            Self::Encoding(_) | Self::Decode(_) => ErrorCategory::PermanentFailure,
            Self::Tls { .. } | Self::Http { .. } | Self::Upgrade(_) => ErrorCategory::NetworkError,
        }
    }
}

/// The error of the protocol and what caused it: hyper says the second only when asked.
fn reason(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
