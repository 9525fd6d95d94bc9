//! MCP servers as a source of tools.
//!
//! Each server of the configuration has a task that keeps it (`keeper`, `handshake`), over the seam to what starts and reaches servers
//! (`opener`). What it says is compared with its pin (`pin`), and offered within its lists and as far as it is believed (`offered`), under names
//! that no other server has (`naming`). How all
//! servers stand is published as a whole (`set`); a call waits there for its server, and is made (`call`), charged with what the server and
//! hosts exchanged meanwhile (`traffic`); what it answers is cleaned (`visible`).

mod call;
mod choice;
mod handshake;
mod keeper;
mod last_start;
pub(crate) mod launch;
mod listener;
pub(crate) mod login;
pub(crate) mod naming;
mod news;
mod off;
mod offered;
mod older;
mod opener;
mod own;
pub(crate) mod pending;
mod pin;
pub(crate) mod reserved;
mod set;
mod setback;
#[cfg(test)]
mod tests;
mod traffic;
pub(crate) mod visible;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use zeph_config::{Config, ServerConfig, ServerTransport};
use zeph_core::category::ErrorCategory;
use zeph_core::failure::ToolFailure;
use zeph_core::id::ServerName;
use zeph_core::server;
use zeph_core::tool::{Backend, Tool};
use zeph_engine::Cancel;
use zeph_mcp::client::{Connection, ConnectionOptions, McpError, ServerListener};
use zeph_mcp::rate::Rate;

pub(crate) use self::call::{ServerWork, call};
use self::keeper::{Keeper, KeeperRoom};
pub(crate) use self::last_start::LastStart;
pub(crate) use self::news::{tell_news, troubles};
pub(crate) use self::off::may_have;
use self::off::{is_chosen, off};
pub(crate) use self::offered::OfferedTool;
use self::opener::Opener;
pub(crate) use self::own::OwnOpener;
pub(crate) use self::pin::idle_entries;
pub(crate) use self::set::{ChangedServer, ServerSet, ServerStanding, ServerState};
pub(crate) use self::traffic::Traffic;
use crate::known_secrets::KnownSecrets;

/// The servers of one host. Clones are handles to one room.
#[derive(Debug, Clone)]
pub(crate) struct Servers(Arc<Room>);

#[derive(Debug)]
struct Room {
    servers: BTreeMap<ServerName, Kept>,
    sender: watch::Sender<Arc<ServerSet>>,
    /// How this program is called here, for the commands that messages name.
    program: String,
}

/// What the room has of one server.
#[derive(Debug)]
struct Kept {
    config: ServerConfig,
    wanted: Arc<Notify>,
    suspected: Arc<Notify>,
    renewed: Arc<Notify>,
    /// Calls on their way.
    n_calls: AtomicUsize,
    rate: Option<Rate>,
}

/// What the room works with.
#[derive(Debug)]
pub(crate) struct ServersOptions {
    /// The servers of the configuration; none while tools are switched off.
    pub(crate) servers: BTreeMap<ServerName, ServerConfig>,
    /// Where servers are pinned; none when there is no place for it.
    pub(crate) lock: Option<PathBuf>,
    /// How connections are opened.
    pub(crate) options: ConnectionOptions,
    /// Starts and reaches servers.
    pub(crate) opener: Arc<dyn Opener>,
    /// Whether changed servers are kept for their approval as soon as they are seen.
    pub(crate) keeps_changes: bool,
    /// What is removed from what servers offer.
    pub(crate) secrets: Arc<KnownSecrets>,
    /// Hears what servers say besides answers.
    pub(crate) listener: Option<Arc<dyn ServerListener>>,
    /// Whether every server is started at once, and not when it is wanted.
    pub(crate) is_eager: bool,
    /// How this program is called here.
    pub(crate) program: String,
    /// Tells when a server was accepted.
    pub(crate) clock: fn() -> i64,
}

