//! `zeph-host mcp approve`: shows what is different, asks, and pins exactly what was shown.
//!
//! A server whose command line or package changed does not run before that is accepted. It is started then, and what it says may differ,
//! too: that is shown, and asked for, in a second step.

use serde_json::{Value, json};
use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_plugins::diff::{ServerChanges, between_servers};
use zeph_plugins::server::{self, AcceptError};

use super::{is_json, look, named};
use crate::cli::args::McpApprove;
use crate::cli::ask::accepted;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::cli::page::print_json;
use crate::host::Host;
use crate::run::page::Page;
use crate::servers::{ChangedServer, ServerState, pending};

/// Differences that are shown in one run: of what runs, and of what it says.
const STEPS_MAX: usize = 3;

/// Runs the command.
pub(super) fn run(context: &Context, options: &McpApprove) -> Result<Exit, CliError> {
    let config = context.config()?;
    let name = match (named(&config, &options.name), wrapped(&config, options)) {
        (Err(_), Some(changed)) => return of_wrapped(&config, changed, options),
        (named, _) => named?,
    };
    context::block_on_threads(async {
        let host = look::host_of(context, config, &name).await?;
        let mut steps = Vec::new();
        while let Some(changed) = changed(&host, &name)? {
            let changes = between_servers(&changed.old, &changed.new);
            if !is_json(&options.json) {
                page(&name, &changes).print()?;
            }
            let is_agreed = agreed(&name, options, "approve");
            steps.push(changes);
            if !is_agreed {
                print(&name, &steps, false, options)?;
                return Ok(Exit::Confirm);
            }
            accept(host.config(), changed)?;
            pending::forget(host.config(), &name);
            another(&host, &name).await;
            if steps.len() == STEPS_MAX {
                break;
            }
        }
        print(&name, &steps, true, options)?;
        Ok(Exit::Success)
    })
}

/// What a server that the configuration does not have was seen to be, by the process that wraps it.
fn wrapped(config: &Config, options: &McpApprove) -> Option<ChangedServer> {
    let name = ServerName::new(options.name.as_str()).ok()?;
    pending::of(config, &name)
}

/// Accepts a wrapped server as it was seen. Nothing is started: the process that wraps it looks again.
fn of_wrapped(
    config: &Config,
    changed: ChangedServer,
    options: &McpApprove,
) -> Result<Exit, CliError> {
    let name = changed.new.name.clone();
    let changes = between_servers(&changed.old, &changed.new);
    if !is_json(&options.json) {
        page(&name, &changes).print()?;
    }
    let is_agreed = agreed(&name, options, "approve");
    if is_agreed {
        let ChangedServer { old, new } = &changed;
        let has_run = old.launch == new.launch && old.install == new.install;
        accept(config, changed)?;
        pending::forget(config, &name);
        if !has_run {
            out::note(
                "what it says is compared at its next start, and may have to be approved, too",
            );
        }
    }
    print(&name, &[changes], is_agreed, options)?;
    match is_agreed {
        true => Ok(Exit::Success),
        false => Ok(Exit::Confirm),
    }
}

/// What is different now, if anything.
///
/// Errors: the server cannot be looked at.
fn changed(host: &Host, name: &ServerName) -> Result<Option<ChangedServer>, CliError> {
    let set = host.servers().set();
    let Some(standing) = set.standing(name.as_str()) else {
        return Err(CliError::user("tools are switched off (`tools.enabled`)"));
    };
    match &standing.state {
        ServerState::Changed(changed) => Ok(Some(ChangedServer::clone(changed))),
        // Another process may have seen it change while it ran.
        ServerState::Active => Ok(pending::of(host.config(), name)),
        other => {
            let why = look::detail(standing, host.servers().program()).unwrap_or_default();
            let problem = format!("`{name}` cannot be looked at: it is {}", other.label());
            Err(CliError::internal(problem).hint(why))
        }
    }
}

/// Pins what was shown.
pub(super) fn accept(config: &Config, changed: ChangedServer) -> Result<(), CliError> {
    let ChangedServer { old, new } = changed;
    let lock = config.mcp_lock.as_deref();
    let lock = lock.ok_or_else(|| CliError::internal("there is no place for `zeph.lock`"))?;
    server::accept(lock, &old, new).map_err(|error| {
        let hint = match &error {
            AcceptError::Meanwhile(_) => None,
            AcceptError::Lock(error) => Some(error.hint()),
        };
        let failed = CliError::internal(error.to_string()).because(error);
        hint.into_iter().fold(failed, CliError::hint)
    })
}

/// Waits until the server has been looked at once more.
async fn another(host: &Host, name: &ServerName) {
    let mut watch = host.servers().watch();
    let patience = host.config().mcp_start_timeout * 2;
    let is_off = |state: &ServerState| matches!(state, ServerState::Changed(_));
    let begun = watch.wait_for(|set| {
        let standing = set.standing(name.as_str());
        standing.is_none_or(|standing| !is_off(&standing.state))
    });
    drop(tokio::time::timeout(patience, begun).await);
    look::installed(host).await;
}

pub(super) fn page(name: &ServerName, changes: &ServerChanges) -> Page {
    let mut page = Page::new();
    page.name(0, name.as_str(), "is not what was accepted");
    page.diff(&changes.lines());
    page
}

/// Asks; `verb` is the command that was typed.
pub(super) fn agreed(name: &ServerName, options: &McpApprove, verb: &str) -> bool {
    let command = format!("zeph-host mcp {verb} {name}");
    let subject = format!("MCP server `{name}`");
    let asked = (is_json(&options.json), options.yes);
    accepted((&subject, "server"), &command, asked)
}

fn print(
    name: &ServerName,
    steps: &[ServerChanges],
    is_agreed: bool,
    options: &McpApprove,
) -> Result<(), CliError> {
    if is_json(&options.json) {
        let changes = serde_json::to_value(steps).unwrap_or(Value::Null);
        return print_json(&json!({
            "name": name,
            "changed": !steps.is_empty(),
            "approved": is_agreed,
            "changes": changes,
        }));
    }
    let mut page = Page::new();
    match (steps.is_empty(), is_agreed) {
        (true, _) => page.line(
            0,
            &format!("MCP server `{name}` is what was accepted; there is nothing to approve"),
        ),
        (false, true) => page.head(&format!("MCP server `{name}` is approved")),
        (false, false) => return Ok(()),
    };
    page.print()
}
