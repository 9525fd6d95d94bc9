//! Recorded outputs, changed as terminals, log collectors and parallel runs change them: a failure stays one, an error stays.

use std::path::Path;

use zeph_strategies::error_lines;

use super::invariants::{FILTERS, check, text_of};
use crate::BUILTIN;
use crate::command::tests::line;
use crate::rule::{Origin, read};
use crate::sanitize::clean;

/// Positions an error is put at, in each output.
const N_POSITIONS: usize = 1_000;

/// As above, in an output of more than 16 kB: so that the test takes seconds.
const N_POSITIONS_OF_LONG: usize = 200;

/// Most error lines that the filters promise to show of one output.
const ERRORS_MAX: usize = 200;

struct Recorded {
    name: String,
    command: String,
    exit_code: i32,
    raw: Vec<u8>,
}

/// Every case that has a file of its own.
fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filters/rules");
    let mut all = Vec::new();
    for (name, text) in BUILTIN {
        for case in read(name, text, &Origin::Builtin).cases {
            let Some(path) = case.input_file else {
                continue;
            };
            all.push(Recorded {
                raw: std::fs::read(folder.join(&path)).expect("a case can be read"),
                name: path,
                command: case.command,
                exit_code: case.exit_code,
            });
        }
    }
    assert!(all.len() > 100);
    all
}

/// A small deterministic generator (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).expect("it is below a usize")
    }
}

type Change = fn(&[&str], &[&str], &mut Dice) -> String;

/// How an output is changed; the second one is of another command.
const CHANGES: [(&str, Change); 7] = [
    ("coloured", |lines, _, _| {
        joined(lines, |line| format!("\u{1b}[1;31m{line}\u{1b}[0m"))
    }),
    ("of Windows", |lines, _, _| {
        joined(lines, |line| format!("{line}\r"))
    }),
    ("with times", |lines, _, _| {
        joined(lines, |line| format!("[12:00:01] {line}"))
    }),
    ("with names of services", |lines, _, _| {
        joined(lines, |line| format!("web-1  | {line}"))
    }),
    ("interleaved", |lines, others, _| {
        let others = others.iter().chain(std::iter::repeat(&""));
        let pairs = lines.iter().zip(others);
        pairs.map(|(a, b)| format!("{a}\n{b}\n")).collect()
    }),
    ("with every third line gone", |lines, _, dice| {
        let kept: Vec<&str> = lines
            .iter()
            .filter(|_| dice.below(3) > 0)
            .copied()
            .collect();
        joined(&kept, str::to_owned)
    }),
    ("with letters changed", |lines, _, dice| {
        joined(lines, |line| match dice.below(4) {
            0 => line.replace(['e', 'A', ':'], "#"),
            _ => line.to_owned(),
        })
    }),
];

fn joined(lines: &[&str], mut change: impl FnMut(&str) -> String) -> String {
    lines.iter().map(|line| change(line) + "\n").collect()
}

#[test]
fn a_changed_failure_keeps_every_promise() {
    let all = recorded();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for recorded in all.iter().filter(|recorded| recorded.exit_code != 0) {
        let text = String::from_utf8_lossy(&recorded.raw);
        let lines: Vec<&str> = text.lines().collect();
        let other = &all[dice.below(all.len())];
        let others = String::from_utf8_lossy(&other.raw);
        let others: Vec<&str> = others.lines().collect();
        for (how, change) in CHANGES {
            let changed = change(&lines, &others, &mut dice);
            println!("{} {how}, beside {}", recorded.name, other.name);
            check(
                &FILTERS,
                &recorded.command,
                recorded.exit_code,
                changed.as_bytes(),
            );
        }
    }
}

#[test]
fn an_error_put_at_a_thousand_places_survives() {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    for recorded in recorded() {
        let text = clean(&recorded.raw).text.into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let n_own = error_lines(&text).count();
        // What is beyond the promise is counted, not shown.
        let n_at_once = ERRORS_MAX.saturating_sub(n_own).max(1);
        let n_positions = match recorded.raw.len() {
            0..16_000 => N_POSITIONS,
            _ => N_POSITIONS_OF_LONG,
        };
        let mut n_put = 0;
        while n_put < n_positions && n_own < ERRORS_MAX {
            let mut places: Vec<usize> = (0..n_at_once)
                .map(|_| dice.below(lines.len() + 1))
                .collect();
            places.sort_unstable();
            let raw = with_errors(&lines, &places);
            let command = line(&recorded.command, &[]);
            let (shown, _) = text_of(&FILTERS, &command, recorded.exit_code, raw.as_bytes());
            for (error_idx, at) in places.iter().enumerate() {
                let error = format!("error: number {error_idx} put in\n");
                assert!(
                    shown.contains(&error),
                    "{}: the error at line {at} is lost",
                    recorded.name
                );
            }
            n_put += n_at_once;
        }
    }
}

/// The lines with a numbered error before each of the lines `places`, which ascend.
fn with_errors(lines: &[&str], places: &[usize]) -> String {
    let mut text = String::new();
    let mut errors = places.iter().enumerate().peekable();
    for line_idx in 0..=lines.len() {
        while let Some((error_idx, _)) = errors.next_if(|(_, at)| **at <= line_idx) {
            text.push_str(&format!("error: number {error_idx} put in\n"));
        }
        if let Some(line) = lines.get(line_idx) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
