//! Everything that is built once at start and never changes afterwards.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;
use zeph_config::{Config, ServerConfig, StoreLocation};
use zeph_core::call::ToolRequest;
use zeph_core::catalog::{Catalog, DuplicateTool};
use zeph_core::failure::ToolFailure;
use zeph_core::id::{ConversationId, Digest, PluginId, ServerName};
use zeph_core::lifetime::GrantLifetime;
use zeph_core::manifest::BadManifest;
use zeph_core::output::ToolOutput;
use zeph_core::policy::{AllowRule, Decision, Policy};
use zeph_core::principal::Principal;
use zeph_core::redact::Redactor;
use zeph_core::tool::Tool;
use zeph_egress::Egress;
use zeph_engine::fs::FsPolicyError;
use zeph_engine::{
    Cancel, CompileEvent, CompileListener, Engine, EngineError, EngineOptions, LoadError, Plugin,
};
use zeph_mcp::client::{self, ConnectionOptions, ServerListener};
use zeph_plugins::component::Component;
use zeph_plugins::event::{PluginEvent, Tell, compile_listener};
use zeph_plugins::keeper::{self, Keeper};
use zeph_plugins::record::Records;
use zeph_plugins::refusal::GrantRequest;
use zeph_plugins::rights::OperatorPolicy;
use zeph_plugins::set::{PluginSet, ProgramParts, VettedPlugin};
use zeph_shell::jail::PathWatch;
use zeph_store::{
    AuditKeyFolder, AuditKeySource, AuditKeys, Keyring, Location, OpenedStore, Retention, Store,
    StoreError, StoreOpening, StoreOptions,
};

use crate::agent::models::NoModel;
use crate::anomaly::TrustRoom;
use crate::audit::checkpoints::Checkpointer;
use crate::audit::{Audit, AuditPlace};
use crate::authorisation::Authoriser;
use crate::cache::ResultCache;
use crate::calls::{CallControl, CallReport};
use crate::clock::now_ms;
use crate::compression::Compression;
use crate::dependencies::{Dependencies, Progress};
use crate::embeddings::Embeddings;
use crate::executor::backend::Backends;
use crate::executor::{BadDefinition, PendingReport};
use crate::filtering::Filtering;
use crate::filtering::wasm::Components;
use crate::governance::{GovernanceRoom, Trajectory, VectorSource};
use crate::grant_usage::GrantUsage;
use crate::guest::{GuestUses, ProgramRoom};
use crate::heap;
use crate::judging::JudgeRoom;
use crate::known_secrets::KnownSecrets;
use crate::mode::SessionMode;
use crate::offers::{CatalogWatch, Offers};
use crate::order::Order;
use crate::overflow::Overflow;
use crate::pipeline;
use crate::questions::Questions;
use crate::recording::Recorder;
use crate::replay::ReplayTerms;
use crate::scheduler::SchedulerRoom;
use crate::seals::Seals;
use crate::servers::{OwnOpener, Servers, ServersOptions};
use crate::session::{self, AskedRequest, Session};
use crate::shell::{CommandBackend, Native, Share};
use crate::telemetry::Telemetry;
use crate::{builtin, filtering, scheduler, servers, telemetry, user};

/// The running host. Clones are handles to one.
#[derive(Debug, Clone)]
pub struct Host(Arc<Rooms>);

/// The rooms a call passes through. Only the line sees all of them.
#[derive(Debug)]
pub(crate) struct Rooms {
    pub(crate) config: Config,
    pub(crate) authoriser: Authoriser,
    /// What any plugin can have of files at most.
    pub(crate) operator: OperatorPolicy,
    /// The way out to the network for every plugin.
    pub(crate) egress: Egress,
    pub(crate) offers: Offers,
    /// The tasks that keep plugins and servers; they end with the host. Protects the set for the moment of taking it.
    keepers: Mutex<JoinSet<()>>,
    /// Starts the servers.
    opener: Arc<OwnOpener>,
    pub(crate) telemetry: Telemetry,
    pub(crate) store: Store,
    pub(crate) audit: Audit,
    shell: Arc<Native>,
    /// The executors of the program.
    pub(crate) backends: Backends,
    /// Calls that nobody waits for any more. Protects the set for the moment of adding one.
    left: Mutex<JoinSet<()>>,
    pub(crate) order: Order,
    pub(crate) cache: ResultCache,
    pub(crate) seals: Arc<Seals>,
    pub(crate) questions: Questions,
    pub(crate) secrets: Arc<KnownSecrets>,
    pub(crate) filter: filtering::Stage,
    pub(crate) compression: Compression,
    pub(crate) overflow: Overflow,
    /// Which tools come before which.
    pub(crate) dependencies: Dependencies,
    /// Judges calls; none when they are not judged.
    pub(crate) judge: Option<JudgeRoom>,
    /// Work for later; none where nothing is scheduled.
    pub(crate) scheduler: Option<SchedulerRoom>,
    /// Which grants calls use.
    pub(crate) usage: GrantUsage,
    /// Writes down what calls use, where that is wanted.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// How a call of an earlier host is made again; none where calls are made for the first time.
    pub(crate) replay: Option<ReplayTerms>,
    /// Compares texts by their meaning; none where they are compared by their words.
    pub(crate) embeddings: Option<Embeddings>,
}

