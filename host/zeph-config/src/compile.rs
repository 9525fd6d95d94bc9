//! The second stage: the merged values become a [`Config`], each room with its own part.

mod again;
mod agent;
mod audit;
mod compression;
mod egress;
mod engine;
mod exit;
mod file;
mod filters;
mod governance;
mod hooks;
mod indexes;
mod judge;
mod nested;
mod plugins;
mod registries;
mod rules;
mod scheduler;
mod search;
mod serve;
mod servers;
mod shaping;
mod shell;
mod signers;
mod store;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize as _;
use toml::{Table, Value};
use zeph_core::limit::CallLimits;

use super::locate::{self, PROGRAM};
use super::merge::MergedLayers;
use super::own::OwnFiles;
use super::paths::PathBase;
use super::raw::{RawConfig, RawLimits};
use super::surroundings::Surroundings;
use super::{Config, EngineConfig, OverflowConfig, RunConfig, StoreLocation};

const DAY: Duration = Duration::from_hours(24);

/// Compiles the merged values; what is wrong with them is added to the problems of `merged`.
///
/// Shape: `None` when something was wrong; `user_file` is the operator's file, to be hidden from tools.
pub(crate) fn compile(
    merged: &mut MergedLayers,
    surroundings: &Surroundings,
    user_file: Option<&Path>,
) -> Option<Config> {
    let raw = match RawConfig::deserialize(nested(merged)) {
        Ok(raw) => raw,
        // Every value was checked against the schema of this very type, so only a missing default gets here.
        Err(error) => {
            merged.problem("built-in defaults", error.message());
            return None;
        }
    };
    let RawConfig {
        tools,
        plugins,
        limits,
        run,
        agent,
        llm,
        mcp,
        engine,
        store,
        hooks,
    } = raw;
    let mut room = Compiling {
        merged,
        surroundings,
        containers: Vec::new(),
    };

    let own_store = store;
    let store = room.store(&own_store);
    let secrets = store.as_ref().and_then(StoreLocation::secrets);
    let audit = room.audit(&tools, secrets.clone());
    let cache_dir = room.place(
        "engine.cache_dir",
        &engine.cache_dir,
        &surroundings.cache_home,
        "",
    );
    let mut own = OwnFiles::of_program(surroundings);
    own.add_tree(cache_dir.as_deref());
    let shared_cache = room.shared_cache(&engine);
    if let Some(shared) = &shared_cache {
        own.add_tree(Some(&shared.dir));
        own.add_file(Some(&shared.keys));
    }
    own.add_file(store.as_ref().and_then(StoreLocation::path));
    own.add_tree(secrets.as_deref());
    own.add_file(audit.file.as_deref());
    own.add_file(audit::checkpoint_file(audit.checkpoint_target.as_ref()));
    own.add_file(user_file);
    let serve = room.serve(&mcp);
    own.add_file(serve.seal_keys.as_deref());
    let mcp_lock = user_file.map(locate::lock_beside);
    own.add_file(mcp_lock.as_deref());
    let filters = room.filters(&tools.filters, user_file);
    // What a model is shown is not for tools to change.
    own.add_file(filters.rule_file.as_ref().map(|file| file.path.as_path()));
    room.find_containers(&tools);
    let shell = room.shell(&tools.shell, &tools.file.allowed_paths);
    let mut open = room.existing(&tools.file.allowed_paths);
    open.extend_from_slice(&shell.allowed_paths);
    let folders = room.plugin_folders(&plugins, user_file, &open);
    folders.hide(&mut own);
    let plugins = room.plugins(&plugins, (&tools, &mcp), &folders);
    let mut protected = locate::project_folders(surroundings);
    protected.extend(folders.protected(&open));
    let mut sandbox = room.sandbox(&tools.sandbox, &shell.allowed_paths, &own, &protected);
    let rules = room.rules(&tools, &shell, &sandbox, user_file);
    let hooks = room.hooks(&hooks, shell.timeout);
    sandbox.hide.extend(rules.hidden.clone());
    // Rules and pins that a tool could change would bind nobody.
    sandbox.protect.extend(rules.policy_file.clone());
    sandbox.protect.extend(mcp_lock.clone());
    own.add_file(rules.policy_file.as_deref());
    let judge_file = room.judge_file(&tools.adversarial_policy);
    sandbox.protect.extend(judge_file.clone());
    own.add_file(judge_file.as_deref());
    let file = room.file(&tools.file, own);
    let egress = room.egress(&tools.egress);
    room.check_checkpoint_url(audit.checkpoint_target.as_ref(), &egress);
    let mcp_servers = room.servers(&mcp, &egress);
    let providers = room.providers(&llm);
    let mut agent = room.agent(&agent, &providers);
    agent.summarizes_output = tools.summarize_output;
    let shaping = room.shaping(&tools);
    let scheduler = room.scheduler(&tools.scheduler);
    let governance = room.governance(&tools.governance);
    let judge = room.judge(&tools.adversarial_policy, &providers, judge_file);

    Some(Config {
        tools_enabled: tools.enabled,
        file: file?,
        shell,
        sandbox,
        filters,
        compression: compression::compression(&tools.compression),
        egress,
        rules,
        anomaly: rules::anomaly(&tools.anomaly),
        hooks,
        plugins,
        limits: call_limits(&limits),
        engine: EngineConfig {
            guest_threads: count(engine.guest_threads).unwrap_or(NonZeroUsize::MIN),
            cache_dir,
            shared_cache,
        },
        overflow: OverflowConfig {
            threshold_chars: size(tools.overflow.threshold),
            retention: DAY * tools.overflow.retention_days,
            max_bytes: or_unlimited(tools.overflow.max_overflow_bytes),
        },
        result_cache: again::result_cache(&tools.result_cache),
        retry: again::retry(&tools.retry),
        audit,
        store: store?,
        uses_keyring: own_store.keyring,
        run: RunConfig {
            jobs: count(run.jobs).unwrap_or(surroundings.cores),
            request_bytes_max: size(run.request_bytes),
        },
        serve,
        mcp_servers,
        mcp_lock,
        mcp_homes: surroundings
            .data_home
            .as_ref()
            .map(|home| home.join(PROGRAM).join("servers")),
        mcp_start_timeout: Duration::from_secs(mcp.start_timeout.into()),
        mcp_tool_timeout: Duration::from_secs(mcp.tool_timeout.into()),
        agent,
        providers,
        shaping,
        scheduler,
        judge,
        tool_user: None,
        governance,
    })
}

