//! `cargo xtask test`: every test of the workspace, doc tests included.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::program::{cargo, succeed, variable};
use crate::setup::succeeds_silently;
use crate::{complain, setup};

/// How many tests cargo-nextest runs at a time.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

/// Runs the tests with cargo-nextest when it is installed, else with `cargo test`.
///
/// `args` go to that runner. They pick among its tests, so doc tests, which it does not know, run only without them.
pub(crate) fn test(args: &[OsString]) -> Result<ExitCode> {
    setup::all()?;
    // The doc tests come first: a run then ends on the summary of the many.
    let doc = if args.is_empty() {
        succeed(cargo()?.args(["test", "--workspace", "--doc"]))
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
    tests.args(runner).args(args);
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

/// Half as many again as there are cores: many tests wait for a clock, or for a program that waits for one.
fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n_cores| n_cores.get() * 3 / 2)
}
