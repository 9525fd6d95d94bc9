//! Converts the configuration to the types of `zeph-shell`. Makes no decisions.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use zeph_config::{Config, SandboxSettings};
use zeph_shell::hooks::{Hooks, OnFailure, ShellHook};
use zeph_shell::jail::{EnvironmentPolicy, JailLimits, JailPolicy, Mode, Network, OwnDirectories};
use zeph_shell::shell::{FLOOD_BYTES_MAX, ShellConfig};

/// Bytes of output that are kept however little the store takes: what a model is shown must be there.
const KEPT_MIN: u64 = 4 * 1024 * 1024;

/// How commands run.
pub(super) fn shell(config: &Config) -> ShellConfig {
    let settings = &config.shell;
    ShellConfig {
        timeout: settings.timeout,
        timeout_max: settings.timeout_max,
        background_timeout: settings.background_timeout,
        background_runs_max: settings.background_runs_max,
        // What is longer than the store takes is not read back anyway: head and tail of that size say as much.
        output_bytes_max: config
            .limits
            .output_bytes
            .min(config.overflow.max_bytes.max(KEPT_MIN)),
        flood_bytes_max: FLOOD_BYTES_MAX,
        enable_execution_context: settings.execution_context,
        hooks: Hooks {
            cwd_changed: config.hooks.cwd_changed.iter().map(hook).collect(),
            file_changed: config.hooks.file_changed.iter().map(hook).collect(),
        },
    }
}

/// Where the commands of this workspace keep the caches of package managers between runs: a folder for each workspace, so that what
/// one project puts there is not run by another. The jail makes it; where it cannot, caches end with the run.
fn cache(config: &Config) -> Option<PathBuf> {
    let workspace = config.shell.allowed_paths.first()?;
    let mut hash = DefaultHasher::new();
    workspace.hash(&mut hash);
    let name = format!("{:016x}", hash.finish());
    Some(config.cache_of_tools()?.join("jail").join(name))
}

/// Variables that speak of the host's user, and would lead another one to what is not theirs.
const OF_THE_HOST: [&str; 9] = [
    "CARGO_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "MAIL",
    "RUSTUP_HOME",
    "SSH_AUTH_SOCK",
    "XAUTHORITY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// The host's environment, with the names of the user that commands run as.
fn variables(config: &Config) -> BTreeMap<String, String> {
    let mut variables = zeph_config::process_environment();
    if let Some(user) = &config.tool_user {
        variables.retain(|name, _| !OF_THE_HOST.contains(&name.as_str()));
        for name in ["USER", "LOGNAME"] {
            variables.insert(name.to_owned(), user.facts().name.clone());
        }
        let home = user.facts().home.to_string_lossy().into_owned();
        variables.insert("HOME".to_owned(), home);
    }
    variables
}

fn hook(hook: &zeph_config::HookCommand) -> ShellHook {
    ShellHook {
        command: hook.command.clone(),
        paths: hook.paths.clone(),
        timeout: hook.timeout,
        on_failure: match hook.fail_closed {
            true => OnFailure::FailClosed,
            false => OnFailure::Note,
        },
    }
}

/// What stands around them.
pub(super) fn jail(config: &Config) -> JailPolicy {
    let SandboxSettings {
        disabled,
        read,
        write,
        network,
        hosts,
        hide,
        protect,
        limits,
    } = &config.sandbox;
    JailPolicy {
        roots: config.shell.allowed_paths.clone(),
        spellings: config.shell.spellings.clone(),
        allow_read: Some(read.clone()),
        allow_write: Some(write.clone()),
        own: OwnDirectories::default(),
        network: match network {
            true => Network::Open,
            false if hosts.is_empty() => Network::Loopback,
            false => Network::Hosts,
        },
        hidden: hide.clone(),
        protected: protect.clone(),
        limits: JailLimits {
            processes: limits.processes.into(),
            memory_bytes: limits.memory_bytes,
            file_bytes: limits.file_bytes,
            open_files: limits.open_files.into(),
            tmp_bytes: limits.tmp_bytes,
            shm_bytes: limits.shm_bytes,
        },
        environment: EnvironmentPolicy {
            host: variables(config),
            blocked: config.shell.env_blocklist.clone(),
            allowed: config.shell.env_allow.clone(),
            caches: Vec::new(),
        },
        home: config.plugins.home.clone(),
        git_user: config.git_user.clone(),
        cache: cache(config),
        records: config.cache_of_tools().map(|cache| cache.join("jail")),
        mode: match disabled {
            true => Mode::Disabled,
            false => Mode::Enforced,
        },
        private: config.rules.policy.governance.followed(),
        user: config.tool_user.clone(),
    }
}
