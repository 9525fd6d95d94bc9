//! Files that programs run or obey without being asked: when a person enters a directory, opens it in an editor, commits, or
//! installs packages. The jail of commands and the guard of file tools share this one list.
//!
//! The list deliberately omits ordinary source that runs when the project is built, tested or linted (`Makefile`,
//! `package.json`, `build.rs`, `conftest.py`, `flake.nix`, `latexmkrc`), the settings of formatters, linters and test runners, version
//! files without paths (`.nvmrc`), names too common for what obeys them, which asks (`.in` and `.out` of a plugin for zsh), and text for
//! models (`AGENTS.md`). They are what people ask an agent to change. `.gitattributes` is
//! omitted, too: it can only choose among programs that `.git/config` names, and that one is on the list.

use std::ffi::OsStr;
use std::path::{Component, Path};

/// Names in any directory, whether they exist or not. A name may begin or end in `*`; `/` separates directories.
pub const ANYWHERE: [&str; 86] = [
    "*.code-workspace",
    "*.sublime-project",
    ".aider.conf.yml",
    ".amazonq",
    ".autoenv",
    ".autoenv.zsh",
    ".byebugrc",
    ".captainhook.json",
    ".cargo/config",
    ".cargo/config.toml",
    ".claude",
    ".codex",
    ".config/mise",
    ".config/mise.toml",
    ".continue",
    ".crush.json",
    ".cursor",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals*.el",
    ".envrc",
    ".erlang",
    ".exrc",
    ".externaltoolbuilders",
    ".factory",
    ".fleet",
    ".gdbinit",
    ".gemini",
    ".ghci",
    ".githooks",
    ".github/hooks",
    ".gitpod.yml",
    ".gvimrc",
    ".helix",
    ".husky",
    ".idea",
    ".iex.exs",
    ".irbrc",
    ".junie/mcp",
    ".kiro",
    ".lapce",
    ".lazy.lua",
    ".lefthook*",
    ".lintstagedrc*",
    ".lldbinit",
    ".local.vimrc",
    ".lvimrc",
    ".mcp.json",
    ".mise*.toml",
    ".mise/config*",
    ".nova",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".ocamlinit",
    ".octaverc",
    ".opencode",
    ".overcommit.yml",
    ".pdbrc",
    ".perldb",
    ".pnpmfile.*",
    ".pre-commit-config.y*ml",
    ".pryrc",
    ".qwen",
    ".rdbgrc",
    ".roo",
    ".rprofile",
    ".rusty-hook.toml",
    ".rvmrc",
    ".simple-git-hooks.*",
    ".theia",
    ".trae",
    ".vimrc",
    ".vscode",
    ".windsurf",
    ".yarnrc*",
    ".ycm_extra_conf.py",
    ".zed",
    ".zeph",
    "crush.json",
    "lefthook-local.*",
    "lefthook.*",
    "mise*.toml",
    "opencode.json*",
    "prek.toml",
    "simple-git-hooks.*",
];

/// Names that are protected once they exist. Commands may create them, because programs ask before they obey a new one, or because
/// build tools write them; file tools may not.
pub const WHERE_PRESENT: [&str; 26] = [
    ".bazelrc",
    ".buckconfig*",
    ".gitmodules",
    ".hg/hgrc",
    ".idx",
    ".jj/repo/config.toml",
    ".jvmopts",
    ".merlin",
    ".mvn",
    ".prototools",
    ".renviron",
    ".replit",
    ".sbtopts",
    ".stackblitzrc",
    ".tool-versions",
    ".yarn/plugins",
    ".yarn/releases",
    "nuget.config",
    "user.bazelrc",
    ".gradle/init.d",
    ".gradle/init.gradle*",
    ".commitlintrc*",
    ".vs",
    "bunfig.toml",
    "commitlint.config.*",
    "lint-staged.config.*",
];

/// Names that build tools and version control maintain themselves: commands may write them, file tools may not.
pub const KEPT_BY_TOOLS: [&str; 10] = [
    ".bsp",
    ".bundle/config",
    ".direnv",
    ".git",
    ".hg",
    ".jj",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".sl",
    ".svn",
];

/// Names directly in a writable directory, which may be a home directory: start-up files, settings and directories of programs.
pub const HOME: [&str; 57] = [
    ".aws/config",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cargo/bin",
    ".cargo/env",
    ".config/autostart",
    ".config/direnv",
    ".config/emacs",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/nushell",
    ".config/nvim",
    ".config/pip",
    ".config/powershell",
    ".config/systemd",
    ".curlrc",
    ".direnvrc",
    ".docker/config.json",
    ".editrc",
    ".emacs",
    ".emacs.d",
    ".gitconfig",
    ".gnupg",
    ".inputrc",
    ".julia/config",
    ".kshrc",
    ".kube/config",
    ".local/bin",
    ".local/share/applications",
    ".login",
    ".m2/settings.xml",
    ".netrc",
    ".pam_environment",
    ".pip",
    ".profile",
    ".psqlrc",
    ".pydistutils.cfg",
    ".ripgreprc",
    ".screenrc",
    ".sqliterc",
    ".ssh",
    ".tmux.conf",
    ".vim",
    ".wgetrc",
    ".xinitrc",
    ".xprofile",
    ".xsessionrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "library/launchagents",
];

