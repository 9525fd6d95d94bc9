//! Keeps one server: starts it, compares it with its pin, follows what it offers, and starts it again when it ends.
//!
//! One task for each server. Nothing a server does ends the task, and a pause that grows stands between two starts.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use zeph_config::{ServerConfig, ServerTransport};
use zeph_core::failure::one_line;
use zeph_core::id::ServerName;
use zeph_mcp::client::{Connection, ConnectionOptions, Definitions, ServerListener};
use zeph_plugins::folder::FileStamp;
use zeph_plugins::server::LockedServer;

use super::listener::Ears;
use super::naming::Naming;
use super::offered;
use super::opener::{LaunchPlan, Opener, ServerProcess};
use super::pin::{self, Sight};
use super::set::{ChangedServer, ServerAbout, ServerSet, ServerStanding, ServerState};
use super::setback::{Setback, shown, with_last_words};
use crate::known_secrets::KnownSecrets;

/// The shortest and the longest pause before a server is started again.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A pause that callers wait out.
const SHORT_PAUSE: Duration = Duration::from_secs(1);

/// A server that ran so long starts again without a longer pause than the first.
const STEADY: Duration = Duration::from_secs(30);

/// How often it is looked whether a changed server was approved.
const LOOK: Duration = Duration::from_millis(500);

/// The least time between two looks at what a server offers.
const LIST_PAUSE: Duration = Duration::from_millis(500);

/// How long a server that let a call run out of time may take to show that it still answers.
const PROBE: Duration = Duration::from_secs(3);

/// What the keepers of one host share.
#[derive(Debug)]
pub(crate) struct KeeperRoom {
    /// Starts and reaches servers.
    pub(crate) opener: Arc<dyn Opener>,
    /// The names of all configured servers: what names their tools may have follows from them.
    pub(crate) names: BTreeSet<ServerName>,
    /// Where servers are pinned; none when there is no place for it.
    pub(crate) lock: Option<PathBuf>,
    /// How connections are opened.
    pub(crate) options: ConnectionOptions,
    /// Whether a changed server is kept for its approval although no other process can look at it: it is served alone.
    pub(crate) keeps_changes: bool,
    /// What is removed from what servers offer.
    pub(crate) secrets: Arc<KnownSecrets>,
    /// Hears what servers say besides answers.
    pub(crate) listener: Option<Arc<dyn ServerListener>>,
    /// The sets of all keepers.
    pub(crate) sender: watch::Sender<Arc<ServerSet>>,
    /// Tells when a server was accepted.
    pub(crate) clock: fn() -> i64,
}

/// The keeper of one server.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) room: Arc<KeeperRoom>,
    pub(crate) name: ServerName,
    pub(crate) config: ServerConfig,
    /// Told when the server is wanted.
    pub(crate) wanted: Arc<Notify>,
    /// Told when a call was given up and no other is on its way: the server may hang.
    pub(crate) suspected: Arc<Notify>,
    /// Told when a list of the server was seen to be another one.
    pub(crate) renewed: Arc<Notify>,
    /// Whether it was found to know the older revisions alone.
    pub(crate) is_older: AtomicBool,
}

impl Keeper {
    /// Keeps the server until the task is dropped. It begins when the server is wanted.
    pub(crate) async fn run(self) {
        self.wanted.notified().await;
        let mut pauses = pauses();
        loop {
            let begun = Instant::now();
            let setback = self.live().await;
            if begun.elapsed() >= STEADY {
                pauses = self::pauses();
            }
            let pause = pauses.next().unwrap_or(PAUSE_MAX);
            match setback {
                Setback::Changed(changed) => {
                    let old = changed.old.clone();
                    self.publish_off(ServerState::Changed(changed));
                    self.another_is_accepted(&old).await;
                    pauses = self::pauses();
                    self.publish(|standing| standing.state = ServerState::Starting);
                }
                Setback::NeedsLogin(reason) => {
                    let reason = self.room.secrets.redactor().text(&reason).into_owned();
                    self.publish_off(ServerState::NeedsLogin(reason));
                    tokio::time::sleep(pause).await;
                }
                Setback::Failed(reason) => self.rest(reason, pause, false).await,
                Setback::Busy { reason, wait } => {
                    self.rest(reason, pause.max(wait.min(PAUSE_MAX)), false)
                        .await;
                }
                Setback::Ended(reason) => self.rest(reason, pause, pause <= SHORT_PAUSE).await,
            }
        }
    }

    /// Waits before the next start. What was offered stays in the catalog: calls of it wait or are told why.
    async fn rest(&self, reason: String, pause: Duration, is_soon: bool) {
        let reason = self.room.secrets.redactor().text(&reason).into_owned();
        tracing::info!(server = %self.name, reason, "an MCP server does not run");
        let state = match is_soon {
            true => ServerState::Starting,
            false => ServerState::Failed {
                reason,
                next_try: pause,
            },
        };
        self.publish(|standing| {
            standing.state = state.clone();
            standing.connection = None;
        });
        tokio::time::sleep(pause).await;
    }

