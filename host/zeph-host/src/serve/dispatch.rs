//! A call of a client: the tool it names, whether it may be made now, and what makes it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, ErrorData, JsonObject, MetaObject};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use uuid::Uuid;
use zeph_core::call::ToolRequest;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::{Digest, OverflowId};
use zeph_core::output::Outcome;
use zeph_core::tool::Backend;
use zeph_engine::{Cancel, Listener};
use zeph_mcp::caller::Caller;
use zeph_mcp::result::{self, OVERFLOW_SCHEME};
use zeph_shell::run::OutputListener;

use super::Shared;
use super::calling::{Calling, Make, Reply, Show};
use super::client::{Client, Way};
use super::conversation::{self, CONVERSATION_KEY, Conversation};
use super::listed::{Listed, ListedTool};
use super::native::NativeServer;
use super::origin::Door;
use super::progress::Reporter;
use super::rounds;
use super::server::Handler;
use super::tasks::TaskCall;
use crate::admission::count_call;
use crate::authorisation::token;
use crate::calls::{CallControl, CallReport};
use crate::clock::now_ms;
use crate::host::Host;
use crate::seals::Seals;
use crate::telemetry::RemoteRequest;

/// The key by which a request says how many characters of text it would take.
const RESULT_CHARS_KEY: &str = "zeph/maxResultSizeChars";

