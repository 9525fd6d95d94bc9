//! Files and folders that programs outside the jail obey without being asked: editors, shells, build tools, this host.

use std::path::{Path, PathBuf};

/// Relative to a writable directory or a repository.
const DOORS: [&str; 17] = [
    ".cargo/config",
    ".cargo/config.toml",
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    ".fleet",
    ".gemini",
    ".husky",
    ".idea",
    ".mcp.json",
    ".vscode",
    ".windsurf",
    ".zed",
    ".zeph",
];

/// The same, protected where they are and left alone when new: git asks before it obeys, and the others come with a new repository.
const DOORS_IF_PRESENT: [&str; 3] = [".gitmodules", ".hg/hgrc", ".jj/repo/config.toml"];

/// In a writable directory itself, which may be somebody's home: start-up files and settings.
const START_UP: [&str; 26] = [
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/direnv",
    ".config/fish",
    ".config/systemd",
    ".direnvrc",
    ".gitconfig",
    ".inputrc",
    ".kshrc",
    ".login",
    ".netrc",
    ".pam_environment",
    ".profile",
    ".ripgreprc",
    ".ssh",
    ".xinitrc",
    ".xprofile",
    ".xsessionrc",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// What is a door whether it exists or not.
pub(super) fn of_directory() -> impl Iterator<Item = &'static str> {
    DOORS.into_iter()
}

/// What is a door once it exists.
pub(super) fn if_present() -> impl Iterator<Item = &'static str> {
    DOORS_IF_PRESENT.into_iter()
}

/// What is a door in a writable directory itself.
pub(super) fn of_root() -> impl Iterator<Item = &'static str> {
    START_UP.into_iter()
}

/// Whether a path that was not there before is a door of the directory it lies in.
pub(super) fn is_door_when_new(path: &Path) -> bool {
    DOORS.iter().any(|name| path.ends_with(name))
}

/// Whether a path is a start-up file of the directory it lies in, should that be a home.
pub(super) fn is_start_up(path: &Path) -> bool {
    START_UP.iter().any(|name| path.ends_with(name))
}

/// Where doors would lie below a path, if it were a folder.
pub(super) fn inside(path: &Path) -> impl Iterator<Item = PathBuf> {
    let parts = DOORS.iter().filter_map(|name| name.split_once('/'));
    let parts = parts.filter(move |(folder, _)| path.ends_with(folder));
    parts.map(move |(_, name)| path.join(name))
}

/// Whether a path is a door of the directory it lies in.
pub(super) fn is_door(path: &Path) -> bool {
    let mut names = DOORS.iter().chain(&DOORS_IF_PRESENT);
    names.any(|name| path.ends_with(name))
}
