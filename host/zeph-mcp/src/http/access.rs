//! Who is behind a request: the bearer of a token of the store, the subject of an access token, or anybody.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio_util::sync::CancellationToken;
use zeph_core::id::Digest;

use super::oauth::{AccessTokenError, OAuth};
use crate::caller::{CallRate, Caller};
use crate::door::OpenDoor;
use crate::holdings::Holdings;
use crate::subset::ToolSubset;
use crate::token::{self, KnownToken, TokenDigest};

/// Why the tokens cannot be read.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// The tokens, as they are read for one request.
pub type TokensRead<'s> =
    Pin<Box<dyn Future<Output = Result<Vec<KnownToken>, SourceError>> + Send + 's>>;

/// Where the tokens are kept. It is asked for every request, so that another process can add and revoke them.
pub trait TokenSource: Send + Sync + 'static {
    /// The tokens there are, expired ones included.
    fn tokens(&self) -> TokensRead<'_>;
}

/// What let a request in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Credential {
    /// Nothing: the endpoint was open.
    None,
    /// A token.
    Token(TokenDigest),
    /// An access token of the authorisation server, until this moment in Unix milliseconds.
    Access(i64),
}

/// A caller that may use the endpoint.
#[derive(Debug, Clone)]
pub(super) struct Admitted {
    pub(super) caller: Caller,
    pub(super) credential: Credential,
}

/// Why a request may not use the endpoint.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    #[error("this server requires a token: send it as `Authorization: Bearer TOKEN`")]
    Missing,
    #[error("the `Authorization` header is not `Bearer TOKEN`")]
    Malformed,
    #[error("the token is unknown, revoked or expired")]
    Token,
    #[error("the access token is refused: {0}")]
    Access(AccessTokenError),
    #[error("the access token cannot be checked: {0}")]
    Unchecked(AccessTokenError),
    #[error("the tokens of this server cannot be read")]
    Source,
}

impl Denied {
    /// Whether the server is at fault: the same request may be let in a moment later.
    pub(super) fn is_fault(&self) -> bool {
        matches!(self, Self::Source | Self::Unchecked(_))
    }
}

impl From<AccessTokenError> for Denied {
    fn from(error: AccessTokenError) -> Self {
        match error {
            AccessTokenError::NoKeys => Self::Unchecked(error),
            error => Self::Access(error),
        }
    }
}

/// Who may use the endpoint.
pub(super) struct Access {
    source: Arc<dyn TokenSource>,
    oauth: Option<OAuth>,
    holdings: Arc<Holdings>,
    now_ms: fn() -> i64,
    door: Arc<OpenDoor>,
}

/// Which requests in progress may go on.
pub(super) struct StillValid {
    tokens: Vec<KnownToken>,
    is_open: bool,
    now_ms: i64,
}

impl Access {
    pub(super) fn new(
        source: Arc<dyn TokenSource>,
        oauth: Option<OAuth>,
        (holdings, door): (Arc<Holdings>, Arc<OpenDoor>),
        now_ms: fn() -> i64,
    ) -> Self {
        door.serve(oauth.is_some());
        Self {
            source,
            oauth,
            holdings,
            now_ms,
            door,
        }
    }

    /// Whether anybody may use the endpoint.
    ///
    /// Errors: the tokens cannot be read.
    pub(super) async fn is_open(&self) -> Result<bool, SourceError> {
        Ok(self.tokens().await?.1)
    }

    /// The authorisation server, if one is configured.
    pub(super) fn oauth(&self) -> Option<&OAuth> {
        self.oauth.as_ref()
    }

    /// Who is behind a request with these headers.
    ///
    /// Errors: [`Denied`].
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<Admitted, Denied> {
        let (tokens, is_open) = self.tokens().await.map_err(|error| {
            tracing::error!(error = &*error, "the tokens cannot be read");
            Denied::Source
        })?;
        let Some(text) = bearer(headers)? else {
            return match is_open {
                true => Ok(Admitted::anybody(self.holdings.right(None))),
                false => Err(Denied::Missing),
            };
        };
        match &self.oauth {
            Some(oauth) if !text.starts_with(token::PREFIX) => self.admit_access(oauth, text).await,
            _ => self.admit_token(&tokens, text),
        }
    }

