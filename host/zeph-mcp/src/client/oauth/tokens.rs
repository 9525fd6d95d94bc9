//! What remains of a login.

use std::fmt;

use http::HeaderValue;
use rmcp::transport::auth::{OAuthTokenResponse, StoredCredentials};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Seconds before its end at which a token is renewed, at most.
const EARLY_SECS_MAX: u64 = 60;

/// The part of a token's life that is left when it is renewed, where that is less.
const EARLY_PART: u64 = 5;

/// The credentials for one server, as they are stored. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginTokens {
    /// The endpoint they were issued for. They are sent to no other.
    pub url: String,
    /// The authorization server that issued them; none for one without metadata.
    pub issuer: Option<String>,
    /// Where tokens are renewed. A refresh token is sent to no other place.
    pub token_endpoint: String,
    /// What the client is called there.
    pub client_id: String,
    /// What it proves that with, if it can.
    pub client_secret: Option<String>,
    /// What requests carry.
    pub access_token: String,
    /// What the next access token is had for.
    pub refresh_token: Option<String>,
    /// What was granted.
    pub scopes: Vec<String>,
    /// When the access token was received, in Unix seconds.
    pub received_at_s: u64,
    /// How long it is good for from then on, in seconds; none when the server did not report it.
    pub lifetime_s: Option<u64>,
}

/// The value of an `Authorization` header. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer(String);

impl Bearer {
    /// As the header's value: `Bearer TOKEN`.
    pub fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// What a request carried.
    pub(super) fn of(header: &HeaderValue) -> Option<Self> {
        let token = header.to_str().ok()?.strip_prefix("Bearer ")?;
        Some(Self(token.to_owned()))
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

impl fmt::Debug for LoginTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginTokens")
            .field("url", &self.url)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl LoginTokens {
    /// The values nobody may read.
    pub fn secrets(&self) -> Vec<&str> {
        let others = self.refresh_token.iter().chain(&self.client_secret);
        std::iter::once(&self.access_token)
            .chain(others)
            .map(String::as_str)
            .filter(|secret| !secret.is_empty())
            .collect()
    }

    /// What requests carry.
    pub fn bearer(&self) -> Bearer {
        Bearer(self.access_token.clone())
    }

    /// Whether the access token should be renewed before it is used: at the latest a minute before its end.
    pub fn is_due(&self, now_s: u64) -> bool {
        self.lifetime_s.is_some_and(|lifetime| {
            let early = (lifetime / EARLY_PART).min(EARLY_SECS_MAX);
            now_s + early >= self.received_at_s.saturating_add(lifetime)
        })
    }

    /// Whether the access token has expired.
    pub fn is_over(&self, now_s: u64) -> bool {
        self.lifetime_s
            .is_some_and(|lifetime| now_s >= self.received_at_s.saturating_add(lifetime))
    }

    /// As rmcp keeps them.
    pub(super) fn as_stored(&self) -> Option<StoredCredentials> {
        let response = json!({
            "access_token": self.access_token,
            "token_type": "bearer",
            "expires_in": self.lifetime_s,
            "refresh_token": self.refresh_token,
            "scope": self.scopes.join(" "),
        });
        let response: OAuthTokenResponse = serde_json::from_value(response).ok()?;
        let stored = StoredCredentials::new(
            self.client_id.clone(),
            Some(response),
            self.scopes.clone(),
            Some(self.received_at_s),
        );
        Some(stored.with_issuer(self.issuer.clone()))
    }

    /// These with the tokens that rmcp received at `now_s`; `None` when they are not usable ones.
    pub(super) fn renewed(&self, stored: &StoredCredentials, now_s: u64) -> Option<Self> {
        let tokens = TokenResponse::of(stored.token_response.as_ref()?)?;
        Some(Self {
            access_token: tokens.access_token,
            refresh_token: tokens.refresh_token.or_else(|| self.refresh_token.clone()),
            scopes: stored.granted_scopes.clone(),
            received_at_s: now_s,
            lifetime_s: tokens.expires_in,
            ..self.clone()
        })
    }
}

/// What of a token response is kept.
#[derive(Deserialize)]
pub(super) struct TokenResponse {
    pub(super) access_token: String,
    pub(super) token_type: String,
    pub(super) expires_in: Option<u64>,
    pub(super) refresh_token: Option<String>,
}

impl TokenResponse {
    /// The bearer tokens of a response; `None` when it has another kind, or values that no header takes.
    pub(super) fn of(response: &OAuthTokenResponse) -> Option<Self> {
        let tokens: Self = serde_json::from_value(serde_json::to_value(response).ok()?).ok()?;
        let is_token =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_bearer = tokens.token_type.eq_ignore_ascii_case("bearer");
        (is_bearer && is_token(&tokens.access_token)).then_some(tokens)
    }
}
