//! How the servers stand at one moment, and the tools they offer then. Built anew after every change and never altered; pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zeph_core::id::{Digest, ServerName};
use zeph_core::tool::Backend;
use zeph_mcp::client::{Connection, Definitions, ServerInfo};
use zeph_plugins::server::LockedServer;

use super::offered::OfferedTool;
use super::opener::ServerProcess;

/// Every server of the configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerSet {
    standings: BTreeMap<ServerName, Arc<ServerStanding>>,
    /// Which set of its room it is: each has a greater number than the one before.
    pub(crate) generation: u64,
}

/// How one server stands.
#[derive(Debug, Clone)]
pub(crate) struct ServerStanding {
    /// Its name.
    pub(crate) name: ServerName,
    /// Its state.
    pub(crate) state: ServerState,
    /// What it offers, within its lists and as far as it is believed; empty unless it was active and may be again without a person.
    pub(crate) tools: Vec<OfferedTool>,
    /// The digest of the accepted definitions; none before they are known.
    pub(crate) digest: Option<Digest>,
    /// What the operator should know of it, one sentence each.
    pub(crate) notes: Vec<String>,
    /// What is known of the process or the connection that is, or was last.
    pub(crate) about: Option<Arc<ServerAbout>>,
    /// How it is spoken to while it is active.
    pub(crate) connection: Option<Connection>,
    /// All that it offers, as it says it; none before it was active.
    pub(crate) definitions: Option<Arc<Definitions>>,
}

/// What a server is, for people.
#[derive(Debug)]
pub(crate) struct ServerAbout {
    /// What it says about itself.
    pub(crate) info: Option<ServerInfo>,
    /// How much of the jail stands around it; none of a remote one.
    pub(crate) walls: Option<&'static str>,
    /// The layers that are not, one sentence each.
    pub(crate) missing_layers: Vec<String>,
    /// The end of its standard error.
    pub(crate) stderr: String,
    /// What it was refused, one line each.
    pub(crate) refused: Vec<String>,
    /// Its process, which may have ended; none of a remote one.
    pub(crate) process: Option<Arc<dyn ServerProcess>>,
    /// Its names of tools that are not offered, and why.
    pub(crate) left_out: Vec<(String, String)>,
    /// What the configuration says of tools that it does not have, one sentence each.
    pub(crate) idle: Vec<String>,
    /// Prompts.
    pub(crate) n_prompts: usize,
    /// Resource templates.
    pub(crate) n_templates: usize,
}

/// The state of a server.
#[derive(Debug, Clone)]
pub(crate) enum ServerState {
    /// Nothing has asked for it yet.
    Idle,
    /// It is being installed, started or asked.
    Starting,
    /// Its tools can be called.
    Active,
    /// It is not what was accepted: off until it is approved.
    Changed(Box<ChangedServer>),
    /// It does not run.
    Failed {
        /// Why, on one line.
        reason: String,
        /// How long it was decided to wait before it is tried again.
        next_try: Duration,
    },
    /// Switched off by the operator.
    Disabled,
    /// A person has to log in: why, and with which command, on one line.
    NeedsLogin(String),
}

/// Both sides of a difference.
#[derive(Debug, Clone)]
pub(crate) struct ChangedServer {
    /// What was accepted.
    pub(crate) old: LockedServer,
    /// What is there now. When what would run differs, it was not run: its definitions are those of `old`.
    pub(crate) new: LockedServer,
}

impl ServerState {
    /// In a word.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Changed(_) => "changed",
            Self::Failed { .. } => "failed",
            Self::Disabled => "disabled",
            Self::NeedsLogin(_) => "needs login",
        }
    }

    /// Whether it may be another one in a moment, without anybody doing anything.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self, Self::Starting)
    }
}

impl ServerStanding {
    /// Whether it is being started, or will be at once: its keeper may not have heard yet that it ended.
    pub(crate) fn is_coming(&self) -> bool {
        let has_ended = |connection: &Connection| connection.end().is_some();
        self.state.is_starting() || self.connection.as_ref().is_some_and(has_ended)
    }

    /// Of a server nothing is known of yet.
    pub(crate) fn new(name: ServerName, state: ServerState) -> Self {
        Self {
            name,
            state,
            tools: Vec::new(),
            digest: None,
            notes: Vec::new(),
            about: None,
            connection: None,
            definitions: None,
        }
    }
}

impl ServerSet {
    /// The set with `standing` in the place of the one of its name.
    pub(crate) fn with(&self, standing: ServerStanding) -> Self {
        let mut standings = self.standings.clone();
        standings.insert(standing.name.clone(), Arc::new(standing));
        Self {
            standings,
            generation: self.generation + 1,
        }
    }

    /// Whether no server is being started.
    pub(crate) fn is_settled(&self) -> bool {
        let mut standings = self.standings.values();
        !standings.any(|standing| standing.state.is_starting())
    }

    /// How every server stands, by name.
    pub(crate) fn standings(&self) -> impl Iterator<Item = &Arc<ServerStanding>> {
        self.standings.values()
    }

    /// How the server of this name stands.
    pub(crate) fn standing(&self, name: &str) -> Option<&Arc<ServerStanding>> {
        self.standings.get(name)
    }

    /// The server behind a backend.
    pub(crate) fn of_backend(&self, backend: &Backend) -> Option<&Arc<ServerStanding>> {
        match backend {
            Backend::Mcp(tool) => self.standings.get(&tool.server),
            Backend::Wasm(_) | Backend::Builtin | Backend::Shell => None,
        }
    }

    /// Every tool that is offered.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &OfferedTool> {
        let standings = self.standings.values();
        standings.flat_map(|standing| &standing.tools)
    }
}