    /// Starts the server and stays with it to its end.
    async fn live(&self) -> Setback {
        let (lock, name) = (self.room.lock.clone(), self.name.clone());
        let accepted = pin::blocking(move || pin::accepted_launch(lock.as_deref(), &name)).await;
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(reason) => return Setback::Failed(reason),
        };
        let planned = self
            .room
            .opener
            .plan(&self.name, &self.config, accepted.as_ref());
        let launch = match planned.await {
            Ok(launch) => launch,
            Err(failure) => return failure.into(),
        };
        let plan = launch.plan();
        if let Some(setback) = self.launch_setback(&plan).await {
            return setback;
        }
        let ears = Ears::new(
            self.name.clone(),
            Arc::clone(&self.room.secrets),
            self.room.listener.clone(),
        );
        let ears = Arc::new(ears);
        let (connection, process) = match self.connected(&*launch, &plan, &ears).await {
            Ok(connected) => connected,
            Err(setback) => return setback,
        };
        let setback = self
            .follow(&connection, &plan, process.as_ref(), &ears)
            .await;
        connection.close().await;
        self.ended(process).await;
        setback
    }

    /// Whether what would run is another thing than what was accepted.
    async fn launch_setback(&self, plan: &LaunchPlan) -> Option<Setback> {
        let (lock, name, plan) = (self.room.lock.clone(), self.name.clone(), plan.clone());
        match pin::blocking(move || pin::of_launch(lock.as_deref(), &name, &plan)).await {
            Ok(None) => None,
            Ok(Some(changed)) => {
                if self.room.keeps_changes {
                    self.keep_changed(&changed).await;
                }
                Some(Setback::Changed(Box::new(changed)))
            }
            Err(reason) => Some(Setback::Failed(reason)),
        }
    }

    /// Follows what a running server offers, until it ends or is not what was accepted.
    async fn follow(
        &self,
        connection: &Connection,
        plan: &LaunchPlan,
        process: Option<&Arc<dyn ServerProcess>>,
        ears: &Ears,
    ) -> Setback {
        let mut was_active = false;
        let mut patience = self.room.options.start_timeout;
        loop {
            let looked = self.look(connection, plan, process, patience).await;
            let looked_at = Instant::now();
            match looked {
                Ok(None) => was_active = true,
                Ok(Some(changed)) => {
                    // Before it is ended, which takes its time: no call may reach it any more. Who is told of the change can approve it
                    // at once.
                    self.publish_off(ServerState::Starting);
                    if was_active || self.room.keeps_changes {
                        self.keep_changed(&changed).await;
                    }
                    self.publish_off(ServerState::Changed(changed.clone()));
                    return Setback::Changed(changed);
                }
                Err(reason) if was_active => return Setback::Ended(reason),
                Err(reason) => return Setback::Failed(with_last_words(reason, process)),
            }
            tokio::select! {
                reason = connection.ended() => {
                    return Setback::Ended(with_last_words(reason.to_string(), process));
                }
                () = ears.changed() => tokio::time::sleep_until(looked_at + LIST_PAUSE).await,
                () = self.renewed.notified() => {}
                () = self.suspected.notified() => {
                    patience = PROBE;
                    continue;
                }
            }
            patience = self.room.options.start_timeout;
        }
    }

    /// Asks the server for what it offers, and offers it if it is what was accepted.
    ///
    /// Errors: why the server cannot be used.
    async fn look(
        &self,
        connection: &Connection,
        plan: &LaunchPlan,
        process: Option<&Arc<dyn ServerProcess>>,
        patience: Duration,
    ) -> Result<Option<Box<ChangedServer>>, String> {
        let definitions = listed(connection, patience).await?;
        let said = offered::pinned(&self.name, connection.info(), &definitions);
        let now = pin::server(&self.name, plan, said, (self.room.clock)());
        let lock = self.room.lock.clone();
        let sight = pin::blocking(move || pin::look(lock.as_deref(), now)).await?;
        let (digest, accepted) = match sight {
            Sight::Accepted { digest, tools } => (digest, tools),
            Sight::Changed(changed) => return Ok(Some(changed)),
        };
        let naming = Naming::new(&self.name, &self.room.names, &accepted);
        let walls = process.map(|it| it.walls());
        let has_hosts = match &self.config.transport {
            ServerTransport::Command(command) => !command.hosts.is_empty(),
            ServerTransport::Http(_) => true,
        };
        let is_confined = walls == Some("full") && !has_hosts;
        let offered = offered::offered(&naming, &self.config, &definitions, is_confined);
        let tools = definitions.tools.iter();
        let tools: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
        let idle = offered::idle_entries(&self.name, &self.config, &tools);
        let mut notes = definitions.notes.clone();
        if self.room.keeps_changes {
            // The one server of this process: nobody lists it.
            self.tell_omitted(&notes, &offered.left_out, &idle);
        }
        notes.extend(offered.notes(&naming));
        notes.extend(idle.iter().cloned());
        let about = ServerAbout {
            info: Some(connection.info().clone()),
            walls,
            missing_layers: process.map(|it| it.missing_layers()).unwrap_or_default(),
            stderr: process.map(|it| it.stderr()).unwrap_or_default(),
            refused: process.map(|it| it.refused()).unwrap_or_default(),
            process: process.cloned(),
            left_out: offered.left_out,
            idle,
            n_prompts: definitions.prompts.len(),
            n_templates: definitions.templates.len(),
        };
        self.put(ServerStanding {
            name: self.name.clone(),
            state: ServerState::Active,
            tools: offered.tools,
            digest: Some(digest),
            notes,
            about: Some(Arc::new(about)),
            connection: Some(connection.clone()),
            definitions: Some(Arc::new(definitions)),
        });
        Ok(None)
    }

    /// Tells what is not offered although the operator did not choose that, and what was chosen in vain.
    fn tell_omitted(&self, notes: &[String], left_out: &[(String, String)], idle: &[String]) {
        let left_out = left_out.iter();
        let left_out = left_out.filter(|(tool, _)| self.config.offers(tool));
        let left_out = left_out.map(|(tool, why)| format!("`{}`: {why}", one_line(tool, 80)));
        for note in notes.iter().cloned().chain(left_out) {
            tracing::warn!(server = %self.name, note, "not all that an MCP server offers is passed on");
        }
        for note in idle {
            tracing::warn!(server = %self.name, note, "a setting of an MCP server has no effect");
        }
    }

    /// A server that changed while it ran may be what was accepted when it is started to be approved.
    async fn keep_changed(&self, changed: &ChangedServer) {
        let (opener, changed) = (Arc::clone(&self.room.opener), changed.clone());
        let kept = pin::blocking(move || {
            opener.keep_changed(&changed);
            Ok(())
        });
        drop(kept.await);
    }

    /// Keeps what a process said last, for people who ask why.
    pub(super) fn note_last(&self, process: Option<&Arc<dyn ServerProcess>>) {
        let Some(process) = process else { return };
        let (stderr, refused) = (process.stderr(), process.refused());
        let (walls, missing_layers) = (Some(process.walls()), process.missing_layers());
        self.publish(|standing| {
            let before = standing.about.as_deref();
            standing.about = Some(Arc::new(ServerAbout {
                info: before.and_then(|about| about.info.clone()),
                walls,
                missing_layers: missing_layers.clone(),
                stderr: stderr.clone(),
                refused: refused.clone(),
                process: Some(Arc::clone(process)),
                left_out: before
                    .map(|about| about.left_out.clone())
                    .unwrap_or_default(),
                idle: before.map(|about| about.idle.clone()).unwrap_or_default(),
                n_prompts: before.map_or(0, |about| about.n_prompts),
                n_templates: before.map_or(0, |about| about.n_templates),
            }));
        });
    }

    /// Waits until something else than `old` stands in the lock.
    async fn another_is_accepted(&self, old: &LockedServer) {
        let stamp = || self.room.lock.as_deref().and_then(FileStamp::at);
        loop {
            // Before it is read: a change that comes meanwhile is seen.
            let seen = stamp();
            let (lock, old) = (self.room.lock.clone(), old.clone());
            let is_old = pin::blocking(move || pin::is_accepted(lock.as_deref(), &old)).await;
            if is_old == Ok(false) {
                return;
            }
            while stamp() == seen {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    fn put(&self, standing: ServerStanding) {
        let put = |set: &mut Arc<ServerSet>| *set = Arc::new(set.with(standing));
        self.room.sender.send_modify(put);
    }

    /// Changes how the server stands.
    fn publish(&self, change: impl FnOnce(&mut ServerStanding)) {
        self.room.sender.send_modify(|set| {
            let known = set.standing(self.name.as_str());
            let mut standing = match known {
                Some(known) => ServerStanding::clone(known),
                None => ServerStanding::new(self.name.clone(), ServerState::Starting),
            };
            change(&mut standing);
            *set = Arc::new(set.with(standing));
        });
    }

    /// Takes what the server offered out of the catalog.
    fn publish_off(&self, state: ServerState) {
        self.publish(|standing| {
            standing.state = state;
            standing.tools = Vec::new();
            standing.connection = None;
        });
    }
}

/// All that a server offers.
///
/// Errors: why that is not known, on one line.
async fn listed(connection: &Connection, patience: Duration) -> Result<Definitions, String> {
    let asked = tokio::time::timeout(patience, connection.definitions());
    let definitions = asked.await.map_err(|_elapsed| {
        let seconds = patience.as_secs();
        // A server that was started is asked whether it still answers, for no more than a moment.
        let key = match patience == PROBE {
            true => "",
            false => " (`mcp.start_timeout`)",
        };
        format!("it has not listed its tools within {seconds} s{key}")
    })?;
    definitions.map_err(|error| shown(&error))
}

fn pauses() -> ExponentialBackoff {
    let pauses = ExponentialBuilder::new()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .with_factor(2.0)
        .without_max_times();
    pauses.build()
}