impl Rooms {
    /// What the commands of a call used, as far as that is known.
    pub(crate) fn command_uses(&self) -> GuestUses {
        GuestUses {
            directories: self.shell.take_used(),
            ..GuestUses::default()
        }
    }

    /// What programs of guests are run with.
    pub(crate) fn programs(&self) -> ProgramRoom<'_> {
        ProgramRoom {
            shell: &self.shell,
            audit: &self.audit,
            authoriser: &self.authoriser,
            secrets: &self.secrets,
            judge: self.judge.as_ref(),
        }
    }
}

/// How this process will use the host.
#[derive(Clone)]
pub(crate) struct StartOptions {
    /// Many calls are expected: prepare for them, and follow the folders of plugins.
    pub(crate) is_server: bool,
    /// How this program is called here, such as `zeph-host --config my.toml`, for the commands that messages name.
    pub(crate) program: String,
    /// Calls that run without asking, besides what the configuration's rules say.
    pub(crate) allow: Vec<AllowRule>,
    /// The components that are part of the program.
    pub(crate) components: Vec<Component>,
    /// The executors that are part of the program.
    pub(crate) backends: Backends,
    /// The tool of the one call that will be made. What it needs is begun at once: the jail of a command, the component of a plugin of
    /// the program. For a tool of the host itself no plugin is looked at, and no engine is built.
    pub(crate) expected_tool: Option<String>,
    /// No call is made: nothing is recorded, and the audit log is not opened.
    pub(crate) only_explains: bool,
    /// Is told what happens to plugins. Must not block.
    pub(crate) tell: Option<Tell>,
    /// The one server whose tools are served; no plugin is looked at then. Only this program can make it.
    pub(crate) native: Option<NativeOptions>,
    /// The host is a part of another program, which has telemetry of its own.
    pub(crate) is_part: bool,
    /// Writes down what calls use, where that is wanted.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// How a call of an earlier host is made again.
    pub(crate) replay: Option<ReplayTerms>,
}

/// How one native server is served as this program.
#[derive(Debug, Clone)]
pub(crate) struct NativeOptions {
    /// Its name in the configuration.
    pub(crate) name: ServerName,
    /// Hears what it says besides answers, and answers what it asks.
    pub(crate) listener: Arc<dyn ServerListener>,
    /// Whether its tools need an approval where no rule allows them.
    pub(crate) asks: bool,
    /// Learns which paths it asks for in vain; none where nobody wants to know.
    pub(crate) watch: Option<PathWatch>,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            is_server: false,
            program: "zeph-host".to_owned(),
            allow: Vec::new(),
            components: Vec::new(),
            backends: Backends::default(),
            expected_tool: None,
            only_explains: false,
            tell: None,
            native: None,
            is_part: false,
            recorder: None,
            replay: None,
        }
    }
}

impl std::fmt::Debug for StartOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartOptions")
            .field("is_server", &self.is_server)
            .field("components", &self.components)
            .finish_non_exhaustive()
    }
}

/// How long an operation waits for another process that holds the store.
const STORE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long [`Host::shutdown`] waits for commands, and as long again for servers.
const RUNS_END: Duration = Duration::from_secs(5);

/// How long it waits for calls once nothing runs for them.
const CALLS_END: Duration = Duration::from_secs(2);

