//! `zeph-host mcp list`: one line for each server.

use serde_json::Value;
use zeph_config::ServerConfig;
use zeph_core::id::ServerName;

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
    if names.is_empty() && !is_json(&json) {
        return empty();
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
        match is_json(&json) {
            true => {
                let rows = rows
                    .iter()
                    .map(|(config, standing)| look::as_json(config, standing));
                print_json(&rows.collect::<Value>())
            }
            false => as_page(&rows).print(),
        }?;
        Ok(Exit::Success)
    })
}

fn as_page(rows: &[(&ServerConfig, &ServerStanding)]) -> Page {
    let mut page = Page::new();
    let cells: Vec<[String; 6]> = rows
        .iter()
        .map(|(config, standing)| cells(config, standing))
        .collect();
    let head = ["NAME", "STATUS", "TOOLS", "WALLS", "TRUST", "PLACE"];
    page.push(&table::render(head, &cells, out::width()));
    for (_, standing) in rows {
        let about = standing.about.as_deref();
        let missing = about.map(|about| about.missing_layers.as_slice());
        let said = look::detail(standing)
            .into_iter()
            .chain(standing.notes.iter().cloned());
        let lines: Vec<String> = said
            .chain(missing.unwrap_or_default().iter().cloned())
            .collect();
        if !lines.is_empty() {
            page.head(standing.name.as_str());
            for line in lines {
                page.line(1, &line);
            }
        }
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
