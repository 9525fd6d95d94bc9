//! `zeph-host mcp update`: the newest version of what is installed for a server, used once its difference is accepted.
//!
//! A start uses the version that is pinned, however old it is. Here the newest one that the command allows is installed beside it; the one
//! that is pinned stays in use until the difference is agreed to, and after that for servers that run.

use std::sync::Arc;

use serde_json::{Value, json};
use zeph_config::{CommandServer, Config, ServerTransport};
use zeph_core::id::ServerName;
use zeph_plugins::diff::between_servers;
use zeph_plugins::lock::Lock;
use zeph_plugins::server::LockedServer;

use super::approve::{accept, agreed, page};
use super::{is_json, named};
use crate::cli::args::McpApprove;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::cli::page::print_json;
use crate::known_secrets::KnownSecrets;
use crate::servers::ChangedServer;
use crate::servers::launch::{InstallPin, Launcher, Progress};

/// Runs the command.
pub(super) fn run(context: &Context, options: &McpApprove) -> Result<Exit, CliError> {
    let config = context.config()?;
    let old = pinned(&config, options)?;
    let server = command(&config, &old)?;
    let newest = newest(context, &config, &old.name, &server)?;
    let program = context.program();
    let new = LockedServer {
        install: pairs(&newest),
        ..old.clone()
    };
    if new.install == old.install {
        tell(options, &newest, (false, true), &program)?;
        return Ok(Exit::Success);
    }
    if !is_json(&options.json) {
        page(&old.name, &between_servers(&old, &new)).print()?;
    }
    if !agreed(&old.name, options, "update") {
        tell(options, &newest, (true, false), &program)?;
        return Ok(Exit::Confirm);
    }
    accept(&config, ChangedServer { old, new })?;
    tell(options, &newest, (true, true), &program)?;
    Ok(Exit::Success)
}

/// The server as it was accepted.
///
/// Errors: there is none of this name; nothing was installed for it.
fn pinned(config: &Config, options: &McpApprove) -> Result<LockedServer, CliError> {
    let lock = config.mcp_lock.as_deref();
    let lock = lock.and_then(|path| Lock::read(path).ok());
    let name = ServerName::new(options.name.as_str()).ok();
    let found = name.and_then(|name| lock.as_ref()?.server(&name).cloned());
    let Some(found) = found else {
        let name = named(config, &options.name)?;
        let problem = format!("MCP server `{name}` was never started, so nothing is pinned");
        return Err(CliError::user(problem).hint("its first start installs the newest version"));
    };
    match found.install.is_empty() {
        false => Ok(found),
        true => Err(CliError::user(format!(
            "nothing is installed for the MCP server `{}`: its command is no `npx`, `bunx`, `uvx` or `pipx run`",
            found.name
        ))),
    }
}

/// What starts it: the configuration, or, of a server that is wrapped, what was accepted of its command.
fn command(config: &Config, old: &LockedServer) -> Result<CommandServer, CliError> {
    match config.mcp_servers.get(&old.name).map(|it| &it.transport) {
        Some(ServerTransport::Command(server)) => Ok(server.clone()),
        Some(ServerTransport::Http(_)) => Err(CliError::user(format!(
            "MCP server `{}` is reached by an address; there is nothing to update",
            old.name
        ))),
        None => {
            let words = old.launch.split_first();
            let (program, arguments) =
                words.ok_or_else(|| CliError::internal("its pin names no command"))?;
            Ok(CommandServer::new(program, arguments.to_vec()))
        }
    }
}

fn newest(
    context: &Context,
    config: &Config,
    name: &ServerName,
    server: &CommandServer,
) -> Result<InstallPin, CliError> {
    let secrets = Arc::new(KnownSecrets::open(config));
    let quiet = context.quiet;
    let progress = Progress::new(move |text| {
        if !quiet {
            out::note(text);
        }
    });
    context::block_on_threads(async {
        let launcher = Launcher::new(config, &secrets, progress, None);
        let launcher = launcher
            .map_err(|error| CliError::internal("a thread cannot be started").because(error))?;
        let newest = launcher.newest(name, server).await;
        newest.map_err(|error| CliError::internal(error.to_string()))
    })
}

fn pairs(pin: &InstallPin) -> std::collections::BTreeMap<String, String> {
    [
        ("integrity", &pin.integrity),
        ("package", &pin.package),
        ("version", &pin.version),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.clone()))
    .collect()
}

fn tell(
    options: &McpApprove,
    newest: &InstallPin,
    (is_new, is_accepted): (bool, bool),
    program: &str,
) -> Result<(), CliError> {
    let name = &options.name;
    if is_json(&options.json) {
        let newest = serde_json::to_value(newest).unwrap_or(Value::Null);
        return print_json(&json!({
            "name": name, "changed": is_new, "approved": is_accepted, "newest": newest,
        }));
    }
    match (is_new, is_accepted) {
        (false, _) => out::remark(&format!(
            "MCP server `{name}` has the newest version: {} {}",
            newest.package, newest.version
        )),
        (true, true) => out::remark(&format!(
            "MCP server `{name}` is {} {} from its next start on; if what it offers is different, `{program} mcp approve {name}` shows that",
            newest.package, newest.version
        )),
        (true, false) => {}
    }
    Ok(())
}
