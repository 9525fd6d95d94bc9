//! How late a hostile call ends: each guest that never ends by itself, with the default bound of memory, one at a time on an
//! otherwise idle engine. The promise is 100 ms after the limit; tests only check that the end comes at all.
//!
//! Prints one row of the figures table.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]

use std::time::{Duration, Instant};

use zeph_core::limit::CallLimits;

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../it/hostile/harness.rs"]
mod harness;

use harness::{Call, ENDLESS, PATIENT, Pool, engine, load};

/// What each call may use: the time it must end after, and as much memory as the default gives, for bulk operations to fill.
const LIMITS: CallLimits = CallLimits {
    wall_clock: Duration::from_millis(300),
    memory_bytes: 256 << 20,
    ..ENDLESS
};

/// Guests that never end once they are called, and their variants.
const CALLED: [(&str, &str); 6] = [
    ("spin", "abcdefgh"),
    ("spin_realloc", "a"),
    ("spin_drop", "a"),
    ("spin_post", "a"),
    ("wait", "abcd"),
    ("flood", "abcdefgh"),
];

/// Guests that never end while they are loaded.
const LOADED: [&str; 3] = ["spin_start", "spin_list", "spin_post_list"];

const N_ROUNDS: usize = 3;

#[tokio::main]
async fn main() {
    let engine = engine(Pool::Prepared);
    let mut late: Vec<(Duration, String)> = Vec::new();
    for round in 0..=N_ROUNDS {
        for (guest, variants) in CALLED {
            let plugin = load(&engine, guest, PATIENT).await.unwrap();
            for variant in variants.chars() {
                let say = variant.to_string();
                let started = Instant::now();
                let ended = Call::new(&plugin, &say, LIMITS).run().await;
                let took = started.elapsed();
                assert_eq!(
                    ended.unwrap_err().category.label(),
                    "timeout",
                    "{guest} {say}"
                );
                late.push((
                    took.saturating_sub(LIMITS.wall_clock),
                    format!("{guest} {say}"),
                ));
            }
        }
        for guest in LOADED {
            let started = Instant::now();
            drop(load(&engine, guest, LIMITS).await.unwrap_err());
            let took = started.elapsed();
            late.push((took.saturating_sub(LIMITS.wall_clock), guest.to_owned()));
        }
        // The first round compiles and faults the pool in.
        if round == 0 {
            late.clear();
        }
    }
    late.sort();
    let n_calls = late.len();
    let (median, _) = &late[n_calls / 2];
    let (worst, which) = &late[n_calls - 1];
    let is_met = *worst <= Duration::from_millis(100);
    println!(
        "| {n_calls} hostile calls that never end, after their limit | p50 {median:.1?}, worst {worst:.1?} (`{which}`) | worst \
         ≤ 100 ms | {} |",
        if is_met { "met" } else { "missed" }
    );
}
