//! What a guest has the host do elsewhere: vectors for its texts, and calls of MCP servers' tools. Whether it may, and the record of it.
//!
//! The engine hands wishes over while the guest waits. Texts are sent to the embedder that a grant names, without known secrets, when the
//! session may spend more and the audit has it. A tool's call goes down the whole line like any other, and asks nobody.

use std::pin::Pin;
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use zeph_agent::SideSpending;
use zeph_agent::budget::CallMeter;
use zeph_config::{Config, ServerConfig};
use zeph_core::call::{CallFrame, ToolRequest};
use zeph_core::category::ErrorCategory;
use zeph_core::failure::ToolFailure;
use zeph_core::id::{Digest, PluginId, ServerName};
use zeph_core::server::ServerTool;
use zeph_core::tool::Tool;
use zeph_engine::{
    Cancel, EmbeddingFault, EmbeddingResult, NearestQuery, Reply, ServerToolCall, ServerToolFault,
    ServerToolResult, ServiceQueue, ServiceRequest,
};
use zeph_plugins::rights::ServiceRights;
use zeph_plugins::set::InForce;
use zeph_store::{PassageVector, Store};

use crate::audit::{AsideSubject, Audit, ProgramEnding};
use crate::calls::CallReport;
use crate::clock::now_ms;
use crate::embeddings::Embeddings;
use crate::known_secrets::KnownSecrets;
use crate::servers::naming::Naming;

/// Makes a call of an MCP server's tool on behalf of a call that runs.
pub(crate) trait ServerToolCaller: std::fmt::Debug + Send + Sync {
    /// Makes the call, which is one of `tool` or none.
    fn call<'a>(
        &'a self,
        request: ToolRequest,
        tool: ServerTool,
        cancel: Cancel,
    ) -> Pin<Box<dyn Future<Output = CallReport> + Send + 'a>>;
}

/// What the wishes of guests are met with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceRoom<'a> {
    pub(crate) config: &'a Config,
    /// None where no model for embeddings is configured.
    pub(crate) embeddings: Option<&'a Embeddings>,
    pub(crate) store: &'a Store,
    pub(crate) audit: &'a Audit,
    pub(crate) secrets: &'a KnownSecrets,
    pub(crate) caller: &'a dyn ServerToolCaller,
}

/// The wishes of one call.
pub(super) struct Services<'a> {
    pub(super) room: ServiceRoom<'a>,
    pub(super) rights: &'a ServiceRights,
    pub(super) in_force: &'a InForce,
    pub(super) call: &'a CallFrame,
    pub(super) tool: &'a Tool,
    pub(super) meter: Option<&'a CallMeter>,
}

/// What a call used of what it was granted by name.
#[derive(Debug, Default)]
pub(super) struct UsedServices {
    /// Providers that texts were sent to, or whose vectors were read.
    pub(super) embedders: Vec<String>,
    /// Tools that were called.
    pub(super) tools: Vec<String>,
}

impl UsedServices {
    /// Whether there is any.
    pub(super) fn is_any(&self) -> bool {
        !self.embedders.is_empty() || !self.tools.is_empty()
    }
}

