//! The token of each request, renewed before it expires.

use std::fmt::Debug;
use std::sync::Arc;

use http::HeaderValue;
use rmcp::transport::auth::{
    AuthError, CredentialStore as _, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
};
use zeph_egress::{Egress, Pending};

use super::login::{discover, manager};
use super::transport::Transport;
use super::{Bearer, LoginError, LoginTokens, RemoteServer};
use crate::client::{Credentials, McpError};

/// Where credentials are kept, by the names of their servers.
pub trait LoginStore: Debug + Send + Sync {
    /// The credentials for the server `name`; `None` when there was no login.
    ///
    /// Errors: `Store`.
    fn load(&self, name: &str) -> Result<Option<LoginTokens>, LoginError>;

    /// Keeps the credentials, durably, and has their values removed from all texts from then on.
    ///
    /// Errors: `Store`; then the old ones are kept.
    fn save(&self, name: &str, credentials: &LoginTokens) -> Result<(), LoginError>;

    /// Waits until no other process and task renews the credentials for `name`, and keeps them away until the result is dropped.
    ///
    /// Errors: `Store`, also when it takes longer than a renewal may.
    fn hold<'a>(&'a self, name: &'a str) -> Pending<'a, Result<Box<dyn Send>, LoginError>>;

    /// The time, in Unix seconds.
    fn now_s(&self) -> u64;
}

/// What requests to one server carry.
#[derive(Debug, Clone)]
pub struct Access {
    server: RemoteServer,
    egress: Egress,
    store: Arc<dyn LoginStore>,
}

impl Access {
    /// The access to `server` with what `store` has for it.
    pub fn new(server: RemoteServer, egress: Egress, store: Arc<dyn LoginStore>) -> Self {
        Self {
            server,
            egress,
            store,
        }
    }

    /// What the next request carries: none when there was no login. `rejected` is what the server has just answered with status 401: it is
    /// renewed, unless another process has done so.
    ///
    /// Errors: `Needed` when only a login helps; others of [`LoginError`].
    pub async fn bearer(&self, rejected: Option<&Bearer>) -> Result<Option<Bearer>, LoginError> {
        let Some(credentials) = self.credentials()? else {
            return Ok(None);
        };
        if self.is_good(&credentials, rejected) {
            return Ok(Some(credentials.bearer()));
        }
        let _only_one = self.store.hold(self.server.name()).await?;
        // Another process may have renewed them meanwhile.
        let Some(credentials) = self.credentials()? else {
            return Ok(None);
        };
        if self.is_good(&credentials, rejected) {
            return Ok(Some(credentials.bearer()));
        }
        self.renewed(&credentials, rejected.is_some())
            .await
            .map(Some)
    }

    fn need(&self, why: &'static str) -> LoginError {
        LoginError::Needed {
            server: self.server.name().to_owned(),
            why,
        }
    }

    /// The credentials, which were issued for just this endpoint.
    fn credentials(&self) -> Result<Option<LoginTokens>, LoginError> {
        let stored = self.store.load(self.server.name())?;
        match stored {
            Some(stored) if stored.url != self.server.url().as_str() => {
                Err(self.need("the last one was at another URL"))
            }
            stored => Ok(stored),
        }
    }

    fn is_good(&self, credentials: &LoginTokens, rejected: Option<&Bearer>) -> bool {
        rejected != Some(&credentials.bearer()) && !credentials.is_due(self.store.now_s())
    }

    /// The next token. While the old one is good, a renewal that fails is no failure.
    async fn renewed(
        &self,
        credentials: &LoginTokens,
        is_rejected: bool,
    ) -> Result<Bearer, LoginError> {
        let is_good = !is_rejected && !credentials.is_over(self.store.now_s());
        match self.renew(credentials).await {
            Ok(renewed) => Ok(renewed.bearer()),
            Err(error) if is_good => {
                tracing::debug!(server = self.server.name(), %error, "a token could not be renewed early");
                Ok(credentials.bearer())
            }
            Err(error) => Err(error),
        }
    }

    async fn renew(&self, credentials: &LoginTokens) -> Result<LoginTokens, LoginError> {
        if credentials.refresh_token.is_none() {
            return Err(self.need("the last one has expired or was revoked"));
        }
        let Some(stored) = self.refresh(credentials).await? else {
            // It will not be accepted later either.
            let without = LoginTokens {
                refresh_token: None,
                ..credentials.clone()
            };
            self.store.save(self.server.name(), &without)?;
            return Err(self.need("the last one has expired or was revoked"));
        };
        let renewed = credentials.renewed(&stored, self.store.now_s());
        let renewed = renewed.ok_or_else(|| {
            LoginError::Unsupported("its tokens are not bearer tokens".to_owned())
        })?;
        self.store.save(self.server.name(), &renewed)?;
        Ok(renewed)
    }

    /// The tokens had for the refresh token; `None` when that is accepted no more. It goes to the authorization server of the login only.
    async fn refresh(
        &self,
        credentials: &LoginTokens,
    ) -> Result<Option<StoredCredentials>, LoginError> {
        let transport = Arc::new(Transport::new(self.server.clone(), self.egress.clone()));
        let mut manager = manager(&transport).await?;
        let metadata = discover(&manager, &transport, &self.server).await?;
        let is_same = metadata.issuer == credentials.issuer
            && metadata.token_endpoint == credentials.token_endpoint;
        if !is_same {
            return Err(
                self.need("the server names another authorization server than at the last one")
            );
        }
        manager.set_metadata(metadata);
        let mut client = OAuthClientConfig::new(&credentials.client_id, self.server.url().as_str());
        if let Some(secret) = &credentials.client_secret {
            client = client.with_client_secret(secret);
        }
        transport.explain(manager.configure_client(client))?;
        let kept = InMemoryCredentialStore::new();
        if let Some(stored) = credentials.as_stored() {
            transport.explain(kept.save(stored).await)?;
        }
        manager.set_credential_store(kept.clone());
        match manager.refresh_token().await {
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => Ok(None),
            refreshed => {
                transport.explain(refreshed)?;
                transport.explain(kept.load().await)
            }
        }
    }
}

impl Credentials for Access {
    fn header(&self) -> Pending<'_, Result<Option<HeaderValue>, McpError>> {
        Box::pin(async move {
            let bearer = self.bearer(None).await;
            let bearer = bearer.map_err(|error| match error.needs_login() {
                true => McpError::Authorization { challenge: None },
                false => McpError::Unreachable(match error.hint() {
                    Some(hint) => format!("{error}; {hint}"),
                    None => error.to_string(),
                }),
            })?;
            Ok(bearer.as_ref().and_then(Bearer::header))
        })
    }

    fn refused<'a>(
        &'a self,
        used: Option<&'a HeaderValue>,
        status: u16,
        _challenge: Option<&'a str>,
    ) -> Pending<'a, bool> {
        Box::pin(async move {
            let Some(used) = used.and_then(Bearer::of).filter(|_| status == 401) else {
                return false;
            };
            matches!(self.bearer(Some(&used)).await, Ok(Some(other)) if other != used)
        })
    }
}
