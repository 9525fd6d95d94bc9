//! `cargo xtask ci`: the checks of a change, cheap ones first.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::program::{cargo, program, root, succeed};
use crate::setup::{scratch_dir, succeeds_silently};
use crate::{complain, setup, test};

/// What can be checked for macOS on every machine.
const MACOS: &str = "aarch64-apple-darwin";

/// The crates that need no C compiler for it.
const PORTABLE: [&str; 6] = [
    "zeph-acp",
    "zeph-config",
    "zeph-core",
    "zeph-filter",
    "zeph-jail",
    "zeph-shell",
];

/// Runs the steps in order, stops at the first that fails, and prints how long each took.
pub(crate) fn ci() -> Result<ExitCode> {
    let mut times = Vec::new();
    let mut step = |name: &'static str, work: &mut dyn FnMut() -> Result<()>| {
        complain(&format!("\n== {name}"));
        let start = Instant::now();
        let result = work();
        times.push((name, start.elapsed()));
        result
    };
    let result = (|| {
        step("set-up", &mut setup::all)?;
        step("format", &mut || {
            succeed(cargo()?.args(["fmt", "--all", "--check"]))
        })?;
        step("licenses, duplicates, sources", &mut || {
            succeed(cargo_deny()?.args(["check", "licenses", "bans", "sources"]))
        })?;
        step("macOS", &mut || {
            setup::target(MACOS)?;
            let mut check = cargo()?;
            check.args(["check", "--target", MACOS]);
            succeed(check.args(PORTABLE.iter().flat_map(|name| ["-p", name])))
        })?;
        step("build, with clippy", &mut || test::build_linted())?;
        step("tests", &mut || test::test_linted().map(drop))
    })();
    report(&times);
    result.map(|()| ExitCode::SUCCESS)
}

/// cargo-deny in the root of the workspace: the one that `.ci/run` installed, else the machine's.
fn cargo_deny() -> Result<Command> {
    let installed = scratch_dir()?.join("tools/bin/cargo-deny");
    let name = if installed.exists() {
        installed.as_os_str()
    } else {
        "cargo-deny".as_ref()
    };
    if !succeeds_silently(program(name).arg("--version")) {
        bail!("cargo-deny is missing\n\nhint: install it with `cargo install --locked cargo-deny`");
    }
    let mut deny = program(name);
    deny.current_dir(root()?);
    Ok(deny)
}

fn report(times: &[(&str, Duration)]) {
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    complain("");
    for (name, time) in times.iter().copied().chain([("together", total)]) {
        complain(&format!("{:>8.1} s  {name}", time.as_secs_f64()));
    }
}
