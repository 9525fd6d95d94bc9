//! The requests of a client, one by one.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CustomRequest,
    CustomResult, ErrorCode, ErrorData, GetTaskParams, GetTaskResult, Implementation, JsonObject,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscriptionFilter, Tool as McpTool, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::{CancellationToken, DropGuard};
use zeph_core::call::ToolRequest;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::OverflowId;
use zeph_core::tool::Backend;
use zeph_engine::Cancel;
use zeph_mcp::caller::Caller;
use zeph_mcp::result::{self, OVERFLOW_SCHEME};

use super::calling::{Calling, Make, Reply};
use super::client::Client;
use super::conversation::{CONVERSATION_KEY, Conversation, NoConversation, end};
use super::exposed::Own;
use super::listed::{Listed, ListedTool};
use super::progress::Reporter;
use super::rounds::Resumed;
use super::tasks::Asking;
use super::{Shared, changes, exposed, resources, rounds};
use crate::calls::CallReport;
use crate::clock::now_ms;

/// The key by which a request says how many characters of text it would take.
const RESULT_CHARS_KEY: &str = "zeph/maxResultSizeChars";

/// How long a list waits for plugins of others that are still being read. Those that take longer are announced.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// What a client is told when it begins.
const INSTRUCTIONS: &str = "Tools that run in a sandbox on the user's machine. A call may be refused or need the user's approval: the \
    result then says which rule decided and what would allow it. A result too long to show ends with an ID that `read_overflow` reads.";

/// Answers the requests of one client.
pub(crate) struct Handler {
    shared: Arc<Shared>,
    door: Door,
    /// Cancelled when the client is gone.
    stop: CancellationToken,
    _stops: DropGuard,
}

/// How requests come in, and what that says about their conversation.
pub(super) enum Door {
    /// Over the standard streams: the process is the conversation.
    Process(Arc<Conversation>),
    /// Over HTTP.
    Http(HttpSession),
}

/// A session of the old revisions; its conversation begins with the first request that needs one.
#[derive(Default)]
pub(super) struct HttpSession(OnceCell<Arc<Conversation>>);

impl Handler {
    pub(super) fn new(shared: &Arc<Shared>, door: Door, stop: CancellationToken) -> Self {
        Self {
            shared: Arc::clone(shared),
            door,
            _stops: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Who sent a request.
    ///
    /// Errors: it came over HTTP and no endpoint says who did.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        match &self.door {
            Door::Process(_) => Ok(Caller::default()),
            Door::Http(_) => Caller::of_request(&context.extensions)
                .cloned()
                .ok_or_else(|| ErrorData::internal_error("the request has no caller", None)),
        }
    }

