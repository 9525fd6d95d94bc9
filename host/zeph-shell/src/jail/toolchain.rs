//! The parts of the user's home that make up toolchains, and never what beside them is private.

use std::path::{Path, PathBuf};

use super::mount::{Mount, within, within_any};
use super::names::Names;
use super::policy::{JailPolicy, Network};
use super::trusted;

/// Below the home. Programs and libraries of version managers and package managers; no file here holds a secret, which is why
/// some stand without their parent: `.cargo` has `credentials.toml`, `.local/share` has key rings.
const TOOLS: [&str; 34] = [
    ".asdf",
    ".bun",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".dotnet",
    ".elan",
    ".fnm",
    ".ghcup",
    ".jenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/rtx",
    ".local/share/uv",
    ".m2/repository",
    ".nimble",
    ".npm-global",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rye",
    ".sdkman/candidates",
    ".swiftly",
    ".volta",
    ".zvm",
    "go",
];

/// Variables that name a toolchain outside the home.
const PLACES: [&str; 9] = [
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// Configuration of tools that may be read, unless it holds a word that speaks of a secret.
const SETTINGS: [&str; 1] = [".cargo/config.toml"];

/// The same where commands reach a network: where package managers get packages from, for the user or for the machine.
const REGISTRY_SETTINGS: [&str; 12] = [
    "/etc/pip.conf",
    "/etc/uv/uv.toml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".config/pnpm/rc",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/go/env",
    ".gemrc",
    ".m2/settings.xml",
];

/// Mounts of toolchains. `home` is resolved; commands write to `writable`, where nothing is a toolchain of the user's.
pub(super) fn mounts(policy: &JailPolicy, home: Option<&Path>, writable: &[PathBuf]) -> Vec<Mount> {
    let mut mounts = Vec::new();
    if let Some(home) = home {
        let names = Names::of(home);
        for tool in TOOLS {
            // Crates that a command fetches need a registry of their own; see the environment.
            if policy.network != Network::Loopback
                && tool.starts_with(".cargo/")
                && tool != ".cargo/bin"
            {
                continue;
            }
            let path = home.join(tool);
            if !names.lacks(&path) {
                mounts.extend(directory(&path).map(Mount::Read));
            }
        }
        let of_network: &[&str] = match policy.network {
            Network::Loopback => &[],
            Network::Hosts | Network::Open => &REGISTRY_SETTINGS,
        };
        let settings = SETTINGS.iter().chain(of_network);
        mounts.extend(settings.filter_map(|name| setting(&home.join(name), writable)));
    }
    let host = &policy.environment.host;
    let named = PLACES.iter().filter_map(|name| host.get(*name));
    let of_path = host
        .get("PATH")
        .into_iter()
        .flat_map(|path| path.split(':'));
    let outside = named
        .map(PathBuf::from)
        .chain(of_path.filter_map(whole_package));
    for place in outside {
        let fits = place.is_absolute() && !is_wide(&place, home);
        if let Some(place) = directory(&place).filter(|_| fits) {
            mounts.push(Mount::Read(place));
        }
    }
    mounts.retain(|mount| !within_any(mount.path(), writable));
    mounts.sort_by(|one, other| path_of(one).cmp(path_of(other)));
    mounts.dedup();
    mounts
}

/// A real directory, not a link to one, which might lead anywhere.
fn directory(path: &Path) -> Option<PathBuf> {
    let kind = path.symlink_metadata().ok()?;
    kind.is_dir().then(|| path.to_owned())
}

/// The folder below `/opt` that holds a directory of the search path, or a Homebrew.
fn whole_package(entry: &str) -> Option<PathBuf> {
    let entry = Path::new(entry);
    let package = entry.strip_prefix("/opt").ok()?.components().next()?;
    Some(Path::new("/opt").join(package))
}

/// Whether a directory holds more than a toolchain: it contains the home or the system, or is private.
fn is_wide(path: &Path, home: Option<&Path>) -> bool {
    let above_home = home.is_some_and(|home| within(home, path));
    let private = home.is_some_and(|home| within(path, home)) && !in_tools(path, home);
    path.components().count() <= 2 || above_home || private
}

fn in_tools(path: &Path, home: Option<&Path>) -> bool {
    home.is_some_and(|home| TOOLS.iter().any(|tool| within(path, &home.join(tool))))
}

fn setting(path: &Path, writable: &[PathBuf]) -> Option<Mount> {
    const SECRETS: [&str; 5] = ["token", "password", "secret", "credential", "_auth"];
    let content = trusted::read(path, writable)?;
    let lower = content.to_lowercase();
    let names_user = |line: &str| line.contains("://") && line.contains('@');
    match SECRETS.iter().any(|word| lower.contains(word)) || lower.lines().any(names_user) {
        true => None,
        false => Some(Mount::File {
            path: path.to_owned(),
            bytes: content.into_bytes().into(),
        }),
    }
}

fn path_of(mount: &Mount) -> &Path {
    match mount {
        Mount::Read(path) | Mount::File { path, .. } => path,
        _ => Path::new(""),
    }
}
