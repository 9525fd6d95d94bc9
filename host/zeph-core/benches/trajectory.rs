//! How long deciding takes beside a thousand learned sequences, with the fifty calls before it in the window.
//!
//! `cargo bench -p zeph-core --bench trajectory`. The bound to keep is 0.3 ms in the middle; the numbers of other profiles say nothing.

mod timing;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use zeph_core::call::ResolvedCall;
use zeph_core::id::CallId;
use zeph_core::policy::{
    Governance, LearnedCause, MappedCall, Mode, Policy, Sequence, SequenceOrigin, SequenceSet,
    SessionFacts, TrajectoryFacts, authorise, words_of,
};

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
    let decide = |call: ResolvedCall| {
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
        authorise(&policy, &facts, call)
    };
    timing::measure(label, REACH, &call("test", N_WINDOW)?, (decide, |_| true))
}

/// `cargo WORD --package crate-N --all-features`.
fn call(word: &str, n: usize) -> Result<ResolvedCall, Box<dyn Error>> {
    let package = format!("crate-{n}");
    let words = ["cargo", word, "--package", &package, "--all-features"];
    timing::call(words.join(" "), vec![timing::command(&words)])
}
