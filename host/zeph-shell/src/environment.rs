//! The variables a command sees: by allow-list, without credentials, with a search path that leads nowhere outside the jail.
//!
//! It reads no environment itself; the host's comes with the policy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::jail::{EnvironmentPolicy, Network};

mod outlet;

#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
pub(crate) use outlet::of_certificates;
pub(crate) use outlet::of_outlet;

/// Where programs lie on every machine; the end of each search path.
const SYSTEM_PATH: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Names that pass. Tools behave as the user's do; nothing here names a key, an agent or a service.
const PASSES: [&str; 64] = [
    "AR",
    "CARGO_BUILD_JOBS",
    "CARGO_TERM_COLOR",
    "CC",
    "CFLAGS",
    "CI",
    "CLICOLOR",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "CMAKE_GENERATOR",
    "COLORTERM",
    "CPATH",
    "CPPFLAGS",
    "CURL_CA_BUNDLE",
    "CXX",
    "CXXFLAGS",
    "DEBIAN_FRONTEND",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "FORCE_COLOR",
    "GIT_SSL_CAINFO",
    "GO111MODULE",
    "GOFLAGS",
    "GOROOT",
    "GOTOOLCHAIN",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LDFLAGS",
    "LIBRARY_PATH",
    "LOGNAME",
    "LS_COLORS",
    "NIX_SSL_CERT_FILE",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NO_COLOR",
    "NVM_DIR",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "PKG_CONFIG_PATH",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RBENV_ROOT",
    "RBENV_VERSION",
    "REQUESTS_CA_BUNDLE",
    "RUSTFLAGS",
    "RUSTUP_AUTO_INSTALL",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
    "SDKMAN_DIR",
    "SOURCE_DATE_EPOCH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
    "USER",
];

/// Variables that are passed only with a network: without it, they would make programs wait for servers that they cannot reach.
const PASSES_WITH_NETWORK: [&str; 8] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables that are passed with a network, or a way out to hosts: where package managers get packages from. One with a password in it is
/// not passed.
const REGISTRIES: [&str; 17] = [
    "CARGO_REGISTRIES_CRATES_IO_PROTOCOL",
    "GONOPROXY",
    "GONOSUMDB",
    "GOPRIVATE",
    "GOPROXY",
    "GOSUMDB",
    "NPM_CONFIG_REGISTRY",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "RUSTUP_DIST_SERVER",
    "RUSTUP_UPDATE_ROOT",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
    "UV_INDEX_URL",
    "YARN_NPM_REGISTRY_SERVER",
    "npm_config_registry",
];

/// Settings for package managers without a network: to fail immediately with a message instead of retrying for minutes. What is
/// in their caches they use all the same.
const OFFLINE: [(&str, &str); 18] = [
    ("BUNDLE_RETRY", "0"),
    ("CARGO_NET_OFFLINE", "true"),
    ("COMPOSER_DISABLE_NETWORK", "1"),
    ("CONDA_OFFLINE", "true"),
    ("COREPACK_ENABLE_NETWORK", "0"),
    ("COURSIER_MODE", "offline"),
    ("GOPROXY", "off"),
    ("HEX_OFFLINE", "1"),
    ("HF_HUB_OFFLINE", "1"),
    ("JULIA_PKG_OFFLINE", "true"),
    ("MAVEN_ARGS", "--offline"),
    ("NUGET_ENHANCED_MAX_NETWORK_TRY_COUNT", "1"),
    ("PIP_NO_INDEX", "1"),
    ("RUSTUP_AUTO_INSTALL", "0"),
    ("UV_OFFLINE", "1"),
    ("YARN_ENABLE_NETWORK", "0"),
    ("npm_config_offline", "true"),
    ("pnpm_config_offline", "true"),
];

/// Settings of git that a command gets besides those of the repository, whatever these say. What git leaves running behind a commit would
/// be ended with the command, in the middle of its work, and leave its locks in the repository.
const GIT_SETTINGS: [(&str, &str); 2] = [
    ("gc.autoDetach", "false"),
    // From git 2.47 on, where it goes before the other.
    ("maintenance.autoDetach", "false"),
];

/// Names that make a program run or load what its caller never meant, or hand it an agent of the user.
const INJECTORS: [&str; 62] = [
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "BROWSER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CDPATH",
    "CLASSPATH",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "EDITOR",
    "ENV",
    "FCEDIT",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GNUPGHOME",
    "GPG_AGENT_INFO",
    "HISTFILE",
    "HOSTALIASES",
    "IFS",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KRB5CCNAME",
    "LESSOPEN",
    "LOCALDOMAIN",
    "LUA_INIT",
    "MAIL",
    "MAILPATH",
    "MAKEFLAGS",
    "MANPAGER",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PAGER",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RES_OPTIONS",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "SHELLOPTS",
    "SSH_AUTH_SOCK",
    "SUDO_ASKPASS",
    "VISUAL",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "_JAVA_OPTIONS",
];

/// Beginnings of such names.
const INJECTOR_PREFIXES: [&str; 6] = ["BASH_FUNC_", "DYLD_", "GIT_", "LD_", "MALLOC_", "SSH_"];

/// The exception: a file of certificates.
const HARMLESS: [&str; 1] = ["GIT_SSL_CAINFO"];

/// Words in names that speak of a secret.
const SECRET_WORDS: [&str; 10] = [
    "AUTH",
    "COOKIE",
    "CREDENTIAL",
    "KEY",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "SECRET",
    "SESSION",
    "TOKEN",
];

