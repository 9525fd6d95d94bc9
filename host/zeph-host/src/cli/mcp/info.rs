//! `zeph-host mcp info`: everything there is to know of one server.

mod wrapped;

use serde_json::{Value, json};
use zeph_config::{ServerConfig, ServerTransport};
use zeph_core::text::counted;
use zeph_core::tool::Tool;
use zeph_plugins::lock::Lock;
use zeph_plugins::server::LockedServer;

use super::{is_json, look, named};
use crate::cli::args::McpName;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::page::print_json;
use crate::cli::time;
use crate::host::Host;
use crate::run::catalog;
use crate::run::page::Page;
use crate::servers::ServerStanding;

/// A server with its pin.
pub(super) struct KnownServer<'a> {
    pub(super) config: &'a ServerConfig,
    pub(super) standing: &'a ServerStanding,
    pub(super) locked: Option<LockedServer>,
    /// How the host is called here.
    pub(super) program: &'a str,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &McpName) -> Result<Exit, CliError> {
    let config = context.config()?;
    let name = match named(&config, &options.name) {
        Ok(name) => name,
        Err(unknown) => return wrapped::show(context, &config, options).ok_or(unknown)?,
    };
    context::block_on_threads(async {
        let host = look::host_of(context, config, &name).await?;
        with_known(&host, &options.name, |known| match is_json(&options.json) {
            true => print_json(&as_json(known)),
            false => as_page(known).print(),
        })?;
        Ok(Exit::Success)
    })
}

/// Shows what is known of a server.
///
/// Errors: those of `show`.
pub(super) fn with_known(
    host: &Host,
    name: &str,
    show: impl FnOnce(&KnownServer<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let set = host.servers().set();
    let found = set.standing(name).zip(host.servers().config(name));
    let (standing, config) =
        found.ok_or_else(|| CliError::user("tools are switched off (`tools.enabled`)"))?;
    let lock = host.config().mcp_lock.as_deref();
    let lock = lock.and_then(|path| Lock::read(path).ok());
    show(&KnownServer {
        config,
        standing,
        locked: lock.and_then(|lock| lock.server(&standing.name).cloned()),
        program: host.servers().program(),
    })
}

pub(super) fn as_json(known: &KnownServer<'_>) -> Value {
    let KnownServer {
        config,
        standing,
        locked,
        program,
    } = known;
    let about = standing.about.as_deref();
    let mut value = look::as_json(config, standing, program);
    value["accepted"] = locked.as_ref().map(pin_json).unwrap_or_default();
    let offered = standing.tools.iter();
    value["tools"] = offered
        .map(|offered| tool_json(&offered.tool, offered.own_name()))
        .collect();
    if let Some(about) = about {
        let left_out = about.left_out.iter();
        value["left_out"] = left_out
            .map(|(tool, why)| json!({"tool": tool, "why": why}))
            .collect();
        value["refused"] = json!(about.refused);
        value["stderr"] = json!(about.stderr);
        value["prompts"] = json!(about.n_prompts);
        value["resource_templates"] = json!(about.n_templates);
        value["instructions"] = json!(
            about
                .info
                .as_ref()
                .and_then(|info| info.instructions.as_ref())
        );
    }
    value
}

fn tool_json(tool: &Tool, own_name: &str) -> Value {
    json!({
        "name": tool.name,
        "own_name": own_name,
        "description": tool.description,
        "effect": catalog::effect(tool),
        "parameters": tool.parameters.schema(),
    })
}

fn pin_json(locked: &LockedServer) -> Value {
    json!({
        "launch": locked.launch,
        "install": locked.install,
        "definitions": locked.digest,
        "at": time::shown(locked.accepted_at_ms),
    })
}

pub(super) fn as_page(known: &KnownServer<'_>) -> Page {
    let KnownServer {
        config,
        standing,
        program,
        ..
    } = known;
    let mut page = Page::new();
    page.name(0, standing.name.as_str(), standing.state.label());
    if let Some(detail) = look::detail(standing, program) {
        page.line(0, &detail);
    }
    facts(&mut page, known);
    grants(&mut page, config);
    tools(&mut page, standing);
    for note in &standing.notes {
        page.line(0, &format!("note: {note}"));
    }
    page
}

fn facts(page: &mut Page, known: &KnownServer<'_>) {
    let KnownServer {
        config,
        standing,
        locked,
        ..
    } = known;
    let about = standing.about.as_deref();
    let info = about.and_then(|about| about.info.as_ref());
    page.push("\n").field("place", Some(&look::place(config)));
    page.field("walls", Some(&look::walls(config, standing)));
    for layer in about
        .map(|about| about.missing_layers.as_slice())
        .unwrap_or_default()
    {
        page.line(1, layer);
    }
    page.field("trust", Some(look::trust(config)));
    let said = info.map(|info| {
        format!(
            "{} {} (protocol {})",
            info.name, info.version, info.protocol
        )
    });
    page.field("says it is", said.as_deref());
    pin(page, locked.as_ref());
    let timeout = format!("{} s for a call", config.tool_timeout.as_secs());
    page.field("timeout", Some(&timeout));
    let rate = config
        .calls_per_minute_max
        .map(|n| counted(n.get(), "call a minute", "calls a minute"));
    page.field("rate", rate.as_deref());
}

/// When it was accepted, and what was installed for it.
fn pin(page: &mut Page, locked: Option<&LockedServer>) {
    let accepted = locked.map(|locked| time::shown(locked.accepted_at_ms));
    page.field("accepted", accepted.as_deref());
    let installed = locked.map(|locked| {
        let pairs = locked
            .install
            .iter()
            .map(|(key, value)| format!("{key} {value}"));
        pairs.collect::<Vec<_>>().join(", ")
    });
    page.field(
        "installed",
        installed.filter(|text| !text.is_empty()).as_deref(),
    );
}

fn grants(page: &mut Page, config: &ServerConfig) {
    let ServerTransport::Command(command) = &config.transport else {
        return;
    };
    let paths = |paths: &[std::path::PathBuf]| {
        let shown: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    };
    page.field("reads", paths(&command.read).as_deref());
    page.field("writes", paths(&command.write).as_deref());
    let hosts: Vec<String> = command
        .hosts
        .iter()
        .map(|host| host.pattern.to_string())
        .collect();
    page.field(
        "hosts",
        Some(&hosts.join(", "))
            .filter(|text| !text.is_empty())
            .map(String::as_str),
    );
}

fn tools(page: &mut Page, standing: &ServerStanding) {
    if !standing.tools.is_empty() {
        page.head("TOOLS");
    }
    for offered in &standing.tools {
        let tool = &offered.tool;
        page.name(1, tool.name.as_str(), catalog::effect(tool));
        page.text(2, &tool.description);
    }
    let left_out = standing
        .about
        .as_deref()
        .map(|about| about.left_out.as_slice());
    let left_out = left_out.unwrap_or_default();
    if !left_out.is_empty() {
        page.head("NOT OFFERED");
    }
    for (tool, why) in left_out {
        page.line(1, &format!("{tool}: {why}"));
    }
}
