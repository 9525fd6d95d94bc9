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
pub(crate) mod idle;
mod indexes;
mod judge;
mod nested;
mod plugins;
mod reach;
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
use zeph_core::git_config::{GitUser, HomeLinks};
use zeph_core::limit::CallLimits;

use super::home_links::home_links;
use super::locate::PROGRAM;
use super::merge::MergedLayers;
use super::paths::PathBase;
use super::raw::{RawConfig, RawLimits, RawOverflow};
use super::surroundings::Surroundings;
use super::{Config, OverflowConfig, RunConfig};

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
    let mut room = Compiling {
        merged,
        surroundings,
        containers: Vec::new(),
    };
    room.config(&raw, user_file)
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
    /// The parts in an order in which each finds what it goes by.
    fn config(&mut self, raw: &RawConfig, user_file: Option<&Path>) -> Option<Config> {
        let tools = &raw.tools;
        let (kept, own) = self.kept(raw, user_file);
        let reach = self.reach(raw, user_file, own, kept.mcp_lock.as_deref());
        let egress = self.egress(&tools.egress);
        self.check_checkpoint_url(kept.audit.checkpoint_target.as_ref(), &egress);
        let mcp_servers = self.servers(&raw.mcp, &egress);
        let providers = self.providers(&raw.llm);
        let mut agent = self.agent(&raw.agent, &providers);
        agent.summarizes_output = tools.summarize_output;
        let shaping = self.shaping(tools);
        let compression = self.compression(&tools.compression);
        let scheduler = self.scheduler(&tools.scheduler);
        let governance = self.governance(&tools.governance);
        let judge = self.judge(&tools.adversarial_policy, &providers, reach.judge_file);
        if !tools.enabled && self.said_by_project("tools.enabled") {
            let warning = "`tools.enabled`: the configuration of the project turns all tools off";
            self.merged.warnings.push(warning.to_owned());
        }
        self.warn_of_idle_keys();
        let data_home = self.surroundings.data_home.as_ref();

        Some(Config {
            tools_enabled: tools.enabled,
            file: reach.file?,
            shell: reach.shell,
            sandbox: reach.sandbox,
            filters: kept.filters,
            compression,
            egress,
            rules: reach.rules,
            anomaly: rules::anomaly(&tools.anomaly),
            hooks: reach.hooks,
            plugins: reach.plugins,
            limits: call_limits(&raw.limits),
            engine: kept.engine,
            overflow: overflow(&tools.overflow),
            result_cache: again::result_cache(&tools.result_cache),
            retry: again::retry(&tools.retry),
            audit: kept.audit,
            store: kept.store?,
            uses_keyring: raw.store.keyring,
            run: RunConfig {
                jobs: count(raw.run.jobs).unwrap_or(self.surroundings.cores),
                request_bytes_max: size(raw.run.request_bytes),
            },
            serve: kept.serve,
            mcp_servers,
            mcp_lock: kept.mcp_lock,
            mcp_homes: data_home.map(|home| home.join(PROGRAM).join("servers")),
            mcp_start_timeout: Duration::from_secs(raw.mcp.start_timeout.into()),
            mcp_tool_timeout: Duration::from_secs(raw.mcp.tool_timeout.into()),
            agent,
            providers,
            shaping,
            scheduler,
            judge,
            git_user: GitUser {
                home: self.surroundings.home.clone(),
                config_home: self.surroundings.config_home.clone(),
                links: self.home_links(),
            },
            tool_user: None,
            governance,
        })
    }

    fn home_links(&self) -> HomeLinks {
        let Some(home) = self.surroundings.home.clone() else {
            return HomeLinks::default();
        };
        let config_home = self.surroundings.config_home.clone();
        HomeLinks::new(move || home_links(&home, config_home.as_deref()))
    }

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

fn overflow(raw: &RawOverflow) -> OverflowConfig {
    OverflowConfig {
        threshold_chars: size(raw.threshold),
        retention: DAY * raw.retention_days,
        max_bytes: or_unlimited(raw.max_overflow_bytes),
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
