//! How long deciding takes beside a thousand learned sequences, with the fifty calls before it in the window.
//!
//! `cargo bench -p zeph-core --bench trajectory`. The bound to keep is 0.3 ms in the middle; the numbers of other profiles say nothing.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zeph_core::argument::{Arguments, Parameters};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::command::{CommandLine, SimpleCommand, Wraps};
use zeph_core::id::{CallId, ToolName};
use zeph_core::policy::{
    Governance, LearnedCause, MappedCall, Mode, Policy, Sequence, SequenceOrigin, SequenceSet,
    SessionFacts, TrajectoryFacts, authorise, words_of,
};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

const N_CALLS: usize = 2_000;
const N_SEQUENCES: usize = 1_000;
const N_WINDOW: usize = 49;

/// What a decision may take, half of the time.
const REACH: Duration = Duration::from_micros(300);

fn main() -> Result<(), Box<dyn Error>> {
    // Sequences that share all words but one with the calls, and sequences whose words are all in the window.
    measure(
        "a decision beside 1,000 learned sequences, near misses",
        |n| {
            format!(
                "bash cargo build --package {n} bash cargo test --package crate-{}",
                n + 50
            )
        },
    )?;
    measure(
        "a decision beside 1,000 learned sequences, every word in the window",
        |n| {
            format!(
                "bash cargo test --package crate-{} bash cargo build --package crate-49",
                n % 49
            )
        },
    )
}

fn measure(label: &str, sequence: impl Fn(usize) -> String) -> Result<(), Box<dyn Error>> {
    let sequences = (0..N_SEQUENCES).map(|n| {
        let words: Vec<String> = sequence(n).split(' ').map(str::to_owned).collect();
        let origin = SequenceOrigin::Learned {
            id: i64::try_from(n).unwrap_or_default(),
            cause: LearnedCause::Failed,
            call: CallId::new(),
        };
        Sequence::new(&words, Mode::Deny, origin)
    });
    let set = SequenceSet::new(sequences.collect::<Result<_, _>>()?);
    let policy = Policy {
        governance: Governance {
            blocks_risky: true,
            similarity_threshold: 0.95,
            ..Governance::default()
        },
        ..Policy::default()
    };
    let window = (0..N_WINDOW).map(|n| {
        let call = call("build", n)?;
        Ok(Arc::new(
            set.map(&words_of(&call, Some(&|word| set.knows(word)))),
        ))
    });
    let window = window.collect::<Result<Vec<Arc<MappedCall>>, Box<dyn Error>>>()?;
    let mut times = Vec::with_capacity(N_CALLS);
    for _ in 0..N_CALLS {
        let call = call("test", N_WINDOW)?;
        let started = Instant::now();
        let mapped = set.map(&words_of(&call, Some(&|word| set.knows(word))));
        let facts = SessionFacts {
            trajectory: Some(TrajectoryFacts {
                sequences: &set,
                window: &window,
                call: &mapped,
                near: None,
                has_compared: false,
            }),
            ..SessionFacts::default()
        };
        black_box(authorise(&policy, &facts, call));
        times.push(started.elapsed());
    }
    report(label, times)
}

fn report(label: &str, mut times: Vec<Duration>) -> Result<(), Box<dyn Error>> {
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let met = if p50 <= REACH { "met" } else { "missed" };
    writeln!(
        io::stdout(),
        "| {label} | p50 {p50:.1?}, p99 {p99:.1?} | p50 ≤ {REACH:?} | {met} |"
    )?;
    Ok(())
}

/// `cargo WORD --package crate-N --all-features`.
fn call(word: &str, n: usize) -> Result<ResolvedCall, Box<dyn Error>> {
    let words = [word, "--package", &format!("crate-{n}"), "--all-features"];
    let text = format!("cargo {}", words.join(" "));
    let Value::Object(values) = json!({ "command": text }) else {
        return Err("arguments are an object".into());
    };
    let command = SimpleCommand {
        name: "cargo".to_owned(),
        arguments: words.map(str::to_owned).to_vec(),
        is_literal: true,
        holes: Vec::new(),
        wraps: Wraps::Nothing,
    };
    Ok(ResolvedCall {
        frame: CallFrame::alone(),
        tool: Tool {
            name: ToolName::new("bash")?,
            title: None,
            description: String::new(),
            parameters: Parameters::new(json!({"type": "object"}))?,
            output: None,
            kind: ToolKind::Execute,
            annotations: Annotations::default(),
            backend: Backend::Shell,
        },
        arguments: Arguments {
            values,
            notes: Vec::new(),
        },
        paths: Vec::new(),
        command: Some(CommandLine {
            text,
            commands: vec![command],
            ..CommandLine::default()
        }),
        can_change: true,
        files: FileFacts::default(),
    })
}