impl Handler {
    /// The list of this moment, in which a tool of this name is if there is one.
    ///
    /// Errors: the request is cancelled, or the server closes, before that is known.
    pub(super) async fn list_with(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Listed>, ToolFailure> {
        let listed = self.shared.lists.current(&self.shared.host);
        if listed.find(name).is_some() {
            return Ok(listed);
        }
        if let Some(native) = &self.shared.native {
            native.settled(context).await;
            return Ok(self.shared.lists.current(&self.shared.host));
        }
        let cancel = Cancel::new();
        tokio::select! {
            () = self.shared.host.awaits_tool(name, &cancel) => {}
            () = context.ct.cancelled() => return Err(cancelled()),
            () = self.shared.closing.cancelled() => return Err(cancelled()),
        }
        Ok(self.shared.lists.current(&self.shared.host))
    }

    /// A call of `tool` with `arguments`, ready to be made, and what tells how it is getting on.
    pub(super) fn calling(
        &self,
        whose: (&Caller, &Arc<Conversation>),
        (tool, nameless): (&ListedTool, Option<Digest>),
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> (Arc<Calling>, Option<Reporter>) {
        let (reporter, listener, on_output) = match Reporter::of(context) {
            Some((reporter, listener, on_output)) => {
                (Some(reporter), Some(listener), Some(on_output))
            }
            None => (None, None, None),
        };
        let terms = CallTerms {
            client: Client::of(context),
            listener,
            on_output,
            result_chars: result_chars(context),
            remote: self.remote(context),
            nameless,
            // What a process alone serves is gone with it: nobody could ask.
            outlives_server: matches!(self.door, Door::Http(_)),
        };
        let calling = calling(&self.shared, whose, tool, arguments, terms);
        (Arc::new(calling), reporter)
    }

    /// Records a call of a tool that its caller's token does not allow, and answers it.
    ///
    /// Errors: those of the conversation.
    pub(super) async fn refuse(
        &self,
        caller: &Caller,
        tool: &ListedTool,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        if let Err(result) = self.count(caller, tool).await {
            return Ok(*result);
        }
        let conversation = self.conversation(None, caller, context).await?;
        let name = &tool.tool.name;
        let control = CallControl {
            refused: Some(token::failure(name.as_str())),
            remote: Some(self.remote(context)),
            ..CallControl::default()
        };
        let request = ToolRequest {
            tool: name.to_string(),
            arguments: Value::Object(request.arguments.unwrap_or_default()),
            answers: None,
        };
        let make = maker(&self.shared, caller, &conversation, &tool.described.name);
        let report = make(request, control, context.ct.clone()).await;
        let (messages, output) = (report.messages, report.output);
        let result = result::of_output(messages, output, tool.output.as_ref()).await;
        let seals = self.shared.host.seals();
        Ok(with_conversation(result, &conversation, seals))
    }

    /// Counts a call of `tool`. One too many is not recorded, so that it cannot push out the records of others.
    ///
    /// Errors: the result for the caller.
    async fn count(&self, caller: &Caller, tool: &ListedTool) -> Result<(), Box<CallToolResult>> {
        let store = self.shared.host.store();
        let counted = count_call(store, caller.rate.as_ref()).await;
        counted.map_err(|failure| {
            let (name, category) = (&tool.described.name, failure.category.label());
            self.shared.metrics.call(name, category, Duration::ZERO);
            Box::new(result::of_failure(failure, tool.output.as_ref()))
        })
    }

    /// Makes a call of `tool`, or goes on with one that asked.
    pub(super) async fn make(
        &self,
        caller: &Caller,
        tool: &ListedTool,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let owner = conversation::owner(caller).text();
        let of_round = rounds::Request {
            caller: owner.as_deref(),
            tool: tool.tool.name.as_str(),
            arguments: &arguments,
        };
        let brought = (request.request_state.as_deref(), request.input_responses);
        let nameless = self.nameless(of_round.tool, &arguments, context);
        let seals = self.shared.host.seals();
        let resumed = of_round.resumed(seals, brought, now_ms()).await?;
        let is_new = resumed.as_ref().is_none_or(|resumed| !resumed.was_counted);
        if is_new && let Err(result) = self.count(caller, tool).await {
            return Ok(Reply::Ended(*result));
        }
        let conversation = match &resumed {
            Some(resumed) => self.going_on(caller, context, resumed).await?,
            None => {
                let named = (named_output(tool, &arguments), nameless);
                self.conversation_of_call(named, caller, context).await?
            }
        };
        let whose = (caller, &conversation);
        let (calling, reporter) = self.calling(whose, (tool, nameless), arguments, context);
        let round = resumed.map(|resumed| resumed.round);
        let reply = calling.call(round, &self.shared.tasks, &context.ct).await;
        let reply = reply.map(|reply| in_conversation(reply, &conversation, seals));
        match (reporter, &reply) {
            // A task goes on telling for as long as a client listens.
            (None, _) | (Some(_), Ok(Reply::Task(_))) => {}
            // The call holds what it tells with until its answer comes.
            (Some(reporter), Ok(Reply::Waiting(_))) => reporter.stop(),
            (Some(reporter), _) => tokio::select! {
                () = reporter.told() => {}
                () = context.ct.cancelled() => {}
            },
        }
        reply
    }
}

/// What a call is made with, beside what it is.
pub(super) struct CallTerms {
    pub(super) client: Client,
    pub(super) listener: Option<Listener>,
    pub(super) on_output: Option<OutputListener>,
    pub(super) result_chars: Option<usize>,
    pub(super) remote: RemoteRequest,
    /// What tells it from all others, when its request names no conversation.
    pub(super) nameless: Option<Digest>,
    /// Whether its client may ask another server about it.
    pub(super) outlives_server: bool,
}

impl CallTerms {
    /// Of a task that was taken over: nobody hears how it is getting on.
    pub(super) fn of_task(client: Client, task: Uuid) -> Self {
        Self {
            client,
            listener: None,
            on_output: None,
            result_chars: None,
            remote: RemoteRequest {
                method: "tools/call",
                protocol_version: None,
                id: task.to_string(),
                transport: "tcp",
                trace_parent: None,
                trace_state: None,
            },
            nameless: None,
            outlives_server: true,
        }
    }
}

/// A call of `tool` with `arguments`, ready to be made.
pub(super) fn calling(
    shared: &Arc<Shared>,
    (caller, conversation): (&Caller, &Arc<Conversation>),
    tool: &ListedTool,
    arguments: JsonObject,
    terms: CallTerms,
) -> Calling {
    let native = shared.native.as_deref();
    let waiting = native.filter(|_| terms.client.way == Way::Later);
    Calling {
        session: conversation.session().clone(),
        home: conversation.shared().map(|shared| shared.home),
        owner: conversation.owner().clone(),
        right: conversation.right().clone(),
        holdings: Arc::clone(&shared.holdings),
        waiting: waiting.map(NativeServer::waiting),
        again: again((shared, conversation), tool, &arguments, &terms),
        held: OnceLock::new(),
        client: terms.client,
        request: ToolRequest {
            tool: tool.tool.name.to_string(),
            arguments: Value::Object(arguments),
            answers: None,
        },
        stop: shared.closing.child_token(),
        listener: terms.listener,
        on_output: terms.on_output,
        result_chars: terms.result_chars,
        remote: terms.remote,
        patience: shared.host.config().serve.approval_ttl,
        host: shared.host.clone(),
        make: maker(shared, caller, conversation, &tool.described.name),
        show: shower(shared, conversation, tool, terms.nameless),
    }
}

/// What makes the result of a report.
fn shower(
    shared: &Shared,
    conversation: &Arc<Conversation>,
    tool: &ListedTool,
    nameless: Option<Digest>,
) -> Show {
    let (output, of) = (tool.output.clone(), Arc::clone(conversation));
    let native = shared.native.clone();
    let seals = Arc::clone(shared.host.seals());
    Box::new(move |report: CallReport| {
        if let Some(call) = nameless {
            let category = report.failure().map(|failure| failure.category);
            match category {
                Some(ErrorCategory::ConfirmationRequired) => of.remember_asked(call),
                _ => of.forget_asked(call),
            }
        }
        let (output, of) = (output.clone(), Arc::clone(&of));
        let (native, seals) = (native.clone(), Arc::clone(&seals));
        Box::pin(async move {
            let result = result::of_output(report.messages, report.output, output.as_ref()).await;
            if let Some(native) = &native {
                native.heard_result(&result);
            }
            with_conversation(result, &of, &seals)
        })
    })
}

/// What another server needs to make a call again, if it may when nobody knows how far it came.
fn again(
    (shared, conversation): (&Shared, &Conversation),
    tool: &ListedTool,
    arguments: &JsonObject,
    terms: &CallTerms,
) -> Option<String> {
    let may_repeat = terms.outlives_server
        && shared.host.seals().are_shared()
        && terms.client.has_tasks
        && shared.native.is_none()
        && shared.host.may_repeat(tool.tool.name.as_str());
    let call = TaskCall {
        tool: tool.described.name.to_string(),
        arguments: may_repeat.then(|| arguments.clone())?,
        home: conversation.shared().map(|shared| shared.home),
        shows_forms: terms.client.way != Way::Nobody,
        client: terms.client.name.clone(),
        result_chars: terms.result_chars,
    };
    serde_json::to_string(&call).ok()
}

/// What makes the calls of a client in a conversation, each when there is a place for it.
fn maker(
    shared: &Arc<Shared>,
    caller: &Caller,
    conversation: &Arc<Conversation>,
    tool: &str,
) -> Make {
    let tool = tool.to_owned();
    let client = match &caller.id {
        Some(id) => id.clone(),
        None => conversation.handle().to_string(),
    };
    let (shared, conversation) = (Arc::clone(shared), Arc::clone(conversation));
    Box::new(move |request, control, stop| {
        let (shared, conversation) = (Arc::clone(&shared), Arc::clone(&conversation));
        let (client, tool) = (client.clone(), tool.clone());
        Box::pin(async move {
            let place = tokio::select! {
                place = shared.places.take(&client) => place.map_err(|_| too_many_calls()),
                () = stop.cancelled() => Err(cancelled()),
            };
            let place = match place {
                Ok(place) => place,
                Err(failure) => return CallReport::crashed(failure),
            };
            let session = conversation.session();
            let made = shared
                .running
                .call(session, request, (place, control), &stop);
            let report = made.await;
            let report = report.unwrap_or_else(|| CallReport::crashed(cancelled()));
            shared
                .metrics
                .call(&tool, outcome_label(&report), report.duration);
            if let Some(output) = report.output.overflow {
                remember(&shared.host, &conversation, output).await;
            }
            report
        })
    })
}

/// Keeps whose an output is, for requests that name it and no conversation.
async fn remember(host: &Host, conversation: &Conversation, output: OverflowId) {
    conversation.remember(output);
    if !host.seals().are_shared() {
        return;
    }
    let kept = host
        .store()
        .own_output(output, conversation.owner().clone());
    if let Err(error) = kept.await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "an output can be read with the handle of its conversation only"
        );
    }
}

