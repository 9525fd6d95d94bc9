//! What the store forgets by itself: old and too many audit rows, never those of calls that run, and never at the cost of a call.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zeph_core::id::ConversationId;
use zeph_store::{Retention, Store};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, begin, n_rows, success};

const DAY_MS: i64 = 86_400_000;

const DAY: Duration = Duration::from_hours(24);

/// Begins `n` calls, and ends them unless they are to be running.
async fn calls(store: &Store, n: usize, at_ms: i64, is_running: bool) {
    let conversation = ConversationId::new();
    for _ in 0..n {
        let begin = begin("read", conversation, at_ms);
        let call = begin.call_id;
        store.audit_begin(begin).await.unwrap();
        if !is_running {
            store.audit_finish(success(call, at_ms)).await.unwrap();
        }
    }
}

/// A sweep over calls of these ages in days: how many rows are left.
async fn check<D: Database>(retention: Retention, ages: &[i64], is_running: bool, expected: usize) {
    let database = D::fresh();
    let store = database.open();
    for age in ages {
        calls(&store, 1, NOW_MS - age * DAY_MS, is_running).await;
    }
    let swept = store.sweep(retention, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, expected, "{retention:?}");
    assert_eq!(swept.n_audit, ages.len() - expected, "{retention:?}");
    assert!(store.sweep(retention, NOW_MS).await.unwrap().is_nothing());
}

async fn old_rows_and_too_many_rows_go_oldest_first<D: Database>() {
    let of_days = |days: u32| Retention {
        audit: DAY * days,
        ..Retention::default()
    };
    let of_rows = |audit_rows_max| Retention {
        audit_rows_max,
        ..Retention::default()
    };
    check::<D>(of_days(90), &[400, 91, 90, 3, 0], false, 3).await;
    check::<D>(of_days(0), &[4_000, 0], false, 2).await;
    check::<D>(of_rows(3), &[9, 8, 7, 6, 5], false, 3).await;
    check::<D>(of_rows(0), &[9, 8, 7], false, 3).await;
    check::<D>(of_rows(1), &[9; 200], false, 1).await;
    // A call may run for long; a host that died does not keep its row for ever.
    check::<D>(of_rows(1), &[0, 0, 0], true, 3).await;
    check::<D>(of_rows(1), &[2, 2, 0], true, 1).await;
    check::<D>(of_days(1), &[2, 0], true, 1).await;
}

/// Now, for the store, is always the same.
fn now_ms() -> i64 {
    NOW_MS
}

const TEN_ROWS: Retention = Retention {
    outputs: Duration::ZERO,
    audit: Duration::ZERO,
    audit_rows_max: 10,
};

async fn it_sweeps_when_nothing_is_asked_of_it<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    calls(&store, 500, NOW_MS, false).await;
    store.retain(TEN_ROWS, now_ms).await.unwrap();
    let started = Instant::now();
    while n_rows(&store).await > 10 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "it never sweeps"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn it_sweeps_under_load_too<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    store.retain(TEN_ROWS, now_ms).await.unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..30 {
        let store = store.clone();
        callers.spawn(async move { calls(&store, 100, NOW_MS, false).await });
    }
    callers.join_all().await;
    let n_left = n_rows(&store).await;
    assert!(n_left < 2_000, "{n_left}");
}

async fn a_call_that_a_sweep_passed_while_it_ran_goes_with_a_later_one<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let one_row = Retention {
        audit_rows_max: 1,
        ..Retention::default()
    };
    let running = begin("read", ConversationId::new(), NOW_MS);
    let call = running.call_id;
    store.audit_begin(running).await.unwrap();
    calls(&store, 80, NOW_MS, false).await;
    store.sweep(one_row, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 2);
    store.audit_finish(success(call, NOW_MS)).await.unwrap();
    calls(&store, 80, NOW_MS, false).await;
    store.sweep(one_row, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 1);
}

async fn a_host_that_makes_one_call_sweeps_when_it_ends<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    calls(&store, 40, NOW_MS, false).await;
    store.close().await.unwrap();
    for _ in 0..6 {
        let store = database.open();
        store.retain(TEN_ROWS, now_ms).await.unwrap();
        calls(&store, 1, NOW_MS, false).await;
        store.close().await.unwrap();
    }
    assert_eq!(n_rows(&database.open()).await, 10);
}

async fn sums_outlive_a_conversation_that_is_swept_or_deleted<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let output = zeph_store::FilteredOutput {
        rules: vec!["cargo".to_owned()],
        is_shortened: true,
        lines: (10, 1),
        bytes: (100, 10),
        fit: zeph_store::RuleCoverage::Full,
    };
    let (old, deleted) = (ConversationId::new(), ConversationId::new());
    store.count_filtered(old, output.clone(), NOW_MS - 9 * DAY_MS);
    store.count_filtered(deleted, output, NOW_MS);
    let before = store.savings(None).await.unwrap();
    let swept = store
        .sweep(Retention::of_outputs(DAY), NOW_MS)
        .await
        .unwrap();
    assert_eq!(swept.n_conversations, 1);
    store.delete_conversation(deleted).await.unwrap();
    assert_eq!(store.savings(None).await.unwrap(), before);
    assert_eq!(store.savings(Some(deleted)).await.unwrap(), []);
}

on_every_database! {
    any: [
        old_rows_and_too_many_rows_go_oldest_first,
        it_sweeps_when_nothing_is_asked_of_it,
        it_sweeps_under_load_too,
        a_call_that_a_sweep_passed_while_it_ran_goes_with_a_later_one,
        sums_outlive_a_conversation_that_is_swept_or_deleted,
    ],
    lasting: [
        a_host_that_makes_one_call_sweeps_when_it_ends,
    ],
}
