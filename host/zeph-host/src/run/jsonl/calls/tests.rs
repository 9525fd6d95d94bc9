use std::num::NonZeroUsize;

use serde_json::{Value, json};
use zeph_config::Flags;
use zeph_core::principal::Principal;

use super::{ANSWERS_MAX, JsonLinesCalls, Tally, WAITING_MAX};
use crate::host::{Host, StartOptions};
use crate::run::jsonl::JsonLinesOptions;
use crate::run::jsonl::input::InputItem;
use crate::run::jsonl::request::decode;
use crate::traceless;

/// A host without plugins and without a trace on the disk.
async fn door(jobs: usize, request_bytes_max: usize) -> JsonLinesCalls {
    let config = traceless::config(std::env::temp_dir(), Flags::default());
    let (host, _) = Host::start(config, StartOptions::default()).await.unwrap();
    let session = host.open_session(None, Principal::PROGRAM).await.unwrap();
    let options = JsonLinesOptions {
        jobs: NonZeroUsize::new(jobs).unwrap(),
        request_bytes_max,
        ask: None,
    };
    JsonLinesCalls::new(&host, &session, options)
}

fn take(calls: &mut JsonLinesCalls, number: u64, line: &str) {
    calls.take(InputItem {
        line: number,
        n_bytes: line.len(),
        request: decode(line.as_bytes()),
    });
}

fn answers(calls: &mut JsonLinesCalls) -> Vec<Value> {
    std::iter::from_fn(|| calls.next_answer())
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect()
}

const CALL: &str = r#"{"id":1,"tool":"read_overflow","params":{"id":"x"}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_is_answered_once() {
    let mut calls = door(2, 1000).await;
    take(&mut calls, 1, CALL);
    take(&mut calls, 2, r#"{"tool":"nosuch"}"#);
    take(&mut calls, 3, "{");
    take(
        &mut calls,
        4,
        r#"{"id":{"a":1},"tool":"read_overflow","parms":1}"#,
    );
    calls.start_waiting();
    while calls.can_end() {
        calls.one_end().await;
        calls.start_waiting();
    }
    let answers = answers(&mut calls);
    assert!(calls.is_done());
    let known: Vec<Value> = answers
        .iter()
        .map(|answer| {
            json!([
                answer["id"],
                answer["line"],
                answer["status"],
                answer["error"]["category"]
            ])
        })
        .collect();
    let expect = [
        json!([null, 2, "failed", "tool_not_found"]),
        json!([1, null, "failed", "invalid_parameters"]),
        json!([{ "a": 1 }, null, "failed", "invalid_parameters"]),
        json!([null, 3, "invalid", "invalid_parameters"]),
    ];
    for one in &expect {
        assert!(known.contains(one), "{one} is not in {known:?}");
    }
    assert_eq!(known.len(), expect.len());
    let tally = Tally {
        failed: 3,
        invalid: 1,
        ..Tally::default()
    };
    assert_eq!(calls.tally, tally);
    assert_eq!(tally.to_string(), "4 requests: 3 failed, 1 invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_what_waits_with_that_id() {
    let mut calls = door(1, 1000).await;
    for number in 1..=3 {
        take(&mut calls, number, CALL);
    }
    take(&mut calls, 4, r#"{"id":2,"tool":"read_overflow"}"#);
    take(&mut calls, 5, r#"{"cancel":7}"#);
    assert!(!calls.has_answers());
    take(&mut calls, 6, r#"{"cancel":1}"#);
    let answers = answers(&mut calls);
    assert_eq!(answers.len(), 3);
    assert!(
        answers
            .iter()
            .all(|answer| answer["status"] == "cancelled" && answer["id"] == 1)
    );
    assert_eq!(calls.waiting.len(), 1);

    calls.cancel_all();
    assert_eq!(
        calls.next_answer().map(|line| line.contains("\"id\":2")),
        Some(true)
    );
    assert!(calls.is_done());
    assert_eq!(calls.waiting_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_pauses_while_much_waits() {
    let mut calls = door(1, 1_000_000).await;
    for number in 0..WAITING_MAX as u64 {
        assert!(calls.can_take());
        take(&mut calls, number, CALL);
    }
    assert!(!calls.can_take());

    let mut calls = door(1, CALL.len()).await;
    take(&mut calls, 1, CALL);
    assert!(!calls.can_take(), "as many bytes wait as one line may have");

    let mut calls = door(1, 1000).await;
    for number in 0..ANSWERS_MAX as u64 {
        assert!(calls.can_take());
        take(&mut calls, number, "nonsense");
    }
    assert!(!calls.can_take(), "nobody reads the answers");
    calls.abandon();
    assert!(calls.is_done());
}
