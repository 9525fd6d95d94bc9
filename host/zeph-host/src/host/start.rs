//! What a start puts together: the rules, the servers, the models, and what [`store`] and [`plugins`] open.

mod plugins;
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use zeph_config::Config;
use zeph_core::policy::Policy;
use zeph_egress::Egress;
use zeph_mcp::client::{self, ConnectionOptions};
use zeph_plugins::event::PluginEvent;
use zeph_plugins::set::PluginSet;
use zeph_store::{AuditKeys, SealKeyError, SealKeyFile, Store};

pub(crate) use self::plugins::{fixed, keep_plugins, own_tools};
pub(crate) use self::store::{
    audit_key_folder, begin_records, begin_to_open_store, check_store, host_of, open_store,
    open_store_to_look, place_of_store,
};
use super::{StartError, StartOptions};
use crate::agent::models::NoModel;
use crate::anomaly::TrustRoom;
use crate::audit::Audit;
use crate::audit::checkpoints::Checkpointer;
use crate::authorisation::Authoriser;
use crate::clock::now_ms;
use crate::embeddings::Embeddings;
use crate::governance::GovernanceRoom;
use crate::judging::JudgeRoom;
use crate::known_secrets::KnownSecrets;
use crate::mode::SessionMode;
use crate::named_tools;
use crate::seals::Seals;
use crate::servers::{self, OwnOpener, Servers, ServersOptions};
use crate::shell::Native;

/// The keys of the configuration that name files of keys.
const SEAL_KEYS: &str = "mcp.serve.seal_keys";
const SHARED_CACHE_KEYS: &str = "engine.shared_cache_keys";

/// What runs commands; it prepares for one if that is the call that is expected.
pub(super) fn shell(
    config: &Config,
    options: &StartOptions,
    secrets: &Arc<KnownSecrets>,
) -> Result<Native, StartError> {
    let shell = Native::new(config, secrets, options.recorder.is_some());
    let shell = shell.map_err(StartError::Shell)?;
    let expected = options.expected_tool.as_deref();
    if config.tools_enabled && expected.is_some_and(super::Host::runs_commands) {
        shell.shell().expect_command();
    }
    Ok(shell)
}

/// The model that judges calls; none where they are not judged, or none will be made.
pub(super) fn judge(
    config: &Config,
    options: &StartOptions,
    (secrets, egress): (&Arc<KnownSecrets>, &Egress),
) -> Result<Option<JudgeRoom>, StartError> {
    let is_for_calls =
        options.is_server || options.expected_tool.is_some() || options.native.is_some();
    JudgeRoom::new(config, secrets, egress, is_for_calls)
        .map_err(|NoModel { problem, hint }| StartError::Judge(problem, hint))
}

/// What starts the servers.
fn opener(
    config: &Config,
    options: &StartOptions,
    (secrets, egress): (&Arc<KnownSecrets>, &Egress),
) -> Arc<OwnOpener> {
    let native = options.native.as_ref();
    let watch = native.and_then(|native| native.watch.clone());
    let opener = OwnOpener::new(config, secrets, egress, options.tell.clone());
    Arc::new(opener.watched(watch))
}

/// An error with what it comes from.
fn in_words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", in_words(source)),
        None => error.to_string(),
    }
}

/// Whether a server finds the keys that it shares with others, where its operator gave it some.
///
/// Errors: those with which `serve` would not start.
pub(crate) fn check_shared_keys(config: &Config) -> Result<(), StartError> {
    let seals = config.serve.seal_keys.as_ref();
    let seals = seals.map(|path| SealKeyFile::new(path, SEAL_KEYS));
    let cache = config.engine.shared_cache.as_ref();
    let cache = cache.map(|shared| SealKeyFile::new(&shared.keys, SHARED_CACHE_KEYS));
    let mut files = seals.into_iter().chain(cache);
    files.try_for_each(|file| match file.read() {
        Ok(_) => Ok(()),
        Err(error) => Err(unread(&error)),
    })
}

/// Why the keys of a file are not used, and what to do about it.
fn unread(error: &SealKeyError) -> StartError {
    StartError::Seals(in_words(error), error.hint())
}

/// The seals of this host, which a server shares with others where its operator gave them keys.
pub(super) fn begin_to_seal(
    config: &Config,
    store: &Store,
    is_server: bool,
) -> Result<Seals, StartError> {
    match config.serve.seal_keys.as_ref().filter(|_| is_server) {
        Some(path) => Seals::shared(SealKeyFile::new(path, SEAL_KEYS), store.clone())
            .map_err(|error| unread(&error)),
        None => Ok(Seals::new()),
    }
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
    let opener = opener(config, options, (secrets, egress));
    let servers = Servers::start(kept_servers(config, options, (&opener, secrets)), tasks);
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
    (opener, secrets): (&Arc<OwnOpener>, &Arc<KnownSecrets>),
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
        opener: Arc::clone(opener) as _,
        secrets: Arc::clone(secrets),
        keeps_changes: native.is_some(),
        listener: native.map(|native| Arc::clone(&native.listener)),
        is_eager: options.is_server || native.is_some(),
        program: options.program.clone(),
        clock: now_ms,
    }
}

/// What is wrong with rules and lists that no tool can meet. While plugins are still being read it cannot be known, and is told afterwards.
pub(super) fn idle_rules(
    (policy, config): (&Policy, &Config),
    plugins: &watch::Receiver<Arc<PluginSet>>,
    options: &StartOptions,
    tasks: &mut JoinSet<()>,
) -> Vec<String> {
    let set = Arc::clone(&plugins.borrow());
    let named = named_tools::named_tools(config);
    if set.is_settled {
        let configured = (policy, &config.mcp_servers);
        return named_tools::problems(configured, &named, set.known_tools());
    }
    if let Some(tell) = options.tell.clone() {
        let (policy, servers) = (policy.clone(), config.mcp_servers.clone());
        let mut plugins = plugins.clone();
        tasks.spawn(async move {
            let Ok(set) = plugins
                .wait_for(|set| set.is_settled)
                .await
                .map(|set| Arc::clone(&set))
            else {
                return;
            };
            for problem in named_tools::problems((&policy, &servers), &named, set.known_tools()) {
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
