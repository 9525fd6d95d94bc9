//! The endpoint under test, its tokens, and what its handler does.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use zeph_mcp::caller::Caller;
use zeph_mcp::http::{
    Endpoint, EndpointError, EndpointOptions, OAuthOptions, Patience, TokenSource, TokensRead,
};
use zeph_mcp::metrics::Metrics;
use zeph_mcp::token::{KnownToken, NewToken};

/// Longer than anything takes that happens at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Most bytes of a body.
pub(crate) const BODY_BYTES_MAX: usize = 4_096;

/// An endpoint that answers.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) tokens: Tokens,
    pub(crate) probe: Probe,
    pub(crate) stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

/// The tokens, as another process would add and revoke them.
#[derive(Clone, Default)]
pub(crate) struct Tokens(Arc<Mutex<Vec<KnownToken>>>);

/// What the calls of `wait` do.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) running: watch::Sender<usize>,
    pub(crate) ended: watch::Sender<usize>,
    pub(crate) cancelled: watch::Sender<usize>,
    pub(crate) released: Arc<Semaphore>,
}

#[derive(Clone)]
struct Handler(Probe);

impl Served {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut EndpointOptions)) -> Self {
        let tokens = Tokens::default();
        Self::try_start(&tokens, change).await.unwrap()
    }

    pub(crate) async fn try_start(
        tokens: &Tokens,
        change: impl FnOnce(&mut EndpointOptions),
    ) -> Result<Self, EndpointError> {
        let mut options = options(tokens);
        change(&mut options);
        let endpoint = Endpoint::bind(options).await?;
        let url = endpoint.url();
        let address = url.strip_prefix("http://").unwrap();
        let address: SocketAddr = address.strip_suffix("/mcp").unwrap().parse().unwrap();
        let (stop, probe) = (CancellationToken::new(), Probe::new());
        let (stop_too, handler) = (stop.clone(), Handler(probe.clone()));
        #[expect(clippy::disallowed_methods, reason = "the test owns the task")]
        let task = tokio::spawn(async move {
            let factory = move || Ok::<_, io::Error>(handler.clone());
            endpoint.serve(factory, stop_too).await;
        });
        Ok(Self {
            address,
            tokens: tokens.clone(),
            probe,
            stop,
            task: Some(task),
        })
    }

    /// Waits until the endpoint has ended.
    pub(crate) async fn ended(mut self) {
        let task = self.task.take().unwrap();
        timeout(PATIENCE, task).await.expect("it ends").unwrap();
    }
}

fn options(tokens: &Tokens) -> EndpointOptions {
    EndpointOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        replica: None,
        allowed_hosts: Vec::new(),
        max_body_bytes: BODY_BYTES_MAX,
        tokens: Arc::new(tokens.clone()),
        oauth: None::<OAuthOptions>,
        holdings: Arc::default(),
        door: Arc::default(),
        metrics: Arc::new(Metrics::default()),
        now_ms,
        patience: Patience::default(),
        program: "zeph-host".to_owned(),
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock of the tests")]
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

impl Tokens {
    /// Adds a token; gives back its text.
    pub(crate) fn add(&self, name: &str, change: impl FnOnce(&mut KnownToken)) -> String {
        let new = NewToken::random().unwrap();
        let mut token = KnownToken {
            name: name.to_owned(),
            digest: new.digest,
            tools: None,
            rate: None,
            expires_at_ms: None,
        };
        change(&mut token);
        self.0.lock().unwrap().push(token);
        new.text
    }

    pub(crate) fn revoke(&self, name: &str) {
        self.0.lock().unwrap().retain(|token| token.name != name);
    }
}

impl TokenSource for Tokens {
    fn tokens(&self) -> TokensRead<'_> {
        let tokens = self.0.lock().unwrap().clone();
        Box::pin(async { Ok(tokens) })
    }
}

impl Probe {
    fn new() -> Self {
        Self {
            running: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            cancelled: watch::Sender::new(0),
            released: Arc::new(Semaphore::new(0)),
        }
    }

    /// Waits until this many calls of `wait` run.
    pub(crate) async fn runs(&self, n: usize) {
        let mut running = self.running.subscribe();
        let reached = running.wait_for(|running| *running >= n);
        timeout(PATIENCE, reached).await.expect("it runs").unwrap();
    }

    /// Waits until this many calls of `wait` have ended.
    pub(crate) async fn ends(&self, n: usize) {
        let mut ended = self.ended.subscribe();
        let reached = ended.wait_for(|ended| *ended >= n);
        timeout(PATIENCE, reached).await.expect("it ends").unwrap();
    }

    /// Waits until this many calls of `wait` were cancelled.
    pub(crate) async fn is_cancelled(&self, n: usize) {
        let mut cancelled = self.cancelled.subscribe();
        let reached = cancelled.wait_for(|cancelled| *cancelled >= n);
        timeout(PATIENCE, reached)
            .await
            .expect("it is cancelled")
            .unwrap();
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools();
        ServerConfig::new(capabilities.enable_tool_list_changed().build())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<http::request::Parts>().unwrap();
        assert!(!parts.headers.contains_key("authorization"));
        let caller = parts.extensions.get::<Caller>().unwrap();
        let text = match &*request.name {
            "who" => caller.id.clone().unwrap_or("nobody".to_owned()),
            "may" => {
                let tool = request.arguments.unwrap()["tool"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                caller.tools.has(&tool, &tool).to_string()
            }
            "rate" => caller.rate.map_or("none".to_owned(), |rate| {
                format!("{} of {}", rate.per_minute, rate.token.hex())
            }),
            "tell" => {
                context.peer.notify_tool_list_changed().await.unwrap();
                "told".to_owned()
            }
            _ => {
                self.0.running.send_modify(|running| *running += 1);
                tokio::select! {
                    permit = self.0.released.acquire() => permit.unwrap().forget(),
                    () = context.ct.cancelled() => self.0.cancelled.send_modify(|n| *n += 1),
                }
                self.0.ended.send_modify(|ended| *ended += 1);
                "waited".to_owned()
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
