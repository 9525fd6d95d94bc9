//! What a client is shown of the catalog: all of it, or, when that is too long, the tools that find and call the others.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, Tool as McpTool,
    ToolAnnotations,
};
use serde_json::Value;
use zeph_config::Expose;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_mcp::caller::Caller;
use zeph_mcp::result;
use zeph_mcp::subset::ToolSubset;

use super::Shared;
use super::listed::{Listed, ListedTool};
use super::search::{self, Entry};
use crate::admission::count_call;
use crate::builtin;

/// A request for one of the server's own tools, or for a tool of the catalog.
pub(super) enum Own {
    /// It is answered.
    Answer(CallToolResult),
    /// The call that is meant.
    Call(CallToolRequestParams),
}

/// The tools a caller is listed.
pub(super) fn tools(shared: &Shared, listed: &Listed, subset: &ToolSubset) -> Vec<McpTool> {
    let all = || listed.of(subset);
    if !is_searched(shared, listed, subset) {
        return all().map(|tool| tool.described.clone()).collect();
    }
    // What was cut is read back whichever tool it came from.
    let reads_back = |tool: &&ListedTool| tool.tool.name.as_str() == builtin::READ_OVERFLOW;
    let read_back = all().filter(reads_back);
    let read_back = read_back.map(|tool| tool.described.clone());
    own_tools().into_iter().chain(read_back).collect()
}

/// Whether the catalog is searched and not listed.
pub(super) fn is_searched(shared: &Shared, listed: &Listed, subset: &ToolSubset) -> bool {
    match shared.host.config().serve.expose {
        // Its client knows how many tools it has.
        _ if shared.native.is_some() => false,
        Expose::All => false,
        Expose::Search => true,
        Expose::Auto { tokens_max } => {
            let n_bytes = |tool: &ListedTool| {
                let json = serde_json::to_vec(&tool.described);
                json.map_or(0, |json| json.len())
            };
            search::tokens(listed.of(subset).map(n_bytes).sum()) > tokens_max
        }
    }
}

/// `find_tool` and `call_tool`.
pub(super) fn own_tools() -> [McpTool; 2] {
    let find = "Finds tools by what they do. Most tools of this server are not listed: describe what you need in a few words, and the \
        best matches come back with their names, descriptions and schemas. Call them with `call_tool`.";
    let call = "Calls a tool by the name that `find_tool` gave, with arguments that agree with its schema. Rules and approvals are those \
        of the tool that is called.";
    [
        own_tool(
            search::FIND,
            "Find tools",
            find,
            search::find_schema(),
            true,
        ),
        own_tool(
            search::CALL,
            "Call a tool",
            call,
            search::call_schema(),
            false,
        ),
    ]
}

fn own_tool(
    name: &'static str,
    title: &str,
    description: &'static str,
    schema: Value,
    read_only: bool,
) -> McpTool {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    McpTool::new(name, description, Arc::new(schema))
        .with_title(title)
        .with_annotations(
            ToolAnnotations::new()
                .read_only(read_only)
                .destructive(!read_only)
                .open_world(!read_only),
        )
}

/// Answers a search, and takes a call through `call_tool` apart; every other call is what it is. While the whole catalog is listed,
/// neither of the two is there.
pub(super) async fn own(
    shared: &Shared,
    listed: &Listed,
    caller: &Caller,
    mut request: CallToolRequestParams,
) -> Own {
    let is_own = search::RESERVED.contains(&request.name.as_ref());
    if !is_own || !is_searched(shared, listed, &caller.tools) {
        return Own::Call(request);
    }
    let arguments = request.arguments.clone().unwrap_or_default();
    if request.name == search::FIND {
        return Own::Answer(found(shared, listed, caller, &arguments).await);
    }
    match search::meant(arguments) {
        Ok((name, arguments)) => {
            request.name = name.into();
            request.arguments = Some(arguments);
            Own::Call(request)
        }
        Err(problem) => Own::Answer(wrong(&request.name, &problem)),
    }
}

async fn found(
    shared: &Shared,
    listed: &Listed,
    caller: &Caller,
    arguments: &JsonObject,
) -> CallToolResult {
    if let Err(failure) = count_call(shared.host.store(), caller.rate.as_ref()).await {
        return result::of_failure(failure, None);
    }
    let entry = |tool: &ListedTool| Entry {
        name: tool.described.name.to_string(),
        title: tool.described.title.clone(),
        description: tool.tool.description.clone(),
        schema: Value::Object((*tool.described.input_schema).clone()),
    };
    let entries: Vec<Entry> = listed.of(&caller.tools).map(entry).collect();
    match search::find(arguments, &entries) {
        Ok(found) => {
            let text = ContentBlock::text(found.to_string());
            let mut result = CallToolResult::success(vec![text]);
            result.structured_content = Some(found);
            result
        }
        Err(problem) => wrong(search::FIND, &problem),
    }
}

fn wrong(name: &str, problem: &str) -> CallToolResult {
    let failure = ToolFailure::new(
        ErrorCategory::InvalidParameters,
        ErrorPhase::ParamHandling,
        format!("`{name}`: {problem}"),
    );
    result::of_failure(failure, None)
}
