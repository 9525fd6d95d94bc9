//! The output filters over the recorded outputs beside the built-in rules: what is kept of what matters, what is saved, and how
//! long it takes. Two tables of their own: a row for each rule, and a row for each figure to reach.
//!
//! What matters is counted twice: what the tests beside the rules name (`contains`), and what [`facts`] finds in the recordings.
//! The time of an output is that of all that is done to it: clean-up, rules, and the search for credentials.

mod bars;
pub(crate) mod cost;
mod facts;
mod recordings;

use std::time::{Duration, Instant};

use anyhow::Result;
use zeph_filter::{BUILTIN, Filters, NoForeign, Secrets};

use self::recordings::{Recording, recordings};
use crate::timing::{median, percentile};

/// Runs of each output.
const N_RUNS: usize = 21;

/// Bytes of an output whose time counts: the figure is about outputs of ordinary size.
const TIMED_BYTES_MAX: usize = 64 * 1024;

/// Bytes an output is repeated to for the throughput.
const LONG_BYTES: usize = 1024 * 1024;

/// How many there are, and how many of them are still there.
#[derive(Debug, Default, Clone, Copy)]
struct Recall {
    n_facts: usize,
    n_kept: usize,
}

/// Sums over the cases of one rule, or of all.
#[derive(Default)]
struct Sum {
    n_outputs: usize,
    /// Of what the tests name.
    named: Recall,
    /// Of what is found in the recordings.
    found: Recall,
    bytes_before: usize,
    bytes_after: usize,
    times: Vec<Duration>,
    long_bytes: usize,
    long_time: Duration,
}

/// The rows of the tables.
pub(crate) fn table() -> Result<Vec<String>> {
    let (filters, _) = Filters::load(BUILTIN, None);
    let (secrets, _) = Secrets::new(&[]);
    let mut all = Sum::default();
    let mut bars = bars::Bars::default();
    let mut lost = Vec::new();
    let mut rows = vec![
        "| rule | outputs | recall, named | recall, found | saved | p50 | p99 | throughput |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    let recordings = recordings()?;
    let first = first_output(&filters, &secrets, &recordings);
    let costs = cost::rows(&filters, &secrets, &recordings);
    for (rule, recordings) in recordings {
        let mut sum = Sum::default();
        for recording in &recordings {
            let outcome = outcome(&filters, recording);
            bars.add(&rule, recording, &outcome);
            lost.extend(
                outcome
                    .lost
                    .iter()
                    .map(|fact| format!("lost: {rule}: {}: {fact}", recording.case.name)),
            );
            sum.count(recording, &outcome);
            sum.time(&filters, &secrets, recording);
        }
        rows.push(sum.row(&rule));
        all.add(sum);
    }
    rows.push(all.row("all"));
    rows.push(String::new());
    rows.extend(first);
    rows.push(String::new());
    rows.extend(bars.rows(&mut all));
    rows.extend(costs);
    rows.extend(lost);
    Ok(rows)
}

/// A row about the first output of a process, which pays for every expression it needs: a failing pytest log of some 4 kB.
fn first_output(
    filters: &Filters,
    secrets: &Secrets,
    recordings: &[(String, Vec<Recording>)],
) -> Option<String> {
    let of_pytest = recordings.iter().filter(|(rule, _)| rule == "pytest");
    let recording = of_pytest
        .flat_map(|(_, recordings)| recordings)
        .find(|recording| recording.case.exit_code != 0 && recording.raw.len() >= 4_000)?;
    let n_bytes = recording.raw.len();
    let took = time(filters, secrets, recording, &recording.raw);
    let ms = took.as_secs_f64() * 1e3;
    Some(format!(
        "first output of a process, a failing pytest log of {n_bytes} bytes: {ms:.1} ms"
    ))
}

/// How long all that is done to an output takes.
fn time(filters: &Filters, secrets: &Secrets, recording: &Recording, raw: &[u8]) -> Duration {
    let started = Instant::now();
    let filtered = filters.apply(&recording.output(raw), &NoForeign);
    let found = secrets.scan_filtered(raw, &filtered);
    let took = started.elapsed();
    drop((filtered, found));
    took
}

/// What became of one recording.
struct RecordingResult {
    named: Recall,
    found: Recall,
    /// What is no longer there, in words.
    lost: Vec<String>,
    bytes_after: usize,
}

fn outcome(filters: &Filters, recording: &Recording) -> RecordingResult {
    let Recording { case, raw, .. } = recording;
    let shown = filters
        .apply(&recording.output(raw), &NoForeign)
        .text
        .into_owned();
    let mut outcome = RecordingResult {
        named: Recall::default(),
        found: Recall::default(),
        lost: Vec::new(),
        bytes_after: shown.len(),
    };
    for part in &case.contains {
        outcome.named.count(shown.contains(part.as_str()));
    }
    for fact in facts::facts(&case.command, raw).iter() {
        let is_kept = fact.is_in(&shown);
        outcome.found.count(is_kept);
        if !is_kept {
            outcome
                .lost
                .push(format!("{:?} `{}`", fact.kind, fact.spellings[0]));
        }
    }
    outcome
}

impl Recall {
    fn count(&mut self, is_kept: bool) {
        self.n_facts += 1;
        self.n_kept += usize::from(is_kept);
    }

    fn add(&mut self, other: Self) {
        self.n_facts += other.n_facts;
        self.n_kept += other.n_kept;
    }

    fn is_whole(self) -> bool {
        self.n_kept == self.n_facts
    }

    fn shown(self) -> String {
        let Self { n_facts, n_kept } = self;
        format!("{} ({n_kept} of {n_facts})", per_mille(n_kept, n_facts))
    }
}

/// A part in per cent with one digit behind the point.
fn per_mille(part: usize, whole: usize) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!(
            "{}.{} %",
            part * 1000 / whole / 10,
            part * 1000 / whole % 10
        ),
    }
}