/// Beginnings of values that are secrets, whatever their name says.
const SECRET_VALUES: [&str; 14] = [
    "-----BEGIN",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "npm_",
    "sk-",
    "xoxb-",
    "xoxp-",
];

/// What the environment is made for.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The home inside the jail.
    pub home: &'a Path,
    /// What of the network is there.
    pub network: Network,
    /// Paths that can be seen inside the jail; entries of the search path outside them are dropped. `None`: everything.
    pub visible: Option<&'a [PathBuf]>,
}

/// The environment of a command.
///
/// Shape: names and values without NUL; `PATH`, `HOME`, `TMPDIR`, `LANG` and `TERM` are always there.
pub fn make(
    policy: &EnvironmentPolicy,
    surroundings: Surroundings<'_>,
) -> BTreeMap<String, String> {
    let passes = |name: &str, value: &str| passes(policy, surroundings.network, name, value);
    let mut variables: BTreeMap<String, String> = policy
        .host
        .iter()
        .filter(|(name, value)| passes(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let home = surroundings.home.display().to_string();
    let path = search_path(policy.host.get("PATH"), surroundings.visible);
    let cache = format!("{home}/.cache");
    for (name, value) in [
        ("PATH", path),
        ("HOME", home.clone()),
        ("SHELL", "/bin/bash".to_owned()),
        ("TMPDIR", "/tmp".to_owned()),
        ("XDG_CACHE_HOME", cache.clone()),
        ("npm_config_cache", format!("{cache}/npm")),
        ("npm_config_update_notifier", "false".to_owned()),
        ("PIP_CACHE_DIR", format!("{cache}/pip")),
        ("UV_CACHE_DIR", format!("{cache}/uv")),
        ("GOCACHE", format!("{cache}/go-build")),
        // Nobody is there to answer.
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("GIT_EDITOR", "true".to_owned()),
        ("GIT_PAGER", "cat".to_owned()),
        ("PAGER", "cat".to_owned()),
    ] {
        variables.insert(name.to_owned(), value);
    }
    variables.extend(git_settings());
    for (name, folder) in &policy.caches {
        variables.insert(name.clone(), format!("{cache}/{folder}"));
    }
    match surroundings.network {
        Network::Loopback => {
            let told = OFFLINE.map(|(name, value)| (name.to_owned(), value.to_owned()));
            variables.extend(told);
        }
        Network::Hosts | Network::Open => {
            // The registry of the user is there and cannot be changed.
            variables.insert("CARGO_HOME".to_owned(), format!("{cache}/cargo"));
        }
    }
    if surroundings.network == Network::Hosts {
        variables.extend(outlet::settings());
    }
    for (name, value) in [("LANG", "C.UTF-8"), ("TERM", "dumb")] {
        variables
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    variables
}

/// The variables by which git is told. None of the kind comes from the host, and what a command sets itself takes their place.
fn git_settings() -> impl Iterator<Item = (String, String)> {
    let count = (
        "GIT_CONFIG_COUNT".to_owned(),
        GIT_SETTINGS.len().to_string(),
    );
    let settings = GIT_SETTINGS.iter().enumerate();
    let settings = settings.flat_map(|(number, (key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{number}"), (*key).to_owned()),
            (format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned()),
        ]
    });
    std::iter::once(count).chain(settings)
}

/// Whether a variable makes programs run or load something, or leads to an agent of the user.
pub fn is_injector(name: &str) -> bool {
    let listed = INJECTORS.contains(&name);
    let begins = INJECTOR_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix));
    (listed || begins) && !HARMLESS.contains(&name)
}

/// Whether a variable looks like a credential, by its name or by its value.
pub fn is_secret(name: &str, value: &str) -> bool {
    let upper = name.to_uppercase();
    let named = SECRET_WORDS.iter().any(|word| upper.contains(word));
    let valued = SECRET_VALUES.iter().any(|begin| value.starts_with(begin));
    named || valued || names_a_user(value)
}

/// Whether a value is an address with a password in it.
fn names_a_user(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '?', '#', ' ']).next().unwrap_or(rest);
        host.contains('@')
    })
}

fn passes(policy: &EnvironmentPolicy, network: Network, name: &str, value: &str) -> bool {
    if is_injector(name) || name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        return false;
    }
    if policy.allowed.iter().any(|allowed| allowed == name) {
        return true;
    }
    let blocked = policy
        .blocked
        .iter()
        .any(|prefix| name.starts_with(prefix.as_str()));
    let of_network = network == Network::Open && PASSES_WITH_NETWORK.contains(&name);
    let of_registry = network != Network::Loopback && REGISTRIES.contains(&name);
    let listed = PASSES.contains(&name) || name.starts_with("LC_") || of_network || of_registry;
    listed && !blocked && !is_secret(name, value)
}

/// The host's search path without what cannot be seen, is not absolute or stands twice, and with the system's places.
fn search_path(host: Option<&String>, visible: Option<&[PathBuf]>) -> String {
    let mut entries: Vec<&str> = Vec::new();
    let of_host = host.into_iter().flat_map(|path| path.split(':'));
    for entry in of_host.chain(SYSTEM_PATH) {
        let path = Path::new(entry);
        let seen = visible.is_none_or(|all| all.iter().any(|one| path.starts_with(one)));
        let plain = path.is_absolute() && !entry.contains("/../") && !entry.ends_with("/..");
        if plain && (seen || SYSTEM_PATH.contains(&entry)) && !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries.join(":")
}
