//! Announcements: heard in the same process at once, and never waited for longer than was said.

use std::time::Duration;

use zeph_store::Change;

use crate::database::{Database, on_every_database};

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(600);

async fn an_announcement_is_heard<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut changes = store.changes(LONG).await.unwrap();
    store.announce("tools").await.unwrap();
    while changes.next().await != Change::Announced("tools".into()) {}
}

async fn a_long_topic_is_cut_off<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut changes = store.changes(LONG).await.unwrap();
    store.announce(&"ä".repeat(5_000)).await.unwrap();
    let expected = Change::Announced("ä".repeat(500).into());
    while changes.next().await != expected {}
}

async fn who_hears_nothing_looks<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut changes = store.changes(Duration::from_millis(20)).await.unwrap();
    for _ in 0..3 {
        assert_eq!(changes.next().await, Change::Look);
    }
    // That the store is closed is no reason to spin.
    store.close().await.unwrap();
    for _ in 0..3 {
        assert_eq!(changes.next().await, Change::Look);
    }
}

async fn many_announcements_are_a_reason_to_look<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut changes = store.changes(LONG).await.unwrap();
    for n in 0..1_000 {
        store.announce(&format!("topic {n}")).await.unwrap();
    }
    while changes.next().await != Change::Look {}
    while changes.next().await != Change::Announced("topic 999".into()) {}
}

on_every_database! {
    any: [
        an_announcement_is_heard,
        a_long_topic_is_cut_off,
        who_hears_nothing_looks,
        many_announcements_are_a_reason_to_look,
    ],
    lasting: [],
}