impl Sum {
    fn count(&mut self, recording: &Recording, outcome: &RecordingResult) {
        self.n_outputs += 1;
        self.named.add(outcome.named);
        self.found.add(outcome.found);
        self.bytes_before += recording.raw.len();
        self.bytes_after += outcome.bytes_after;
    }

    fn time(&mut self, filters: &Filters, secrets: &Secrets, recording: &Recording) {
        let work = |raw: &[u8]| time(filters, secrets, recording, raw);
        let raw = &recording.raw;
        // Expressions are compiled when they are first needed; a session does that once.
        work(raw);
        if raw.len() <= TIMED_BYTES_MAX {
            self.times.extend((0..N_RUNS).map(|_| work(raw)));
        }
        let long = raw.repeat(LONG_BYTES / raw.len().max(1) + 1);
        self.long_time += work(&long);
        self.long_bytes += long.len();
    }

    fn add(&mut self, other: Self) {
        self.n_outputs += other.n_outputs;
        self.named.add(other.named);
        self.found.add(other.found);
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.times.extend(other.times);
        self.long_bytes += other.long_bytes;
        self.long_time += other.long_time;
    }

    fn row(&self, name: &str) -> String {
        let mut times = self.times.clone();
        if times.is_empty() {
            return format!("| {name} | 0 | - | - | - | - | - | - |");
        }
        let (p50, p99) = (median(&mut times), percentile(&mut times, 99));
        let saved = self.bytes_before.saturating_sub(self.bytes_after);
        let us_per_mb = self.long_time.as_micros() * 1_000_000 / (self.long_bytes.max(1) as u128);
        format!(
            "| {name} | {} | {} | {} | {} | {:.3} ms | {:.3} ms | {}.{:03} ms/MB |",
            self.n_outputs,
            self.named.shown(),
            self.found.shown(),
            per_mille(saved, self.bytes_before),
            p50.as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3,
            us_per_mb / 1000,
            us_per_mb % 1000,
        )
    }
}

#[cfg(test)]
mod tests;
