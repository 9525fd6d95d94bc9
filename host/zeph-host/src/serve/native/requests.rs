//! The requests of a client that pass through to its native server.

#![expect(
    deprecated,
    reason = "clients of the revisions before 2026-07-28 log, set levels and subscribe"
)]

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{
    CompleteRequestParams, CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    LoggingLevel, Prompt, ReadResourceRequestParams, ReadResourceResponse, Resource,
    ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use zeph_core::call::CallFrame;
use zeph_mcp::client::{
    CallControl, Definitions, Listed, McpError, RoundAnswer, ServerListener as _,
};

use super::relay::{Change, WantedLogs};
use super::{LiveServer, NativeServer};
use crate::audit::{PassedEnding, PassedRequest};
use crate::serve::client::{Client, Way};
use crate::servers::{Traffic, visible};

impl NativeServer {
    /// The prompts of the server at this moment.
    pub(in crate::serve) async fn prompts(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<Prompt>, ErrorData> {
        let live = self.live()?;
        let now = self.asked(live.connection.prompts(), context).await?;
        let accepted = self.accepted(&live, &now, |it| &it.prompts, context);
        Ok(self.shown(&accepted.await?.prompts))
    }

    /// The resources of the server at this moment. None while it cannot be used: stored outputs stand in the same list.
    pub(in crate::serve) async fn resources(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<Resource>, ErrorData> {
        let Ok(live) = self.live() else {
            return Ok(Vec::new());
        };
        // They are not pinned.
        let now = self.asked(live.connection.resources(), context).await?;
        Ok(self.shown(&now))
    }

    /// The resource templates of the server at this moment. None while it cannot be used.
    pub(in crate::serve) async fn templates(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<ResourceTemplate>, ErrorData> {
        let Ok(live) = self.live() else {
            return Ok(Vec::new());
        };
        let now = self.asked(live.connection.templates(), context).await?;
        let accepted = self.accepted(&live, &now, |it| &it.templates, context);
        Ok(self.shown(&accepted.await?.templates))
    }

    /// A list of the server, unless the client gives it up.
    async fn asked<T>(
        &self,
        listing: impl Future<Output = Result<T, McpError>>,
        context: &RequestContext<RoleServer>,
    ) -> Result<T, ErrorData> {
        let listed = tokio::select! {
            listed = listing => listed,
            () = context.ct.cancelled() => Err(McpError::Cancelled),
        };
        listed.map_err(|error| self.failed(&error))
    }

    /// What the server was accepted with. When `now` is another list than the one that was read last, it is compared first.
    ///
    /// Errors: it is not what was accepted, and is off.
    async fn accepted<T>(
        &self,
        live: &LiveServer,
        now: &[Listed<T>],
        list: fn(&Definitions) -> &[Listed<T>],
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Definitions>, ErrorData> {
        let (now, before) = (now.iter(), list(&live.definitions).iter());
        if now.map(|one| &one.sent).eq(before.map(|one| &one.sent)) {
            return Ok(Arc::clone(&live.definitions));
        }
        self.host.servers().look_again(&self.name);
        self.settled(context).await;
        Ok(self.live()?.definitions)
    }

    /// What clients see of a list.
    fn shown<T: Clone + Serialize + DeserializeOwned>(&self, list: &[Listed<T>]) -> Vec<T> {
        let shown = list.iter().map(|one| self.cleaned(one.shown.clone()));
        shown.flatten().collect()
    }

    /// A resource of the server. `frame` is what it is recorded with.
    pub(in crate::serve) async fn read(
        &self,
        frame: CallFrame,
        request: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let asked = PassedRequest {
            frame,
            method: "resources/read",
            arguments: json!({ "uri": request.uri }),
        };
        let is_later = Client::of(context).way == Way::Later;
        let read = |LiveServer { connection, .. }, control| async move {
            match is_later {
                true => connection.read_resource_round(request, control).await,
                false => {
                    let read = connection.read_resource(request, control).await;
                    read.map(RoundAnswer::Complete)
                }
            }
        };
        Ok(match self.record(asked, self.pass(context, read)).await? {
            RoundAnswer::Complete(result) => result.into(),
            RoundAnswer::Required(required) => required.into(),
        })
    }

    /// A prompt of the server, filled in. `frame` is what it is recorded with.
    pub(in crate::serve) async fn prompt(
        &self,
        frame: CallFrame,
        request: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let asked = PassedRequest {
            frame,
            method: "prompts/get",
            arguments: json!({ "name": request.name, "arguments": request.arguments }),
        };
        let is_later = Client::of(context).way == Way::Later;
        let fill = |LiveServer { connection, .. }, control| async move {
            match is_later {
                true => connection.prompt_round(request, control).await,
                false => {
                    let filled = connection.prompt(request, control).await;
                    filled.map(RoundAnswer::Complete)
                }
            }
        };
        Ok(match self.record(asked, self.pass(context, fill)).await? {
            RoundAnswer::Complete(result) => result.into(),
            RoundAnswer::Required(required) => required.into(),
        })
    }

    /// Completions of an argument of a prompt or a template.
    pub(in crate::serve) async fn complete(
        &self,
        request: CompleteRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let complete = |LiveServer { connection, .. }, control| async move {
            connection.complete(request, control).await
        };
        self.pass(context, complete).await
    }

    /// Sets which messages the server logs, also when it is started again.
    pub(in crate::serve) async fn set_level(
        &self,
        level: LoggingLevel,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.settled(context).await;
        self.can_list()?;
        self.relay.set_level(level);
        match self.live() {
            // One of the new revisions is told with each request.
            Ok(live) if live.connection.info().is_stateless => Ok(()),
            Ok(live) => {
                let set = live.connection.set_level(level).await;
                set.map_err(|error| self.failed(&error))
            }
            // It is told when it is there.
            Err(_) => Ok(()),
        }
    }

    /// Has the server log for a request of the new revisions that says so, until what is returned is dropped.
    pub(in crate::serve) async fn logs_for(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Option<WantedLogs> {
        let level = context.meta.log_level()?;
        if !Client::of(context).is_stateless {
            return None;
        }
        let wanted = self.relay.want_logs(level, context.peer.clone());
        if let Some(level) = self.relay.log_level()
            && let Ok(live) = self.live()
            && live.connection.sets_level()
            && let Err(error) = live.connection.set_level(level).await
        {
            tracing::debug!(%error, "an MCP server does not take the level of its log");
        }
        Some(wanted)
    }

    /// Begins or ends to be told of changes of a resource.
    pub(in crate::serve) async fn subscribe(
        &self,
        uri: &str,
        is_on: bool,
    ) -> Result<(), ErrorData> {
        let connection = self.live()?.connection;
        let done = match is_on {
            true => connection.subscribe(uri).await,
            false => connection.unsubscribe(uri).await,
        };
        done.map_err(|error| self.failed(&error))
    }

    /// Tells a client of the new revisions of changes, until it or the door ends.
    pub(in crate::serve) async fn tell_changes(
        &self,
        context: &SubscriptionContext,
        stop: &CancellationToken,
    ) {
        self.relay.heard(context.request_context());
        let mut changes = self.relay.follow();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = stop.cancelled() => return,
            };
            let sent = match change {
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                Ok(Change::Resources) => context.sink().notify_resource_list_changed().await,
                Ok(Change::Resource(uri)) => context.sink().notify_resource_updated(uri).await,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            // What it did not subscribe to is refused, and so is everything once it is gone.
            if let Err(error) = sent {
                tracing::debug!(%error, "a change is not told");
            }
        }
    }

    /// Records a request before it is passed on, and what comes of it.
    async fn record<T>(
        &self,
        asked: PassedRequest,
        passing: impl Future<Output = Result<T, ErrorData>>,
    ) -> Result<T, ErrorData> {
        let redactor = self.host.redactor();
        let entry = self.host.audit().passes(asked, &self.name, &redactor).await;
        let entry = entry.map_err(|problem| ErrorData::internal_error(problem, None))?;
        let (begun, before) = (Instant::now(), self.traffic());
        let answer = passing.await;
        let problem = answer.as_ref().err().map(|error| error.message.to_string());
        entry
            .passed(PassedEnding {
                problem,
                hosts: before.until(self.traffic()),
                duration: begun.elapsed(),
            })
            .await;
        answer
    }

    fn traffic(&self) -> Traffic {
        Traffic::of(self.host.servers(), &self.name)
    }

    /// Passes a request on, until it is answered or the client gives it up; the answer is cleaned of known secrets and of what is not seen.
    async fn pass<T, F>(
        &self,
        context: &RequestContext<RoleServer>,
        request: impl FnOnce(LiveServer, CallControl) -> F,
    ) -> Result<T, ErrorData>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, McpError>>,
    {
        self.settled(context).await;
        let _logs = self.logs_for(context).await;
        let control = CallControl {
            cancel: context.ct.child_token(),
            ..CallControl::default()
        };
        let answer = request(self.live()?, control).await;
        let answer = answer.map_err(|error| self.failed(&error))?;
        let held = "the answer holds a secret where it cannot be removed";
        self.cleaned(answer)
            .ok_or_else(|| ErrorData::internal_error(held, None))
    }

    /// `value` without known secrets and without what is not seen; none when nothing of its kind is left.
    fn cleaned<T: Serialize + DeserializeOwned>(&self, value: T) -> Option<T> {
        let redactor = self.host.redactor();
        let mut json = serde_json::to_value(&value).ok()?;
        let was_cleaned = visible::json(&mut json);
        if redactor.is_empty() && !was_cleaned {
            return Some(value);
        }
        redactor.clean_json(&mut json);
        serde_json::from_value(json).ok()
    }
}
