//! The MCP servers, as far as that can be said without starting one.

use zeph_config::{Config, ServerConfig};
use zeph_core::id::ServerName;
use zeph_core::text::counted;
use zeph_plugins::lock::Lock;

use super::{CheckState, DoctorCheck};
use crate::cli::mcp;

const GROUP: &str = "mcp servers";

/// A line for each server, and one for what is wrong with the place of the pins.
pub(super) fn of_config(config: &Config) -> Vec<DoctorCheck> {
    if config.mcp_servers.is_empty() {
        return Vec::new();
    }
    let Some(path) = &config.mcp_lock else {
        let check = DoctorCheck::new(
            GROUP,
            "zeph.lock",
            CheckState::Missing,
            "there is no place to pin servers, so none is used",
        );
        return vec![check.how_to_get("set `HOME`, or name a configuration file with `--config`")];
    };
    match Lock::read(path) {
        Ok(lock) => {
            let servers = config.mcp_servers.iter();
            servers
                .map(|(name, server)| of_server(name, server, &lock))
                .collect()
        }
        Err(error) => {
            let check =
                DoctorCheck::new(GROUP, "zeph.lock", CheckState::Missing, error.to_string());
            vec![check.how_to_get(error.hint())]
        }
    }
}

fn of_server(name: &ServerName, server: &ServerConfig, lock: &Lock) -> DoctorCheck {
    let place = mcp::place(server);
    let (state, detail) = match (server.disabled, lock.server(name)) {
        (true, _) => (CheckState::Ok, format!("{place}; disabled")),
        (false, None) => (
            CheckState::Ok,
            format!("{place}; new, pinned when it first runs"),
        ),
        (false, Some(locked)) => {
            let n_tools = locked.definitions.tools().len();
            let tools = counted(n_tools, "tool", "tools");
            (CheckState::Ok, format!("{place}; {tools} accepted"))
        }
    };
    DoctorCheck::new(GROUP, name.as_str(), state, detail).how_to_get(format!(
        "`zeph-host mcp test {name}` starts it and shows how it stands"
    ))
}
