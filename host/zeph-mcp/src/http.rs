//! The endpoint: MCP over streamable HTTP at `/mcp`, and who may use it.
//!
//! In reading order: `address` (where it listens, and under which names), `connection` and `writing` (bounded, ended), `request` (one request from its
//! headers to the end of its answer), `access` (who is behind it), `oauth` (access tokens of others), `message`, `sound` and `room` (its body), `lease` (what
//! ends it early), `session` and `replay` (those of the older protocol revisions). The protocol itself is the business of `rmcp`.

mod access;
mod address;
mod connection;
mod lease;
mod message;
mod oauth;
mod replay;
mod request;
mod room;
mod session;
mod sound;
mod writing;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::middleware;
use axum::routing::{any, get};
use http::{Method, StatusCode};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

use self::access::{Access, Credential};
use self::address::AllowedNames;
use self::connection::Connections;
use self::lease::Progress;
use self::message::BodyLimits;
use self::oauth::{METADATA_PATH, OAuth};
use self::request::{Mcp, Shared};
use self::room::BodyRoom;
use self::session::Sessions;
use crate::door::OpenDoor;
use crate::holdings::Holdings;
use crate::metrics::Metrics;
use crate::token::TokenDigest;

pub use self::access::{SourceError, TokenSource, TokensRead};
pub use self::address::{BadAddress, parse_address};
pub use self::oauth::{FETCH_MAX, FetchError, KEYS_BYTES_MAX, KeyFetcher, OAuthOptions};

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// How often it is looked for what was revoked, expired, or idle for too long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long the endpoint waits for clients and calls.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the next part of a body.
    pub body_part: Duration,
    /// For a whole body.
    pub body: Duration,
    /// For a client to read on in an answer.
    pub reader: Duration,
    /// For a client to resume the stream of a call that broke; then the call is cancelled.
    pub resume: Duration,
    /// For calls that run when the endpoint ends.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            body_part: Duration::from_secs(10),
            body: Duration::from_secs(60),
            reader: Duration::from_secs(20),
            resume: Duration::from_secs(10),
            grace: Duration::from_secs(10),
        }
    }
}

/// How an endpoint is set up.
pub struct EndpointOptions {
    /// Where it listens. Port 0 means any free one.
    pub address: SocketAddr,
    /// Its name among replicas, if it is one: session IDs begin with it.
    pub replica: Option<String>,
    /// Further names it may be asked for, such as that of a proxy.
    pub allowed_hosts: Vec<String>,
    /// Most bytes of the body of a request.
    pub max_body_bytes: usize,
    /// Where its tokens are.
    pub tokens: Arc<dyn TokenSource>,
    /// The authorisation server whose access tokens it accepts as well.
    pub oauth: Option<OAuthOptions>,
    /// What is held for its callers beyond their requests.
    pub holdings: Arc<Holdings>,
    /// Whether clients are let in that come with no token.
    pub door: Arc<OpenDoor>,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// What time it is, in Unix milliseconds.
    pub now_ms: fn() -> i64,
    /// How long it waits.
    pub patience: Patience,
    /// The program as it is typed, for commands in messages.
    pub program: String,
}

/// An endpoint that listens and answers nothing yet.
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    is_open: bool,
    access: Access,
    options: EndpointOptions,
}

/// Why an endpoint does not start.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Every program that reaches the address could use it.
    #[error(
        "refusing to listen on {address} without a token: every program that reaches this address could call every tool"
    )]
    Open {
        /// Where it should have listened.
        address: SocketAddr,
        /// The command that adds a token.
        add_token: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The tokens cannot be read.
    #[error("cannot read the tokens")]
    Tokens(#[source] SourceError),
    /// Keys cannot be fetched from there.
    #[error("`mcp.serve.oauth.jwks_url`: {0}")]
    Keys(String),
}

impl EndpointError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Open { add_token, .. } => Some(format!(
                "add a token with `{add_token} NAME`, set `mcp.serve.oauth`, or listen on 127.0.0.1"
            )),
            Self::Bind { .. } => Some("choose another port, or 0 for any free one".to_owned()),
            Self::Tokens(_) | Self::Keys(_) => None,
        }
    }
}

