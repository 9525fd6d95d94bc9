//! What a start puts together: the store, the rules, the engine, the plugins and the servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use zeph_config::{Config, ServerConfig, StoreLocation, StoreServer};
use zeph_core::id::{Digest, PluginId, ServerName};
use zeph_core::policy::Policy;
use zeph_core::tool::Tool;
use zeph_egress::Egress;
use zeph_engine::{CompileEvent, CompileListener, Engine, EngineOptions, LoadError, Plugin};
use zeph_mcp::client::{self, ConnectionOptions};
use zeph_plugins::component::Component;
use zeph_plugins::event::{PluginEvent, compile_listener};
use zeph_plugins::keeper::{self, Keeper};
use zeph_plugins::record::Records;
use zeph_plugins::set::{PluginSet, ProgramParts, VettedPlugin};
use zeph_store::{
    AuditKeyFolder, AuditKeySource, AuditKeys, Keyring, Location, OpenedStore, Retention,
    SealKeyFile, ServerUrl, Store, StoreError, StoreOpening, StoreOptions, host_id,
};

use super::{StartError, StartOptions};
use crate::anomaly::TrustRoom;
use crate::audit::checkpoints::Checkpointer;
use crate::audit::{Audit, AuditPlace};
use crate::authorisation::Authoriser;
use crate::clock::now_ms;
use crate::embeddings::Embeddings;
use crate::filtering::wasm::Components;
use crate::governance::GovernanceRoom;
use crate::heap;
use crate::known_secrets::{self, KnownSecrets};
use crate::mode::SessionMode;
use crate::seals::Seals;
use crate::servers::{OwnOpener, Servers, ServersOptions};
use crate::shell::Native;
use crate::signatures::Signatures;
use crate::{builtin, scheduler, servers};

/// How long an operation waits for another process that holds the store.
const STORE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the audit and lets the store sweep itself; for a host that only explains neither.
pub(super) async fn begin_to_record(
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
        awaits_ends: config.serve.replica.is_some(),
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

/// An error with what it comes from.
fn in_words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", in_words(source)),
        None => error.to_string(),
    }
}

/// The seals of this host, which a server shares with others where its operator gave them keys.
pub(super) fn begin_to_seal(
    config: &Config,
    store: &Store,
    is_server: bool,
) -> Result<Seals, StartError> {
    match config.serve.seal_keys.as_ref().filter(|_| is_server) {
        Some(path) => Seals::shared(SealKeyFile::new(path), store.clone()).map_err(|error| {
            let hint = error.hint();
            StartError::Seals(in_words(&error), hint)
        }),
        None => Ok(Seals::new()),
    }
}

/// Begins to take checkpoints where the operator wants them; what he should know.
pub(super) fn begin_checkpoints(
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

pub(super) fn authoriser(
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
            policy_governance.followed(),
            (store.clone(), Arc::clone(secrets)),
            embeddings.map(Embeddings::into_source),
        ),
        store: store.clone(),
        secrets: Arc::clone(secrets),
        user: needs_user(config).then(|| user_of_tools(config)).flatten(),
        program: options.program.clone(),
        directory: config.file.roots.first().map(|root| root.path.clone()),
        trust: TrustRoom::new(config, store, &options.program, options.tell.as_ref()),
    }
}

/// Begins to keep the servers, and to tell what becomes of them. They end with `tasks`.
pub(super) fn start_servers(
    config: &Config,
    options: &StartOptions,
    (secrets, egress): (&Arc<KnownSecrets>, &Egress),
    tasks: &mut JoinSet<()>,
) -> (Arc<OwnOpener>, Servers) {
    let native = options.native.as_ref();
    let watch = native.and_then(|native| native.watch.clone());
    let opener = OwnOpener::new(config, secrets, egress, options.tell.clone());
    let opener = Arc::new(opener.watched(watch));
    let servers = Servers::start(kept_servers(config, options, &opener), tasks);
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
    (opener, servers)
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
pub(super) fn idle_rules(
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
    let (location, options) = place_of_store(config)?;
    Store::open(location, options).map_err(StartError::Store)
}

pub(super) fn begin_to_open_store(config: &Config) -> Result<StoreOpening, StartError> {
    let (location, options) = place_of_store(config)?;
    Store::begin_to_open(location, options).map_err(StartError::Store)
}

/// Where the store is, and how it is opened.
///
/// Errors: the URL of a server cannot be used, or its password cannot be had.
pub(crate) fn place_of_store(config: &Config) -> Result<(Location, StoreOptions), StartError> {
    let location = match &config.store {
        StoreLocation::File(path) => Location::File(path.clone()),
        StoreLocation::Memory => Location::Memory,
        StoreLocation::Server(server) => Location::Server(Box::new(server_url(config, server)?)),
    };
    let options = StoreOptions {
        at_ms: now_ms(),
        busy_timeout: STORE_BUSY_TIMEOUT,
    };
    Ok((location, options))
}

/// The URL of the server, with its password and the identity of this host.
fn server_url(config: &Config, server: &StoreServer) -> Result<ServerUrl, StartError> {
    let mut url: ServerUrl = server.url.text().parse().map_err(StartError::Store)?;
    if let Some(name) = &server.password_secret {
        let password = known_secrets::stored(config, name)
            .map_err(|problem| StartError::Store(StoreError::BadUrl { problem }))?;
        url = url.with_password(&password);
    }
    Ok(url.of_host(host_of(server.folder.as_deref())?))
}

/// The identity of the host whose own things are in `folder`. Without a place for it, a host is another with every start.
pub(crate) fn host_of(folder: Option<&Path>) -> Result<String, StartError> {
    match folder {
        Some(folder) => host_id(folder).map_err(StartError::Store),
        None => Ok(uuid::Uuid::new_v4().to_string()),
    }
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
pub(super) fn own_tools(
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
pub(super) async fn keep_plugins(
    config: &Config,
    options: &StartOptions,
    (tasks, hints): (&mut JoinSet<()>, watch::Receiver<i64>),
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
        hints: Some(hints),
        signatures: Signatures::of(config),
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
