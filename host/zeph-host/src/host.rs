//! Everything that is built once at start and never changes afterwards.

mod options;
mod start;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;
use zeph_config::Config;
use zeph_core::call::ToolRequest;
use zeph_core::catalog::Catalog;
use zeph_core::failure::ToolFailure;
use zeph_core::id::ConversationId;
use zeph_core::lifetime::GrantLifetime;
use zeph_core::output::ToolOutput;
use zeph_core::policy::{Decision, Label};
use zeph_core::principal::Principal;
use zeph_core::redact::Redactor;
use zeph_core::tool::Tool;
use zeph_egress::Egress;
use zeph_engine::Cancel;
use zeph_mcp::door::OpenDoor;
use zeph_plugins::manage::carrying;
use zeph_plugins::refusal::GrantRequest;
use zeph_plugins::rights::OperatorPolicy;
use zeph_plugins::set::PluginSet;
use zeph_store::{OpenedStore, Store, StoreError};

pub use self::options::StartError;
pub(crate) use self::options::{NativeOptions, StartOptions};
pub(crate) use self::start::{
    audit_key_folder, check_shared_keys, check_store, fixed, host_of, open_store,
    open_store_to_look, place_of_store, user_name,
};
use self::start::{
    authoriser, begin_records, begin_to_open_store, begin_to_seal, idle_rules, keep_plugins,
    own_tools, start_servers,
};
use crate::audit::Audit;
use crate::authorisation::Authoriser;
use crate::cache::ResultCache;
use crate::calls::{CallControl, CallReport};
use crate::clock::now_ms;
use crate::compression::Compression;
use crate::dependencies::{Dependencies, Progress};
use crate::embeddings::Embeddings;
use crate::executor::PendingReport;
use crate::executor::backend::Backends;
use crate::filtering::Filtering;
use crate::filtering::wasm::Components;
use crate::governance::Trajectory;
use crate::grant_usage::GrantUsage;
use crate::guest::{GuestUses, ProgramRoom, ServerToolCaller, ServiceRoom};
use crate::judging::JudgeRoom;
use crate::known_secrets::KnownSecrets;
use crate::offers::{CatalogWatch, Offers};
use crate::order::Order;
use crate::overflow::Overflow;
use crate::pipeline;
use crate::questions::Questions;
use crate::recording::Recorder;
use crate::replay::ReplayTerms;
use crate::scheduler::SchedulerRoom;
use crate::seals::Seals;
use crate::servers::{OwnOpener, Servers};
use crate::session::{self, AskedRequest, Session};
use crate::shell::{CommandBackend, Native, Share};
use crate::telemetry::Telemetry;
use crate::{announcements, builtin, filtering, named_tools, scheduler, telemetry, user};

/// How long [`Host::shutdown`] waits for commands, and as long again for servers.
const RUNS_END: Duration = Duration::from_secs(5);

/// How long it waits for calls once nothing runs for them.
const CALLS_END: Duration = Duration::from_secs(2);

/// The running host. Clones are handles to one.
#[derive(Debug, Clone)]
pub struct Host(Arc<Rooms>);

