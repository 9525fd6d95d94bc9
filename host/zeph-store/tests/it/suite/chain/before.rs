//! Calls from before the chain: nothing vouches for them, and no call passes for one of them later.

use std::time::Duration;

use zeph_store::{AuditProblemKind, Retention};

use super::{DAY_MS, Log, Tampered, calls};
use crate::database::on_every_database;
use crate::setup::{NOW_MS, n_rows};

const OF_THREE_DAYS: Retention = Retention {
    audit: Duration::from_hours(24 * 3),
    audit_rows_max: 0,
    conversations: Duration::ZERO,
    outputs: Duration::ZERO,
};

/// Inserts a call that names no event, as row `seq`.
fn insert<D: Tampered>(log: &Log<D>, seq: i64, at_ms: i64) {
    let (host, of) = D::HOST;
    log.tamper(&format!(
        "INSERT INTO audit ({host}seq, call_id, begun_at_ms, tool, command, conversation_id)
         VALUES ({of}{seq}, '00000000-0000-7000-8000-000000000000', {at_ms}, 'read', '{{}}', 'x')"
    ));
}

/// A file gives the numbers of rows out again once the newest are gone.
async fn a_number_that_is_used_again_is_no_row_from_before<D: Tampered>() {
    let log = Log::<D>::fresh();
    let old = log.open();
    calls(&old, 5, NOW_MS - 10 * DAY_MS).await;
    old.close().await.unwrap();
    let (store, _) = log.chained().await;
    assert_eq!(log.sound().n_before, 5);
    store.sweep(OF_THREE_DAYS, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 0);
    assert_eq!(log.sound().n_before, 0);
    calls(&store, 3, NOW_MS).await;
    let report = log.sound();
    assert_eq!((report.n_before, report.n_calls), (0, 3));
    insert(&log, 5, NOW_MS);
    assert_eq!(log.problems(), [(AuditProblemKind::Inserted, None)]);
}

async fn no_call_takes_the_place_of_one_that_retention_removed<D: Tampered>() {
    let log = Log::<D>::fresh();
    let old = log.open();
    calls(&old, 2, NOW_MS - 10 * DAY_MS).await;
    calls(&old, 2, NOW_MS).await;
    old.close().await.unwrap();
    let (store, _) = log.chained().await;
    store.sweep(OF_THREE_DAYS, NOW_MS).await.unwrap();
    assert_eq!(log.sound().n_before, 2);
    insert(&log, 1, NOW_MS);
    assert_eq!(log.problems(), [(AuditProblemKind::Inserted, None)]);
    log.tamper("DELETE FROM audit WHERE seq = 1");
    log.sound();
}

async fn what_was_inserted_stays_reported_when_retention_removed_it<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    calls(&store, 3, NOW_MS).await;
    insert(&log, 1_000, 1);
    let kinds = |log: &Log<D>| -> Vec<AuditProblemKind> {
        log.problems().into_iter().map(|(kind, _)| kind).collect()
    };
    assert_eq!(kinds(&log), [AuditProblemKind::Inserted]);
    store.sweep(OF_THREE_DAYS, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 3);
    assert_eq!(kinds(&log), [AuditProblemKind::Changed]);
}

on_every_database! {
    any: [],
    lasting: [
        a_number_that_is_used_again_is_no_row_from_before,
        no_call_takes_the_place_of_one_that_retention_removed,
        what_was_inserted_stays_reported_when_retention_removed_it,
    ],
}
