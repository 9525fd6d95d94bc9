//! Servers that keep to the protocol, of both generations.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, Resource,
    ResourceContents, ResourceTemplate, Role, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServiceExt as _};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::io::{duplex, split};
use zeph_egress::Pending;
use zeph_mcp::client::{
    CallControl, Connection, Era, ListKind, McpError, Offers, Progress, QuestionKinds,
    ServerListener, ServerTransport,
};

use super::{RawServer, Recorder, call, connect, discovery, initialized, options, pipes, run};

/// A server of the library.
#[derive(Debug, Clone)]
struct Good;

impl ServerHandler for Good {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_completions();
        let mut config = ServerConfig::new(capabilities.build());
        config.instructions = Some("Be\u{202e} kind.".to_owned());
        config
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let Value::Object(schema) = schema else {
            unreachable!("an object");
        };
        let echo = Tool::new("echo", "Says it\u{200b} again.", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![echo]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != "echo" {
            return Err(ErrorData::invalid_params("no such tool", None));
        }
        if let Some(token) = context.meta.get_progress_token() {
            for n in 1..=3 {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(n))
                    .with_total(3.0)
                    .with_message(format!("step\n{n}"));
                let _is_sent = context.peer.notify_progress(progress).await.is_ok();
            }
        }
        let text = request.arguments.unwrap_or_default()["text"].to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = Prompt::new("greet", Some("Greets."), None);
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let message = PromptMessage::new_text(Role::User, request.name);
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(
            "a:b", "b",
        )]))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("a:{name}", "any");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = ResourceContents::text("words", request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completion = CompletionInfo::new(vec![request.argument.value + "!"]).unwrap();
        Ok(CompleteResult::new(completion))
    }
}

async fn uses_all_of_a_server(era: Era, protocol: &str) {
    let (ours, theirs) = duplex(64 * 1024);
    let serving = run(async move {
        let server = Good.serve(split(theirs)).await.unwrap();
        server.waiting().await.unwrap();
    });
    let (from_server, to_server) = split(ours);
    let transport = ServerTransport::Pipes {
        from_server: Box::new(from_server),
        to_server: Box::new(to_server),
    };
    let recorder = Recorder::new();
    let connection = Connection::open(transport, options(era), recorder.clone())
        .await
        .unwrap();
    let info = connection.info();
    assert_eq!(info.protocol, protocol);
    assert_eq!(info.is_stateless, protocol == "2026-07-28");
    assert_eq!(info.instructions.as_deref(), Some("Be kind."));
    assert_eq!(info.instructions_sent.as_deref(), Some("Be\u{202e} kind."));
    lists(&connection).await;
    progress(&connection).await;
    passes_through(&connection).await;
    assert_eq!(recorder.heard().complaints, Vec::<String>::new());
    connection.close().await;
    serving.await.unwrap();
}

async fn lists(connection: &Connection) {
    let found = connection.definitions().await.unwrap();
    assert_eq!(found.notes, Vec::<String>::new());
    let tool = found.tool("echo").unwrap();
    assert_eq!(tool.description, "Says it again.");
    assert_eq!(tool.listed.sent["description"], "Says it\u{200b} again.");
    let names = (
        found.prompts[0].shown.name.as_str(),
        found.resources[0].shown.uri.as_str(),
        found.templates[0].shown.uri_template.as_str(),
    );
    assert_eq!(names, ("greet", "a:b", "a:{name}"));
}

async fn progress(connection: &Connection) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&steps);
    let control = CallControl {
        progress: Some(Arc::new(move |step: Progress| {
            sink.lock().unwrap().push(step);
        })),
        ..CallControl::default()
    };
    let mut arguments = Map::new();
    arguments.insert("text".to_owned(), json!("hello"));
    let answer = connection.call("echo", arguments, control).await.unwrap();
    assert_eq!(answer.output.to_text(), "\"hello\"");
    let steps = steps.lock().unwrap();
    let messages: Vec<&str> = steps
        .iter()
        .filter_map(|step| step.message.as_deref())
        .collect();
    assert_eq!(
        messages,
        ["step 1", "step 2", "step 3"],
        "in order and before the result"
    );
    assert_eq!((steps[2].progress, steps[2].total), (3.0, Some(3.0)));
}

