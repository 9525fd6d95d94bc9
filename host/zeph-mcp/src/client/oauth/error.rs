//! Why there is no token.

use rmcp::transport::auth::AuthError;
use zeph_core::failure::one_line;

/// Maximum characters of a text that a server sent, in a message.
const FOREIGN_CHARS_MAX: usize = 300;

/// Why a login failed, or why there is no token for a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// There are no usable credentials, and only a person can get some.
    #[error("the server `{server}` requires a login: {why}")]
    Needed {
        /// The name of the server.
        server: String,
        /// What is wrong with the credentials there are, if any.
        why: &'static str,
    },
    /// The login leads to a host that the operator did not name.
    #[error(
        "the login of the server `{server}` leads to `{host}`, which the configuration does not name"
    )]
    Host {
        /// The name of the server.
        server: String,
        /// The host, with its port unless that is 443.
        host: String,
    },
    /// What the browser was sent back with does not end this login.
    #[error("the redirect is not the answer to this login: {0}")]
    Redirect(&'static str),
    /// The answer comes from another authorization server than the one that was asked.
    #[error("the answer comes from another authorization server: {0}")]
    Issuer(String),
    /// The authorization server refused.
    #[error("the authorization server refused the login: {0}")]
    Refused(String),
    /// What the servers offer cannot be used.
    #[error("the server offers no usable login: {0}")]
    Unsupported(String),
    /// Nobody finished the login in time.
    #[error("the login was not finished within {0} s")]
    Timeout(u64),
    /// A request failed; it may work later.
    #[error("a request of the login failed: {0}")]
    Network(String),
    /// The credentials cannot be read or written.
    #[error("the credentials cannot be stored: {0}")]
    Store(String),
}

impl LoginError {
    /// Whether only `mcp login` helps.
    pub fn needs_login(&self) -> bool {
        matches!(self, Self::Needed { .. } | Self::Issuer(_))
    }

    /// What to do about it, with the exact command or key.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Needed { server, .. } => Some(format!("run `zeph-host mcp login {server}`")),
            Self::Host { server, host } => Some(format!(
                "if this is the authorization server of `{server}`, add `\"{host}\"` to `mcp.servers.{server}.hosts`"
            )),
            Self::Redirect(_) | Self::Timeout(_) => Some("start the login again".to_owned()),
            _ => None,
        }
    }

    /// What rmcp reports, without anything that may quote a token.
    pub(super) fn from_auth(error: &AuthError) -> Self {
        let text = foreign(&error.to_string());
        match error {
            AuthError::AuthorizationServerMismatch { .. }
            | AuthError::AuthorizationServerMissingIssuer { .. } => Self::Issuer(text),
            AuthError::PkceUnsupported
            | AuthError::NoAuthorizationSupport
            | AuthError::ProtectedResourceMetadataInvalid { .. }
            | AuthError::AuthorizationServersUnavailable { .. }
            | AuthError::InvalidScope(_)
            | AuthError::RegistrationFailed(_)
            | AuthError::OAuthError(_)
            | AuthError::MetadataError(_) => Self::Unsupported(text),
            AuthError::AuthorizationFailed(_) => Self::Refused(text),
            AuthError::TokenExchangeFailed(why) => token_request(why),
            AuthError::DiscoveryRequestFailed { url, source } => {
                Self::Network(foreign(&format!("`{url}`: {source}")))
            }
            // The rest may quote what a token endpoint answered.
            _ => Self::Network("the token request failed".to_owned()),
        }
    }
}

/// A parse error may quote the answer, which holds tokens; a refusal of the server is quoted.
fn token_request(why: &str) -> LoginError {
    match why.strip_prefix("Server returned error response: ") {
        Some(refusal) => LoginError::Refused(foreign(refusal)),
        None => LoginError::Network("the token request failed".to_owned()),
    }
}

/// A text of others in one line.
pub(super) fn foreign(text: &str) -> String {
    one_line(text, FOREIGN_CHARS_MAX)
}
