//! The trip through the browser: from the server's metadata to the URL that a person opens, and from the redirect to the credentials.

use std::fmt;
use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataResolution,
    CredentialStore as _, InMemoryCredentialStore, OAuthClientConfig,
};
use url::Url;
use zeph_egress::Egress;

use super::tokens::TokenResponse;
use super::transport::Transport;
use super::{LoginError, LoginTokens, Redirect, RemoteServer};

/// What this client is called at authorization servers that it registers with.
const CLIENT_NAME: &str = "zeph-host";

/// How this client is known to the authorization server. Without any of it, it registers itself. `Debug` shows no secret.
#[derive(Clone, Default)]
pub struct ClientIdentity {
    /// A client that was registered beforehand.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<String>,
    /// The `https` URL of a document that describes the client, for servers that take one as a client ID.
    pub metadata_url: Option<String>,
    /// The scopes to ask for; without any, those that the server asks for.
    pub scopes: Vec<String>,
}

/// A login that waits for its redirect.
pub struct PendingLogin {
    manager: AuthorizationManager,
    transport: Arc<Transport>,
    kept: InMemoryCredentialStore,
    draft: LoginTokens,
    url: Url,
    redirect: Url,
    state: String,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin").finish_non_exhaustive()
    }
}

impl PendingLogin {
    /// Discovers the authorization server of `server`, registers this client if need be, and makes the URL to open.
    ///
    /// Errors: [`LoginError`]; `Host` when the server names a host that the operator did not. Limits: 30 s and 1 MiB for each request.
    pub async fn begin(
        server: &RemoteServer,
        egress: &Egress,
        redirect: &Url,
        identity: &ClientIdentity,
    ) -> Result<Self, LoginError> {
        let transport = Arc::new(Transport::new(server.clone(), egress.clone()));
        let kept = InMemoryCredentialStore::new();
        let mut manager = manager(&transport).await?;
        manager.set_credential_store(kept.clone());
        let metadata = discover(&manager, &transport, server).await?;
        manager.set_metadata(metadata.clone());
        let scopes = match identity.scopes.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            false => identity.scopes.clone(),
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = client(&mut manager, &metadata, redirect, identity, &scopes);
        let client = transport.explain(client.await)?;
        let url = transport.explain(manager.get_authorization_url(&scopes).await)?;
        let url = server.allowed(&url)?;
        let state = url.query_pairs().find(|(key, _)| key == "state");
        let state = state
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default();
        let draft = draft(server, &metadata, client);
        Ok(Self {
            manager,
            transport,
            kept,
            draft,
            url,
            redirect: redirect.clone(),
            state,
        })
    }

    /// What the person opens in a browser.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The value that the redirect has to bring back.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Reads the URL that the browser was sent back to.
    ///
    /// Errors: `Redirect` when it is not the answer to this login, `Refused` with what the authorization server reports.
    pub fn read(&self, text: &str) -> Result<Redirect, LoginError> {
        Redirect::read(text, &self.redirect, &self.state)
    }

    /// Has the credentials for the code of the redirect, at `now_s` in Unix seconds.
    ///
    /// Errors: `Issuer` when the redirect came from another authorization server; others of [`LoginError`].
    pub async fn complete(self, redirect: Redirect, now_s: u64) -> Result<LoginTokens, LoginError> {
        let (code, state) = (&redirect.code, &redirect.state);
        let exchanged = self
            .manager
            .exchange_code_for_token_with_issuer(code, state, redirect.issuer.as_deref())
            .await;
        let response = self.transport.explain(exchanged)?;
        let unusable = || LoginError::Unsupported("its tokens are not bearer tokens".to_owned());
        let tokens = TokenResponse::of(&response).ok_or_else(unusable)?;
        let kept = self.kept.load().await.ok().flatten();
        Ok(LoginTokens {
            access_token: tokens.access_token,
            refresh_token: tokens.refresh_token,
            scopes: kept.map(|kept| kept.granted_scopes).unwrap_or_default(),
            received_at_s: now_s,
            lifetime_s: tokens.expires_in,
            ..self.draft
        })
    }
}

/// rmcp's part, which sends everything through `transport`.
pub(super) async fn manager(
    transport: &Arc<Transport>,
) -> Result<AuthorizationManager, LoginError> {
    let url = transport.server().url().clone();
    let client = Arc::clone(transport);
    let made = AuthorizationManager::new_with_oauth_http_client(url, client).await;
    made.map_err(|error| LoginError::from_auth(&error))
}

/// The metadata of the authorization server, all of whose endpoints may be reached.
///
/// Errors: `Host`; `Unsupported` without PKCE S256, and for endpoints that are no URLs; others of discovery.
pub(super) async fn discover(
    manager: &AuthorizationManager,
    transport: &Transport,
    server: &RemoteServer,
) -> Result<AuthorizationMetadata, LoginError> {
    let resolving = manager.resolve_metadata_from_challenge(server.challenge());
    let resolution = transport.explain(resolving.await)?;
    let metadata = with_pkce(resolution)?;
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for endpoint in endpoints.into_iter().chain(&metadata.registration_endpoint) {
        server.allowed(endpoint)?;
    }
    Ok(metadata)
}

/// The protocol demands that metadata promises PKCE. A server without any metadata has endpoints of its own, and can promise nothing.
fn with_pkce(
    resolution: AuthorizationMetadataResolution,
) -> Result<AuthorizationMetadata, LoginError> {
    let metadata = resolution.metadata;
    let methods = metadata.code_challenge_methods_supported.iter().flatten();
    let has_pkce = methods.into_iter().any(|method| method == "S256");
    match has_pkce || !resolution.source.is_discovered() {
        true => Ok(metadata),
        false => Err(LoginError::Unsupported(
            "the authorization server does not support PKCE with S256".to_owned(),
        )),
    }
}

/// Which client this is: one registered beforehand, one described by a document, or a new one.
async fn client(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    redirect: &Url,
    identity: &ClientIdentity,
    scopes: &[&str],
) -> Result<OAuthClientConfig, AuthError> {
    let takes_documents = metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .is_some_and(|takes| *takes == true);
    let document = identity.metadata_url.as_ref().filter(|_| takes_documents);
    let Some(id) = identity.client_id.as_ref().or(document) else {
        return manager
            .register_client(CLIENT_NAME, redirect.as_str(), scopes)
            .await;
    };
    let mut config = OAuthClientConfig::new(id, redirect.as_str());
    if let (Some(_), Some(secret)) = (&identity.client_id, &identity.client_secret) {
        config = config.with_client_secret(secret);
    }
    manager.configure_client(config.clone())?;
    Ok(config)
}

/// The credentials but for the tokens.
fn draft(
    server: &RemoteServer,
    metadata: &AuthorizationMetadata,
    client: OAuthClientConfig,
) -> LoginTokens {
    LoginTokens {
        url: server.url().to_string(),
        issuer: metadata.issuer.clone(),
        token_endpoint: metadata.token_endpoint.clone(),
        client_id: client.client_id,
        client_secret: client.client_secret,
        access_token: String::new(),
        refresh_token: None,
        scopes: Vec::new(),
        received_at_s: 0,
        lifetime_s: None,
    }
}
