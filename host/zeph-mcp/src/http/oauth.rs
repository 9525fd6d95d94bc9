//! Access tokens of an external authorisation server. The endpoint is a resource server (RFC 9728): it checks tokens and issues none.
//!
//! In reading order: `jwt` (what a token says, and whether it is true), `jwk` (public keys), `keys` (those of the server, as they change) and
//! `fetch`.

mod fetch;
mod jwk;
mod jwt;
mod keys;

use std::fmt;
use std::time::Duration;

use http::header::HOST;
use http::{HeaderMap, Uri};
use serde_json::{Value, json};

use self::keys::Keys;

pub use self::fetch::{FETCH_MAX, FetchError, KEYS_BYTES_MAX, KeyFetcher};
pub(super) use self::jwt::AccessTokenError;

/// Where a resource describes itself.
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// How long no keys are fetched again, whatever keys tokens ask for.
const FETCH_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The authorisation server whose access tokens are accepted.
#[derive(Debug, Clone)]
pub struct OAuthOptions {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// What the `aud` of a token must contain.
    pub audience: String,
    /// Where its public keys are: `https`, or `http` on this machine.
    pub jwks_url: String,
    /// Fetches the keys from there.
    pub fetcher: KeyFetcher,
    /// How long no keys are fetched again, whatever keys tokens ask for.
    pub fetch_again_after: Duration,
}

/// Checks access tokens.
pub(super) struct OAuth {
    options: OAuthOptions,
    keys: Keys,
}

/// Whom an access token speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    /// `oauth:ISSUER|SUB`. No token of the store has a name with a colon.
    pub(super) caller_id: String,
    /// Unix milliseconds.
    pub(super) expires_at_ms: i64,
}

impl OAuthOptions {
    /// A server with these tokens and keys.
    pub fn new(issuer: String, audience: String, jwks_url: String, fetcher: KeyFetcher) -> Self {
        Self {
            issuer,
            audience,
            jwks_url,
            fetcher,
            fetch_again_after: FETCH_AGAIN_AFTER,
        }
    }
}

impl OAuth {
    /// Fetches nothing yet.
    ///
    /// Errors: `jwks_url` is not a URL that keys can be fetched from.
    pub(super) fn new(options: OAuthOptions) -> Result<Self, String> {
        let source = fetch::Source::new(&options.jwks_url, options.fetcher.clone())?;
        let keys = Keys::new(source, options.fetch_again_after);
        Ok(Self { options, keys })
    }

    /// Whom an access token speaks for.
    ///
    /// Errors: [`AccessTokenError`].
    pub(super) async fn subject(
        &self,
        text: &str,
        now_ms: i64,
    ) -> Result<Subject, AccessTokenError> {
        let token = jwt::Token::read(text)?;
        let key = self.keys.find(&token.header).await?;
        let claims = token.verified(&key)?;
        claims.check(&self.options.issuer, &self.options.audience, now_ms)
    }

    /// What RFC 9728 says about this resource.
    pub(super) fn metadata(&self, headers: &HeaderMap) -> Value {
        json!({
            "resource": self.resource(headers),
            "authorization_servers": [self.options.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "zeph-host",
        })
    }

    /// Where that can be read.
    pub(super) fn metadata_url(&self, headers: &HeaderMap) -> String {
        let resource: Uri = self.resource(headers).parse().unwrap_or_default();
        let scheme = resource.scheme_str().unwrap_or("http");
        let authority = resource.authority().map_or("", |name| name.as_str());
        let path = resource.path().trim_end_matches('/');
        format!("{scheme}://{authority}{METADATA_PATH}{path}")
    }

    /// The URL of this resource: the audience where that is one.
    fn resource(&self, headers: &HeaderMap) -> String {
        let audience = &self.options.audience;
        let is_url = |uri: Uri| uri.scheme().is_some() && uri.authority().is_some();
        if audience.parse().is_ok_and(is_url) {
            return audience.clone();
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        format!("http://{}/mcp", host.unwrap_or("localhost"))
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").finish_non_exhaustive()
    }
}