impl Endpoint {
    /// Listens. Any address but one of this machine is refused as long as there is neither a token nor an authorisation server.
    ///
    /// Errors: [`EndpointError`].
    pub async fn bind(mut options: EndpointOptions) -> Result<Self, EndpointError> {
        let address = options.address;
        let oauth = options.oauth.take().map(OAuth::new).transpose();
        let oauth = oauth.map_err(EndpointError::Keys)?;
        let tokens = Arc::clone(&options.tokens);
        let left = (Arc::clone(&options.holdings), Arc::clone(&options.door));
        let access = Access::new(tokens, oauth, left, options.now_ms);
        let is_open = access.is_open().await.map_err(EndpointError::Tokens)?;
        if is_open && !address.ip().is_loopback() {
            let add_token = format!("{} token add", options.program);
            return Err(EndpointError::Open { address, add_token });
        }
        let bind_error = |source| EndpointError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        Ok(Self {
            listener,
            address,
            is_open,
            access,
            options,
        })
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Whether anybody who reaches it may use it, as long as no token is added.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Answers requests with handlers of `factory`, one for each session or request, until `stop`. Then nothing new begins, calls that
    /// run may finish for a while, and what still runs is cancelled.
    pub async fn serve<H, F>(self, factory: F, stop: CancellationToken)
    where
        H: ServerHandler,
        F: Fn() -> Result<H, io::Error> + Send + Sync + 'static,
    {
        let Patience { grace, reader, .. } = self.options.patience;
        let closed = CancellationToken::new();
        let (shared, listener) = self.shared(factory, &closed);
        let connections = Arc::clone(&shared.connections);
        let app = app(Arc::clone(&shared));
        let serving = connection::serve(listener, app, connections, reader, closed.clone());
        let ending = async {
            stop.cancelled().await;
            shared.is_ending.store(true, Ordering::Relaxed);
            shared.holdings.begin_to_end();
            shared
                .leases
                .end(|_, progress| progress == Progress::Stream);
            if timeout(grace, idle(&shared)).await.is_err() {
                tracing::warn!("calls that still run are cancelled");
            }
            shared.leases.end(|_, _| true);
            closed.cancel();
        };
        let looked_after = async {
            tokio::select! {
                () = ending => {}
                () = look_after(&shared) => {}
            }
        };
        tokio::join!(serving, looked_after);
        shared.sessions.end_every().await;
    }

    fn shared<H, F>(self, factory: F, closed: &CancellationToken) -> (Arc<Shared>, TcpListener)
    where
        H: ServerHandler,
        F: Fn() -> Result<H, io::Error> + Send + Sync + 'static,
    {
        let patience = self.options.patience;
        let replica = self.options.replica.as_deref();
        let sessions = Arc::new(Sessions::new(patience.resume, replica));
        let max_body_bytes = self.options.max_body_bytes;
        // Names are checked before, for every path, and by a list that knows the address; see `address`.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            // The sessions open streams, by what their clients know.
            .with_sse_retry(None)
            .with_max_request_body_bytes(max_body_bytes)
            .with_cancellation_token(closed.clone());
        let shared = Shared {
            access: self.access,
            names: AllowedNames::new(self.address, &self.options.allowed_hosts),
            body: BodyLimits {
                bytes_max: max_body_bytes,
                part_max: patience.body_part,
                whole_max: patience.body,
            },
            room: Arc::new(BodyRoom::new(max_body_bytes)),
            leases: Arc::default(),
            holdings: self.options.holdings,
            mcp: protocol(factory, Arc::clone(&sessions), config),
            sessions,
            connections: Arc::new(Connections::default()),
            metrics: self.options.metrics,
            is_ending: AtomicBool::new(false),
        };
        (Arc::new(shared), self.listener)
    }
}

/// The protocol's service over the sessions.
fn protocol<H, F>(factory: F, sessions: Arc<Sessions>, config: StreamableHttpServerConfig) -> Mcp
where
    H: ServerHandler,
    F: Fn() -> Result<H, io::Error> + Send + Sync + 'static,
{
    let service = StreamableHttpService::new(factory, sessions, config);
    Box::new(move |request| {
        let service = service.clone();
        Box::pin(async move {
            let is_end = request.method() == Method::DELETE;
            let mut answer = service.handle(request).await.map(Body::new);
            // Clients take nothing else for the end of a session.
            if is_end && answer.status() == StatusCode::ACCEPTED {
                *answer.status_mut() = StatusCode::NO_CONTENT;
            }
            answer
        })
    })
}

fn app(shared: Arc<Shared>) -> Router {
    let names = middleware::from_fn_with_state(Arc::clone(&shared), request::check_names);
    Router::new()
        .route(PATH, any(request::mcp))
        .route("/healthz", get(request::health))
        .route("/readyz", get(request::readiness))
        .route("/metrics", get(request::metrics))
        .route(METADATA_PATH, get(request::resource_metadata))
        .route(
            &format!("{METADATA_PATH}/{{*path}}"),
            get(request::resource_metadata),
        )
        .fallback(request::unknown)
        .layer(names)
        .with_state(shared)
}

/// Resolves when no call is in progress: none whose request is being answered, none that outlives its request, and none whose stream broke
/// and may be resumed. The last are few, and for seconds only.
async fn idle(shared: &Shared) {
    let mut ticks = interval(LOOK_AGAIN / 4);
    loop {
        shared.leases.no_call().await;
        // A call that outlives its request is held before the request has its answer.
        shared.holdings.idle().await;
        // Meanwhile a stream that broke may have been resumed.
        let has_broken = shared.sessions.has_broken_call();
        if !has_broken && shared.leases.count(Progress::Call) == 0 {
            return;
        }
        ticks.tick().await;
    }
}

/// Ends what was revoked, has expired or was idle for too long, again and again.
async fn look_after(shared: &Shared) {
    let mut ticks = interval(LOOK_AGAIN);
    let mut can_read = true;
    loop {
        ticks.tick().await;
        shared.sessions.tidy(Instant::now()).await;
        match shared.access.still_valid().await {
            Ok(valid) => {
                can_read = true;
                shared.leases.end(|credential, progress| match progress {
                    // What runs may finish after the end of its time, but not after a revocation.
                    Progress::Call => valid.is_revoked(credential),
                    Progress::Stream => valid.is_over(credential),
                });
                shared.holdings.revoke(|token| {
                    let credential = token.map(TokenDigest::from).map(Credential::Token);
                    valid.is_revoked(&credential.unwrap_or(Credential::None))
                });
                shared.sessions.end_revoked(&valid).await;
            }
            // Once, however long that lasts.
            Err(error) if can_read => {
                can_read = false;
                tracing::warn!(error = &*error, "the tokens cannot be read");
            }
            Err(_) => {}
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointOptions")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
