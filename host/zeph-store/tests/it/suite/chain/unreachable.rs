//! Retention while the key of the oldest records is in a keyring that cannot be reached.

use std::fs;
use std::time::Duration;

use zeph_store::{AuditProblemKind, Retention};

use super::{DAY_MS, Log, Tampered, calls};
use crate::database::on_every_database;
use crate::setup::{NOW_MS, n_rows};

/// A log of five old calls, one of which was changed, and five new ones; the key of the old ones cannot be reached. With that key.
async fn of_two_keys<D: Tampered>() -> (Log<D>, String) {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    let made = calls(&store, 5, NOW_MS - 10 * DAY_MS).await;
    let id = store.chain_key().await.unwrap().unwrap();
    store.close().await.unwrap();
    log.tamper(&format!(
        "UPDATE audit SET command = 'x' WHERE call_id = '{}'",
        made[1]
    ));
    let file = log.folder().file();
    let whole = fs::read_to_string(&file).unwrap();
    let key = whole.split("\"key\": \"").nth(1).unwrap()[..64].to_owned();
    let text = format!(r#"{{"version":1,"keys":[{{"id":"{id}","created_at_ms":1}}]}}"#);
    fs::write(&file, text).unwrap();
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    store.close().await.unwrap();
    (log, format!("\"id\": \"{id}\", \"key\": \"{key}\","))
}

async fn retention_by_age_waits_until_records_can_be_verified<D: Tampered>() {
    let (log, key) = of_two_keys::<D>().await;
    let of_three_days = Retention {
        audit: Duration::from_hours(24 * 3),
        ..Retention::default()
    };
    let (store, _) = log.chained().await;
    store.sweep(of_three_days, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 10);
    store.close().await.unwrap();
    // The keyring can be reached again.
    let file = log.folder().file();
    let text = fs::read_to_string(&file).unwrap();
    let id = key.split(" \"key\"").next().unwrap();
    fs::write(&file, text.replace(id, &key)).unwrap();
    let (store, _) = log.chained().await;
    store.sweep(of_three_days, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 5);
    assert_eq!(log.problems(), [(AuditProblemKind::Changed, None)]);
    assert_eq!(log.report().n_unverified, 0);
}

async fn rows_that_are_too_many_go_and_are_counted<D: Tampered>() {
    let (log, _) = of_two_keys::<D>().await;
    let (store, _) = log.chained().await;
    let of_rows = Retention {
        audit_rows_max: 5,
        ..Retention::default()
    };
    store.sweep(of_rows, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 5);
    let report = log.report();
    assert!(report.n_unverified >= 5, "{report:#?}");
    assert_eq!(report.n_calls, 5);
}

on_every_database! {
    any: [],
    lasting: [
        retention_by_age_waits_until_records_can_be_verified,
        rows_that_are_too_many_go_and_are_counted,
    ],
}
