//! Servers that are pinned and stand in no configuration: those that run through `zeph-host wrap`, and where clients start them. And those
//! that clients start without this program.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use zeph_config::Config;
use zeph_core::id::ServerName;
use zeph_core::tool::Tool;
use zeph_mcp::clients::{CLIENTS, ServerStart};
use zeph_plugins::lock::Lock;
use zeph_plugins::server::LockedServer;

use crate::cli::context::Context;
use crate::cli::{mcp_config, wrap};
use crate::servers::{LastStart, pending};

/// Most bytes of a client's file.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What runs outside of the configuration.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// Servers that are wrapped or stand in `zeph.lock` alone, by name.
    pub(super) wrapped: BTreeMap<String, WrappedStanding>,
    /// Files of clients that start servers of the configuration through `wrap`, by name.
    pub(super) configured: BTreeMap<String, Vec<String>>,
    /// Servers that a client starts without this program, one sentence for each file.
    pub(super) bare: Vec<String>,
}

/// How a wrapped server stands. It is not started to look.
#[derive(Debug, Default)]
pub(super) struct WrappedStanding {
    /// Its command or address.
    pub(super) place: String,
    /// Files of clients that start it.
    pub(super) files: Vec<String>,
    /// What was accepted of it; none before its first start.
    pin: Option<Pin>,
    /// How it was last started; none that is known.
    last_start: Option<LastStart>,
}

#[derive(Debug)]
struct Pin {
    accepted: LockedServer,
    is_changed: bool,
}

impl Outside {
    /// What is known without starting anything. Files of clients that are not there or cannot be read say nothing.
    pub(super) fn look(context: &Context, config: &Config) -> Self {
        let mut outside = Self::default();
        let lock = config.mcp_lock.as_deref();
        let lock = lock.and_then(|path| Lock::read(path).ok());
        for locked in lock.iter().flat_map(Lock::servers) {
            if !config.mcp_servers.contains_key(&locked.name) {
                let standing = WrappedStanding::of(locked, config);
                outside.wrapped.insert(locked.name.to_string(), standing);
            }
        }
        for client in &CLIENTS {
            let Ok(path) = mcp_config::place(context, client) else {
                continue;
            };
            let is_short = fs::metadata(&path).is_ok_and(|about| about.len() <= FILE_BYTES_MAX);
            let text = is_short.then(|| fs::read_to_string(&path).ok()).flatten();
            let started = text.and_then(|text| client.started(&text).ok());
            let mut bare = Vec::new();
            for server in started.unwrap_or_default() {
                match server.start {
                    ServerStart::Wrapped { name, command, url } => {
                        let name = name.and_then(|name| ServerName::new(name).ok());
                        let name = name.unwrap_or_else(|| wrap::name_of(&command, url.as_deref()));
                        let file = format!("{}: {}", client.title, path.display());
                        let files = match config.mcp_servers.contains_key(&name) {
                            true => outside.configured.entry(name.to_string()).or_default(),
                            false => {
                                let standing = outside.wrapped.entry(name.to_string());
                                let standing = standing.or_insert_with(|| WrappedStanding {
                                    place: url.unwrap_or_else(|| quoted(&command)),
                                    last_start: LastStart::of(config, &name),
                                    ..WrappedStanding::default()
                                });
                                &mut standing.files
                            }
                        };
                        files.push(file);
                    }
                    ServerStart::Bare => bare.push(server.name),
                    ServerStart::Host | ServerStart::Remote => {}
                }
            }
            if !bare.is_empty() {
                outside.bare.push(format!(
                    "{} starts without a sandbox: {} ({}); `zeph-host mcp-config {} --wrap` shows how it would be wrapped",
                    client.title,
                    bare.join(", "),
                    path.display(),
                    client.name
                ));
            }
        }
        outside
    }

    /// Whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.wrapped.is_empty() && self.bare.is_empty()
    }
}

impl WrappedStanding {
    fn of(locked: &LockedServer, config: &Config) -> Self {
        Self {
            place: quoted(&locked.launch),
            files: Vec::new(),
            pin: Some(Pin {
                accepted: locked.clone(),
                is_changed: pending::of(config, &locked.name).is_some(),
            }),
            last_start: LastStart::of(config, &locked.name),
        }
    }

    /// What stood around it at its last start, in a word; `-` where that is not known. Nothing stands around a server on another machine.
    pub(super) fn walls(&self) -> &str {
        match &self.last_start {
            _ if is_address(&self.place) => "remote",
            Some(start) => &start.walls,
            None => "-",
        }
    }

    /// What did not stand around it then, one sentence each.
    pub(super) fn missing_layers(&self) -> &[String] {
        match &self.last_start {
            Some(start) if !is_address(&self.place) => &start.missing_layers,
            _ => &[],
        }
    }

    /// Whether it was started through `wrap`, or is going to be: what is pinned may also have been taken out of a configuration.
    fn is_wrapped(&self) -> bool {
        self.last_start.is_some() || !self.files.is_empty()
    }

    /// How it stands, in a word.
    pub(super) fn status(&self) -> &'static str {
        match &self.pin {
            None => "not started",
            Some(Pin { is_changed, .. }) if *is_changed => "changed",
            Some(_) if self.is_wrapped() => "wrapped",
            Some(_) => "pinned",
        }
    }

    /// How many tools were accepted.
    pub(super) fn n_tools(&self) -> usize {
        self.tools().len()
    }

    /// What was accepted of it; none before its first start.
    pub(super) fn accepted(&self) -> Option<&LockedServer> {
        self.pin.as_ref().map(|pin| &pin.accepted)
    }

    /// The tools that were accepted.
    pub(super) fn tools(&self) -> &[Tool] {
        let accepted = self.accepted();
        accepted.map_or(&[], |accepted| accepted.definitions.tools())
    }

    /// Where it is started, and what to do.
    pub(super) fn lines(&self, name: &str, program: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.status() == "changed" {
            lines.push(format!(
                "it is not what was accepted; `{program} mcp approve {name}` shows the difference"
            ));
        }
        if !self.is_wrapped() {
            lines.push(format!(
                "no configuration has it, and it was not seen to be started through `zeph-host wrap`; `{program} mcp forget {name}` \
                 removes what is kept of it"
            ));
        }
        lines.extend_from_slice(self.missing_layers());
        lines.extend(self.files.iter().map(|file| format!("started by {file}")));
        lines
    }

    /// As a row of `list --json`.
    pub(super) fn as_json(&self, name: &str) -> Value {
        json!({
            "name": name,
            "status": self.status().replace(' ', "_"),
            "wrapped": self.is_wrapped(),
            "place": self.place,
            "walls": self.walls(),
            "missing_layers": self.missing_layers(),
            "tools": self.tools().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
            "started_by": self.files,
        })
    }
}

/// Whether a server is reached and not run: no program has such a name.
fn is_address(place: &str) -> bool {
    let schemes = ["http://", "https://"];
    schemes.iter().any(|scheme| place.starts_with(scheme))
}

fn quoted(words: &[String]) -> String {
    let words = words.iter();
    let words: Vec<String> = words
        .map(|word| zeph_plugins::refusal::quoted(word))
        .collect();
    words.join(" ")
}