async fn passes_through(connection: &Connection) {
    let control = CallControl::default;
    let read = ReadResourceRequestParams::new("a:b");
    let read = connection.read_resource(read, control()).await.unwrap();
    assert_eq!(read.contents, [ResourceContents::text("words", "a:b")]);
    let prompt = GetPromptRequestParams::new("greet");
    let prompt = connection.prompt(prompt, control()).await.unwrap();
    assert_eq!(prompt.messages.len(), 1);
    let completing: CompleteRequestParams = serde_json::from_value(json!({
        "ref": Reference::for_prompt("greet"), "argument": { "name": "who", "value": "Ad" },
    }))
    .unwrap();
    let completed = connection.complete(completing, control()).await.unwrap();
    assert_eq!(completed.completion.values, ["Ad!"]);
    let error = connection
        .call("other", Map::new(), control())
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            McpError::ToolCall {
                rpc_code: -32602,
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_server_with_a_handshake_is_used() {
    uses_all_of_a_server(Era::Initialize, "2025-11-25").await;
}

#[tokio::test]
async fn a_server_without_a_handshake_is_used() {
    uses_all_of_a_server(Era::Discover, "2026-07-28").await;
}

#[tokio::test]
async fn the_newest_generation_is_found() {
    uses_all_of_a_server(Era::Auto, "2026-07-28").await;
}

#[tokio::test]
async fn an_older_server_is_found_at_once() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Recorder::new());
    let serving = async {
        let probe = server.request("server/discover").await;
        server.refuse(&probe, -32601).await;
        server.initialize().await;
    };
    let (connection, ()) = tokio::join!(opening, serving);
    assert_eq!(connection.unwrap().info().protocol, "2025-11-25");
}

/// Such a server knows neither revisions without a handshake nor templates, and says so of neither.
#[tokio::test]
async fn a_server_that_answers_what_it_does_not_know_with_nothing_is_used() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Recorder::new());
    let serving = async {
        let probe = server.request("server/discover").await;
        server.answer(&probe, json!({})).await;
        server.initialize().await;
        let tools = json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] });
        for (list, result) in [
            ("tools/list", tools),
            ("resources/list", json!({ "resources": [] })),
            ("resources/templates/list", json!({})),
        ] {
            let request = server.request(list).await;
            server.answer(&request, result).await;
        }
    };
    let using = async {
        let connection = opening.await.unwrap();
        assert_eq!(connection.info().protocol, "2025-11-25");
        connection.definitions().await.unwrap()
    };
    let (found, ()) = tokio::join!(using, serving);
    assert!(found.tool("a").is_some() && found.templates.is_empty());
}

