//! A server that stands in no configuration and that clients start through `zeph-host wrap`: what was accepted of it. It is not started.

use serde_json::{Value, json};
use zeph_config::Config;
use zeph_plugins::server::own_name;

use super::{pin, pin_json, tool_json};
use crate::cli::args::McpName;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::mcp::is_json;
use crate::cli::mcp::wrapped::{Outside, WrappedStanding};
use crate::cli::page::print_json;
use crate::run::catalog;
use crate::run::page::Page;

/// Shows the server, if there is one of this name.
pub(super) fn show(
    context: &Context,
    config: &Config,
    options: &McpName,
) -> Option<Result<Exit, CliError>> {
    let outside = Outside::look(context, config);
    let standing = outside.wrapped.get(&options.name)?;
    let shown = match is_json(&options.json) {
        true => print_json(&as_json(&options.name, standing)),
        false => as_page(&options.name, standing, &context.program()).print(),
    };
    Some(shown.map(|()| Exit::Success))
}

fn as_json(name: &str, standing: &WrappedStanding) -> Value {
    let mut value = standing.as_json(name);
    let tools = standing.tools().iter();
    value["tools"] = tools.map(|tool| tool_json(tool, own_name(tool))).collect();
    value["accepted"] = standing.accepted().map(pin_json).unwrap_or_default();
    let definitions = standing.accepted().map(|accepted| &accepted.definitions);
    value["prompts"] = json!(definitions.map_or(0, |said| said.prompts().len()));
    value["resource_templates"] = json!(definitions.map_or(0, |said| said.templates().len()));
    value["instructions"] = json!(definitions.and_then(|said| said.instructions()));
    value
}

fn as_page(name: &str, standing: &WrappedStanding, program: &str) -> Page {
    let mut page = Page::new();
    page.name(0, name, standing.status());
    for line in standing.lines(name, program) {
        page.line(0, &line);
    }
    page.push("\n").field("place", Some(&standing.place));
    page.field("walls", Some(standing.walls()));
    pin(&mut page, standing.accepted());
    if !standing.tools().is_empty() {
        page.head("TOOLS");
    }
    for tool in standing.tools() {
        // A client of `wrap` sees the names that the server gives.
        page.name(1, own_name(tool), catalog::effect(tool));
        page.text(2, &tool.description);
    }
    page
}
