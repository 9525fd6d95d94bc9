//! Starts servers to look at them, and says how they stand.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use zeph_config::{Config, ServerConfig, ServerTransport, TrustLevel};
use zeph_core::id::ServerName;
use zeph_plugins::event::{PluginEvent, Tell};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::out;
use crate::host::Host;
use crate::servers::{ServerStanding, ServerState};

/// The longest that an installation is waited for, where its server is what was asked about.
const INSTALL_PATIENCE: Duration = Duration::from_secs(600);

/// A host that has started `servers`, each as far as it gets within `mcp.start_timeout`.
///
/// Errors: the host cannot start.
pub(super) async fn host(
    context: &Context,
    config: Config,
    servers: &[ServerName],
) -> Result<Host, CliError> {
    let quiet = context.quiet;
    // How the servers stand is shown by the command itself.
    let tell: Tell = Arc::new(move |event: &PluginEvent| {
        if !quiet && matches!(event, PluginEvent::Progress { .. }) {
            out::note(&event.to_string());
        }
    });
    let host = context.start(config, false, Vec::new(), Some(tell)).await?;
    for name in servers {
        host.servers().want(name);
    }
    settled(&host).await;
    Ok(host)
}

/// The same for one server, which is waited for while it is installed.
///
/// Errors: the host cannot start.
pub(super) async fn host_of(
    context: &Context,
    config: Config,
    server: &ServerName,
) -> Result<Host, CliError> {
    let host = host(context, config, std::slice::from_ref(server)).await?;
    installed(&host).await;
    Ok(host)
}

/// Waits until nothing is being started, for a little longer than a start may take.
pub(in crate::cli) async fn settled(host: &Host) {
    let patience = host.config().mcp_start_timeout * 2;
    // What is not there by then is told to be starting.
    drop(tokio::time::timeout(patience, host.servers().settled()).await);
}

/// Waits until nothing is being started or installed.
pub(super) async fn installed(host: &Host) {
    drop(tokio::time::timeout(INSTALL_PATIENCE, host.servers().settled()).await);
}

/// How a server stands, in a word and with what to do. `program`: how the host is called here.
pub(super) fn detail(standing: &ServerStanding, program: &str) -> Option<String> {
    let name = &standing.name;
    match &standing.state {
        ServerState::Idle | ServerState::Starting | ServerState::Active => None,
        ServerState::Changed(_) => Some(format!(
            "it is not what was accepted; `{program} mcp approve {name}` shows the difference"
        )),
        ServerState::Failed { reason, next_try } => Some(format!(
            "{reason}; a running host tries again in {} s",
            next_try.as_secs() + 1
        )),
        ServerState::Disabled => Some(format!("`mcp.servers.{name}.disabled` is set")),
        ServerState::NeedsLogin(reason) => {
            Some(format!("{reason}; `{program} mcp login {name}` logs in"))
        }
    }
}

/// Where the server is: its command line, or its address.
pub(in crate::cli) fn place(config: &ServerConfig) -> String {
    match &config.transport {
        ServerTransport::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.arguments);
            let words: Vec<String> = words
                .map(|word| zeph_plugins::refusal::quoted(word))
                .collect();
            words.join(" ")
        }
        ServerTransport::Http(remote) => remote.url.clone(),
    }
}

/// What stands around the server: the layers that are missing are named, so that nobody takes it for jailed.
pub(super) fn walls(config: &ServerConfig, standing: &ServerStanding) -> String {
    let about = standing.about.as_deref();
    match (&config.transport, about.and_then(|about| about.walls)) {
        (ServerTransport::Http(_), _) => "remote".to_owned(),
        (ServerTransport::Command(_), None) => "-".to_owned(),
        (ServerTransport::Command(_), Some(walls)) => walls.to_owned(),
    }
}

/// The word of the configuration.
pub(super) fn trust(config: &ServerConfig) -> &'static str {
    match config.trust {
        TrustLevel::Trusted => "trusted",
        TrustLevel::Untrusted => "untrusted",
        TrustLevel::Sandboxed => "sandboxed",
    }
}

/// What `list` and `info` have in common.
pub(super) fn as_json(config: &ServerConfig, standing: &ServerStanding, program: &str) -> Value {
    let about = standing.about.as_deref();
    let info = about.and_then(|about| about.info.as_ref());
    let tools = standing
        .tools
        .iter()
        .map(|offered| offered.tool.name.as_str());
    let next_try = match &standing.state {
        ServerState::Failed { next_try, .. } => Some(next_try.as_secs() + 1),
        _ => None,
    };
    json!({
        "name": standing.name,
        "status": standing.state.label().replace(' ', "_"),
        "reason": detail(standing, program),
        "next_try_secs": next_try,
        "place": place(config),
        "walls": walls(config, standing),
        "missing_layers": about.map(|about| about.missing_layers.as_slice()).unwrap_or_default(),
        "trust_level": trust(config),
        "server": info.map(|info| json!({
            "name": info.name, "version": info.version, "protocol": info.protocol,
        })),
        "tools": tools.collect::<Vec<_>>(),
        "notes": standing.notes,
    })
}