/// The dotted keys as the nested tables serde expects.
fn nested(merged: &MergedLayers) -> Value {
    let mut root = Table::new();
    for (key, entry) in &merged.entries {
        insert(&mut root, key, &entry.value);
    }
    Value::Table(root)
}

fn insert(table: &mut Table, key: &str, value: &Value) {
    let Some((section, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value.clone());
        return;
    };
    let inner = table
        .entry(section)
        .or_insert_with(|| Value::Table(Table::new()));
    // A key that is both value and table does not pass the schema, so the other case does not occur.
    if let Value::Table(inner) = inner {
        insert(inner, rest, value);
    }
}

struct Compiling<'a> {
    merged: &'a mut MergedLayers,
    surroundings: &'a Surroundings,
    /// What tools may change; empty until that is known.
    containers: Vec<nested::Container>,
}

impl Compiling<'_> {
    fn base(&self) -> PathBase<'_> {
        self.surroundings.base()
    }

    /// The path a text names: empty is `file` in this program's folder below `home` (the folder
    /// itself when `file` is empty), "none" is no path.
    fn place(
        &mut self,
        key: &str,
        text: &str,
        home: &Option<PathBuf>,
        file: &str,
    ) -> Option<PathBuf> {
        match text {
            "none" => None,
            "" if file.is_empty() => Some(home.as_ref()?.join(PROGRAM)),
            "" => Some(home.as_ref()?.join(PROGRAM).join(file)),
            _ => match self.base().absolute(text) {
                Ok(path) => Some(path),
                Err(message) => {
                    self.merged.problem(key, &message);
                    None
                }
            },
        }
    }
}

fn call_limits(raw: &RawLimits) -> CallLimits {
    let RawLimits {
        wall_clock_secs,
        cpu_secs,
        memory_bytes,
        table_elements,
        output_bytes,
        log_bytes,
        host_calls,
        handles,
    } = *raw;
    CallLimits {
        wall_clock: Duration::from_secs(wall_clock_secs.into()),
        cpu: Duration::from_secs(cpu_secs.into()),
        memory_bytes,
        table_elements,
        output_bytes,
        log_bytes,
        host_calls,
        handles,
    }
}

fn count(n: u32) -> Option<NonZeroUsize> {
    NonZeroUsize::new(size(n))
}

fn size(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn or_unlimited(n: u64) -> u64 {
    if n == 0 { u64::MAX } else { n }
}
