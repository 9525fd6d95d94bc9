//! Whether what runs a tool can reach the network, and whether it is elsewhere itself.

use zeph_config::{Config, ServerTransport};
use zeph_core::tool::{Backend, Tool};
use zeph_plugins::rights::Rights;

use crate::work::Work;

/// How far what runs a tool reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallReach {
    /// Whether it can send something off this machine. Of commands, their names say so.
    pub(crate) reaches_network: bool,
    /// Whether it is elsewhere, so that all it says is.
    pub(crate) is_remote: bool,
}

impl CallReach {
    /// The reach of a call.
    pub(crate) fn of(config: &Config, tool: &Tool, work: &Work, rights: Option<&Rights>) -> Self {
        match work {
            Work::Guest(_) => Self {
                reaches_network: rights.is_some_and(|rights| {
                    !rights.hosts.is_empty() || has_remote_embedder(config, rights)
                }),
                is_remote: false,
            },
            Work::Delegated(_) => Self {
                reaches_network: tool.annotations.open_world,
                is_remote: tool.annotations.open_world,
            },
            Work::Mcp(_) => Self::of_server(config, tool),
            Work::Shell(_) | Work::Builtin(_) => Self::default(),
        }
    }

    fn of_server(config: &Config, tool: &Tool) -> Self {
        let Backend::Mcp(of_server) = &tool.backend else {
            return Self::default();
        };
        let Some(server) = config.mcp_servers.get(&of_server.server) else {
            return Self::default();
        };
        match &server.transport {
            ServerTransport::Http(http) => {
                let url = url::Url::parse(&http.url).ok();
                let host = url.as_ref().and_then(url::Url::host_str);
                let is_remote = host.is_none_or(|host| !is_loopback(host));
                Self {
                    reaches_network: is_remote,
                    is_remote,
                }
            }
            ServerTransport::Command(command) => Self {
                reaches_network: !command.hosts.is_empty(),
                is_remote: false,
            },
        }
    }
}

/// Whether texts may be sent to a provider of embeddings that is not on this machine.
fn has_remote_embedder(config: &Config, rights: &Rights) -> bool {
    let Some(embedding) = &config.agent.embedding else {
        return false;
    };
    let mut providers = config.providers.iter();
    let provider = providers.find(|provider| provider.name == embedding.provider);
    let url = provider.and_then(|provider| url::Url::parse(&provider.base_url).ok());
    let host = url.as_ref().and_then(url::Url::host_str);
    rights.services.embedders.contains(&embedding.provider)
        && host.is_none_or(|host| !is_loopback(host))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = bare
        .parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    is_address || bare.eq_ignore_ascii_case("localhost")
}
