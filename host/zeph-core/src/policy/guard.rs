//! Built-in rules: removals that are never intended, moves to where files do not stay among them, and network commands while the jail has no network.
//!
//! They save a person from an accident and a model from a riddle. The jail is what stops an attacker.

use std::path::{Component, Path, PathBuf};

use super::command::RmFlags;
use super::subject::{LinePart, LineTexts};
use super::{Finding, Policy, Verdict};
use crate::command::SimpleCommand;
use crate::failure::one_line;

mod network;

pub(super) use self::network::{host_of, is_loopback};

/// Spellings of the home directory before they are expanded.
const HOMES: [&str; 3] = ["~", "$HOME", "${HOME}"];

/// Where a command's own files of the moment are.
const TEMPORARY: &str = "/tmp";

/// Looks at every part of `line`.
pub(super) fn check(policy: &Policy, line: &LineTexts<'_>) -> Finding {
    let removed = || line.parts.iter().find_map(|part| removal(policy, part));
    let found = line.lost.first().map(|word| lost(word)).or_else(removed);
    if let Some(reason) = found {
        return Finding::new(Verdict::Deny, "built-in: removals").because(reason);
    }
    if !policy.denies_network {
        return Finding::pass("no dangerous removal");
    }
    match line.parts.iter().find(|part| network::leaves(part.command)) {
        Some(part) => {
            let reason = format!(
                "`{}` needs the network, which commands do not have; the operator can give it with `tools.sandbox.allow_hosts`, or `tools.sandbox.allow_network = true`",
                part.command.base_name()
            );
            Finding::new(Verdict::Deny, "tools.sandbox.allow_network").because(reason)
        }
        None => Finding::pass("no dangerous removal and no command of the network"),
    }
}

fn lost(word: &str) -> String {
    format!(
        "`mv` to `{}` would lose what it moves: that is a directory of the command's own, which ends with it; move it to a place in the working directory, or copy it (`cp`)",
        one_line(word, 200)
    )
}

fn removal(policy: &Policy, part: &LinePart<'_>) -> Option<String> {
    let command = part.command;
    if !command.base_name().eq_ignore_ascii_case("rm") {
        return None;
    }
    let flags = RmFlags::of(command);
    if !flags.is_recursive && !flags.is_forced {
        return None;
    }
    let both = flags.is_recursive && flags.is_forced;
    targets(command).into_iter().find_map(|target| {
        if is_root_or_home(target) {
            return Some(format!("`rm` of `{target}` is never allowed"));
        }
        if both && target.contains(".git/worktrees") {
            return Some("`rm -rf` inside `.git/worktrees` breaks linked worktrees; use `git worktree remove`".to_owned());
        }
        let is_absolute = target.starts_with('/') || HOMES.iter().any(|home| target.starts_with(home));
        (both && is_absolute && !is_own(policy, target)).then(|| {
            format!("`rm -rf` of the absolute path `{target}` outside the granted directories is never allowed; name it relative to the working directory")
        })
    })
}

/// The arguments that are no flags.
fn targets(command: &SimpleCommand) -> Vec<&str> {
    let mut only_targets = false;
    let mut found = Vec::new();
    for argument in &command.arguments {
        if !only_targets && argument == "--" {
            only_targets = true;
        } else if only_targets || !argument.starts_with('-') {
            found.push(argument.as_str());
        }
    }
    found
}

/// `/`, the home, everything in either, and longer spellings of them.
fn is_root_or_home(target: &str) -> bool {
    let rest = HOMES
        .iter()
        .find_map(|home| target.strip_prefix(home))
        .or_else(|| target.starts_with('/').then_some(target));
    let Some(rest) = rest else { return false };
    let is_boundary = rest.is_empty() || rest.starts_with('/');
    is_boundary
        && rest
            .split('/')
            .all(|piece| matches!(piece, "" | "." | ".." | "*" | ".*"))
}

/// Strictly below a granted directory or the jail's own `/tmp`, with nothing that could lead out.
fn is_own(policy: &Policy, target: &str) -> bool {
    let path = Path::new(target);
    let is_plain = path
        .components()
        .all(|component| matches!(component, Component::RootDir | Component::Normal(_)));
    let temporary = PathBuf::from(TEMPORARY);
    let below = |root: &PathBuf| path != root && path.starts_with(root);
    is_plain && target.starts_with('/') && policy.roots.iter().chain([&temporary]).any(below)
}
