//! Calls that fail for a moment are made again, as often as the operator allows.

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::product::Product;
use crate::running::Running;

/// Without waits, so that nothing takes long.
const AT_ONCE: [&str; 6] = [
    "--allow",
    "*",
    "--set",
    "tools.retry.base_ms=0",
    "--set",
    "tools.max_tool_calls_per_session=1",
];

fn product() -> Product {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    let directory = format!("{}:read+write+create", product.work.display());
    let granted = product.run(&["plugin", "grant", "hostile", "--dir", &directory]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    product
}

/// One call that fails twice as `category`: its answer, its record, and how often the guest was called.
fn called(tool: &str, more: Value, args: &[&str]) -> (Value, Value, usize) {
    let product = product();
    let mut params = json!({"path": product.work.join("count"), "fails": 2});
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    let line = json!({"id": 1, "tool": tool, "params": params}).to_string();
    let answer = product.answers(args, line + "\n").remove(0);
    let mut records = product.run(&["audit", "query", "--json"]).json_lines();
    assert_eq!(records.len(), 1, "{records:#?}");
    (answer, records.remove(0), product.read("count").len())
}

#[test]
fn a_call_that_fails_for_a_moment_is_made_again_and_counts_once() {
    for category in ["rate_limited", "server_error", "network_error", "timeout"] {
        let (answer, record, n) = called("flaky", json!({"category": category}), &AT_ONCE);
        assert_eq!(answer["status"], "ok", "{answer}");
        assert_eq!(answer["text"], "attempt 3", "{answer}");
        assert_eq!((&record["attempts"], n), (&json!(3), 3), "{record}");
        assert_eq!(record["result"]["type"], "success", "{record}");
    }
}

#[test]
fn other_failures_other_tools_and_long_waits_end_a_call_at_once() {
    let categories = [
        "invalid_parameters",
        "type_mismatch",
        "policy_blocked",
        "permanent_failure",
        "cancelled",
    ];
    let cases = categories.map(|category| ("flaky", json!({"category": category})));
    let others = [
        ("flaky_once", json!({"category": "server_error"})),
        (
            "flaky",
            json!({"category": "rate_limited", "retry_after_ms": 60_000}),
        ),
    ];
    for (tool, more) in cases.into_iter().chain(others) {
        let (answer, record, n) = called(tool, more.clone(), &AT_ONCE);
        assert_eq!(answer["error"]["category"], more["category"], "{answer}");
        assert_eq!((&record["attempts"], n), (&Value::Null, 1), "{record}");
    }
    let once = [&AT_ONCE[..], &["--set", "tools.retry.max_attempts=1"]].concat();
    let (_, _, n) = called("flaky", json!({"category": "server_error"}), &once);
    assert_eq!(n, 1);
}

#[test]
fn a_call_that_goes_on_failing_says_how_often_it_was_made() {
    let more = json!({"category": "network_error", "fails": 9});
    let (answer, record, n) = called("flaky", more, &AT_ONCE);
    assert_eq!(answer["error"]["category"], "network_error", "{answer}");
    assert_eq!((&record["attempts"], n), (&json!(3), 3), "{record}");
    let output = answer["text"].as_str().unwrap();
    assert!(output.contains("attempt 3 fails"), "{output}");
    assert!(
        output.contains("the system made the call 3 times"),
        "{output}"
    );
    assert!(!output.contains("will retry"), "{output}");
}

#[test]
fn a_wait_ends_with_the_call() {
    let product = product();
    let args = [
        "--allow",
        "*",
        "--set",
        "tools.retry.base_ms=60000",
        "--set",
        "tools.retry.budget_secs=0",
    ];
    let limits = [
        "--set",
        "tools.retry.max_ms=60000",
        "--set",
        "limits.wall_clock_secs=600",
    ];
    let mut host = Running::start(&product, &[&args[..], &limits].concat());
    host.ready();
    let count = product.work.join("count");
    host.begin(
        "flaky",
        &json!({"path": count, "fails": 2, "category": "server_error"}),
    );
    // The wait begins right after it is written.
    while !count.metadata().is_ok_and(|count| count.len() > 0) {
        std::thread::yield_now();
    }
    host.cancel();
    let answer = host.answer();
    assert_eq!(answer["status"], "cancelled", "{answer}");
    assert_eq!(product.read("count").len(), 1);
}