#[tokio::test]
async fn changes_and_logs_are_heard() {
    let (connection, recorder, server) =
        connect(options(Era::Initialize), |mut server| async move {
            let request = server.request("resources/subscribe").await;
            assert_eq!(request["params"]["uri"], "a:b");
            server.answer(&request, json!({})).await;
            let request = server.request("logging/setLevel").await;
            server.answer(&request, json!({})).await;
            for (method, params) in [
                ("notifications/tools/list_changed", json!({})),
                ("notifications/resources/updated", json!({ "uri": "a:b" })),
                (
                    "notifications/resources/updated",
                    json!({ "uri": "a:other" }),
                ),
                (
                    "notifications/message",
                    json!({ "level": "warning", "logger": "l\n", "data": "careful" }),
                ),
                (
                    "notifications/message",
                    json!({ "level": "warning", "data": "x".repeat(70_000) }),
                ),
                ("notifications/prompts/list_changed", json!({})),
            ] {
                server
                    .say(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
                    .await;
            }
            server.next().await;
        })
        .await;
    connection.subscribe("a:b").await.unwrap();
    #[expect(deprecated, reason = "of the older revisions")]
    connection
        .set_level(rmcp::model::LoggingLevel::Info)
        .await
        .unwrap();
    let heard = recorder.hears(|heard| heard.changed.len() == 2).await;
    assert_eq!(heard.changed, [ListKind::Tools, ListKind::Prompts]);
    assert_eq!(heard.updated, ["a:b"]);
    assert_eq!(heard.logged.len(), 1);
    assert_eq!(heard.logged[0].logger.as_deref(), Some("l"));
    assert_eq!(heard.complaints.len(), 1);
    connection.close().await;
    server.await.unwrap();
}

/// Answers the question which revisions it speaks.
async fn discovered(server: &mut RawServer) {
    let request = server.request("server/discover").await;
    server.answer(&request, discovery()).await;
}

#[tokio::test]
async fn a_stateless_server_tells_of_changes() {
    let (transport, mut server) = pipes();
    let recorder = Recorder::new();
    let opening = Connection::open(transport, options(Era::Discover), recorder.clone());
    let (connection, ()) = tokio::join!(opening, discovered(&mut server));
    let connection = connection.unwrap();
    let request = server.request("subscriptions/listen").await;
    assert_eq!(
        request["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
    for (method, params) in [
        (
            "notifications/subscriptions/acknowledged",
            json!({ "_meta": meta, "notifications": { "toolsListChanged": true } }),
        ),
        ("notifications/tools/list_changed", json!({ "_meta": meta })),
    ] {
        server
            .say(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }
    recorder
        .hears(|heard| heard.changed == [ListKind::Tools])
        .await;
    // Another resource is another stream.
    connection.subscribe("a:b").await.unwrap();
    let request = server.request("subscriptions/listen").await;
    assert_eq!(
        request["params"]["notifications"]["resourceSubscriptions"],
        json!(["a:b"])
    );
    connection.close().await;
}

#[tokio::test]
async fn questions_are_answered_in_both_generations() {
    let form = json!({
        "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    });
    let mut options = options(Era::Initialize);
    options.offers = Offers { elicitation: true };
    let question = form.clone();
    let (connection, recorder, server) = connect(options.clone(), |mut server| async move {
        let request = server.request("tools/call").await;
        server.say(json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question })).await;
        let answer = server.next().await.unwrap();
        assert_eq!(answer["result"]["content"], json!({ "name": "Ada" }));
        server.answer(&request, json!({ "content": [{ "type": "text", "text": "Hello" }] })).await;
    })
    .await;
    assert_eq!(call(&connection, "greet").await.unwrap(), "Hello");
    assert_eq!(recorder.heard().n_questions, 1);
    server.await.unwrap();

    let (transport, mut server) = pipes();
    options.era = Era::Discover;
    let recorder = Recorder::new();
    let opening = Connection::open(transport, options, recorder.clone());
    let (connection, ()) = tokio::join!(opening, discovered(&mut server));
    let connection = connection.unwrap();
    let serving = async {
        let request = server.request("tools/call").await;
        let questions = json!({ "who": { "method": "elicitation/create", "params": form } });
        let result = json!({ "resultType": "input_required", "inputRequests": questions, "requestState": "s" });
        server.answer(&request, result).await;
        let request = server.request("tools/call").await;
        let params = &request["params"];
        assert_eq!(params["requestState"], "s");
        assert_eq!(
            params["inputResponses"]["who"]["content"],
            json!({ "name": "Ada" })
        );
        let content = json!([{ "type": "text", "text": "Hello" }]);
        server
            .answer(
                &request,
                json!({ "resultType": "complete", "content": content }),
            )
            .await;
    };
    let (text, ()) = tokio::join!(call(&connection, "greet"), serving);
    assert_eq!(text.unwrap(), "Hello");
    assert_eq!(recorder.heard().n_questions, 1);
}

/// Hears nothing, and has a user who sees some kinds of questions.
#[derive(Debug)]
struct Shows(QuestionKinds);

impl ServerListener for Shows {
    fn question_kinds(&self) -> Pending<'_, QuestionKinds> {
        Box::pin(std::future::ready(self.0))
    }
}

#[tokio::test]
async fn a_server_is_told_what_its_user_can_be_asked() {
    let forms = QuestionKinds {
        forms: true,
        addresses: false,
    };
    for (kinds, told) in [
        (QuestionKinds::default(), Value::Null),
        (forms, json!({ "form": {} })),
        (QuestionKinds::ALL, json!({ "form": {}, "url": {} })),
    ] {
        let (transport, mut server) = pipes();
        let mut options = options(Era::Initialize);
        options.offers = Offers { elicitation: true };
        let opening = Connection::open(transport, options, Arc::new(Shows(kinds)));
        let asking = async {
            let request = server.request("initialize").await;
            assert_eq!(request["params"]["capabilities"]["elicitation"], told);
            server.answer(&request, initialized()).await;
            server.request("notifications/initialized").await;
            // What it was not told of is refused.
            let link = json!({ "mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "1" });
            server.say(json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": link })).await;
            let answer = server.next().await.unwrap();
            assert_eq!(answer.get("error").is_none(), kinds.addresses, "{answer}");
        };
        let (connection, ()) = tokio::join!(opening, asking);
        drop(connection.unwrap());
    }
}

/// Its client speaks the older revisions.
#[derive(Debug)]
struct Older;

impl ServerListener for Older {
    fn era(&self) -> Pending<'_, Era> {
        Box::pin(std::future::ready(Era::Initialize))
    }
}

#[tokio::test]
async fn the_generation_is_the_one_of_the_client() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Arc::new(Older));
    let asking = async {
        let first = server.next().await.unwrap();
        assert_eq!(first["method"], "initialize", "{first}");
        server.answer(&first, initialized()).await;
    };
    let (connection, ()) = tokio::join!(opening, asking);
    assert_eq!(connection.unwrap().info().protocol, "2025-11-25");

    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Arc::new(Older));
    let refusing = async {
        let first = server.request("initialize").await;
        let error = json!({ "code": -32601, "message": "no such method" });
        server
            .say(json!({ "jsonrpc": "2.0", "id": first["id"], "error": error }))
            .await;
    };
    let (refused, ()) = tokio::join!(opening, refusing);
    assert!(matches!(refused, Err(McpError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn a_stateless_server_is_not_given_what_was_not_offered() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Discover), Recorder::new());
    let (connection, ()) = tokio::join!(opening, discovered(&mut server));
    let connection = connection.unwrap();
    let form =
        json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    let sampling = json!({ "messages": [], "maxTokens": 1 });
    for (method, params, what) in [
        ("elicitation/create", form, "elicitation"),
        ("sampling/createMessage", sampling, "sampling"),
        ("roots/list", json!({}), "roots"),
    ] {
        let serving = async {
            let request = server.request("tools/call").await;
            let questions = json!({ "q": { "method": method, "params": params } });
            let result = json!({ "resultType": "input_required", "inputRequests": questions });
            server.answer(&request, result).await;
        };
        let (answer, ()) = tokio::join!(call(&connection, "a"), serving);
        assert_eq!(answer.unwrap_err(), McpError::NotGiven(what));
    }
}

#[tokio::test]
async fn rounds_without_an_end_are_given_up() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Discover), Recorder::new());
    let (connection, ()) = tokio::join!(opening, discovered(&mut server));
    let connection = connection.unwrap();
    let serving = async {
        for _round in 0..10 {
            let request = server.request("tools/call").await;
            server
                .answer(
                    &request,
                    json!({ "resultType": "input_required", "requestState": "s" }),
                )
                .await;
        }
    };
    let (answer, ()) = tokio::join!(call(&connection, "a"), serving);
    assert!(matches!(answer.unwrap_err(), McpError::BadAnswer(why) if why.contains("10 rounds")));
}
