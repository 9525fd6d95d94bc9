//! What filtering costs: processor time for a megabyte of some kinds of output, the time of `filter --as` as a program, and the most
//! memory it takes.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use zeph_filter::{Filters, Secrets};

use super::recordings::{Recording, recordings};
use super::{LONG_BYTES, time};
use crate::figures::{Bench, Row, compare, shown, verdict};
use crate::program::program;
use crate::timing::{Pair, in_turns, wall_of};

/// Processor time for a megabyte: clean-up, rules and the search for credentials.
const PER_MB_MAX: Duration = Duration::from_millis(3);

/// Runs whose sum is measured: the kernel counts processor time in steps of some milliseconds.
const N_RUNS: u32 = 20;

/// Runs of the program, an odd number.
const N_PROGRAM_RUNS: usize = 21;

/// Longest time of the program for a short log.
const PROGRAM_MAX: Duration = Duration::from_millis(6);

/// Bytes of the output of short lines.
const SHORT_LINES_BYTES: usize = 20_000_000;

/// Memory beside twice the output, in bytes.
const MEMORY_BYTES: u64 = 16_000_000;

/// The recordings that stand for a kind of output: the rule, and the name of the test.
const KINDS: [(&str, &str, &str); 6] = [
    ("pytest", "pytest", "45 failures of all kinds"),
    ("cargo test", "cargo-test", "five of 86 fail"),
    (
        "docker build",
        "docker-build",
        "BuildKit, with apt, pip, npm and gcc",
    ),
    ("a log", "log-dedup", "interleaved sources"),
    ("`go test -json`", "go-test", "events"),
    ("ESLint", "eslint", "four files with the same problems"),
];

/// A row for each kind of output.
pub(super) fn rows(
    filters: &Filters,
    secrets: &Secrets,
    recordings: &[(String, Vec<Recording>)],
) -> Vec<String> {
    let row = |(kind, rule, name): (&str, &str, &str)| {
        let recording = find(recordings, rule, name)?;
        let raw = recording
            .raw
            .repeat(LONG_BYTES / recording.raw.len().max(1) + 1);
        time(filters, secrets, recording, &raw);
        let before = processor_time()?;
        for _ in 0..N_RUNS {
            time(filters, secrets, recording, &raw);
        }
        let took = processor_time()?.checked_sub(before)? / N_RUNS;
        let per_mb = took.mul_f64(1e6 / f64::from(u32::try_from(raw.len()).ok()?));
        Some(format!(
            "| processor time for 1 MB of {kind} | {per_mb:.1?} | | ≤ {PER_MB_MAX:?} | {} |",
            verdict("", per_mb <= PER_MB_MAX),
        ))
    };
    KINDS.into_iter().filter_map(row).collect()
}

fn find<'r>(
    recordings: &'r [(String, Vec<Recording>)],
    rule: &str,
    name: &str,
) -> Option<&'r Recording> {
    let (_, of_rule) = recordings.iter().find(|(known, _)| known == rule)?;
    of_rule.iter().find(|recording| recording.case.name == name)
}

/// What this thread has taken so far; `None` where the kernel does not tell.
fn processor_time() -> Option<Duration> {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

/// `filter --as` as a program.
pub(crate) fn program_rows(bench: &Bench) -> Result<Vec<Row>> {
    let recordings = recordings()?;
    let of_pytest = recordings.iter().filter(|(rule, _)| rule == "pytest");
    let failing = of_pytest.flat_map(|(_, recordings)| recordings);
    let failing =
        failing.filter(|recording| recording.case.exit_code != 0 && recording.raw.len() >= 4_000);
    let recording = failing
        .min_by_key(|recording| recording.raw.len())
        .context("no recording of pytest is long enough")?;
    let log = bench.corpus.tiny.join("pytest.log");
    fs::write(&log, &recording.raw)?;
    let lines = bench.corpus.tiny.join("short-lines.log");
    fs::write(&lines, b"x\n".repeat(SHORT_LINES_BYTES / 2))?;
    let filter = |command: &str, file: &PathBuf| -> Result<Command> {
        let mut filter = bench.installed.command(&bench.corpus.tiny);
        filter.args(["filter", "--as", command, "--exit-code", "1"]);
        filter.stdin(File::open(file)?);
        Ok(filter)
    };
    let ours =
        || Ok(wall_of(&mut filter("pytest", &log)?)?.map_or(Duration::ZERO, |(took, _)| took));
    let cat = || Ok(wall_of(program("cat").stdin(File::open(&log)?))?.map(|(took, _)| took));
    let pair = in_turns(N_PROGRAM_RUNS, ours, cat)?;
    let peak = peak_bytes(filter("make", &lines)?.arg("--keep"))?;
    fs::remove_file(&log)?;
    fs::remove_file(&lines)?;
    Ok(vec![
        of_program(recording.raw.len(), &pair),
        of_memory(peak),
    ])
}

fn of_program(n_bytes: usize, pair: &Pair) -> Row {
    let figure = format!("`filter --as pytest` of a failing log of {n_bytes} bytes, as a program");
    let row = compare(&figure, "`cat`", f64::INFINITY, pair);
    Row {
        reach: format!("≤ {}", shown(PROGRAM_MAX)),
        ratio: verdict("", pair.ours <= PROGRAM_MAX),
        ..row
    }
}

fn of_memory(peak: u64) -> Row {
    let max = 2 * SHORT_LINES_BYTES as u64 + MEMORY_BYTES;
    Row {
        figure: "`filter --as make --keep` of 20 MB of lines of one letter: most memory".to_owned(),
        measured: format!("{} MB", peak / 1_000_000),
        reach: format!("≤ {} MB", max / 1_000_000),
        ratio: verdict("", peak <= max),
    }
}

/// The most memory a program has taken when it ends, as often as that can be seen.
fn peak_bytes(command: &mut Command) -> Result<u64> {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the program")?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        let told = fs::read_to_string(&status).unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kb.unwrap_or(0));
        // Often enough: it stays what it was while the result is written.
        std::thread::sleep(Duration::from_millis(1));
    }
    if peak == 0 {
        bail!("the kernel does not tell what memory the program took");
    }
    Ok(peak * 1024)
}
