//! The figures to reach: what is saved of some recordings, and how long filtering takes.

use std::time::Duration;

use super::{Recall, Recording, RecordingResult, Sum, per_mille};
use crate::timing::{median, percentile};

/// One figure about savings.
struct Bar {
    name: &'static str,
    /// The part to save, in per mille.
    reach: usize,
    /// Which recordings: the rule and the name of the test.
    of: &'static [(&'static str, &'static str)],
}

/// Source: the table of numbers in the design of the filters.
const BARS: [Bar; 12] = [
    Bar {
        name: "pytest, 45 failures of all kinds",
        reach: 550,
        of: &[("pytest", "45 failures of all kinds")],
    },
    Bar {
        name: "cargo test, 5 of 86 fail",
        reach: 720,
        of: &[
            ("cargo-test", "five of 86 fail"),
            ("cargo-test", "with backtraces"),
        ],
    },
    Bar {
        name: "clippy, 111 warnings in three files",
        reach: 900,
        of: &[("cargo-clippy", "many warnings, every place stays")],
    },
    Bar {
        name: "100 tests and more, all pass",
        reach: 970,
        of: &[
            ("cargo-test", "all pass"),
            ("cargo-test", "120 pass"),
            ("cargo-test", "nextest, all pass"),
            ("pytest", "all pass, verbose"),
            ("pytest", "180 pass, verbose"),
            ("pytest", "180 pass, three workers"),
            ("pytest", "180 pass, coloured"),
            ("go-test", "all pass, verbose"),
            ("go-test", "110 pass, verbose"),
            ("js-test", "180 pass in jest"),
            ("js-test", "180 pass in vitest"),
            ("js-test", "130 pass in mocha"),
        ],
    },
    Bar {
        name: "docker build",
        reach: 950,
        of: &[("docker-build", "buildkit")],
    },
    Bar {
        name: "npm install",
        reach: 800,
        of: &[("npm-install", "noise"), ("npm-install", "pnpm")],
    },
    Bar {
        name: "pip install",
        reach: 850,
        of: &[("pip-install", "seven packages with their dependencies")],
    },
    Bar {
        name: "docker build, with the tools inside",
        reach: 850,
        of: &[
            (
                "docker-build",
                "the classic builder, with apt, pip, npm and gcc",
            ),
            ("docker-build", "BuildKit, with apt, pip, npm and gcc"),
        ],
    },
    Bar {
        name: "linters and type checkers, four files",
        reach: 700,
        of: &[
            ("eslint", "four files with the same problems"),
            ("tsc", "four files with the same errors"),
            ("python-lint", "mypy: four files with the same errors"),
            ("python-lint", "ruff: four files with the same problems"),
            ("rubocop", "offenses"),
        ],
    },
    Bar {
        name: "interleaved logs of three services",
        reach: 900,
        of: &[("log-dedup", "interleaved sources")],
    },
    Bar {
        name: "brew install",
        reach: 800,
        of: &[("brew-install", "with dependencies")],
    },
    Bar {
        name: "terraform plan",
        reach: 750,
        of: &[("terraform-plan", "a plan")],
    },
];

/// Half of all outputs take at most this.
const P50_MAX: Duration = Duration::from_micros(200);

/// Of a hundred outputs, all but one take at most this.
const P99_MAX: Duration = Duration::from_millis(1);

/// Sums for each figure.
#[derive(Default)]
pub(super) struct Bars([Total; BARS.len()]);

#[derive(Default, Clone, Copy)]
struct Total {
    bytes_before: usize,
    bytes_after: usize,
    recall: Recall,
}

impl Bars {
    pub(super) fn add(&mut self, rule: &str, recording: &Recording, outcome: &RecordingResult) {
        for (bar, total) in BARS.iter().zip(&mut self.0) {
            let is_meant = |(of, name): &(&str, &str)| rule == *of && recording.case.name == *name;
            // A failure is told, not saved: the figures of installers and builders are about noise.
            let is_noise = recording.case.exit_code == 0 || bar.reach < 750;
            if is_noise && bar.of.iter().any(is_meant) {
                total.bytes_before += recording.raw.len();
                total.bytes_after += outcome.bytes_after;
                total.recall.add(outcome.found);
                total.recall.add(outcome.named);
            }
        }
    }

    pub(super) fn rows(&self, all: &mut Sum) -> Vec<String> {
        let mut rows = vec![
            "| figure | measured | facts kept | reach | |".to_owned(),
            "|---|---|---|---|---|".to_owned(),
        ];
        for (bar, total) in BARS.iter().zip(self.0) {
            let saved = total.bytes_before.saturating_sub(total.bytes_after);
            let is_met = saved * 1000 >= bar.reach * total.bytes_before && total.recall.is_whole();
            rows.push(format!(
                "| {} | {} saved | {} of {} | ≥ {} %, all | {} |",
                bar.name,
                per_mille(saved, total.bytes_before),
                total.recall.n_kept,
                total.recall.n_facts,
                bar.reach / 10,
                verdict(is_met),
            ));
        }
        rows.push(format!(
            "| facts found in all recordings | {} | | 100 % | {} |",
            all.found.shown(),
            verdict(all.found.is_whole()),
        ));
        let (p50, p99) = (median(&mut all.times), percentile(&mut all.times, 99));
        for (name, took, max) in [("p50", p50, P50_MAX), ("p99", p99, P99_MAX)] {
            rows.push(format!(
                "| clean-up, rules and credentials, up to 64 kB, {name} | {took:.1?} | | ≤ {max:?} | {} |",
                verdict(took <= max),
            ));
        }
        rows
    }
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