    fn admit_token(&self, tokens: &[KnownToken], text: &str) -> Result<Admitted, Denied> {
        let token = token::find(tokens, text).ok_or(Denied::Token)?;
        if token.has_expired((self.now_ms)()) {
            return Err(Denied::Token);
        }
        let digest = Digest::new(token.digest.0);
        let caller = Caller {
            id: Some(token.name.clone()),
            token: Some(digest),
            right: self.holdings.right(Some(digest)),
            tools: ToolSubset::of_token(token.tools.as_deref()),
            rate: token.rate.map(|per_minute| CallRate {
                token: digest,
                per_minute,
            }),
        };
        Ok(Admitted {
            caller,
            credential: Credential::Token(token.digest),
        })
    }

    async fn admit_access(&self, oauth: &OAuth, text: &str) -> Result<Admitted, Denied> {
        let subject = oauth.subject(text, (self.now_ms)()).await;
        let subject = subject.map_err(Denied::from)?;
        let caller = Caller {
            id: Some(subject.caller_id),
            ..Caller::default()
        };
        Ok(Admitted {
            caller,
            credential: Credential::Access(subject.expires_at_ms),
        })
    }

    /// What may go on now, of all that is in progress.
    ///
    /// Errors: the tokens cannot be read.
    pub(super) async fn still_valid(&self) -> Result<StillValid, SourceError> {
        let (tokens, is_open) = self.tokens().await?;
        Ok(StillValid {
            tokens,
            is_open,
            now_ms: (self.now_ms)(),
        })
    }

    /// The tokens, and whether the endpoint is open to anybody.
    async fn tokens(&self) -> Result<(Vec<KnownToken>, bool), SourceError> {
        let tokens = self.source.tokens().await?;
        let is_open = self.door.is_open_with(!tokens.is_empty());
        Ok((tokens, is_open))
    }
}

impl Credential {
    /// Whether what the two let in is of one bearer, when the ID of the caller is the same: a token made anew under an old name may be
    /// another's.
    pub(super) fn goes_on(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Token(one), Self::Token(other)) => one.is(other),
            (Self::None, Self::None) | (Self::Access(_), Self::Access(_)) => true,
            (Self::None | Self::Token(_) | Self::Access(_), _) => false,
        }
    }
}

impl StillValid {
    /// Whether what let a request in was taken back.
    pub(super) fn is_revoked(&self, credential: &Credential) -> bool {
        match credential {
            Credential::None => !self.is_open,
            Credential::Token(digest) => self.token(digest).is_none(),
            Credential::Access(_) => false,
        }
    }

    /// Whether what let a request in no longer does: revoked or expired.
    pub(super) fn is_over(&self, credential: &Credential) -> bool {
        match credential {
            Credential::None => !self.is_open,
            Credential::Token(digest) => {
                let token = self.token(digest);
                token.is_none_or(|token| token.has_expired(self.now_ms))
            }
            Credential::Access(expires_at_ms) => *expires_at_ms <= self.now_ms,
        }
    }

    fn token(&self, digest: &TokenDigest) -> Option<&KnownToken> {
        self.tokens.iter().find(|token| token.digest.is(digest))
    }
}

impl Admitted {
    fn anybody(right: CancellationToken) -> Self {
        Self {
            caller: Caller {
                right,
                ..Caller::default()
            },
            credential: Credential::None,
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

/// The text of the token in `Authorization: Bearer TOKEN`, if there is that header.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Denied> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Denied::Malformed);
    }
    let value = value.to_str().map_err(|_| Denied::Malformed)?;
    let (scheme, text) = value.split_once(' ').ok_or(Denied::Malformed)?;
    let text = text.trim_matches(' ');
    let is_plain = |byte: u8| byte.is_ascii_graphic();
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    match is_bearer && !text.is_empty() && text.bytes().all(is_plain) {
        true => Ok(Some(text)),
        false => Err(Denied::Malformed),
    }
}