impl Services<'_> {
    /// Where wishes go, and where they are read; none when no wish could be met.
    pub(super) fn queue(&self) -> Option<(ServiceQueue, mpsc::Receiver<ServiceRequest>)> {
        let is_possible = self.room.embeddings.is_some() || !self.rights.tools.is_empty();
        is_possible.then(|| mpsc::channel(1))
    }

    /// Meets wishes, one after the other, until the call is `over` or the guest gone.
    pub(super) async fn serve(
        &self,
        wishes: Option<mpsc::Receiver<ServiceRequest>>,
        over: &Cancel,
    ) -> UsedServices {
        let mut used = UsedServices::default();
        let Some(mut wishes) = wishes else {
            return used;
        };
        loop {
            let wish = tokio::select! {
                biased;
                () = over.cancelled() => None,
                wish = wishes.recv() => wish,
            };
            let Some(wish) = wish else {
                return used;
            };
            self.meet(wish, &mut used).await;
        }
    }

    async fn meet(&self, wish: ServiceRequest, used: &mut UsedServices) {
        match wish {
            ServiceRequest::Embedder((), reply) => {
                let granted = self.embeddings().ok();
                reply.answer(granted.map(|embeddings| embeddings.model_name()));
            }
            ServiceRequest::Missing(keys, reply) => {
                self.embedding(reply, self.missing(keys), used).await;
            }
            ServiceRequest::Store(passages, reply) => {
                self.embedding(reply, self.keep(passages), used).await;
            }
            ServiceRequest::Nearest(query, reply) => {
                self.embedding(reply, self.nearest(query), used).await;
            }
            ServiceRequest::Call(call, mut reply) => {
                let name = call.name.clone();
                let result = self.call_tool(call, reply.abandoned()).await;
                if !matches!(result, Err(ServerToolFault::NotGranted)) {
                    note(&mut used.tools, name);
                }
                reply.answer(result);
            }
        }
    }

    /// Answers with what `work` comes to, unless the guest goes away before.
    async fn embedding<A>(
        &self,
        mut reply: Reply<EmbeddingResult<A>>,
        work: impl Future<Output = EmbeddingResult<A>>,
        used: &mut UsedServices,
    ) {
        let result = tokio::select! {
            biased;
            () = reply.abandoned() => return,
            result = work => result,
        };
        if let (Some(embeddings), false) = (
            self.room.embeddings,
            matches!(result, Err(EmbeddingFault::NotGranted(_))),
        ) {
            note(&mut used.embedders, embeddings.provider().to_owned());
        }
        reply.answer(result);
    }

    /// The embedder of the configuration, when it is granted.
    fn embeddings(&self) -> EmbeddingResult<&Embeddings> {
        let embeddings = self.room.embeddings;
        let embeddings = embeddings.ok_or(EmbeddingFault::NotGranted(None))?;
        let provider = embeddings.provider();
        match self.rights.embedders.iter().any(|name| name == provider) {
            true => Ok(embeddings),
            false => Err(EmbeddingFault::NotGranted(Some(provider.to_owned()))),
        }
    }

    async fn missing(&self, keys: Vec<u128>) -> EmbeddingResult<Vec<u32>> {
        let space = self.space(self.embeddings()?);
        let missing = self.room.store.missing_passages(space, keys, now_ms());
        missing.await.map_err(|error| not_stored(&error))
    }

    async fn keep(&self, passages: Vec<(u128, String)>) -> EmbeddingResult<()> {
        let embeddings = self.embeddings()?;
        let (keys, texts): (Vec<u128>, Vec<String>) = passages.into_iter().unzip();
        if texts.is_empty() {
            return Ok(());
        }
        let vectors = self.vectors(embeddings, texts, None).await?;
        let vector = |numbers: Vec<f32>| PassageVector::new(&numbers).unwrap_or_default();
        let passages = keys.into_iter().zip(vectors.into_iter().map(vector));
        let space = self.space(embeddings);
        let kept = self
            .room
            .store
            .keep_passages(space, passages.collect(), now_ms());
        kept.await.map_err(|error| not_stored(&error))
    }

    async fn nearest(&self, query: NearestQuery) -> EmbeddingResult<Vec<(u32, f32)>> {
        let embeddings = self.embeddings()?;
        let NearestQuery { text, keys, max } = query;
        let patience = Some(embeddings.patience());
        let vectors = self.vectors(embeddings, vec![text], patience).await?;
        let Some(query) = vectors.first().and_then(|one| PassageVector::new(one)) else {
            return Ok(Vec::new());
        };
        let space = self.space(embeddings);
        let nearest = self.room.store.nearest_passages(space, keys, query, max);
        nearest.await.map_err(|error| not_stored(&error))
    }

    /// The vectors of texts, which are sent: counted and recorded.
    async fn vectors(
        &self,
        embeddings: &Embeddings,
        texts: Vec<String>,
        patience: Option<Duration>,
    ) -> EmbeddingResult<Vec<Vec<f32>>> {
        if let Some(exhausted) = self.meter.and_then(CallMeter::exhausted) {
            return Err(EmbeddingFault::Limit(exhausted.to_string()));
        }
        let n_bytes: usize = texts.iter().map(String::len).sum();
        let said =
            json!({ "embedder": embeddings.model_name(), "texts": texts.len(), "bytes": n_bytes });
        let redactor = self.room.secrets.redactor();
        let granted = format!("embedder {}", embeddings.provider());
        let subject = AsideSubject {
            tool: self.tool,
            provider: self.in_force,
            granted: &granted,
            verdict: None,
            runs_program: false,
        };
        let begun = self
            .room
            .audit
            .aside_begins(self.call, subject, (said, &redactor));
        let record = begun.await.map_err(EmbeddingFault::Unavailable)?;
        let began = Instant::now();
        let mut spent = SideSpending::default();
        let embedded = embeddings.embed(texts, patience, &mut spent).await;
        let ending = ProgramEnding {
            duration: began.elapsed(),
            ..ProgramEnding::of(embedded.as_ref().err().cloned())
        };
        record.program_ends(ending).await;
        if let Some(meter) = self.meter {
            meter.add(&spent);
        }
        embedded.map_err(EmbeddingFault::Unavailable)
    }

    /// Where the vectors of the plugin lie: apart from those of other plugins and other models.
    fn space(&self, embeddings: &Embeddings) -> Digest {
        let PluginId(plugin) = self.in_force.plugin().id();
        let mut hash = Sha256::new();
        for part in [plugin.as_str(), &embeddings.model_name()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Digest::new(hash.finalize().into())
    }

    /// Calls a tool of a server. It has ended when this returns.
    async fn call_tool(
        &self,
        call: ServerToolCall,
        abandoned: impl Future<Output = ()>,
    ) -> ServerToolResult {
        if !self.rights.tools.contains(&call.name) {
            return Err(ServerToolFault::NotGranted);
        }
        let (tool, shown) = self.named(&call.name)?;
        let request = ToolRequest {
            tool: shown,
            arguments: call.arguments.into(),
            answers: None,
        };
        let cancel = Cancel::new();
        let made = self.room.caller.call(request, tool, cancel.clone());
        tokio::pin!(made);
        let report = tokio::select! {
            biased;
            report = &mut made => report,
            () = abandoned => {
                cancel.cancel();
                made.await
            }
            () = tokio::time::sleep(call.timeout) => {
                cancel.cancel();
                drop(made.await);
                let message = format!("`{}` gave no answer within {} ms", call.name, call.timeout.as_millis());
                return Err(ServerToolFault::TimedOut(message));
            }
        };
        match report.failure() {
            Some(failure) => Err(fault(failure)),
            None if report.output.is_cut => Err(ServerToolFault::Failed(format!(
                "the answer of `{}` is too long",
                call.name
            ))),
            None => Ok((report.output.text, report.output.structured)),
        }
    }

    /// The tool of this name, and how it is called here.
    fn named(&self, name: &str) -> Result<(ServerTool, String), ServerToolFault> {
        let missing = || ServerToolFault::NotFound(format!("there is no MCP server for `{name}`"));
        let (server, tool) = name.split_once('/').ok_or_else(missing)?;
        let servers = &self.room.config.mcp_servers;
        let (server, config): (&ServerName, &ServerConfig) =
            servers.get_key_value(server).ok_or_else(missing)?;
        let (named, _) = Naming::new(server, servers.keys(), []).named(tool);
        let chosen = config
            .tools
            .get(tool)
            .and_then(|choice| choice.name.clone());
        let shown = chosen.unwrap_or_else(|| named.plain_name());
        Ok((named, shown.to_string()))
    }
}

fn note(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

fn not_stored(error: &zeph_store::StoreError) -> EmbeddingFault {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "the vectors of a plugin cannot be used"
    );
    EmbeddingFault::Unavailable("the host cannot read or keep its vectors".to_owned())
}

/// What a guest is told of a call that did not succeed.
fn fault(failure: &ToolFailure) -> ServerToolFault {
    use ErrorCategory as Category;
    let message = failure.message.clone();
    match failure.category {
        Category::ToolNotFound => ServerToolFault::NotFound(message),
        Category::InvalidParameters | Category::TypeMismatch => ServerToolFault::Invalid(message),
        Category::PolicyBlocked | Category::ConfirmationRequired => {
            ServerToolFault::Denied(message)
        }
        Category::Timeout => ServerToolFault::TimedOut(message),
        Category::Cancelled | Category::ServerError | Category::NetworkError => {
            ServerToolFault::Unavailable(message)
        }
        Category::PermanentFailure | Category::RateLimited => ServerToolFault::Failed(message),
    }
}