    /// The conversation that a request names, or that its connection is; `None` when it has none yet.
    fn known_conversation(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Arc<Conversation>>, ErrorData> {
        let named = match context.meta.get(CONVERSATION_KEY) {
            None => None,
            Some(Value::String(handle)) => Some(handle.as_str()),
            Some(_) => return Err(bad_conversation(NoConversation::Unknown)),
        };
        let found = match (&self.door, named) {
            (Door::Process(own), None) => Ok(Some(Arc::clone(own))),
            (Door::Process(own), Some(handle)) => match own.handle().to_string() == handle {
                true => Ok(Some(Arc::clone(own))),
                false => Err(NoConversation::Unknown),
            },
            (Door::Http(_), Some(handle)) => {
                let found = self.shared.conversations.find(handle, caller);
                found.map(Some)
            }
            (Door::Http(_), None) if !is_in_session(context) => Ok(None),
            (Door::Http(session), None) => match session.0.get() {
                // A session belongs to the caller that began it.
                Some(own) if !own.is_of(caller) => Err(NoConversation::Unknown),
                own => Ok(own.cloned()),
            },
        };
        found.map_err(bad_conversation)
    }

    /// The same; or the conversation of the output that a request names, when it names nothing else.
    fn conversation_with(
        &self,
        output: Option<OverflowId>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Arc<Conversation>>, ErrorData> {
        let known = self.known_conversation(caller, context)?;
        let of_output = || self.shared.conversations.with_output(output?, caller);
        Ok(known.or_else(of_output))
    }

    /// The conversation of a request, which begins with it when there is none yet.
    async fn conversation(
        &self,
        output: Option<OverflowId>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Conversation>, ErrorData> {
        if let Some(known) = self.conversation_with(output, caller, context)? {
            return Ok(known);
        }
        let begin = || self.shared.conversations.begin(&self.shared.host, caller);
        let begun = match &self.door {
            Door::Http(session) if is_in_session(context) => {
                let own = session.0.get_or_try_init(async || begin()).await;
                own.cloned()
            }
            _ => begin(),
        };
        let begun = begun.map_err(bad_conversation)?;
        match begun.is_of(caller) {
            true => Ok(begun),
            false => Err(bad_conversation(NoConversation::Unknown)),
        }
    }

    /// The list of this moment, in which a tool of this name is if there is one.
    async fn list_with(&self, name: &str, context: &RequestContext<RoleServer>) -> Arc<Listed> {
        let listed = self.shared.lists.current(&self.shared.host);
        if listed.find(name).is_some() {
            return listed;
        }
        let cancel = Cancel::new();
        tokio::select! {
            () = self.shared.host.awaits_tool(name, &cancel) => {}
            () = context.ct.cancelled() => {}
        }
        self.shared.lists.current(&self.shared.host)
    }

    /// A call of `tool` with `arguments`, ready to be made, and what tells how it is getting on.
    fn calling(
        &self,
        (caller, conversation): (&Caller, &Arc<Conversation>),
        tool: &ListedTool,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> (Arc<Calling>, Option<Reporter>) {
        let (reporter, listener, on_output) = match Reporter::of(context) {
            Some((reporter, listener, on_output)) => {
                (Some(reporter), Some(listener), Some(on_output))
            }
            None => (None, None, None),
        };
        let (output, of) = (tool.output.clone(), Arc::clone(conversation));
        let show = move |report: &CallReport| {
            let result = result::of_output(&report.messages, &report.output, output.as_ref());
            with_conversation(result, &of)
        };
        let host = self.shared.host.clone();
        let calling = Calling {
            session: conversation.session().clone(),
            client: Client::of(context),
            request: ToolRequest {
                tool: tool.tool.name.to_string(),
                arguments: Value::Object(arguments),
                answers: None,
            },
            stop: self.shared.closing.child_token(),
            listener,
            on_output,
            result_chars: result_chars(context),
            patience: host.config().serve.approval_ttl,
            host,
            make: self.maker(caller, conversation),
            show: Box::new(show),
        };
        (Arc::new(calling), reporter)
    }

    /// What makes the calls of a client in a conversation, each when there is a place for it.
    fn maker(&self, caller: &Caller, conversation: &Arc<Conversation>) -> Make {
        let client = match &caller.id {
            Some(id) => id.clone(),
            None => conversation.handle().to_string(),
        };
        let (shared, conversation) = (Arc::clone(&self.shared), Arc::clone(conversation));
        Box::new(move |request, control, stop| {
            let (shared, conversation) = (Arc::clone(&shared), Arc::clone(&conversation));
            let client = client.clone();
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
                let output = report.output.overflow;
                output.into_iter().for_each(|id| conversation.remember(id));
                report
            })
        })
    }

    /// The conversation in which a call goes on that brings answers.
    ///
    /// Errors: it is none of this caller's any more.
    fn going_on(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
        resumed: &Resumed,
    ) -> Result<Arc<Conversation>, ErrorData> {
        let known = self.known_conversation(caller, context)?;
        let known = match (known, &self.door) {
            (None, Door::Http(_)) => {
                let handle = resumed.conversation.to_string();
                let found = self.shared.conversations.find(&handle, caller);
                Some(found.map_err(bad_conversation)?)
            }
            (known, _) => known,
        };
        let known = known.filter(|known| known.handle() == resumed.conversation);
        known.ok_or_else(|| bad_conversation(NoConversation::Unknown))
    }

    /// Makes a call of `tool`, or goes on with one that asked.
    async fn make(
        &self,
        caller: &Caller,
        tool: &ListedTool,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let of_round = rounds::Request {
            caller: caller.id.as_deref(),
            tool: tool.tool.name.as_str(),
            arguments: &arguments,
        };
        let brought = (request.request_state.as_deref(), request.input_responses);
        let seals = self.shared.host.seals();
        let resumed = of_round.resumed(seals, brought, now_ms())?;
        let conversation = match &resumed {
            Some(resumed) => self.going_on(caller, context, resumed)?,
            None => {
                let output = named_output(tool, &arguments);
                self.conversation(output, caller, context).await?
            }
        };
        let whose = (caller, &conversation);
        let (calling, reporter) = self.calling(whose, tool, arguments, context);
        let round = resumed.map(|resumed| resumed.round);
        let reply = calling.call(round, &self.shared.tasks, &context.ct).await;
        // A task goes on telling for as long as somebody listens.
        if let Some(reporter) = reporter.filter(|_| !matches!(reply, Ok(Reply::Task(_)))) {
            reporter.told().await;
        }
        reply
    }

    /// Who asks about a task.
    fn asking<'a>(
        &self,
        caller: &'a Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Asking<'a>, ErrorData> {
        let known = self.known_conversation(caller, context)?;
        Ok(Asking {
            caller: caller.id.as_deref(),
            conversation: known.map(|known| known.handle()),
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_tasks()
            .build();
        let server = Implementation::new("zeph-host", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        one_page(request)?;
        let ready = async {
            self.shared.host.has_own_plugins().await;
            let settled = self.shared.host.settled();
            drop(tokio::time::timeout(LIST_PATIENCE, settled).await);
        };
        tokio::select! {
            () = ready => {}
            () = context.ct.cancelled() => {}
            () = self.shared.closing.cancelled() => {}
        }
        let listed = self.shared.lists.current(&self.shared.host);
        let tools = exposed::tools(&self.shared, &listed, &caller.tools);
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let listed = self.shared.lists.current(&self.shared.host);
        let request = match exposed::own(&self.shared, &listed, &caller, request) {
            Own::Answer(result) => return Ok(result.into()),
            Own::Call(request) => request,
        };
        let listed = self.list_with(&request.name, &context).await;
        let Some(tool) = listed.find(&request.name) else {
            let message = listed.not_found(&request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        if let Err(failure) = may_call(&caller, tool) {
            return Ok(result::of_failure(failure, tool.output.as_ref()).into());
        }
        Ok(match self.make(&caller, tool, request, &context).await? {
            Reply::Ended(result) => result.into(),
            Reply::Required(required) => required.into(),
            Reply::Task(task) => task.into(),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = self.caller(&context)?;
        let asking = self.asking(&caller, &context)?;
        let task = self.shared.tasks.get(&request.task_id, &asking)?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let asking = self.asking(&caller, &context)?;
        let UpdateTaskParams {
            task_id,
            input_responses,
            ..
        } = request;
        self.shared.tasks.update(&task_id, &asking, input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let asking = self.asking(&caller, &context)?;
        self.shared.tasks.cancel(&request.task_id, &asking)
    }

    fn get_tool(&self, name: &str) -> Option<McpTool> {
        let listed = self.shared.lists.current(&self.shared.host);
        let own = exposed::own_tools()
            .into_iter()
            .find(|tool| tool.name == name);
        own.or_else(|| listed.find(name).map(|tool| tool.described.clone()))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context)?;
        one_page(request)?;
        let resources = match self.known_conversation(&caller, &context)? {
            Some(conversation) => resources::list(self.shared.host.store(), &conversation).await?,
            None => Vec::new(),
        };
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        let templates = vec![resources::template()];
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let output = resources::output_of(&request.uri);
        match self.conversation_with(output, &caller, &context)? {
            Some(conversation) => {
                let store = self.shared.host.store();
                resources::read(store, &conversation, &request.uri).await
            }
            None => Err(resources::not_found(&request.uri)),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let caller = Caller::of_request(&context.extensions).cloned();
        let tools = caller.unwrap_or_default().tools;
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        tokio::spawn(async move {
            let tell = || async { context.peer.notify_tool_list_changed().await.is_ok() };
            changes::follow(&shared, &tools, &stop, tell).await;
        });
    }

    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let tools = self.caller(context.request_context())?.tools;
        let tell = || async { context.sink().notify_tool_list_changed().await.is_ok() };
        tokio::select! {
            () = changes::follow(&self.shared, &tools, &self.stop, tell) => {}
            () = context.cancelled() => {}
        }
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = one_line(&request.method, 100);
        // The library takes a known request with other parameters than it wants for an unknown one.
        let is_known = KNOWN_METHODS.contains(&request.method.as_str());
        Err(match is_known {
            true => {
                let message = format!("the parameters of `{method}` are not those it takes");
                ErrorData::invalid_params(message, None)
            }
            false => {
                let message = format!("there is no method `{method}`");
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
            }
        })
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let Door::Http(session) = &mut self.door else {
            return;
        };
        // A session of the old revisions is over: what runs in its background ends with it.
        if let Some(conversation) = session.0.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.shared.conversations.forget(&conversation);
            end(conversation);
        }
    }
}

/// The methods with parameters that this server answers.
const KNOWN_METHODS: [&str; 11] = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Whether a request belongs to a session of the old revisions.
fn is_in_session(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_none_or(|version| version < ProtocolVersion::V_2026_07_28)
}

/// Whether a caller may make a call of `tool` now.
///
/// Errors: `policy_blocked` and `rate_limited`.
fn may_call(caller: &Caller, tool: &ListedTool) -> Result<(), ToolFailure> {
    if !tool.is_of(&caller.tools) {
        let message = format!(
            "`{}` is not one of the tools that this caller's token allows (`zeph-host token add --tools`)",
            tool.tool.name
        );
        return Err(refused(ErrorCategory::PolicyBlocked, message));
    }
    within_rate(caller)
}

/// Counts a call of a caller.
///
/// Errors: `rate_limited`.
pub(super) fn within_rate(caller: &Caller) -> Result<(), ToolFailure> {
    let Some(rate) = &caller.rate else {
        return Ok(());
    };
    rate.take(Instant::now()).map_err(|wait| {
        let message = format!("more than {} calls a minute", rate.per_minute());
        ToolFailure {
            retry_after_ms: u64::try_from(wait.as_millis()).ok(),
            ..refused(ErrorCategory::RateLimited, message)
        }
    })
}

/// The stored output that a call of a tool reads.
fn named_output(tool: &ListedTool, arguments: &JsonObject) -> Option<OverflowId> {
    let is_reader = tool.tool.backend == Backend::Builtin;
    let id = arguments.get("id")?.as_str()?.trim();
    let id = id.strip_prefix(OVERFLOW_SCHEME).unwrap_or(id);
    id.parse().ok().filter(|_| is_reader)
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

/// What a request with a bad conversation is told.
fn bad_conversation(error: NoConversation) -> ErrorData {
    match error {
        NoConversation::Unknown => ErrorData::invalid_params(error.to_string(), None),
        NoConversation::TooMany => ErrorData::invalid_request(error.to_string(), None),
    }
}

/// The characters of text that a request would take. What is no number is no wish.
fn result_chars(context: &RequestContext<RoleServer>) -> Option<usize> {
    let wanted = context.meta.get(RESULT_CHARS_KEY)?.as_u64()?;
    usize::try_from(wanted).ok()
}

fn with_conversation(mut result: CallToolResult, conversation: &Conversation) -> CallToolResult {
    let meta = result.meta.get_or_insert_with(MetaObject::new);
    let handle = conversation.handle().to_string();
    meta.0.insert(CONVERSATION_KEY.to_owned(), handle.into());
    result
}

/// Every list is one page.
///
/// Errors: a cursor, which no list gave out.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params(
            "the list has one page; no cursor was given out",
            None,
        )),
    }
}
