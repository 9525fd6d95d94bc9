//! Runners of a project's own programs: `poetry run PROGRAM …`. A rule for the runner covers what it runs; rules that refuse or
//! ask look inside nevertheless.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::{Look, WrappedCommand};

/// Runners, the subcommands behind which a command stands (none: right behind the name), and the words between.
const RUNNERS: &[(&str, &[&str], usize)] = &[
    ("asdf", &["exec"], 0),
    ("buildah", &["unshare"], 0),
    ("bun", &["exec", "x"], 0),
    ("bundle", &["exec"], 0),
    ("bunx", &[], 0),
    ("c8", &[], 0),
    ("conda", &["run"], 0),
    ("corepack", &[], 0),
    ("direnv", &["exec"], 1),
    ("doppler", &["run"], 0),
    ("env-cmd", &[], 0),
    ("dotenvx", &["run"], 0),
    ("fnm", &["exec"], 0),
    ("hatch", &["run"], 0),
    ("infisical", &["run"], 0),
    ("lerna", &["exec"], 0),
    ("libtool", &["--mode=execute"], 0),
    ("mamba", &["run"], 0),
    ("meson", &["devenv"], 0),
    ("micromamba", &["run"], 0),
    ("mise", &["exec", "x"], 0),
    ("npm", &["exec", "x"], 0),
    ("npx", &[], 0),
    ("nx", &["exec"], 0),
    ("nyc", &[], 0),
    ("op", &["run"], 0),
    ("pdm", &["run"], 0),
    ("pipenv", &["run"], 0),
    ("pipx", &["run"], 0),
    ("pixi", &["run"], 0),
    ("pnpm", &["exec", "dlx"], 0),
    ("pnpx", &[], 0),
    ("podman", &["unshare"], 0),
    ("poetry", &["run"], 0),
    ("pyenv", &["exec"], 0),
    ("rbenv", &["exec"], 0),
    ("rustup", &["run"], 1),
    ("rye", &["run"], 0),
    ("terragrunt", &["exec"], 0),
    ("tox", &["exec"], 0),
    ("uv", &["run"], 0),
    ("uvx", &[], 0),
    ("volta", &["run"], 0),
    ("yarn", &["exec", "dlx"], 0),
];

/// The command behind the subcommand. Options before it may take values, so a word that is one may be taken for the command: it is
/// only looked at.
pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    let (_, subcommands, between) = RUNNERS.iter().find(|(runner, ..)| *runner == name)?;
    let mut rest = arguments;
    if !subcommands.is_empty() {
        let at = rest
            .iter()
            .position(|word| subcommands.contains(&word.text.as_str()))?;
        rest = rest.get(at + 1..)?;
    }
    let at = rest.iter().position(|word| !word.text.starts_with('-'))?;
    let command = rest.get(at + between..)?;
    let is_program = |first: &&Value| first.is_name && !first.text.contains(char::is_whitespace);
    let first = command.first()?;
    if first.text.contains(char::is_whitespace) && SHELL_RUNNERS.contains(&name) {
        return Some(Look::one(
            Wraps::WithEffect,
            WrappedCommand::Text(first.clone()),
        ));
    }
    let program = Some(first).filter(is_program);
    let inner = program.map(|_| WrappedCommand::Within(command.to_vec()));
    Some(Look {
        wraps: Wraps::Nothing,
        inner: inner.into_iter().collect(),
        unknown: None,
    })
}

/// Those that give a word with spaces to a shell.
const SHELL_RUNNERS: [&str; 4] = ["bun", "lerna", "pnpm", "yarn"];
