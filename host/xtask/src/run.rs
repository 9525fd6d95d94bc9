//! `cargo xtask run`: the main job.
//!
//! The dev profile is the default because it starts soonest: its dependencies are optimised (wasmtime and SQLite do
//! the work), the guests always are, and `cargo xtask test` uses the same build. `--release` is for measuring.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::program::{cargo, profile_dir, program, root, succeed};
use crate::{complain, setup};

/// Builds `zeph-host` and becomes `zeph-host run` with `args`, with what was dropped into the repository's own `plugins/`.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    setup::all()?;
    let (release, args) = match args.split_first() {
        Some((first, rest)) if first == "--release" => (true, rest),
        _ => (false, args),
    };
    let profile = if release { "release" } else { "debug" };
    let host = profile_dir(profile)?.join(format!("zeph-host{}", std::env::consts::EXE_SUFFIX));

    let mut build = cargo()?;
    build
        .args(["build", "--package", "zeph-host"])
        .stdin(Stdio::null());
    if release {
        build.arg("--release");
    }
    if host.exists() {
        build.arg("--quiet");
    } else {
        complain("Building zeph-host. The first build takes some minutes.");
    }
    succeed(&mut build)?;
    let mut run = program(host);
    let plugins = root()?.join("plugins");
    // Started in there, tools may change it: then it is no place for plugins.
    if std::env::current_dir().ok().as_ref() != Some(&plugins) {
        run.arg("--plugins").arg(plugins);
    }
    become_program(run.arg("run").args(args))
}

/// Replaces this process, so that signals, the terminal and the exit code are the program's own.
#[cfg(unix)]
fn become_program(command: &mut Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    Err(command.exec()).map_err(|error| anyhow::anyhow!("cannot start `zeph-host run`: {error}"))
}

#[cfg(not(unix))]
fn become_program(command: &mut Command) -> Result<ExitCode> {
    use anyhow::Context as _;

    let status = command.status().context("cannot start `zeph-host run`")?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
