//! Many sessions in one host: 64 of them, 16 calls at a time, for a minute. No call waits long for others, and nothing grows.
//!
//! Prints its rows of the figures table. A number of seconds may follow, to see that it runs: `cargo bench --bench sessions -- 5`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

#[path = "echo/host.rs"]
mod host;

use tokio::task::JoinSet;

use host::{call, session, start};

const N_SESSIONS: usize = 64;
const N_AT_ONCE: usize = 16;
const MINUTE: Duration = Duration::from_secs(60);

/// The part of the time after which memory is looked at first: pools and caches are filled by then.
const WARM: u32 = 6;

#[tokio::main]
async fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok());
    let length = seconds.map_or(MINUTE, Duration::from_secs);
    let dir = tempfile::tempdir().expect("a directory");
    let host = start(dir.path()).await;
    let mut sessions = Vec::new();
    for _ in 0..N_SESSIONS {
        sessions.push(session(&host).await);
    }
    let sessions = Arc::new(sessions);
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..N_AT_ONCE {
        let sessions = Arc::clone(&sessions);
        callers.spawn(async move {
            // Short numbers, so that they weigh little beside what the host holds.
            let mut took: Vec<u32> = Vec::new();
            let mut idx = caller;
            while started.elapsed() < length {
                let begun = Instant::now();
                call(&sessions[idx % N_SESSIONS]).await;
                took.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX));
                idx += N_AT_ONCE + 1;
            }
            took
        });
    }
    tokio::time::sleep(length / WARM).await;
    let before = resident_bytes();
    tokio::time::sleep(length.saturating_sub(started.elapsed())).await;
    let after = resident_bytes();
    let mut took: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    took.sort_unstable();
    let micros = |idx: usize| Duration::from_micros(took[idx].into());
    let (p50, p99) = (micros(took.len() / 2), micros(took.len() * 99 / 100));
    let ratio = p99.as_secs_f64() / p50.as_secs_f64();
    println!(
        "| {N_SESSIONS} sessions, {N_AT_ONCE} calls at a time, {length:?}: {} calls | p50 {p50:.1?}, p99 {p99:.1?} | p99 ≤ 10 × p50 | {ratio:.1} {} |",
        took.len(),
        verdict(ratio <= 10.0)
    );
    println!(
        "| memory meanwhile, after {:.1?} and after {length:?} | {} MB, {} MB | no growth (≤ 1.1 ×) | {} |",
        length / WARM,
        before / 1_000_000,
        after / 1_000_000,
        verdict(after <= before + before / 10)
    );
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Resident memory of this process, as the kernel counts it.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("a number") * 1024
}