/// The rooms a call passes through. The line, the built-in tools and the recording of calls see all of them; a stage gets what it works with.
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
    /// Whether clients are let in that come with no token.
    pub(crate) door: Arc<OpenDoor>,
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

    /// What guests have done elsewhere is done with.
    pub(crate) fn services<'a>(&'a self, caller: &'a dyn ServerToolCaller) -> ServiceRoom<'a> {
        ServiceRoom {
            config: &self.config,
            embeddings: self.embeddings.as_ref(),
            store: &self.store,
            audit: &self.audit,
            secrets: &self.secrets,
            caller,
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
        let opening = begin_to_open_store(&config, &options)?;
        let secrets = Arc::new(KnownSecrets::open(&config));
        let shell = start::shell(&config, &options, &secrets)?;
        let expected = options.expected_tool.as_deref();
        let (filtering, unused_rules) = Filtering::new(&config);
        // A strategy of a plugin may be what an output waits for.
        let is_for_one_call = expected.is_some();
        let needs_none = expected.is_some_and(Self::needs_no_plugins) || options.native.is_some();
        let is_alone = needs_none && !filtering.needs_plugins();
        let mut tasks = JoinSet::new();
        let (hint, hints) = watch::channel(0);
        let (components, plugins) = match is_alone {
            true => (
                Components::native(&options.program),
                own_tools(&config, &options)?,
            ),
            false => keep_plugins(&config, &options, (&mut tasks, hints)).await?,
        };
        let operator = OperatorPolicy::new(&config).map_err(StartError::Files)?;
        let egress = Egress::new(&config.egress);
        // Beside the store: a server takes longer than all the rest.
        let (opener, servers) = start_servers(&config, &options, (&secrets, &egress), &mut tasks);
        let offers = Offers::new(plugins.clone(), servers);
        let OpenedStore {
            store,
            is_read_only,
            mut notices,
        } = opening.finish().await.map_err(StartError::Store)?;
        let options = StartOptions {
            only_explains: options.only_explains || is_read_only,
            ..options
        };
        notices.extend(unused_rules);
        if options.is_server && config.serve.replica.is_some() {
            tasks.spawn(announcements::follow(store.clone(), hint));
        }
        let (audit, of_records) =
            begin_records(&config, &options, (&store, &egress), &mut tasks).await?;
        notices.extend(of_records.into_iter().chain(secrets.problem()));
        let embeddings = Embeddings::new(&config, &secrets, &egress, &store);
        let known = (&store, &secrets, embeddings.clone());
        let authoriser = authoriser(&config, &options, known);
        let configured = (&authoriser.policy, &config);
        // Where one server is served, most tools are not there.
        if options.native.is_none() {
            notices.extend(idle_rules(configured, &plugins, &options, &mut tasks));
        }
        if options.is_server && config.filters.enabled {
            let components = components.clone();
            tasks.spawn(async move { components.warm().await });
        }
        let seals = Arc::new(begin_to_seal(&config, &store, options.is_server)?);
        let judge = start::judge(&config, &options, (&secrets, &egress))?;
        let (telemetry, untraced) = match options.is_part {
            true => (Telemetry::default(), None),
            false => telemetry::start(&egress),
        };
        notices.extend(untraced);
        let rooms = Rooms {
            shell: Arc::new(shell),
            order: Order::default(),
            // The result of the one call is of no use to a later one.
            cache: ResultCache::new(config.result_cache.filter(|_| !is_for_one_call)),
            questions: Questions::new(Arc::clone(&seals)),
            seals,
            filter: filtering::Stage {
                filtering,
                components,
                offers: offers.clone(),
            },
            compression: Compression::new(
                config.compression.clone(),
                embeddings.clone().map(Embeddings::into_source),
            ),
            overflow: Overflow::new(store.clone(), config.overflow),
            dependencies: Dependencies::new(config.shaping.dependencies.as_ref()),
            judge,
            door: Arc::default(),
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
        let catalog = self.whole_catalog();
        let hides_any = catalog.tools().any(|tool| self.hides(tool));
        match hides_any {
            true => Arc::new(catalog.without(|tool| self.hides(tool))),
            false => catalog,
        }
    }

    /// Every tool of this moment: also those that no rule lets run, whose calls are refused and recorded as such.
    pub(crate) fn whole_catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.offers.now().catalog)
    }

    /// Whether no rule lets a call of this tool run.
    pub(crate) fn hides(&self, tool: &Tool) -> bool {
        self.0.authoriser.policy.hides(tool)
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

    /// Ends what runs in the background of `session`, whose door closes: each end is recorded. Returns those that were not told yet, as
    /// messages.
    ///
    /// Limits: as [`Session::close`].
    pub(crate) async fn end_runs(&self, session: &Session) -> Vec<String> {
        pipeline::end_runs(&self.0, session).await
    }

    /// Waits for the end of a command in the background of `session`; `None` when it was told before.
    pub(crate) async fn ended_run(&self, session: &Session, run_id: Uuid) -> Option<ToolOutput> {
        pipeline::ended_run(&self.0, session, run_id).await
    }

    /// What the host keeps secret.
    pub(crate) fn secrets(&self) -> &Arc<KnownSecrets> {
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

    /// The door of this process for clients that come with no token.
    pub(crate) fn door(&self) -> &Arc<OpenDoor> {
        &self.0.door
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

    /// The same of a tool that may not be there yet; none as long as nobody knows.
    pub(crate) fn may_repeat_then(&self, tool: &str) -> Option<bool> {
        (!self.0.offers.is_coming(tool)).then(|| self.may_repeat(tool))
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
        carrying::remember_folders(self.config());
        let added = self
            .0
            .store
            .add_grants(plugin, pin, capabilities, lifetime, now_ms());
        added.await.map(drop)
    }

    /// What is wrong with rules and lists that no tool can meet, one sentence each, as far as plugins are known.
    pub(crate) fn idle_rules(&self) -> Vec<String> {
        let config = &self.0.config;
        let configured = (&self.0.authoriser.policy, &config.mcp_servers);
        let offer = self.0.offers.now();
        named_tools::problems(
            configured,
            &named_tools::named_tools(config),
            offer.known_tools(),
        )
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

    /// Waits until there is a tool of this name, or until it is known that there is none.
    ///
    /// Limits: as for a call of it.
    pub(crate) async fn awaits_tool(&self, name: &str, cancel: &Cancel) {
        let patience = self.0.config.limits.wall_clock;
        drop(self.0.offers.with_tool(name, patience, cancel).await);
    }

    /// Whether `name` is a tool of the host itself, which no plugin offers.
    pub(crate) fn has_own(name: &str) -> bool {
        let mut own = builtin::NAMES
            .iter()
            .chain(&scheduler::tools::ALL)
            .chain(&zeph_shell::tools::ALL);
        own.any(|own| *own == name)
    }

    /// Whether a call of `name` is made without any plugin. To schedule a call, its tool has to be known.
    fn needs_no_plugins(name: &str) -> bool {
        let schedules = [scheduler::tools::PERIODIC, scheduler::tools::DEFERRED].contains(&name);
        Self::has_own(name) && !schedules
    }

    /// Whether `name` is the tool that runs commands.
    pub(crate) fn runs_commands(name: &str) -> bool {
        name == zeph_shell::tools::BASH
    }

    /// The configuration in use.
    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    /// Gives a conversation that begins what its first text was made of.
    pub(crate) async fn holds(&self, session: &Session, labels: Vec<Label>) {
        self.0.authoriser.governance.holds(session, labels).await;
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
