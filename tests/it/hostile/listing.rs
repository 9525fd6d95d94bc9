//! What misbehaves before it has a tool to call: in start code, in its list of tools, in what it declares.

use zeph_core::limit::CallLimits;
use zeph_engine::LoadError;

use super::harness::{ENDLESS, PATIENT, Pool, SHORT, all_threads_are_free, engine, good, load};

const BROKE: &str = "broke its contract";

/// The guest, its limits, and what the reason must say: with a pool, and without one.
const UNLOADABLE: [(&str, CallLimits, &str, &str); 20] = [
    ("spin_start", SHORT, "limits.", "limits."),
    ("spin_list", SHORT, "limits.", "limits."),
    ("spin_post_list", SHORT, "limits.", "limits."),
    (
        "memory_declared",
        PATIENT,
        "limits.memory_bytes",
        "limits.memory_bytes",
    ),
    (
        "memory_64",
        PATIENT,
        "exceeds the limit",
        "limits.memory_bytes",
    ),
    (
        "memory_many",
        PATIENT,
        "exceeds the",
        "memory count too high",
    ),
    ("memory_shared", PATIENT, "threads", "threads"),
    (
        "table_declared",
        PATIENT,
        "exceeds the limit",
        "limits.table_elements",
    ),
    ("table_many", PATIENT, "exceeds the", "table count too high"),
    ("list_many", PATIENT, "100000 tools", "100000 tools"),
    (
        "list_twice",
        PATIENT,
        "lists `go` twice",
        "lists `go` twice",
    ),
    ("list_endless", PATIENT, BROKE, BROKE),
    (
        "list_name",
        PATIENT,
        "not a valid tool name",
        "not a valid tool name",
    ),
    ("list_latin", PATIENT, BROKE, BROKE),
    ("list_long", PATIENT, "the limit is", "the limit is"),
    (
        "list_error",
        PATIENT,
        "cannot list its tools",
        "cannot list its tools",
    ),
    ("list_kind", PATIENT, BROKE, BROKE),
    ("schema_nested", PATIENT, "not valid JSON", "not valid JSON"),
    (
        "schema_remote",
        PATIENT,
        "only places in itself",
        "only places in itself",
    ),
    ("schema_doubling", PATIENT, "its schema", "its schema"),
];

/// Whether a guest is in the table above.
pub(super) fn is_tried(guest: &str) -> bool {
    UNLOADABLE.iter().any(|(name, ..)| *name == guest)
}

async fn each_is_refused_with_a_reason(pool: Pool) {
    let engine = engine(pool);
    let fine = load(&engine, "good", PATIENT).await.unwrap();
    for (guest, limits, pooled, alone) in UNLOADABLE {
        let words = if pool == Pool::Prepared {
            pooled
        } else {
            alone
        };
        match load(&engine, guest, limits).await {
            Ok(_) => assert!(words.is_empty(), "{guest} was loaded"),
            Err(error) => check(guest, &error, words),
        }
        good(&fine).await;
    }
    all_threads_are_free(&engine).await;
}

/// The reason with its causes has the words, and nothing that moves a cursor or fills a screen.
#[track_caller]
fn check(guest: &str, error: &LoadError, words: &str) {
    let mut reason = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    assert!(
        !words.is_empty() && reason.contains(words),
        "{guest}: {reason}"
    );
    assert!(reason.len() < 8_000, "{guest}: {} bytes", reason.len());
    let is_plain = |character: char| !character.is_control() || character == '\n';
    assert!(reason.chars().all(is_plain), "{guest}: {reason:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_refused_with_a_reason_with_a_pool() {
    each_is_refused_with_a_reason(Pool::Prepared).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_refused_with_a_reason_without_one() {
    each_is_refused_with_a_reason(Pool::None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_nobody_waits_for_ends() {
    let engine = engine(Pool::Prepared);
    let fine = load(&engine, "good", PATIENT).await.unwrap();
    for guest in ["spin_start", "spin_list", "spin_post_list"] {
        // Loads that go on for a minute each: more of them than threads.
        for _ in 0..3 {
            let given_up = std::time::Duration::from_millis(50);
            let load = tokio::time::timeout(given_up, load(&engine, guest, ENDLESS));
            assert!(load.await.is_err(), "{guest}");
        }
        good(&fine).await;
    }
    all_threads_are_free(&engine).await;
}