/// Stands for a name if a directory is too large to be searched.
pub const TOO_MANY: &str = "more than can be looked through";

/// Directories of generated or downloaded files. Nothing obeys their contents, and tools replace and remove them as a whole.
const FETCHED: [&str; 13] = [
    "node_modules",
    "bower_components",
    ".pnpm-store",
    ".yarn",
    "target",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    "site-packages",
    "__pycache__",
    "dist",
    "vendor",
];

/// Files in the directory of a version control system that people edit and nothing runs.
const HARMLESS: [&str; 1] = [".git/info/exclude"];

/// The name on the list that `below` is, or is inside of. `below` is relative to the root it was reached through.
///
/// Names are compared as on the most lenient file system: case-insensitively, and ignoring characters that some file systems ignore.
pub fn name_of(below: &Path) -> Option<&'static str> {
    let parts = folded(below);
    if HARMLESS.iter().any(|name| ends_with(&parts, name)) {
        return None;
    }
    let everywhere = || ANYWHERE.iter().chain(&WHERE_PRESENT).chain(&KEPT_BY_TOOLS);
    (1..=parts.len()).find_map(|end| {
        let so_far = &parts[..end];
        let found = everywhere().find(|name| ends_with(so_far, name));
        let at_home = || HOME.iter().find(|name| is_all(so_far, name));
        found.or_else(at_home).copied()
    })
}

/// The name on the list that would begin at `below`, such as `.cargo/config.toml` for `.cargo`: a link there
/// redirects that name, too.
pub fn name_from(below: &Path) -> Option<&'static str> {
    let parts = folded(below);
    let names = ANYWHERE.iter().chain(&WHERE_PRESENT).chain(&KEPT_BY_TOOLS);
    let found = names.filter(|name| name.contains('/')).find(|name| {
        let mut beginnings = name.match_indices('/').map(|(at, _)| &name[..at]);
        beginnings.any(|beginning| ends_with(&parts, beginning))
    });
    let at_home = || {
        HOME.iter().find(|name| {
            let mut beginnings = name.match_indices('/').map(|(at, _)| &name[..at]);
            beginnings.any(|beginning| is_all(&parts, beginning))
        })
    };
    found.or_else(at_home).copied()
}

/// Whether a directory of this name contains generated or downloaded files.
pub fn is_fetched(name: &OsStr) -> bool {
    FETCHED.iter().any(|fetched| name == *fetched)
}

/// The one of `names`, lists of this module, that `path` ends in. Fast enough for whole trees: most paths take one comparison of
/// their last part.
pub fn name_at(path: &Path, names: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    let leaf = fold(&path.file_name()?.to_string_lossy());
    names.into_iter().find(|name| match name.rsplit_once('/') {
        None => fits(name, &leaf),
        Some((above, last)) => {
            let above_fits = || {
                path.parent()
                    .is_some_and(|parent| ends_with(&folded(parent), above))
            };
            fits(last, &leaf) && above_fits()
        }
    })
}

/// Whether the text of a rule spells `name` of the list, so that the rule was meant for it.
pub fn spells(rule: &str, name: &str) -> bool {
    let rule = fold(rule);
    let stem = name.trim_matches('*');
    let stem = stem.split('*').next().unwrap_or(stem);
    let (opens, closes) = (!name.starts_with('*'), !name.contains(['*']));
    rule.match_indices(stem).any(|(at, _)| {
        let before = rule[..at].chars().next_back();
        let after = rule[at + stem.len()..].chars().next();
        let begins = !opens || before.is_none_or(|letter| "/{,:".contains(letter));
        let ends = !closes || after.is_none_or(|letter| "/},".contains(letter));
        begins && ends
    })
}

/// The names of a path as they are compared.
fn folded(path: &Path) -> Vec<String> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(fold(&name.to_string_lossy())),
        _ => None,
    });
    parts.collect()
}

/// One spelling for all that a file system may take for one name.
fn fold(name: &str) -> String {
    if name.is_ascii() && !name.contains('~') {
        return name.to_ascii_lowercase();
    }
    let seen = name
        .chars()
        .filter(|letter| !crate::text::is_deceptive(*letter));
    // Twice: some letters are told apart in lower case only, and some in upper case only.
    let upper: String = seen.flat_map(char::to_uppercase).collect();
    let lower = upper.to_lowercase();
    // The short name of `.git` on file systems that keep some.
    match lower.strip_prefix("git~") {
        Some(number) if number.bytes().all(|digit| digit.is_ascii_digit()) => ".git".to_owned(),
        _ => lower,
    }
}

fn ends_with(parts: &[String], name: &str) -> bool {
    let n_names = name.split('/').count();
    parts.len() >= n_names && is_all(&parts[parts.len() - n_names..], name)
}

fn is_all(parts: &[String], name: &str) -> bool {
    let mut names = name.split('/');
    let same = parts
        .iter()
        .all(|part| names.next().is_some_and(|name| fits(name, part)));
    same && names.next().is_none()
}

/// Whether a part of a path fits a part of a name, which holds at most one `*`.
fn fits(name: &str, part: &str) -> bool {
    match name.split_once('*') {
        None => name == part,
        Some((start, end)) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests;
