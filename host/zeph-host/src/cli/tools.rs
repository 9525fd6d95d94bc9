//! `zeph-host tools`: the catalog.

use zeph_core::catalog::Catalog;
use zeph_core::failure::ToolFailure;
use zeph_core::tool::Tool;
use zeph_plugins::off;

use super::args::{Tools, ToolsCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::{mcp, out};
use crate::run::catalog;

/// Runs the command.
pub(super) fn run(context: &Context, options: Tools) -> Result<Exit, CliError> {
    let config = context.config()?;
    context::block_on(async {
        let host = context.start(config, false, Vec::new(), None).await?;
        match &options.command {
            Some(ToolsCommand::Show { name, .. }) => host.servers().want_for(name),
            None | Some(ToolsCommand::List { .. }) => host.servers().want_all(),
        }
        host.has_plugins().await;
        mcp::settled(&host).await;
        let tools = host.catalog();
        match options.command {
            None => list(&tools, options.json.json),
            Some(ToolsCommand::List { json }) => list(&tools, json.json),
            Some(ToolsCommand::Show { name, json }) => {
                let off = off::why(&host.plugins(), &name, &context.program());
                let off = off.or_else(|| host.servers().why(&name));
                show(&tools, &name, off, json.json)
            }
        }?;
        Ok(Exit::Success)
    })
}

fn list(tools: &Catalog, json: bool) -> Result<(), CliError> {
    match json {
        true => out::json(&tools.tools().collect::<Vec<&Tool>>()),
        false => out::styled(&catalog::list(tools, out::width())),
    }
}

/// Shape: `off` is why a plugin that has the tool is off.
fn show(tools: &Catalog, name: &str, off: Option<ToolFailure>, json: bool) -> Result<(), CliError> {
    let tool = tools.resolve(name).map_err(|unknown| {
        let failure = off.unwrap_or(unknown);
        CliError::user(failure.message).hint("`zeph-host tools` lists the names")
    })?;
    match json {
        true => out::json(tool),
        false => out::styled(&catalog::show(tool, out::width(), true)),
    }
}