impl Servers {
    /// Begins to keep the servers, in `tasks`: when those are dropped, the servers end.
    pub(crate) fn start(options: ServersOptions, tasks: &mut JoinSet<()>) -> Self {
        let first = options.servers.iter();
        let first = first.fold(ServerSet::default(), |set, (name, config)| {
            let state = match config.disabled {
                true => ServerState::Disabled,
                false => ServerState::Idle,
            };
            set.with(ServerStanding::new(name.clone(), state))
        });
        let (sender, _) = watch::channel(Arc::new(first));
        let room = Arc::new(KeeperRoom {
            opener: options.opener,
            names: options.servers.keys().cloned().collect(),
            lock: options.lock,
            options: options.options,
            keeps_changes: options.keeps_changes,
            secrets: options.secrets,
            listener: options.listener,
            sender: sender.clone(),
            clock: options.clock,
        });
        let servers = options.servers.into_iter().map(|(name, config)| {
            let [wanted, suspected, renewed] = [(); 3].map(|()| Arc::new(Notify::new()));
            if !config.disabled {
                let keeper = Keeper {
                    room: Arc::clone(&room),
                    name: name.clone(),
                    config: config.clone(),
                    wanted: Arc::clone(&wanted),
                    suspected: Arc::clone(&suspected),
                    renewed: Arc::clone(&renewed),
                    is_older: AtomicBool::new(false),
                };
                tasks.spawn(keeper.run());
            }
            let rate = config.calls_per_minute_max;
            let rate = rate.map(|per_minute| Rate::new(per_minute.get(), Instant::now()));
            let kept = Kept {
                config,
                wanted,
                suspected,
                renewed,
                n_calls: AtomicUsize::new(0),
                rate,
            };
            (name, kept)
        });
        let this = Self(Arc::new(Room {
            servers: servers.collect(),
            sender,
            program: options.program,
        }));
        if options.is_eager {
            this.want_all();
        }
        this
    }

    /// Where relative paths of a call start, where the configuration says so.
    pub(crate) fn directory(&self, backend: &Backend) -> Option<&Path> {
        let Backend::Mcp(tool) = backend else {
            return None;
        };
        match &self.config(tool.server.as_str())?.transport {
            ServerTransport::Command(command) => command.directory.as_deref(),
            ServerTransport::Http(_) => None,
        }
    }

    /// What a call of `tool` is made with.
    ///
    /// Errors: `policy_blocked` when the operator's rules for arguments forbid it.
    pub(crate) fn work(
        &self,
        set: &ServerSet,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> Result<ServerWork, ToolFailure> {
        let found = match &tool.backend {
            Backend::Mcp(named) => {
                let standing = set.standing(named.server.as_str());
                let tools = standing.map(|standing| standing.tools.as_slice());
                let mut tools = tools.unwrap_or_default().iter();
                let offered = tools.find(|offered| offered.tool.backend == tool.backend);
                offered
                    .zip(self.config(named.server.as_str()))
                    .map(|it| (named, it))
            }
            _ => None,
        };
        let Some((named, (offered, config))) = found else {
            let message = format!("`{}` is not offered any more", tool.name);
            return Err(off(ErrorCategory::ToolNotFound, message));
        };
        ServerWork::new(named, offered, config, arguments)
    }

    /// How this program is called here, for the commands that messages name.
    pub(crate) fn program(&self) -> &str {
        &self.0.program
    }

    /// How they stand at this moment.
    pub(crate) fn set(&self) -> Arc<ServerSet> {
        Arc::clone(&self.0.sender.borrow())
    }

    /// Follows how they stand.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<ServerSet>> {
        self.0.sender.subscribe()
    }

    /// What the configuration says of a server.
    pub(crate) fn config(&self, name: &str) -> Option<&ServerConfig> {
        self.0.servers.get(name).map(|kept| &kept.config)
    }

    /// Starts a server, unless it was started before.
    pub(crate) fn want(&self, name: &ServerName) {
        let Some(kept) = self.0.servers.get(name) else {
            return;
        };
        // At once, so that nobody takes it for settled before its keeper has woken up.
        self.change(name, &ServerState::Idle, &kept.wanted);
    }

    /// Starts every server.
    pub(crate) fn want_all(&self) {
        self.0.servers.keys().for_each(|name| self.want(name));
    }

    /// Starts the servers that may have a tool of this name.
    pub(crate) fn want_for(&self, tool: &str) {
        self.may_have(tool).for_each(|name| self.want(name));
    }

    /// The servers that may have a tool of this name: the one that owns such names, and those for which the operator chose it.
    fn may_have(&self, tool: &str) -> impl Iterator<Item = &ServerName> {
        let owner = server::owner(tool, self.0.servers.keys());
        let servers = self.0.servers.iter();
        let servers = servers
            .filter(move |(name, kept)| owner == Some(name) || is_chosen(&kept.config, tool));
        servers.map(|(name, _)| name)
    }

    /// Whether no server is being started that may have a tool of this name.
    pub(crate) fn is_settled_for(&self, set: &ServerSet, tool: &str) -> bool {
        self.may_have(tool).all(|name| {
            let standing = set.standing(name.as_str());
            !standing.is_some_and(|standing| standing.state.is_starting())
        })
    }

