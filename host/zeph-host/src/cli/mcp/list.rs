//! `zeph-host mcp list`: one line for each server.

use serde_json::Value;
use zeph_config::ServerConfig;
use zeph_core::id::ServerName;

use super::wrapped::Outside;
use super::{is_json, look};
use crate::cli::args::Json;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::cli::page::print_json;
use crate::run::page::Page;
use crate::run::table;
use crate::servers::ServerStanding;

/// Runs the command.
pub(super) fn run(context: &Context, json: Json) -> Result<Exit, CliError> {
    let config = context.config()?;
    let names: Vec<ServerName> = config.mcp_servers.keys().cloned().collect();
    let outside = Outside::look(context, &config);
    if names.is_empty() && outside.is_empty() && !is_json(&json) {
        return empty();
    }
    if names.is_empty() {
        show(&[], &outside, &context.program(), &json)?;
        return Ok(Exit::Success);
    }
    context::block_on_threads(async {
        let host = look::host(context, config, &names).await?;
        let set = host.servers().set();
        let rows: Vec<(&ServerConfig, &ServerStanding)> = set
            .standings()
            .filter_map(|standing| {
                Some((host.servers().config(standing.name.as_str())?, &**standing))
            })
            .collect();
        show(&rows, &outside, host.servers().program(), &json)?;
        Ok(Exit::Success)
    })
}

fn show(
    rows: &[(&ServerConfig, &ServerStanding)],
    outside: &Outside,
    program: &str,
    json: &Json,
) -> Result<(), CliError> {
    if !is_json(json) {
        return as_page(rows, outside, program).print();
    }
    let own = rows
        .iter()
        .map(|(config, standing)| look::as_json(config, standing, program));
    let wrapped = outside.wrapped.iter();
    let wrapped = wrapped.map(|(name, standing)| standing.as_json(name));
    print_json(&own.chain(wrapped).collect::<Value>())
}

fn as_page(rows: &[(&ServerConfig, &ServerStanding)], outside: &Outside, program: &str) -> Page {
    let mut page = Page::new();
    let own = rows
        .iter()
        .map(|(config, standing)| cells(config, standing));
    let wrapped = outside.wrapped.iter().map(|(name, standing)| {
        [
            name.clone(),
            standing.status().to_owned(),
            standing.n_tools().to_string(),
            standing.walls().to_owned(),
            "-".to_owned(),
            standing.place.clone(),
        ]
    });
    let cells: Vec<[String; 6]> = own.chain(wrapped).collect();
    let head = ["NAME", "STATUS", "TOOLS", "WALLS", "TRUST", "PLACE"];
    page.push(&table::render(head, &cells, out::width()));
    for (_, standing) in rows {
        let about = standing.about.as_deref();
        let missing = about.map(|about| about.missing_layers.as_slice());
        let said = look::detail(standing, program)
            .into_iter()
            .chain(standing.notes.iter().cloned());
        let files = outside.configured.get(standing.name.as_str());
        let files = files.into_iter().flatten();
        let lines: Vec<String> = said
            .chain(missing.unwrap_or_default().iter().cloned())
            .chain(files.map(|file| format!("wrapped for {file}")))
            .collect();
        if !lines.is_empty() {
            page.head(standing.name.as_str());
            for line in lines {
                page.line(1, &line);
            }
        }
    }
    for (name, standing) in &outside.wrapped {
        let lines = standing.lines(name, program);
        if !lines.is_empty() {
            page.head(name);
        }
        for line in lines {
            page.line(1, &line);
        }
    }
    if !outside.bare.is_empty() {
        page.head("NOT WRAPPED");
    }
    for line in &outside.bare {
        page.line(1, line);
    }
    page
}

fn cells(config: &ServerConfig, standing: &ServerStanding) -> [String; 6] {
    [
        standing.name.to_string(),
        standing.state.label().to_owned(),
        standing.tools.len().to_string(),
        look::walls(config, standing),
        look::trust(config).to_owned(),
        look::place(config),
    ]
}

fn empty() -> Result<Exit, CliError> {
    let mut page = Page::new();
    page.line(
        0,
        "there are no MCP servers; add one to your configuration:",
    );
    page.line(1, "[mcp.servers.NAME]");
    page.line(1, "command = \"npx\"");
    page.line(1, "args = [\"-y\", \"PACKAGE\"]");
    page.print()?;
    Ok(Exit::Success)
}