/// The host could not start. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The wasm engine.
    #[error("the engine cannot start")]
    Engine(#[source] EngineError),
    /// A first-party component.
    #[error("a first-party plugin cannot be loaded")]
    Plugin(#[source] LoadError),
    /// The manifest of a first-party component.
    #[error("the manifest of a first-party plugin cannot be read")]
    Manifest(#[source] BadManifest),
    /// Two plugins offer one name.
    #[error("the catalog cannot be built")]
    Catalog(#[source] DuplicateTool),
    /// A granted directory.
    #[error("the granted directories cannot be opened")]
    Files(#[source] FsPolicyError),
    /// The store.
    #[error("the store cannot be opened")]
    Store(#[source] StoreError),
    /// The model that judges calls.
    #[error("calls are to be judged (`tools.adversarial_policy`): {0}")]
    Judge(String, String),
    /// The user that tools are to work as.
    #[error("{0}")]
    User(String),
    /// The thread that starts commands.
    #[error("the shell cannot start")]
    Shell(#[source] std::io::Error),
    /// A tool of an executor of the program.
    #[error("a backend cannot be used")]
    Backend(#[source] BadDefinition),
}

impl Host {
    /// Builds the host: engine, plugins, catalog, store, audit.
    ///
    /// Plugins in folders that are known from an earlier start are there at once; others are read and compiled in the background
    /// ([`settled`](Self::settled) waits for them), and none of them can stop the start.
    /// Returns the host with what the operator should know, one sentence each.
    /// Errors: [`StartError`]; the first thing that cannot be had stops the start.
    pub(crate) async fn start(
        config: Config,
        options: StartOptions,
    ) -> Result<(Self, Vec<String>), StartError> {
        let config = user::found(config).map_err(|error| StartError::User(error.to_string()))?;
        let opening = begin_to_open_store(&config)?;
        let secrets = Arc::new(KnownSecrets::open(&config));
        let shell = Native::new(&config, &secrets, options.recorder.is_some());
        let shell = shell.map_err(StartError::Shell)?;
        let expected = options.expected_tool.as_deref();
        if config.tools_enabled && expected.is_some_and(Self::runs_commands) {
            shell.shell().expect_command();
        }
        let (filtering, unused_rules) = Filtering::new(&config);
        // A strategy of a plugin may be what an output waits for.
        let needs_none = expected.is_some_and(Self::has_own) || options.native.is_some();
        let is_alone = needs_none && !filtering.needs_plugins();
        let mut tasks = JoinSet::new();
        let (components, plugins) = match is_alone {
            true => (
                Components::native(&options.program),
                own_tools(&config, &options)?,
            ),
            false => keep_plugins(&config, &options, &mut tasks).await?,
        };
        let operator = OperatorPolicy::new(&config).map_err(StartError::Files)?;
        let egress = Egress::new(&config.egress);
        let OpenedStore { store, mut notices } =
            opening.finish().await.map_err(StartError::Store)?;
        notices.extend(unused_rules);
        let (audit, keys) = begin_to_record(&config, &store, options.only_explains).await?;
        notices.extend(begin_checkpoints(
            &config,
            (&audit, keys),
            &egress,
            (&mut tasks, options.is_part),
        ));
        notices.extend(secrets.problem());
        let embeddings = Embeddings::new(&config, &secrets, &egress, &store);
        let known = (&store, &secrets, embeddings.clone());
        let authoriser = authoriser(&config, &options, known);
        let configured = (&authoriser.policy, &config.mcp_servers);
        // Where one server is served, most tools are not there.
        if options.native.is_none() {
            notices.extend(idle_rules(configured, &plugins, &options, &mut tasks));
        }
        if options.is_server && config.filters.enabled {
            let components = components.clone();
            tasks.spawn(async move { components.warm().await });
        }
        let native = options.native.as_ref();
        let watch = native.and_then(|native| native.watch.clone());
        let opener = OwnOpener::new(&config, &secrets, &egress, options.tell.clone());
        let opener = Arc::new(opener.watched(watch));
        let servers = start_servers(&config, &options, &opener, &mut tasks);
        let offers = Offers::new(plugins, servers);
        let seals = Arc::new(Seals::new());
        let is_for_calls = options.is_server || expected.is_some() || options.native.is_some();
        let judge = JudgeRoom::new(&config, &secrets, &egress, is_for_calls);
        let judge = judge.map_err(|NoModel { problem, hint }| StartError::Judge(problem, hint))?;
        let (telemetry, untraced) = match options.is_part {
            true => (Telemetry::default(), None),
            false => telemetry::start(&egress),
        };
        notices.extend(untraced);
        let rooms = Rooms {
            shell: Arc::new(shell),
            order: Order::default(),
            cache: ResultCache::new(config.result_cache),
            questions: Questions::new(Arc::clone(&seals)),
            seals,
            filter: filtering::Stage {
                filtering,
                components,
                offers: offers.clone(),
            },
            compression: Compression::new(config.compression.clone()),
            overflow: Overflow::new(store.clone(), config.overflow),
            dependencies: Dependencies::new(config.shaping.dependencies.as_ref()),
            judge,
            scheduler: SchedulerRoom::new(&config),
            usage: GrantUsage::default(),
            recorder: options.recorder,
            replay: options.replay,
            embeddings,
            authoriser,
            secrets,
            operator,
            egress,
            offers,
            keepers: Mutex::new(tasks),
            opener,
            telemetry,
            backends: options.backends,
            left: Mutex::default(),
            store,
            audit,
            config,
        };
        Ok((Self(Arc::new(rooms)), notices))
    }

    /// Leaves the components to the end of the process, which is about to come: to take them down piece by piece takes longer than a call.
    pub(crate) fn keep_plugins(&self) {
        std::mem::forget(self.0.offers.plugins());
    }

    /// The tools of this moment, without those that no rule lets run.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        let catalog = Arc::clone(&self.0.offers.now().catalog);
        let is_hidden = |tool: &Tool| self.0.authoriser.policy.hides(tool);
        let hides_any = catalog.tools().any(is_hidden);
        match hides_any {
            true => Arc::new(catalog.without(is_hidden)),
            false => catalog,
        }
    }

    /// Follows the tools: plugins come, change and go while the host runs.
    pub fn watch_catalog(&self) -> CatalogWatch {
        self.0.offers.watch()
    }

    /// What a request would come to, without making the call: every check, and the rule that decides.
    ///
    /// Errors: what is wrong with the request itself.
    pub(crate) async fn explain(
        &self,
        session: &Session,
        request: ToolRequest,
    ) -> Result<Decision, ToolFailure> {
        pipeline::explain(&self.0, session, request).await
    }

    /// What ended in the background of `session` and is to be told now, for doors that tell it without a call.
    pub(crate) async fn take_completed(&self, session: &Session) -> Vec<String> {
        pipeline::tell(&self.0, session).await
    }

    /// Waits for the end of a command in the background of `session`; `None` when it was told before.
    pub(crate) async fn ended_run(&self, session: &Session, run_id: Uuid) -> Option<ToolOutput> {
        pipeline::ended_run(&self.0, session, run_id).await
    }

    /// What the host keeps secret.
    pub(crate) fn secrets(&self) -> &KnownSecrets {
        &self.0.secrets
    }

    /// Compares texts by their meaning; none where they are compared by their words.
    pub(crate) fn embeddings(&self) -> Option<&Embeddings> {
        self.0.embeddings.as_ref()
    }

    /// Which tools come before which.
    pub(crate) fn dependencies(&self) -> &Dependencies {
        &self.0.dependencies
    }

    /// Reads what succeeded in the conversation of `session` before this process.
    pub(crate) async fn recall(&self, session: &Session) {
        let of = (&self.0.store, session.conversation);
        let catalog = &self.0.offers.now().catalog;
        self.0
            .dependencies
            .recall(session.progress(), of, catalog)
            .await;
    }

    /// The way out to the network.
    pub(crate) fn egress(&self) -> &Egress {
        &self.0.egress
    }

    /// The record of calls.
    pub(crate) fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// What removes every known secret from what leaves the host without a call.
    pub(crate) fn redactor(&self) -> Redactor {
        self.0.secrets.redactor()
    }

    /// Removes a value from everything from now on.
    #[cfg(test)]
    pub(crate) fn learn_secret(&self, secret: zeph_core::execution::SecretValue) {
        self.0.secrets.learn(vec![secret]);
    }

    /// Work for later; none where nothing is scheduled.
    pub(crate) fn scheduler(&self) -> Option<&SchedulerRoom> {
        self.0.scheduler.as_ref()
    }

    /// Whether a call of this tool may be made again when nobody knows how far the first came.
    pub(crate) fn may_repeat(&self, tool: &str) -> bool {
        let catalog = &self.0.offers.now().catalog;
        let tool = catalog.resolve(tool);
        tool.is_ok_and(|tool| tool.annotations.read_only || tool.annotations.idempotent)
    }

    /// What this host has sealed.
    pub(crate) fn seals(&self) -> &Arc<Seals> {
        &self.0.seals
    }

    /// The plugins of this moment.
    pub(crate) fn plugins(&self) -> Arc<PluginSet> {
        self.0.offers.plugins()
    }

    /// The MCP servers.
    pub(crate) fn servers(&self) -> &Servers {
        self.0.offers.servers()
    }

    /// Grants a plugin what a call of it was refused for. For doors where a person has agreed.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then nothing is granted.
    pub(crate) async fn grant(
        &self,
        request: &GrantRequest,
        lifetime: GrantLifetime,
    ) -> Result<(), StoreError> {
        let GrantRequest {
            plugin,
            pin,
            capabilities,
        } = request.clone();
        let added = self
            .0
            .store
            .add_grants(plugin, pin, capabilities, lifetime, now_ms());
        added.await.map(drop)
    }

    /// What is wrong with rules that no tool can meet, one sentence each, as far as plugins are known.
    pub(crate) fn idle_rules(&self) -> Vec<String> {
        let offer = self.0.offers.now();
        let may_come = |rule: &str| servers::may_have(&self.0.config.mcp_servers, rule);
        let policy = &self.0.authoriser.policy;
        let mut idle = policy.idle_rules(&offer.known_tools(), &may_come);
        let is_known = |name: &str| offer.catalog.resolve(name).is_ok() || may_come(name);
        idle.extend(self.0.dependencies.idle(&is_known));
        idle
    }

    /// Waits until every plugin that was there at start has been looked at, and every MCP server that was wanted.
    pub async fn settled(&self) {
        self.0.offers.settled().await;
    }

    /// Ends what this host still runs, and waits for it: calls that nobody waits for, commands and programs, in the background too, and
    /// MCP servers, each with all it started. What is begun afterwards ends at once. To be called before the program ends: what commands
    /// and servers did to protected places is looked at only when they are gone.
    ///
    /// Returns whether all of it has ended. Limits: some 10 s. Other hosts of the process go on.
    pub async fn shutdown(&self) -> bool {
        let left = std::mem::take(&mut *self.left());
        let mut keepers = {
            let mut keepers = self
                .0
                .keepers
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *keepers)
        };
        let room = Arc::clone(&self.0);
        let ended = tokio::task::spawn_blocking(move || {
            let commands = room.shell.shell().end_all(RUNS_END);
            room.opener.end_all(RUNS_END) && commands
        });
        let ended = ended.await.unwrap_or(false);
        let calls = tokio::time::timeout(CALLS_END, left.join_all()).await;
        keepers.shutdown().await;
        self.0.telemetry.flush().await;
        ended && calls.is_ok()
    }

    fn left(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a call to its end that nobody waits for: its record is completed, and what it began is ended.
    ///
    /// Limits: without a runtime nothing can run any more; then it is dropped.
    pub(crate) fn finish_in_background(&self, call: PendingReport<'static>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut left = self.left();
        while left.try_join_next().is_some() {}
        left.spawn_on(async move { drop(call.await) }, &runtime);
    }

    /// Waits until every plugin that was there at start has been looked at.
    pub(crate) async fn has_plugins(&self) {
        self.0.offers.has_plugins().await;
    }

    /// Waits until the plugins of the program can be called.
    pub(crate) async fn has_own_plugins(&self) {
        self.0.offers.has_own_plugins().await;
    }

    /// Waits until there is a tool of this name, or until it is known that there is none.
    ///
    /// Limits: as for a call of it.
    pub(crate) async fn awaits_tool(&self, name: &str, cancel: &Cancel) {
        let patience = self.0.config.limits.wall_clock;
        drop(self.0.offers.with_tool(name, patience, cancel).await);
    }

    /// Whether `name` is a tool of the host itself, which no plugin offers.
    pub(crate) fn has_own(name: &str) -> bool {
        let own = builtin::tools()
            .into_iter()
            .chain(scheduler::tools::tools());
        let tools = own.chain(Native::tools());
        tools.into_iter().any(|tool| tool.name.as_str() == name)
    }

    /// Whether `name` is the tool that runs commands.
    pub(crate) fn runs_commands(name: &str) -> bool {
        name == zeph_shell::tools::BASH
    }

    /// The configuration in use.
    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    /// Reads learned sequences again at the next call.
    pub(crate) fn learned_sequences_changed(&self) {
        self.0.authoriser.governance.changed();
    }

    /// The store, for listings.
    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Begins a session of `principal`: in `conversation`, or in a new one. All its calls are that principal's.
    ///
    /// Errors: [`StoreError`] when the conversation cannot be recorded.
    pub(crate) async fn open_session(
        &self,
        conversation: Option<ConversationId>,
        principal: Principal,
    ) -> Result<Session, StoreError> {
        let session = self.look_on(conversation, principal);
        self.0
            .store
            .begin_conversation(session.conversation, now_ms())
            .await?;
        Ok(session)
    }

    /// A session for [`explain`](Self::explain) alone: nothing is recorded of it.
    pub(crate) fn look_on(
        &self,
        conversation: Option<ConversationId>,
        principal: Principal,
    ) -> Session {
        let is_old = conversation.is_some();
        let past = (Progress::of(is_old), Trajectory::of(is_old));
        let conversation = conversation.unwrap_or_else(ConversationId::new);
        let undo_max = self.0.config.shell.transaction.undo_max;
        let shell = Share::new(self.0.shell.shell(), session::turn(None, None), undo_max);
        let strategies = self.0.filter.components.session();
        let commands = CommandBackend::Native(Arc::clone(&self.0.shell));
        Session::new(conversation, principal, (commands, shell), strategies, past)
    }

    /// Makes one call: the whole line from request to audit. Never fails: whatever happens is in the report.
    pub(crate) async fn call(
        &self,
        session: &Session,
        request: ToolRequest,
        control: CallControl,
    ) -> CallReport {
        self.call_of(session, session.asks(request), control).await
    }

    /// Makes a call that was asked for before: its frame is of that moment, when another turn may have been the session's.
    pub(crate) async fn call_of(
        &self,
        session: &Session,
        asked: AskedRequest,
        control: CallControl,
    ) -> CallReport {
        pipeline::call(&self.0, session, asked, control).await
    }
}

/// Opens the audit and lets the store sweep itself; for a host that only explains neither.
async fn begin_to_record(
    config: &Config,
    store: &Store,
    only_explains: bool,
) -> Result<(Audit, Option<AuditKeys>), StartError> {
    if only_explains {
        return Ok((Audit::off(store.clone()), None));
    }
    let keys = match config.audit.enabled {
        true => {
            let begun = store.begin_chain(&audit_keys(config), now_ms()).await;
            Some(begun.map_err(StartError::Store)?)
        }
        false => None,
    };
    let retained = store.retain(retention(config), now_ms).await;
    retained.map_err(StartError::Store)?;
    let scope = config.rules.policy.scope.as_ref();
    let run_as_user = scope.and_then(|scope| scope.run_as_user.clone());
    let place = AuditPlace {
        directory: config.file.roots.first().map(|root| root.path.clone()),
        scope: run_as_user
            .as_ref()
            .map(|user| format!("run_as_user={user}")),
        user: config
            .audit
            .enabled
            .then(|| user_of_tools(config))
            .flatten(),
    };
    let audit = Audit::open(&config.audit, (store.clone(), keys.as_ref()), place);
    Ok((audit.map_err(StartError::Store)?, keys))
}

/// Where the keys of the audit are.
pub(crate) fn audit_keys(config: &Config) -> AuditKeySource {
    match audit_key_folder(config) {
        Some(folder) => AuditKeySource::Folder(folder),
        None => AuditKeySource::Process,
    }
}

/// The folder with the keys of the audit; none when nothing is kept.
pub(crate) fn audit_key_folder(config: &Config) -> Option<AuditKeyFolder> {
    let folder = AuditKeyFolder::new(config.audit.keys.as_ref()?);
    Some(match config.uses_keyring {
        true => folder.with_keyring(Keyring::at(zeph_config::session_bus())),
        false => folder,
    })
}

/// Begins to take checkpoints where the operator wants them; what he should know.
fn begin_checkpoints(
    config: &Config,
    (audit, keys): (&Audit, Option<AuditKeys>),
    egress: &Egress,
    (tasks, is_part): (&mut JoinSet<()>, bool),
) -> Option<String> {
    let keys = keys?;
    match Checkpointer::new(&config.audit, (audit.store(), &keys), egress) {
        Ok(Some(checkpointer)) if checkpointer.is_periodic() => {
            let checkpointer = Arc::new(checkpointer);
            if !is_part {
                checkpointer.flush_at_end();
            }
            tasks.spawn(checkpointer.run());
            None
        }
        Ok(_) => None,
        Err(problem) => Some(format!(
            "no checkpoints of the audit log are made: {problem}"
        )),
    }
}

fn authoriser(
    config: &Config,
    options: &StartOptions,
    (store, secrets, embeddings): (&Store, &Arc<KnownSecrets>, Option<Embeddings>),
) -> Authoriser {
    let wrapped = options.native.as_ref().filter(|native| !native.asks);
    let policy = Policy {
        allow: options.allow.clone(),
        wrapped: wrapped.map(|native| native.name.clone()),
        ..config.rules.policy.clone()
    };
    let policy_governance = policy.governance.clone();
    let mut edit_policy = policy.clone();
    let directory = policy.directory.to_string_lossy();
    edit_policy
        .allow
        .extend(SessionMode::edit_rules(&directory));
    Authoriser {
        scheduled_policy: Policy {
            allow: Vec::new(),
            ..policy.clone()
        },
        policy,
        edit_policy,
        governance: GovernanceRoom::new(
            config.governance.clone(),
            policy_governance.private,
            (store.clone(), Arc::clone(secrets)),
            embeddings.map(|model| Arc::new(model) as Arc<dyn VectorSource>),
        ),
        store: store.clone(),
        secrets: Arc::clone(secrets),
        user: needs_user(config).then(|| user_of_tools(config)).flatten(),
        program: options.program.clone(),
        directory: config.file.roots.first().map(|root| root.path.clone()),
        trust: TrustRoom::new(config, store, &options.program, options.tell.as_ref()),
    }
}

/// Begins to keep the servers, and to tell what becomes of them.
fn start_servers(
    config: &Config,
    options: &StartOptions,
    opener: &Arc<OwnOpener>,
    tasks: &mut JoinSet<()>,
) -> Servers {
    let servers = Servers::start(kept_servers(config, options, opener), tasks);
    if let Some(tell) = options.tell.clone() {
        tasks.spawn(servers::tell_news(
            servers.watch(),
            options.program.clone(),
            tell,
        ));
    }
    if let Some(expected) = &options.expected_tool {
        servers.want_for(expected);
    }
    servers
}

/// What the servers are kept with. One of a host for one call is started when its tool is asked for.
fn kept_servers(
    config: &Config,
    options: &StartOptions,
    opener: &Arc<OwnOpener>,
) -> ServersOptions {
    let native = options.native.as_ref();
    let connection = ConnectionOptions {
        start_timeout: config.mcp_start_timeout,
        offers: client::Offers {
            elicitation: native.is_some(),
        },
        ..ConnectionOptions::new(env!("CARGO_PKG_VERSION"))
    };
    ServersOptions {
        servers: match config.tools_enabled {
            true => config.mcp_servers.clone(),
            false => BTreeMap::new(),
        },
        lock: config.mcp_lock.clone(),
        options: connection,
        opener: opener.clone(),
        keeps_changes: native.is_some(),
        listener: native.map(|native| Arc::clone(&native.listener)),
        is_eager: options.is_server || native.is_some(),
        program: options.program.clone(),
        clock: now_ms,
    }
}

/// What is wrong with rules that no tool can meet. While plugins are still being read it cannot be known, and is told afterwards.
fn idle_rules(
    (policy, servers): (&Policy, &BTreeMap<ServerName, ServerConfig>),
    plugins: &watch::Receiver<Arc<PluginSet>>,
    options: &StartOptions,
    tasks: &mut JoinSet<()>,
) -> Vec<String> {
    let set = Arc::clone(&plugins.borrow());
    if set.is_settled {
        return policy.idle_rules(&set.known_tools(), &|rule| servers::may_have(servers, rule));
    }
    if let Some(tell) = options.tell.clone() {
        let (policy, mut plugins) = (policy.clone(), plugins.clone());
        let servers = servers.clone();
        tasks.spawn(async move {
            let Ok(set) = plugins
                .wait_for(|set| set.is_settled)
                .await
                .map(|set| Arc::clone(&set))
            else {
                return;
            };
            let may_come = |rule: &str| servers::may_have(&servers, rule);
            for problem in policy.idle_rules(&set.known_tools(), &may_come) {
                tell(&PluginEvent::IdleRule { problem });
            }
        });
    }
    Vec::new()
}

/// Whether a rule asks who the host runs as. Looking it up may ask a directory service.
fn needs_user(config: &Config) -> bool {
    let scope = config.rules.policy.scope.as_ref();
    scope.is_some_and(|scope| scope.run_as_user.is_some())
}

/// The name of the user that tools work as.
fn user_of_tools(config: &Config) -> Option<String> {
    match &config.tool_user {
        Some(user) => Some(user.facts().name.clone()),
        None => user_name(),
    }
}

/// The name of the user this process runs as, by the system's user database and not by a variable, which anybody can set.
pub(crate) fn user_name() -> Option<String> {
    let user = uzers::get_user_by_uid(uzers::get_effective_uid())?;
    user.name().to_str().map(str::to_owned)
}

/// Opens the store where the configuration says.
pub(crate) fn open_store(config: &Config) -> Result<OpenedStore, StartError> {
    let (location, options) = place_of_store(config);
    Store::open(location, options).map_err(StartError::Store)
}

fn begin_to_open_store(config: &Config) -> Result<StoreOpening, StartError> {
    let (location, options) = place_of_store(config);
    Store::begin_to_open(location, options).map_err(StartError::Store)
}

pub(crate) fn place_of_store(config: &Config) -> (Location, StoreOptions) {
    let location = match &config.store {
        StoreLocation::File(path) => Location::File(path.clone()),
        StoreLocation::Memory => Location::Memory,
    };
    let options = StoreOptions {
        at_ms: now_ms(),
        busy_timeout: STORE_BUSY_TIMEOUT,
    };
    (location, options)
}

/// What the store keeps, and for how long.
fn retention(config: &Config) -> Retention {
    Retention {
        outputs: config.overflow.retention,
        audit: config.audit.retention,
        audit_rows_max: config.audit.rows_max,
    }
}

fn engine(config: &Config, options: &StartOptions) -> Result<Engine, StartError> {
    Engine::new(&EngineOptions {
        guest_threads: u32::try_from(config.engine.guest_threads.get()).unwrap_or(u32::MAX),
        pooled: options.is_server,
        cache_dir: config.engine.cache_dir.clone(),
        on_compile: Some(on_compile(options)),
    })
    .map_err(StartError::Engine)
}

/// Tells what is compiled, and gives back what that took of a process that stays.
fn on_compile(options: &StartOptions) -> CompileListener {
    let (told, is_server) = (
        options.tell.clone().map(compile_listener),
        options.is_server,
    );
    CompileListener::new(move |event| {
        if is_server && !matches!(event, CompileEvent::Started { .. }) {
            heap::give_back();
        }
        if let Some(told) = &told {
            told.tell(event);
        }
    })
}

/// The host's own tools, and nothing else.
fn own_tools(
    config: &Config,
    options: &StartOptions,
) -> Result<watch::Receiver<Arc<PluginSet>>, StartError> {
    let fixed = ProgramParts {
        plugins: Vec::new(),
        builtin: builtin_tools(config, options),
    };
    let mut set = PluginSet::without_folders(&fixed).map_err(StartError::Catalog)?;
    // Whoever asks for a tool of a plugin must not take this for all there is.
    let is_all = options.native.is_some();
    (set.has_own, set.is_settled) = (is_all, is_all);
    Ok(watch::channel(Arc::new(set)).1)
}

/// Starts the engine, and to keep the plugins of the program and of the folders.
async fn keep_plugins(
    config: &Config,
    options: &StartOptions,
    tasks: &mut JoinSet<()>,
) -> Result<(Components, watch::Receiver<Arc<PluginSet>>), StartError> {
    let engine = engine(config, options)?;
    let components = Components::new(&engine, &options.program);
    let (mut fixed, uncompiled) = match options.backends.tools().is_empty() {
        true => fixed(&engine, config, &options.components).await?,
        // Their names are compared with those of all others, so all others have to be known.
        false => (all_parts(&engine, config, options).await?, Vec::new()),
    };
    fixed.builtin = builtin_tools(config, options);
    // Beside the rest of the start; a call that comes before it is over waits for it.
    let is_needed = |own: &&Arc<VettedPlugin>| options.is_server || offers_expected(own, options);
    for own in fixed.plugins.iter().filter(is_needed).cloned() {
        tasks.spawn(async move { drop(own.plugin.warm().await) });
    }
    // A conflict between the host's own tools is a defect of the program: it must not start.
    PluginSet::without_folders(&fixed).map_err(StartError::Catalog)?;
    let (keeper, plugins) = Keeper::start(keeper::KeeperOptions {
        engine,
        limits: config.limits,
        clock: now_ms,
        folders: match config.tools_enabled {
            true => config.plugins.folders.clone(),
            false => Vec::new(),
        },
        cache_dir: config.engine.cache_dir.clone(),
        fixed,
        gives_names: config.tools_enabled,
        uncompiled,
        watch: options.is_server && config.plugins.watch,
        tell: options.tell.clone(),
    });
    tasks.spawn(keeper.run());
    Ok((components, plugins))
}

/// Whether the one call that will be made is of this plugin.
fn offers_expected(own: &VettedPlugin, options: &StartOptions) -> bool {
    let Some(expected) = options.expected_tool.as_deref() else {
        return false;
    };
    let mut tools = own.plugin.tools().iter();
    tools.any(|tool| tool.name.as_str() == expected || tool.qualified_name() == expected)
}

/// The plugins and tools that are part of the program, and the plugins that have to be compiled first: commands do not wait for
/// that.
pub(crate) async fn fixed(
    engine: &Engine,
    config: &Config,
    components: &[Component],
) -> Result<(ProgramParts, Vec<Component>), StartError> {
    let mut fixed = ProgramParts {
        plugins: Vec::new(),
        builtin: builtin_tools(config, &StartOptions::default()),
    };
    let mut uncompiled = Vec::new();
    let records = Records::new(config.engine.cache_dir.as_deref());
    let components = components.iter().filter(|_| config.tools_enabled);
    for component in components {
        let digest = component.digest();
        if !engine.has_compiled(digest) {
            uncompiled.push(*component);
            continue;
        }
        let plugin = own_plugin(engine, config, &records, component, digest)
            .await
            .map_err(StartError::Plugin)?;
        fixed
            .plugins
            .push(component.with(plugin).map_err(StartError::Manifest)?);
    }
    Ok((fixed, uncompiled))
}

/// The plugins that are part of the program, compiled now where that is needed, beside tools of the program's executors.
async fn all_parts(
    engine: &Engine,
    config: &Config,
    options: &StartOptions,
) -> Result<ProgramParts, StartError> {
    let mut parts = ProgramParts::default();
    let records = Records::new(config.engine.cache_dir.as_deref());
    let components = options.components.iter().filter(|_| config.tools_enabled);
    for component in components {
        let plugin = own_plugin(engine, config, &records, component, component.digest()).await;
        let plugin = component.with(plugin.map_err(StartError::Plugin)?);
        parts.plugins.push(plugin.map_err(StartError::Manifest)?);
    }
    let own: Vec<Tool> = builtin::tools()
        .into_iter()
        .chain(scheduler::tools::tools())
        .chain(Native::tools())
        .collect();
    let of_plugins = parts.plugins.iter().flat_map(|own| own.plugin.tools());
    let beside = options.backends.beside(of_plugins.chain(&own));
    beside.map_err(StartError::Backend)?;
    Ok(parts)
}

/// A plugin of the program: from what was kept of its component, or by asking that, for which it is compiled unless it is in the cache.
async fn own_plugin(
    engine: &Engine,
    config: &Config,
    records: &Records,
    component: &Component,
    digest: Digest,
) -> Result<Plugin, LoadError> {
    let (id, bytes) = (PluginId(component.name.to_owned()), component.bytes);
    if let Some(tools) = records.recall_own(digest) {
        return Ok(Plugin::recall_embedded(engine, id, digest, bytes, tools));
    }
    let plugin = Plugin::embedded(engine, id, digest, bytes, config.limits).await?;
    records.keep_own(digest, plugin.tools());
    Ok(plugin)
}

/// The tools that no plugin offers.
fn builtin_tools(config: &Config, options: &StartOptions) -> Vec<Tool> {
    let scheduling = match config.scheduler {
        Some(_) => scheduler::tools::tools(),
        None => Vec::new(),
    };
    let own = builtin::tools().into_iter().chain(scheduling);
    let own = own.chain(Native::tools());
    let all = own.chain(options.backends.tools().iter().cloned());
    all.filter(|_| config.tools_enabled).collect()
}