    /// Waits until no server is being started.
    pub(crate) async fn settled(&self) {
        let mut watch = self.watch();
        // The sender is held by the room.
        drop(watch.wait_for(|set| set.is_settled()).await);
    }

    /// The connection to a server, which is started if need be.
    ///
    /// Limits: waits for `patience` at most, and not at all once `cancel` has come.
    /// Errors: why there is none, with the command that would help.
    pub(crate) async fn connection(
        &self,
        name: &ServerName,
        patience: Duration,
        cancel: &Cancel,
    ) -> Result<Connection, ToolFailure> {
        self.want(name);
        let mut watch = self.watch();
        let is_over = |set: &Arc<ServerSet>| {
            let standing = set.standing(name.as_str());
            !standing.is_some_and(|standing| standing.is_coming())
        };
        tokio::select! {
            _ = watch.wait_for(is_over) => {}
            () = tokio::time::sleep(patience) => {}
            () = cancel.cancelled() => {}
        }
        let set = self.set();
        let standing = set.standing(name.as_str());
        let connection = standing.and_then(|standing| standing.connection.clone());
        connection.ok_or_else(|| match standing {
            Some(standing) => self.why_off(standing),
            None => off(
                ErrorCategory::ServerError,
                format!("there is no MCP server `{name}`"),
            ),
        })
    }

    /// Makes a request, and counts it. One that is given up while no other is on its way makes its server suspect: it may hang.
    pub(crate) async fn watched<T>(
        &self,
        name: &ServerName,
        request: impl Future<Output = Result<T, McpError>>,
    ) -> Result<T, McpError> {
        let Some(kept) = self.0.servers.get(name) else {
            return request.await;
        };
        let on_its_way = OnItsWay::begin(&kept.n_calls);
        let answer = request.await;
        let n_others = on_its_way.end();
        let is_given_up = matches!(answer, Err(McpError::Timeout { .. } | McpError::Cancelled));
        if is_given_up && n_others == 0 {
            // At once: calls that come now wait, and are not sent to a server that hangs.
            self.change(name, &ServerState::Active, &kept.suspected);
        }
        answer
    }

    /// Lets a server that offers something else than it did be compared with its pin. Until then, it is as if it was being started.
    pub(crate) fn look_again(&self, name: &ServerName) {
        if let Some(kept) = self.0.servers.get(name) {
            self.change(name, &ServerState::Active, &kept.renewed);
        }
    }

    /// Lets a server be started or looked at once more, if it is in this state, and tells its keeper.
    fn change(&self, name: &ServerName, from: &ServerState, told: &Notify) {
        self.0.sender.send_if_modified(|set| {
            let standing = set.standing(name.as_str());
            let is_so = |standing: &&Arc<ServerStanding>| standing.state.label() == from.label();
            let Some(standing) = standing.filter(is_so) else {
                return false;
            };
            let starting = ServerStanding {
                state: ServerState::Starting,
                ..ServerStanding::clone(standing)
            };
            *set = Arc::new(set.with(starting));
            told.notify_one();
            true
        });
    }

    /// Takes one call from what a server may be asked in a minute.
    ///
    /// Errors: `rate_limited`, with how long to wait.
    pub(crate) fn take_call(&self, name: &ServerName) -> Result<(), ToolFailure> {
        let kept = self.0.servers.get(name);
        let Some(rate) = kept.and_then(|kept| kept.rate.as_ref()) else {
            return Ok(());
        };
        rate.take(Instant::now()).map_err(|wait| {
            let message = format!(
                "MCP server `{name}` may be called {} times a minute \
                 (`mcp.servers.{name}.rate_limit.max_calls_per_minute`); try again in {} s",
                rate.per_minute(),
                wait.as_secs() + 1
            );
            ToolFailure {
                retry_after_ms: u64::try_from(wait.as_millis()).ok(),
                ..off(ErrorCategory::RateLimited, message)
            }
        })
    }
}

/// Forgets what is noted of how a server was started. Blocks.
///
/// Errors: of the files.
pub(crate) fn forget_notes(config: &Config, name: &ServerName) -> io::Result<()> {
    older::forget(config, name)?;
    LastStart::forget(config, name)
}

/// One call among those of a server. It counts until it is dropped.
struct OnItsWay<'a>(&'a AtomicUsize);

impl<'a> OnItsWay<'a> {
    fn begin(n_calls: &'a AtomicUsize) -> Self {
        n_calls.fetch_add(1, Ordering::SeqCst);
        Self(n_calls)
    }

    /// How many others there are.
    fn end(self) -> usize {
        self.0.load(Ordering::SeqCst).saturating_sub(1)
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
