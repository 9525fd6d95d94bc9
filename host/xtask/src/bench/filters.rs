//! The output filters over the recorded outputs beside the built-in rules: what is kept of what matters, what is saved, and how
//! long it takes. A table of its own, one row for each rule.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use zeph_core::command::{CommandLine, Segment, SimpleCommand, Wraps};
use zeph_filter::{BUILTIN, Filters, NoForeign, Output};

use super::timing::{median, percentile};
use crate::program::cargo;

/// Runs of each output.
const N_RUNS: usize = 21;

/// Bytes an output is repeated to for the throughput.
const LONG_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
struct RuleFile {
    #[serde(default)]
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    command: String,
    #[serde(default)]
    exit_code: i32,
    input: Option<String>,
    input_file: Option<String>,
    #[serde(default)]
    contains: Vec<String>,
}

/// Sums over the cases of one rule, or of all.
#[derive(Default)]
struct Sum {
    n_outputs: usize,
    n_facts: usize,
    n_kept: usize,
    bytes_before: usize,
    bytes_after: usize,
    times: Vec<Duration>,
    long_bytes: usize,
    long_time: Duration,
}

/// The rows of the table, measured by an optimised build of this program.
pub(super) fn table() -> Result<Vec<String>> {
    if !cfg!(debug_assertions) {
        return measured();
    }
    let own = ["run", "--quiet", "--profile", "bench", "--package", "xtask"];
    let output = cargo()?
        .args(own)
        .args(["--", "bench", "filters"])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("the optimised build of this program failed");
    }
    let printed = String::from_utf8(output.stdout).context("a table is text")?;
    Ok(printed.lines().map(str::to_owned).collect())
}

fn measured() -> Result<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (filters, _) = Filters::load(BUILTIN, None);
    let mut all = Sum::default();
    let mut rows = vec![
        "| rule | outputs | recall | saved | p50 | p99 | throughput |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for (name, text) in BUILTIN {
        let file: RuleFile = toml::from_str(text).with_context(|| format!("`{name}`"))?;
        let folder = root.join(name);
        let folder = folder.parent().unwrap_or(&root);
        let mut sum = Sum::default();
        for case in &file.tests {
            measure(&filters, folder, case, &mut sum).with_context(|| format!("`{name}`"))?;
        }
        let rule = Path::new(name).file_stem().unwrap_or_default();
        rows.push(sum.row(&rule.to_string_lossy()));
        all.add(sum);
    }
    rows.push(all.row("all"));
    Ok(rows)
}

fn measure(filters: &Filters, folder: &Path, case: &Case, sum: &mut Sum) -> Result<()> {
    let raw = match (&case.input, &case.input_file) {
        (Some(input), _) => input.clone().into_bytes(),
        (None, Some(file)) => {
            fs::read(folder.join(file)).with_context(|| format!("cannot read `{file}`"))?
        }
        (None, None) => return Ok(()),
    };
    let line = line_of(&case.command);
    let output = |raw| Output {
        command: Some(&line),
        exit_code: Some(case.exit_code),
        raw,
    };
    let shown = filters.apply(&output(&raw), &NoForeign).text.into_owned();
    sum.n_outputs += 1;
    sum.n_facts += case.contains.len();
    let is_kept = |fact: &&String| shown.contains(fact.as_str());
    sum.n_kept += case.contains.iter().filter(is_kept).count();
    sum.bytes_before += raw.len();
    sum.bytes_after += shown.len();
    for _ in 0..N_RUNS {
        let started = Instant::now();
        let filtered = filters.apply(&output(&raw), &NoForeign);
        sum.times.push(started.elapsed());
        drop(filtered);
    }
    let long = raw.repeat(LONG_BYTES / raw.len().max(1) + 1);
    let started = Instant::now();
    let filtered = filters.apply(&output(&long), &NoForeign);
    sum.long_time += started.elapsed();
    sum.long_bytes += long.len();
    drop(filtered);
    Ok(())
}

/// Commands of the cases are plain words, and what is behind a `|` changes nothing.
fn line_of(text: &str) -> CommandLine {
    let plain = text.split('|').next().unwrap_or_default();
    let mut words = plain.split_whitespace().map(str::to_owned);
    let command = SimpleCommand {
        name: words.next().unwrap_or_default(),
        arguments: words.filter(|word| word != "2>&1").collect(),
        is_literal: true,
        wraps: Wraps::Nothing,
    };
    CommandLine {
        text: text.to_owned(),
        commands: vec![command.clone()],
        last: Some(Segment {
            command,
            pipes: Vec::new(),
            is_one_of_several: false,
        }),
        ..CommandLine::default()
    }
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.n_outputs += other.n_outputs;
        self.n_facts += other.n_facts;
        self.n_kept += other.n_kept;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.times.extend(other.times);
        self.long_bytes += other.long_bytes;
        self.long_time += other.long_time;
    }

    fn row(&self, name: &str) -> String {
        let mut times = self.times.clone();
        if times.is_empty() {
            return format!("| {name} | 0 | - | - | - | - | - |");
        }
        let (p50, p99) = (median(&mut times), percentile(&mut times, 99));
        let per_mille = |part: usize, whole: usize| match whole {
            0 => "-".to_owned(),
            _ => format!(
                "{}.{} %",
                part * 1000 / whole / 10,
                part * 1000 / whole % 10
            ),
        };
        let saved = self.bytes_before.saturating_sub(self.bytes_after);
        let us_per_mb = self.long_time.as_micros() * 1_000_000 / (self.long_bytes.max(1) as u128);
        format!(
            "| {name} | {} | {} ({} of {}) | {} | {:.3} ms | {:.3} ms | {}.{:03} ms/MB |",
            self.n_outputs,
            per_mille(self.n_kept, self.n_facts),
            self.n_kept,
            self.n_facts,
            per_mille(saved, self.bytes_before),
            p50.as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3,
            us_per_mb / 1000,
            us_per_mb % 1000,
        )
    }
}
