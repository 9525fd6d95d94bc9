//! `zeph-host mcp`: the MCP servers whose tools the host offers.

mod approve;
mod forget;
mod info;
mod list;
mod login;
mod look;
mod test;
mod update;
mod wrapped;

pub(super) use self::look::{place, settled};
use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_core::nearest::nearest;

use super::args::{Json, Mcp, McpCommand};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

/// Runs the command.
pub(super) fn run(context: &Context, options: Mcp) -> Result<Exit, CliError> {
    match options.command {
        None => list::run(context, options.json),
        Some(McpCommand::List { json }) => list::run(context, json),
        Some(McpCommand::Info(options)) => info::run(context, &options),
        Some(McpCommand::Test(options)) => test::run(context, &options),
        Some(McpCommand::Approve(options)) => approve::run(context, &options),
        Some(McpCommand::Update(options)) => update::run(context, &options),
        Some(McpCommand::Forget(options)) => forget::run(context, &options),
        Some(McpCommand::Login(options)) => login::run(context, &options),
        Some(McpCommand::Logout(options)) => login::forget(context, &options),
    }
}

/// The server that is meant.
///
/// Errors: a mistake in what was typed, with the nearest name.
fn named(config: &Config, name: &str) -> Result<ServerName, CliError> {
    known(config, name).map_err(|error| {
        error.hint(
            "`zeph-host mcp list` lists them; add one as `[mcp.servers.NAME]` to your configuration",
        )
    })
}

/// The configured name of a server whose login is removed. Unlike above, an unknown name brings no advice to add the server.
fn known(config: &Config, name: &str) -> Result<ServerName, CliError> {
    let shown = zeph_core::failure::one_line(name, 80);
    if let Some((known, _)) = config.mcp_servers.get_key_value(name) {
        return Ok(known.clone());
    }
    let names = config.mcp_servers.keys().map(ServerName::as_str);
    let problem = match nearest(&shown, names) {
        Some(near) => format!("no MCP server is named `{shown}`; did you mean `{near}`?"),
        None => format!("no MCP server is named `{shown}`"),
    };
    Err(CliError::user(problem))
}

/// Which form was asked for.
fn is_json(json: &Json) -> bool {
    json.json
}
