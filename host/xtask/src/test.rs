//! `cargo xtask test`: every test of the workspace, doc tests included.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::program::{cargo, program, root, succeed, variable};
use crate::setup::succeeds_silently;
use crate::{complain, setup};

/// How many tests cargo-nextest runs at a time.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

/// Runs the tests with cargo-nextest when it is installed, else with `cargo test`.
///
/// `args` go to that runner. They pick among its tests, so doc tests, which it does not know, run only without them.
pub(crate) fn test(args: &[OsString]) -> Result<ExitCode> {
    setup::all()?;
    run(args, |_| Ok(()))
}

/// Builds everything that the tests need, and fails for what clippy or the compiler warns of.
pub(crate) fn build_linted() -> Result<()> {
    let mut build = cargo()?;
    build.args(["build", "--workspace", "--all-targets"]);
    lint(&mut build)?;
    succeed(&mut build)
}

/// Every test, of what [`build_linted`] has built.
pub(crate) fn test_linted() -> Result<ExitCode> {
    run(&[], lint)
}

/// `prepare` is applied to every cargo that builds.
fn run(args: &[OsString], prepare: impl Fn(&mut Command) -> Result<()>) -> Result<ExitCode> {
    // The doc tests come first: a run then ends on the summary of the many.
    let doc = if args.is_empty() {
        let mut doc = cargo()?;
        doc.args(["test", "--workspace", "--doc"]);
        prepare(&mut doc)?;
        succeed(&mut doc)
    } else {
        Ok(())
    };
    let has_nextest = succeeds_silently(cargo()?.args(["nextest", "--version"]));
    let runner: &[&str] = if has_nextest {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--tests"]
    };
    let mut tests = cargo()?;
    tests.args(runner);
    prepare(&mut tests)?;
    tests.args(args);
    if variable(TEST_THREADS).is_none() {
        tests.env(TEST_THREADS, n_threads().to_string());
    }
    let tests = succeed(&mut tests);

    let failures: Vec<_> = [doc, tests].into_iter().filter_map(Result::err).collect();
    if failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for failure in failures {
        complain(&format!("error: {failure:#}"));
    }
    bail!("not every test passed")
}

/// Has the crates of the workspace compiled by clippy's compiler, which also builds them. `cargo clippy` would check every crate and
/// all it depends on first, and a build then compiles the same again.
fn lint(cargo: &mut Command) -> Result<()> {
    let printed = program("rustc")
        .args(["--print", "sysroot"])
        .current_dir(root()?)
        .output()
        .context("cannot start `rustc`")?;
    let sysroot = String::from_utf8_lossy(&printed.stdout);
    let clippy = Path::new(sysroot.trim()).join("bin/clippy-driver");
    // A string of TOML. The variable is how `cargo clippy` hands on what stands behind its `--`.
    let wrapper = format!(
        "build.rustc-workspace-wrapper={:?}",
        clippy.display().to_string()
    );
    cargo
        .args(["--config", &wrapper])
        .env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    Ok(())
}

/// Half as many again as there are cores: many tests wait for a clock, or for a program that waits for one.
fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n_cores| n_cores.get() * 3 / 2)
}