/// The stored output that a call of a tool reads.
fn named_output(tool: &ListedTool, arguments: &JsonObject) -> Option<OverflowId> {
    let is_reader = tool.tool.backend == Backend::Builtin;
    let id = arguments.get("id")?.as_str()?.trim();
    let id = id.strip_prefix(OVERFLOW_SCHEME).unwrap_or(id);
    id.parse().ok().filter(|_| is_reader)
}

/// How a call ended, as it is counted.
fn outcome_label(report: &CallReport) -> &'static str {
    match &report.output.outcome {
        Outcome::Failed(failure) => failure.category.label(),
        Outcome::Done => "ok",
    }
}

fn refused(category: ErrorCategory, message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(category, ErrorPhase::Setup, message)
}

fn cancelled() -> ToolFailure {
    refused(
        ErrorCategory::Cancelled,
        "the call was cancelled before it began",
    )
}

fn too_many_calls() -> ToolFailure {
    let message = "too many calls of this client wait for others to end";
    refused(ErrorCategory::RateLimited, message)
}

/// The characters of text that a request would take. What is no number is no wish.
fn result_chars(context: &RequestContext<RoleServer>) -> Option<usize> {
    let wanted = context.meta.get(RESULT_CHARS_KEY)?.as_u64()?;
    usize::try_from(wanted).ok()
}

fn with_conversation(
    mut result: CallToolResult,
    conversation: &Conversation,
    seals: &Seals,
) -> CallToolResult {
    name_conversation(&mut result.meta, conversation, seals);
    result
}

/// A reply that is no result yet names the conversation, too: what its client does next belongs there.
fn in_conversation(mut reply: Reply, conversation: &Conversation, seals: &Seals) -> Reply {
    match &mut reply {
        // What a call ends with names it already.
        Reply::Ended(_) => {}
        Reply::Required(required) | Reply::Waiting(required) => {
            name_conversation(&mut required.meta, conversation, seals);
        }
        Reply::Task(task) => name_conversation(&mut task.meta, conversation, seals),
    }
    reply
}

fn name_conversation(meta: &mut Option<MetaObject>, conversation: &Conversation, seals: &Seals) {
    if let Some(handle) = conversation.name(seals) {
        let meta = meta.get_or_insert_with(MetaObject::new);
        meta.0.insert(CONVERSATION_KEY.to_owned(), handle.into());
    }
}
