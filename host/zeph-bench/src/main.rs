//! Measures the figures of the README in one run and prints them as a table. Started by `cargo xtask bench`.
//!
//! Two sources. The bench targets of the workspace measure what can only be seen from inside; a line of theirs that
//! starts with `| ` is a row of the table (figure, measured, reach, ratio). The modules below measure whole processes
//! against the programs people use for the same work. Ratios within one run count: times differ from machine to machine.

mod acp;
mod agent;
mod corpus;
mod database;
mod figures;
mod filters;
mod host;
mod installation;
mod mcp;
mod model;
mod plugins;
#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    dead_code,
    reason = "it is written for tests, which panic and start programs"
)]
#[path = "../../zeph-store/tests/it/server.rs"]
mod postgres;
#[path = "../../xtask/src/program.rs"]
mod program;
mod rounds;
mod scrape;
mod search;
mod shell;
mod timing;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::program::cargo;
use figures::{Bench, FIGURES};

/// The name that picks the output filters, which have a table of their own.
const FILTERS: &str = "filters";

/// The name that picks the bench targets of the workspace.
const TARGETS: &str = "targets";

/// The option before a program to be measured as it is.
const PROGRAM: &str = "--program";

fn main() -> ExitCode {
    let mut names: Vec<OsString> = std::env::args_os().skip(1).collect();
    let given = names.iter().position(|name| name == PROGRAM);
    let program = given.and_then(|at| names.drain(at..names.len().min(at + 2)).nth(1));
    match bench(&names, program.map(PathBuf::from)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Measures the named figures, or all, and prints the table: of `program`, or of the one that is handed out, which is built first.
fn bench(names: &[OsString], program: Option<PathBuf>) -> Result<()> {
    if cfg!(debug_assertions) {
        bail!("this build is not optimised\n\nhint: measure with `cargo xtask bench`");
    }
    check(names)?;
    let is_picked = |name: &str| names.is_empty() || names.iter().any(|picked| picked == name);

    if let [only] = names
        && only == FILTERS
    {
        writeln!(std::io::stdout(), "{}", filters::table()?.join("\n"))?;
        return Ok(());
    }
    let mut table = vec![
        "| figure | measured | reach | ratio |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    if is_picked(TARGETS) {
        table.extend(bench_targets()?);
    }
    let picked: Vec<_> = FIGURES.iter().filter(|(name, _)| is_picked(name)).collect();
    if !picked.is_empty() {
        let installed = match program {
            Some(program) => host::InstalledHost::of(&program)?,
            None => host::InstalledHost::of(&handed_out()?)?,
        };
        let bench = Bench {
            installed,
            corpus: corpus::Corpus::open()?,
        };
        for (name, measure) in picked {
            complain(&format!("Measuring `{name}`."));
            let rows = measure(&bench).with_context(|| format!("cannot measure `{name}`"))?;
            table.extend(rows.iter().map(line));
        }
    }
    if is_picked(FILTERS) {
        table.push(String::new());
        table.extend(filters::table()?);
    }
    writeln!(std::io::stdout(), "{}", table.join("\n"))?;
    Ok(())
}

/// Whether there is a figure of each name.
fn check(names: &[OsString]) -> Result<()> {
    let known = FIGURES.iter().map(|(name, _)| *name);
    let known: Vec<&str> = known.chain([TARGETS, FILTERS]).collect();
    let is_known = |name: &&OsString| known.iter().any(|known| known == name);
    match names.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(unknown) => bail!(
            "no figure `{}`\n\nhint: there are {}",
            unknown.display(),
            known.join(", ")
        ),
    }
}

/// A row of the table.
fn line(row: &figures::Row) -> String {
    let figures::Row {
        figure,
        measured,
        reach,
        ratio,
    } = row;
    format!("| {figure} | {measured} | {reach} | {ratio} |")
}

/// Builds the program that `cargo xtask dist` packs, and returns where it is.
fn handed_out() -> Result<PathBuf> {
    let mut build = cargo()?;
    build.args(["run", "--quiet", "--locked", "--package", "zeph-dist", "--"]);
    let built = build
        .arg("program")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start `cargo`")?;
    if !built.status.success() {
        bail!("the program that is handed out does not build");
    }
    Ok(PathBuf::from(String::from_utf8(built.stdout)?.trim_end()))
}

/// Runs every bench target of the workspace and returns the rows they print.
fn bench_targets() -> Result<Vec<String>> {
    let metadata = cargo()?
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout)
        .context("cannot read what `cargo metadata` prints")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let names: Vec<&str> = targets
        .filter(|target| {
            target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == "bench"))
        })
        .filter_map(|target| target["name"].as_str())
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = cargo()?;
    command
        .args(["bench", "--profile", "dist", "--workspace"])
        .args(names.iter().flat_map(|name| ["--bench", name]));
    let mut running = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start `cargo bench`")?;
    let printed = running
        .stdout
        .take()
        .context("bug: standard output is a pipe")?;
    let mut rows = Vec::new();
    for line in BufReader::new(printed).lines() {
        let line = line.context("cannot read what the bench targets print")?;
        complain(&line);
        if line.starts_with("| ") {
            rows.push(line);
        }
    }
    if !running.wait()?.success() {
        bail!("a bench target failed");
    }
    Ok(rows)
}

/// Writes one message to standard error; standard output belongs to the table.
fn complain(message: &str) {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(std::io::stderr(), "{message}"));
}
