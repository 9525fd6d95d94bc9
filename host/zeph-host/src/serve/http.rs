//! Clients over HTTP: the endpoint of `zeph-mcp` with the handlers of this door behind it and the tokens of the store.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;
use zeph_egress::{Egress, OwnClient, OwnLimits};
use zeph_mcp::http::{
    Endpoint, EndpointError, EndpointOptions, FETCH_MAX, KEYS_BYTES_MAX, KeyFetcher, OAuthOptions,
    Patience, TokenSource, TokensRead,
};
use zeph_mcp::token::{KnownToken, TokenDigest};
use zeph_store::{Store, TokenRecord};

use super::Server;
use crate::clock::now_ms;
use crate::run::interrupt::{Interruption, Interrupts};

/// The tokens of the store, as they are at the moment of each request.
struct StoredTokens(Store);

impl TokenSource for StoredTokens {
    fn tokens(&self) -> TokensRead<'_> {
        Box::pin(async {
            let tokens = self.0.list_tokens().await?;
            Ok(tokens.into_iter().map(known).collect())
        })
    }
}

fn known(token: TokenRecord) -> KnownToken {
    KnownToken {
        digest: TokenDigest::from(token.digest),
        name: token.name,
        tools: token.tools,
        rate: token.rate,
        expires_at_ms: token.expires_at_ms,
    }
}

/// Listens on `address`. `program` is how the program is typed, for commands in messages.
///
/// Errors: [`EndpointError`].
pub(crate) async fn listen(
    server: &Server,
    address: SocketAddr,
    allowed_hosts: Vec<String>,
    program: String,
) -> Result<Endpoint, EndpointError> {
    let shared = &server.0;
    let settings = &shared.host.config().serve;
    let oauth = settings.oauth.clone().map(|oauth| {
        let fetcher = key_fetcher(shared.host.egress(), oauth.jwks_url.clone());
        OAuthOptions::new(oauth.issuer, oauth.audience, oauth.jwks_url, fetcher)
    });
    Endpoint::bind(EndpointOptions {
        address,
        allowed_hosts,
        replica: settings.replica.clone(),
        max_body_bytes: settings.max_body_bytes,
        tokens: Arc::new(StoredTokens(shared.host.store().clone())),
        oauth,
        holdings: Arc::clone(&shared.holdings),
        door: Arc::clone(shared.host.door()),
        metrics: Arc::clone(&shared.metrics),
        now_ms,
        patience: Patience {
            grace: settings.drain_timeout,
            ..Patience::default()
        },
        program,
    })
    .await
}

/// Fetches the keys of the authorisation server through the host's way out, which is opened for that one host.
fn key_fetcher(egress: &Egress, url: String) -> KeyFetcher {
    let limits = OwnLimits {
        time: FETCH_MAX,
        bytes: KEYS_BYTES_MAX,
    };
    let client = OwnClient::new(egress, &[&url], limits)
        .map(Arc::new)
        .map_err(Arc::new);
    KeyFetcher::new(move || {
        let (client, url) = (client.clone(), url.clone());
        async move { Ok(client?.get(&url).await?) }
    })
}

/// Serves clients until a signal comes. Then nothing begins any more, calls that run may finish for a while, and what still runs is
/// cancelled and its end awaited, unless a second signal comes.
pub(crate) async fn serve(
    server: &Server,
    endpoint: Endpoint,
    (interrupts, draining): (&mut Interrupts, &CancellationToken),
) -> Interruption {
    server.0.is_over_http.store(true, Ordering::Relaxed);
    let stop = CancellationToken::new();
    let handlers = server.clone();
    let serving = endpoint.serve(move || Ok(handlers.over_http()), stop.clone());
    let mut serving = pin!(serving);
    let interruption = tokio::select! {
        interruption = interrupts.next() => interruption,
        // It ends only when it is told to.
        () = serving.as_mut() => {
            server.close().await;
            return Interruption::Terminate;
        }
    };
    draining.cancel();
    stop.cancel();
    let closing = async {
        serving.await;
        server.close().await;
    };
    tokio::select! {
        () = closing => {}
        _ = interrupts.next() => {}
    }
    interruption
}
