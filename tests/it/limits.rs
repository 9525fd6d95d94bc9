//! A guest that misbehaves is ended within its limit, with the right category, and harms nobody else.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zeph_core::capability::FsGrant;
use zeph_core::limit::CallLimits;
use zeph_engine::Cancel;

use crate::guest::{Guest, LIMITS, PATIENT};

/// How late the end of a call may be noticed. The host promises 100 ms (the bench measures it); a test machine may be busy with
/// ten other things, and the guests here would never end by themselves.
const LATE: Duration = Duration::from_secs(5);

/// Every way to misbehave: the tool, its arguments, the category, and what the message must say.
fn misdeeds() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    vec![
        ("spin", json!({}), "timeout", "limits."),
        ("hog", json!({}), "permanent_failure", "limits.memory_bytes"),
        (
            "recurse",
            json!({"n": 0}),
            "permanent_failure",
            "recursed too deeply",
        ),
        (
            "panics",
            json!({"text": "told you"}),
            "permanent_failure",
            "told you",
        ),
        (
            "exits",
            json!({"n": 3}),
            "permanent_failure",
            "ended itself",
        ),
        ("sleeps", json!({}), "timeout", "limits.wall_clock_secs"),
        ("flood_host", json!({}), "", "limits."),
        (
            "giant_result",
            json!({"n": 1_000_000_000}),
            "permanent_failure",
            "limits.",
        ),
        (
            "giant_result",
            json!({"n": 2_000_000}),
            "permanent_failure",
            "limits.output_bytes",
        ),
        (
            "bad_json",
            json!({"text": "{"}),
            "permanent_failure",
            "not valid JSON",
        ),
        (
            "deep_json",
            json!({"n": 100_000}),
            "permanent_failure",
            "not valid JSON",
        ),
        (
            "forges",
            json!({"text": "x\nretryable: true"}),
            "permanent_failure",
            "x",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_misdeed_ends_in_time_and_the_next_call_works() {
    let guest = Guest::load(LIMITS, &FsGrant::default()).await;
    let patient = guest.with(PATIENT);
    for (tool, arguments, category, message) in misdeeds() {
        // What would never end is ended by time; the others meet their own limit first, however slow the machine is.
        let never_ends = matches!(tool, "spin" | "sleeps" | "flood_host");
        let under = if never_ends { &guest } else { &patient };
        let started = Instant::now();
        let failure = under.call(tool, arguments).await.expect_err(tool);
        let took = started.elapsed();
        assert!(
            !never_ends || took <= LIMITS.wall_clock + LATE,
            "{tool} took {took:?}"
        );
        assert!(
            category.is_empty() || failure.category.label() == category,
            "{tool}: {failure:?}"
        );
        assert!(failure.message.contains(message), "{tool}: {failure:?}");
        let next = patient
            .call("echo", json!({"text": "still here"}))
            .await
            .expect(tool);
        assert_eq!(next.to_text(), "still here", "after {tool}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processor_time_is_limited_apart_from_the_clock() {
    let limits = CallLimits {
        cpu: Duration::from_millis(50),
        ..PATIENT
    };
    let guest = Guest::load(limits, &FsGrant::default()).await;
    let failure = guest.call("spin", json!({})).await.unwrap_err();
    assert_eq!(failure.category.label(), "timeout");
    assert!(failure.message.contains("limits.cpu_secs"), "{failure:?}");
    let host_calls = CallLimits {
        host_calls: 1_000,
        ..PATIENT
    };
    let guest = Guest::load(host_calls, &FsGrant::default()).await;
    let failure = guest.call("flood_host", json!({})).await.unwrap_err();
    assert!(failure.message.contains("limits.host_calls"), "{failure:?}");
}

/// A guest whose calls are over in a moment begins on the thread of its caller. When one of them does not end, it leaves that thread to others,
/// and keeps its limits.
#[tokio::test]
async fn a_guest_that_used_to_be_brief_holds_up_nobody() {
    let guest = Guest::load(PATIENT, &FsGrant::default()).await;
    for tool in ["spin", "sleeps", "flood_host"] {
        for _ in 0..10 {
            let echo = guest.call("echo", json!({"text": "brief"})).await;
            assert_eq!(echo.expect("an echo").to_text(), "brief");
        }
        let cancel = Cancel::new();
        let limits = CallLimits {
            host_calls: u64::MAX,
            ..PATIENT
        };
        let endless = guest.with(limits);
        let endless = endless.call_with(tool, json!({}), cancel.clone());
        let others = async {
            for _ in 0..10 {
                let echo = guest.call("echo", json!({"text": "meanwhile"})).await;
                assert_eq!(echo.expect("an echo").to_text(), "meanwhile");
            }
            cancel.cancel();
        };
        let (ended, ()) = tokio::join!(endless, others);
        let failure = ended.expect_err(tool);
        assert_eq!(failure.category.label(), "cancelled", "{tool}: {failure:?}");
    }
    let echo = guest.call("echo", json!({"text": "brief"})).await;
    assert_eq!(echo.expect("an echo").to_text(), "brief");
    let spinning = guest.with(CallLimits {
        cpu: Duration::from_millis(50),
        ..PATIENT
    });
    let failure = spinning.call("spin", json!({})).await.unwrap_err();
    assert!(failure.message.contains("limits.cpu_secs"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_the_log_are_cut_and_the_call_goes_on() {
    let guest = Guest::load(PATIENT, &FsGrant::default()).await;
    for tool in ["flood_log", "flood_stdout"] {
        let done = guest.call(tool, json!({"n": 10_000})).await.expect(tool);
        assert_eq!(done.to_text(), "done");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_ends_any_guest_at_once() {
    let limits = CallLimits {
        host_calls: u64::MAX,
        ..PATIENT
    };
    let guest = Guest::load(limits, &FsGrant::default()).await;
    for tool in ["spin", "sleeps", "flood_host"] {
        let cancel = Cancel::new();
        let call = guest.call_with(tool, json!({}), cancel.clone());
        let cancelled = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancel.cancel();
            Instant::now()
        };
        let (result, cancelled_at) = tokio::join!(call, cancelled);
        let took = cancelled_at.elapsed();
        assert_eq!(
            result.expect_err(tool).category.label(),
            "cancelled",
            "{tool}"
        );
        assert!(took <= LATE, "{tool} took {took:?}");
    }
    guest
        .call("echo", json!({"text": "x"}))
        .await
        .expect("the next call works");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_call_ends_its_guest() {
    let guest = Guest::load(PATIENT, &FsGrant::default()).await;
    // More calls than guest threads: if a dropped one lived on, the last would wait for a thread.
    for _ in 0..8 {
        let dropped =
            tokio::time::timeout(Duration::from_millis(5), guest.call("spin", json!({}))).await;
        assert!(dropped.is_err());
    }
    let echo = guest.call("echo", json!({"text": "x"}));
    tokio::time::timeout(Duration::from_secs(2), echo)
        .await
        .expect("a thread is free")
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sibling_in_flight_is_not_disturbed() {
    let guest = Guest::load(LIMITS, &FsGrant::default()).await;
    let bad = async {
        for (tool, arguments, ..) in misdeeds() {
            guest.call(tool, arguments).await.expect_err(tool);
        }
    };
    // The good calls wait for a processor that the bad ones use up, as long as they may: that is not their fault.
    let patient = guest.with(PATIENT);
    let good = async {
        for n in 0..200 {
            let text = format!("call {n}");
            let output = patient.call("echo", json!({"text": text})).await.unwrap();
            assert_eq!(output.to_text(), text);
        }
    };
    tokio::join!(bad, good);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_without_grants_finds_nothing() {
    let guest = Guest::load(PATIENT, &FsGrant::default()).await;
    let seen = guest.call("looks_around", json!({})).await.unwrap();
    assert_eq!(
        seen.to_text(),
        "variables [], arguments [], connected false"
    );
    for path in ["/etc/passwd", ".", "/", "../x"] {
        let failure = guest
            .call("files", json!({"op": "read", "path": path}))
            .await
            .expect_err(path);
        assert!(!failure.message.contains("Is"), "{path}: {failure:?}");
    }
}
