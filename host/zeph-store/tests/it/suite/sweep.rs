//! What the store forgets by itself: old and too many audit rows, never those of calls that run, and never at the cost of a call.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use zeph_core::id::ConversationId;
use zeph_store::{NewSession, Retention, Store};

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

/// Now, by the clock of a server of the store.
#[expect(
    clippy::disallowed_methods,
    reason = "what is old is so by the clock of the server"
)]
fn clock_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// Now, for the store, is always the same.
fn now_ms() -> i64 {
    NOW_MS
}

const TEN_ROWS: Retention = Retention {
    outputs: Duration::ZERO,
    conversations: Duration::ZERO,
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
    store.retain(TEN_ROWS, clock_ms).await.unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..30 {
        let store = store.clone();
        callers.spawn(async move { calls(&store, 100, clock_ms(), false).await });
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

/// Conversations used so many days ago, with an agent and without, after a sweep: the ages of those that are left.
async fn check_conversations<D: Database>(days: u32, with_agent: &[i64], others: &[i64]) {
    let database = D::fresh();
    let store = database.open();
    let mut all = Vec::new();
    for age in [0, 6, 8, 30, 89, 91, 400] {
        let at_ms = NOW_MS - age * DAY_MS;
        let (agent, other) = (ConversationId::new(), ConversationId::new());
        let session = NewSession {
            conversation: agent,
            title: "mend the test".to_owned(),
            directory: "/a".to_owned(),
            provider: "one".to_owned(),
            model: "model".to_owned(),
        };
        store.begin_session(session, at_ms).await.unwrap();
        store.put_overflow(agent, vec![1], at_ms).await.unwrap();
        store.begin_conversation(other, at_ms).await.unwrap();
        all.push((age, agent, other));
    }
    let retention = Retention {
        outputs: DAY * 7,
        conversations: DAY * days,
        ..Retention::default()
    };
    let swept = store.sweep(retention, NOW_MS).await.unwrap();
    assert_eq!(swept.n_overflow, 5);
    let listed = store.list_conversations(100).await.unwrap();
    let is_there = |id: ConversationId| listed.iter().any(|one| one.id == id);
    let left = |all: Vec<(i64, ConversationId)>| {
        let left = all.into_iter().filter(|(_, id)| is_there(*id));
        left.map(|(age, _)| age).collect::<Vec<_>>()
    };
    let of_agents = all.iter().map(|(age, agent, _)| (*age, *agent));
    assert_eq!(left(of_agents.collect()), with_agent, "{days} days");
    let of_others = all.iter().map(|(age, _, other)| (*age, *other));
    assert_eq!(left(of_others.collect()), others, "{days} days");
    assert!(store.sweep(retention, NOW_MS).await.unwrap().is_nothing());
}

async fn conversations_with_an_agent_have_a_time_of_their_own<D: Database>() {
    check_conversations::<D>(90, &[0, 6, 8, 30, 89], &[0, 6]).await;
    check_conversations::<D>(0, &[0, 6, 8, 30, 89, 91, 400], &[0, 6]).await;
    // While an output of it is kept, it stays.
    check_conversations::<D>(1, &[0, 6], &[0, 6]).await;
}

async fn a_clock_that_is_ahead_deletes_nothing<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let now_ms = clock_ms();
    let kept = ConversationId::new();
    for age in [9, 5, 2] {
        let at_ms = now_ms - age * DAY_MS;
        store.put_overflow(kept, vec![1], at_ms).await.unwrap();
    }
    let retention = Retention {
        audit: DAY * 90,
        ..Retention::of_outputs(DAY * 7)
    };
    calls(&store, 3, now_ms - 3 * DAY_MS, false).await;
    let ahead_ms = now_ms + 100 * DAY_MS;
    calls(&store, 1, ahead_ms, false).await;
    // The oldest may be past its time, by what is known of it.
    store.sweep_now(retention, ahead_ms).await.unwrap();
    assert_eq!(store.outputs(kept, 9).await.unwrap().len(), 2);
    assert_eq!(n_rows(&store).await, 4);
}

on_every_database! {
    any: [
        conversations_with_an_agent_have_a_time_of_their_own,
        a_clock_that_is_ahead_deletes_nothing,
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
