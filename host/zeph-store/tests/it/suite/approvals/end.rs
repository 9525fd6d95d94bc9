//! What ends by itself: requests nobody answers, approvals nobody uses, and what belongs to a conversation that is gone.

use serde_json::json;
use zeph_core::id::ConversationId;
use zeph_core::lifetime::Lifetime;
use zeph_store::{ApprovalAsker, Owner, Retention};

use super::{DAY_MS, approved, ask, ask_as, ask_at, bound, call, n_waiting, take, take_at};
use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, agreement};

async fn a_request_waits_a_week<D: Database>() {
    // Days later: does it wait?
    for (later_ms, waits) in [(0, true), (7 * DAY_MS, true), (7 * DAY_MS + 1, false)] {
        let database = D::fresh();
        let store = database.open();
        let conversation = ConversationId::new();
        let request = ask(&store, conversation).await;
        let now_ms = NOW_MS + later_ms;
        let found = store.approval_request(request.id, now_ms).await.unwrap();
        assert_eq!(found.is_some(), waits, "{later_ms}");
        let listed = store.list_requests(None, now_ms).await.unwrap();
        assert_eq!(!listed.is_empty(), waits, "{later_ms}");
        let approved = store.approve(request.id, Lifetime::Once, agreement(), now_ms);
        assert_eq!(approved.await.unwrap().is_some(), waits, "{later_ms}");
    }
}

async fn an_approval_for_once_waits_a_day_and_the_others_for_good<D: Database>() {
    use Lifetime::{Always, Once, Session};
    let cases = [
        (Once, DAY_MS, true),
        (Once, DAY_MS + 1, false),
        (Session, 400 * DAY_MS, true),
        (Always, 400 * DAY_MS, true),
    ];
    for (lifetime, later_ms, counts) in cases {
        let database = D::fresh();
        let store = database.open();
        let conversation = ConversationId::new();
        approved(&store, conversation, lifetime).await;
        let now_ms = NOW_MS + later_ms;
        let listed = store.list_approvals(now_ms).await.unwrap();
        assert_eq!(!listed.is_empty(), counts, "{lifetime:?} {later_ms}");
        let taken = take_at(&store, &call(), conversation, now_ms).await;
        assert_eq!(taken.is_some(), counts, "{lifetime:?} {later_ms}");
    }
}

async fn a_sweep_takes_what_has_ended_and_nothing_else<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (one, two) = (ConversationId::new(), ConversationId::new());
    approved(&store, one, Lifetime::Once).await;
    approved(&store, one, Lifetime::Always).await;
    approved(&store, two, Lifetime::Once).await;
    ask(&store, one).await;
    ask_at(&store, call(), two, NOW_MS + DAY_MS).await;
    let late_ms = NOW_MS + 7 * DAY_MS + 1;
    let swept = store.sweep(Retention::default(), late_ms).await.unwrap();
    // The approval for always had replaced the first one for once.
    assert_eq!(swept.n_approvals, 2);
    assert_eq!(store.list_requests(None, late_ms).await.unwrap().len(), 1);
    assert_eq!(store.list_approvals(late_ms).await.unwrap().len(), 1);
}

async fn the_oldest_requests_make_room<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let quiet = ConversationId::new();
    let kept = ask_at(&store, call(), quiet, NOW_MS - DAY_MS).await;
    let loud = ConversationId::new();
    let numbered = |n: i64| bound(json!({ "command": format!("rm {n}") }));
    for n in 0..150 {
        ask_at(&store, numbered(n), loud, NOW_MS + n).await;
    }
    // One that asks without end pushes out its own questions only.
    let listed = store.list_requests(Some(loud), NOW_MS).await.unwrap();
    assert_eq!(listed.len(), 100);
    assert_eq!(listed[0].call.arguments, r#"{"command":"rm 149"}"#);
    assert_eq!(listed[99].call.arguments, r#"{"command":"rm 50"}"#);
    let found = store.approval_request(kept.id, NOW_MS).await.unwrap();
    assert_eq!(found, Some(kept.clone()));
    for n in 0..901 {
        ask_at(&store, numbered(n), ConversationId::new(), NOW_MS + n).await;
    }
    assert_eq!(n_waiting(&store).await, 1_000);
    assert_eq!(store.approval_request(kept.id, NOW_MS).await.unwrap(), None);
}

async fn what_one_caller_asks_for_leaves_that_of_others<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let of = |caller: &str| ApprovalAsker {
        conversation: ConversationId::new(),
        caller: Owner::named(Some(caller)),
    };
    let kept = ask_as(&store, call(), of("ann"), NOW_MS - DAY_MS).await;
    // Each in a conversation of its own.
    let mut newest = None;
    for n in 0..1_001 {
        newest = Some(ask_as(&store, call(), of("eve"), NOW_MS + n).await);
    }
    assert_eq!(n_waiting(&store).await, 1_000);
    for request in [kept, newest.unwrap()] {
        let found = store.approval_request(request.id, NOW_MS).await.unwrap();
        assert_eq!(found, Some(request));
    }
}

async fn a_conversation_takes_its_own_along<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (own, other) = (ConversationId::new(), ConversationId::new());
    approved(&store, own, Lifetime::Session).await;
    approved(&store, other, Lifetime::Once).await;
    let waiting = bound(json!({ "command": "rm x" }));
    ask_at(&store, waiting, own, NOW_MS).await;
    assert_eq!(store.forget_approvals(own).await.unwrap(), 2);
    assert_eq!(store.forget_approvals(own).await.unwrap(), 0);
    assert_eq!(take(&store, own).await, None);
    store.delete_conversation(other).await.unwrap();
    assert_eq!(store.list_approvals(NOW_MS).await.unwrap(), []);

    approved(&store, own, Lifetime::Always).await;
    ask(&store, own).await;
    store.delete_conversation(own).await.unwrap();
    assert_eq!(n_waiting(&store).await, 0);
    assert!(take(&store, other).await.is_some());
}

on_every_database! {
    any: [
        a_request_waits_a_week,
        an_approval_for_once_waits_a_day_and_the_others_for_good,
        a_sweep_takes_what_has_ended_and_nothing_else,
        the_oldest_requests_make_room,
        what_one_caller_asks_for_leaves_that_of_others,
        a_conversation_takes_its_own_along,
    ],
    lasting: [],
}
