//! What somebody without the key makes the log say of itself: it hides nothing, and nothing that comes later makes it sound.

use std::time::Duration;

use zeph_store::{AuditProblemKind, Retention};

use super::{DAY_MS, Log, Tampered, calls};
use crate::database::on_every_database;
use crate::setup::NOW_MS;

/// What is done to a log of five calls, whose own event is the first of ten.
const FORGERIES: [&str; 4] = [
    "UPDATE audit SET command = 'x' WHERE chain_n = 4;
     UPDATE audit_chain SET body = replace(body, '\"lost_upto\":0', '\"lost_upto\":1000000000') WHERE n = 1",
    "UPDATE audit SET command = 'x' WHERE chain_n = 4;
     UPDATE audit_chain SET body = replace(body, '\"lost_upto\":0', '\"lost_upto\":10') WHERE n = 1",
    "DELETE FROM audit; DELETE FROM audit_chain WHERE n > 1;
     UPDATE audit_chain SET body = replace(replace(replace(body, '\"upto\":0', '\"upto\":10'),
        '\"n_removed\":0', '\"n_removed\":5'), '{zeros}', ':head') WHERE n = 1",
    "DELETE FROM audit WHERE chain_n = 4; UPDATE audit_chain SET body = replace(body, '\"n_unsound\":0', '\"n_unsound\":-1') WHERE n = 1",
];

fn retention(days: u64) -> Retention {
    Retention {
        audit: Duration::from_hours(24 * days),
        ..Retention::default()
    }
}

async fn a_forged_mark_exempts_nothing<D: Tampered>() {
    for forgery in FORGERIES {
        let log = Log::<D>::fresh();
        let (store, _) = log.chained().await;
        calls(&store, 5, NOW_MS - 10 * DAY_MS).await;
        let head = store.chain_head().await.unwrap().unwrap();
        assert_eq!(head.count, 10);
        store.close().await.unwrap();
        log.sound();
        let statements = forgery
            .replace("{zeros}", &"0".repeat(64))
            .replace(":head", &head.head);
        log.tamper(&statements);
        let changed = |when: &str| {
            let problems = log.report().problems;
            let is_changed =
                |problem: &zeph_store::AuditProblem| problem.kind == AuditProblemKind::Changed;
            assert!(
                problems.iter().any(is_changed),
                "{when}: {forgery}: {problems:#?}"
            );
        };
        changed("at once");
        // Retention goes on, and what was forged stays reported.
        let (store, _) = log.chained().await;
        calls(&store, 5, NOW_MS).await;
        changed("after more calls");
        store.sweep(retention(3), NOW_MS).await.unwrap();
        changed("after retention");
        let keys = log.folder().add(NOW_MS).unwrap();
        store.rekey_chain(keys, NOW_MS).await.unwrap();
        changed("under another key");
        let all = Retention {
            audit_rows_max: 1,
            ..Retention::default()
        };
        store.sweep(all, NOW_MS + 2 * DAY_MS).await.unwrap();
        changed("when all of it is gone");
    }
}

async fn another_key_legitimises_no_forged_mark<D: Tampered>() {
    for forgery in FORGERIES {
        let log = Log::<D>::fresh();
        let (store, _) = log.chained().await;
        calls(&store, 5, NOW_MS).await;
        let head = store.chain_head().await.unwrap().unwrap();
        let statements = forgery
            .replace("{zeros}", &"0".repeat(64))
            .replace(":head", &head.head);
        log.tamper(&statements);
        let keys = log.folder().add(NOW_MS).unwrap();
        store.rekey_chain(keys, NOW_MS).await.unwrap();
        calls(&store, 5, NOW_MS).await;
        let report = log.report();
        assert_ne!(report.problems, [], "{forgery}");
        assert_eq!(report.n_lost, 0, "{forgery}");
        assert!(report.lost_keys.is_empty(), "{forgery}");
    }
}

on_every_database! {
    any: [],
    lasting: [
        a_forged_mark_exempts_nothing,
        another_key_legitimises_no_forged_mark,
    ],
}
