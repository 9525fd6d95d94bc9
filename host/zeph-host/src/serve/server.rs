//! The requests of a client, one by one.

#![expect(
    deprecated,
    reason = "clients of the revisions before 2026-07-28 log, set levels and subscribe"
)]

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool as McpTool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use zeph_mcp::caller::Caller;
use zeph_mcp::result;

use super::calling::Reply;
use super::exposed::Own;
use super::native::NativeServer;
use super::origin::Door;
use super::{Shared, changes, exposed, resources, unknown};

/// How long a list waits for plugins of others that are still being read. Those that take longer are announced.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// What a client is told when it begins.
const INSTRUCTIONS: &str = "Tools that run in a sandbox on the user's machine. A call may be refused or need the user's approval: the \
    result then says which rule decided and what would allow it. A result too long to show ends with an ID that `read_overflow` reads.";

/// Answers the requests of one client.
pub(crate) struct Handler {
    pub(super) shared: Arc<Shared>,
    pub(super) door: Door,
    /// Cancelled when the client is gone.
    stop: CancellationToken,
    _stops: DropGuard,
    /// Tell the client of other tools than before.
    followers: Mutex<JoinSet<()>>,
}

impl Handler {
    pub(super) fn new(shared: &Arc<Shared>, door: Door, stop: CancellationToken) -> Self {
        Self {
            shared: Arc::clone(shared),
            door,
            _stops: stop.clone().drop_guard(),
            stop,
            followers: Mutex::default(),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        if let Some(native) = &self.shared.native {
            return native.info();
        }
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

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        if let Some(native) = &self.shared.native {
            native.begins(&context).await?;
        }
        self.negotiate_initialize(&request)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        if let Some(native) = &self.shared.native {
            native.begins(&context).await?;
        }
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        one_page(request)?;
        tokio::select! {
            () = self.ready(&context) => {}
            () = context.ct.cancelled() => {}
            () = self.shared.closing.cancelled() => {}
        }
        if let Some(native) = &self.shared.native {
            native.can_list()?;
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
        let request = match exposed::own(&self.shared, &listed, &caller, request).await {
            Own::Answer(result) => return Ok(result.into()),
            Own::Call(request) => request,
        };
        let listed = match self.list_with(&request.name, &context).await {
            Ok(listed) => listed,
            Err(failure) => return Ok(result::of_failure(failure, None).into()),
        };
        let _logs = match &self.shared.native {
            Some(native) => native.logs_for(&context).await,
            None => None,
        };
        let Some(tool) = listed.find(&request.name) else {
            let of_native = self.native().ok().and_then(NativeServer::absence);
            let of_host = || listed.absence(&self.shared.host, &caller.tools, &request.name);
            if let Some(failure) = of_native.or_else(of_host) {
                return Ok(result::of_failure(failure, None).into());
            }
            let is_searched = exposed::is_searched(&self.shared, &listed, &caller.tools);
            let message = listed.not_found(&caller.tools, is_searched, &request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        if !tool.is_of(&caller.tools) {
            let refused = self.refuse(&caller, tool, request, &context).await?;
            return Ok(refused.into());
        }
        Ok(match self.make(&caller, tool, request, &context).await? {
            Reply::Ended(result) => result.into(),
            Reply::Required(required) | Reply::Waiting(required) => required.into(),
            Reply::Task(task) => task.into(),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = self.caller(&context)?;
        let asking = self.asking(&caller, &context).await?;
        let task = self.shared.tasks.get(&request.task_id, asking).await?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let asking = self.asking(&caller, &context).await?;
        let UpdateTaskParams {
            task_id,
            input_responses,
            ..
        } = request;
        let tasks = &self.shared.tasks;
        tasks.update(&task_id, asking, input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let asking = self.asking(&caller, &context).await?;
        self.shared.tasks.cancel(&request.task_id, asking).await
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
        let mut resources = match self.known_conversation(&caller, &context).await? {
            Some(conversation) => resources::list(self.shared.host.store(), &conversation).await?,
            None => Vec::new(),
        };
        if let Some(native) = &self.shared.native {
            native.settled(&context).await;
            resources.extend(native.resources(&context).await?);
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        let mut templates = vec![resources::template()];
        if let Some(native) = &self.shared.native {
            native.settled(&context).await;
            templates.extend(native.templates(&context).await?);
        }
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let output = resources::output_of(&request.uri);
        if let (None, Some(native)) = (output, &self.shared.native) {
            let conversation = self.conversation(None, &caller, &context).await?;
            let frame = conversation.session().frame();
            return native.read(frame, request, &context).await;
        }
        match self.conversation_with(output, &caller, &context).await? {
            Some(conversation) => {
                resources::read(&self.shared.host, &conversation, &request.uri).await
            }
            None => Err(resources::not_found(&request.uri)),
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let Some(native) = &self.shared.native else {
            return Ok(ListPromptsResult::default());
        };
        one_page(request)?;
        native.settled(&context).await;
        Ok(ListPromptsResult::with_all_items(
            native.prompts(&context).await?,
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let native = self.native()?;
        let caller = self.caller(&context)?;
        let conversation = self.conversation(None, &caller, &context).await?;
        let frame = conversation.session().frame();
        native.prompt(frame, request, &context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        match &self.shared.native {
            Some(native) => native.complete(request, &context).await,
            None => Ok(CompleteResult::default()),
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.native()?.set_level(request.level, &context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.native()?.subscribe(&request.uri, true).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.native()?.subscribe(&request.uri, false).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let caller = Caller::of_request(&context.extensions).cloned();
        let tools = caller.unwrap_or_default().tools;
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        if let Some(native) = &self.shared.native {
            native.relay.tell(context.peer.clone());
        }
        let mut followers = self
            .followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A client that says it again is told once of each change, as before.
        while followers.try_join_next().is_some() {}
        if !followers.is_empty() {
            return;
        }
        followers.spawn(async move {
            let tell = || async { context.peer.notify_tool_list_changed().await.is_ok() };
            changes::follow(&shared, &tools, &stop, tell).await;
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        match &self.shared.native {
            Some(_) => Some(requested.clone()),
            None => Some(SubscriptionFilter::builder().tools_list_changed().build()),
        }
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let tools = self.caller(context.request_context())?.tools;
        let tell = || async { context.sink().notify_tool_list_changed().await.is_ok() };
        let passing = async {
            match &self.shared.native {
                Some(native) => native.tell_changes(&context, &self.stop).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changes::follow(&self.shared, &tools, &self.stop, tell) => {}
            () = passing => {}
            () = context.cancelled() => {}
        }
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.protocol_version();
        Err(unknown::refused(
            &request.method,
            version.as_ref(),
            self.shared.native.is_some(),
        ))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }
}

impl Handler {
    /// The native server that is served.
    ///
    /// Errors: there is none, and no method that only such a server has.
    fn native(&self) -> Result<&NativeServer, ErrorData> {
        let none = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "there is no such method", None);
        self.shared.native.as_deref().ok_or_else(none)
    }

    /// Waits until the tools are known, though not for long; those of the program are from the beginning.
    async fn ready(&self, context: &RequestContext<RoleServer>) {
        if let Some(native) = &self.shared.native {
            return native.settled(context).await;
        }
        let settled = self.shared.host.settled();
        drop(tokio::time::timeout(LIST_PATIENCE, settled).await);
    }
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
