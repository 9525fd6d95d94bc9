//! A log whose seals are deleted: it is not sealed anew as if nothing had been there.

use std::fs;

use zeph_store::{AuditKeyFolder, AuditKeySource, AuditProblemKind, BegunChain, Store};

use super::{Log, Tampered, calls};
use crate::database::on_every_database;
use crate::setup::{NOW_MS, memory};

/// What is done to a log while no host runs.
const REMOVALS: [&str; 3] = [
    "UPDATE audit SET command = 'x', chain_n = NULL; DELETE FROM audit_chain",
    "UPDATE audit SET command = 'x'; DELETE FROM audit_chain",
    "DELETE FROM audit; DELETE FROM audit_chain",
];

async fn begun<D: Tampered>(log: &Log<D>) -> (Store, BegunChain) {
    let store = log.open();
    let source = AuditKeySource::Folder(log.folder());
    let begun = store.begin_chain(&source, NOW_MS).await.unwrap();
    (store, begun)
}

fn is_missed<D: Tampered>(log: &Log<D>, origin: &str) -> bool {
    let problems = log.report().problems;
    problems.iter().any(|problem| {
        problem.kind == AuditProblemKind::Removed && problem.message.contains(origin)
    })
}

async fn seals_that_were_deleted_are_missed_for_ever<D: Tampered>() {
    for removal in REMOVALS {
        let log = Log::<D>::fresh();
        let (store, first) = begun(&log).await;
        assert!(first.notices.is_empty());
        calls(&store, 5, NOW_MS).await;
        let origin = log.sound().origin;
        store.close().await.unwrap();
        log.tamper(removal);
        assert!(is_missed(&log, &origin), "no host started since: {removal}");
        // The log goes on, and every start says so.
        for _ in 0..2 {
            let (store, again) = begun(&log).await;
            let notice = &again.notices[0];
            assert!(notice.contains(&origin), "{notice}");
            calls(&store, 5, NOW_MS).await;
            assert!(is_missed(&log, &origin), "{removal}");
            store.close().await.unwrap();
        }
        // Only who has the key says that this may be.
        let (store, _) = begun(&log).await;
        let keys = log.folder().add(NOW_MS).unwrap();
        store.rekey_chain(keys, NOW_MS).await.unwrap();
        let report = log.report();
        assert!(report.earlier.unwrap().is_accepted);
        assert!(!is_missed(&log, &origin), "{removal}");
        store.close().await.unwrap();
        assert!(begun(&log).await.1.notices.is_empty());
        if removal == REMOVALS[2] {
            log.sound();
        }
    }
}

async fn seals_that_were_deleted_under_a_running_host_are_missed<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = begun(&log).await;
    calls(&store, 3, NOW_MS).await;
    let origin = log.sound().origin;
    log.tamper(REMOVALS[0]);
    calls(&store, 1, NOW_MS).await;
    assert!(is_missed(&log, &origin));
    store.close().await.unwrap();
    let (store, again) = begun(&log).await;
    assert_eq!(again.notices.len(), 1);
    calls(&store, 1, NOW_MS).await;
    assert!(is_missed(&log, &origin));
}

/// What is remembered is no key: without it, calls are made and verified.
async fn a_memory_that_cannot_be_read_stops_nothing<D: Tampered>() {
    for content in ["{", "{\"version\": 2, \"chains\": {}}"] {
        let log = Log::<D>::fresh();
        let (store, _) = begun(&log).await;
        calls(&store, 3, NOW_MS).await;
        store.close().await.unwrap();
        let file = log.folder().file().with_file_name("audit-chains.json");
        let is_damaged = |log: &Log<D>| {
            let problems = log.report().problems;
            let kinds: Vec<_> = problems.iter().map(|problem| problem.kind).collect();
            assert_eq!(kinds, [AuditProblemKind::Damaged], "{problems:#?}");
        };
        fs::write(&file, content).unwrap();
        let (store, again) = begun(&log).await;
        let [notice] = &again.notices[..] else {
            panic!("{:?}", again.notices);
        };
        assert!(notice.contains("audit-chains.json"), "{notice}");
        calls(&store, 1, NOW_MS).await;
        store.close().await.unwrap();
        is_damaged(&log);
        assert_eq!(log.report().n_calls, 4);
        // A log that begins meanwhile cannot know whether there was another.
        log.tamper(REMOVALS[2]);
        let (store, _) = begun(&log).await;
        calls(&store, 1, NOW_MS).await;
        store.close().await.unwrap();
        fs::remove_file(&file).unwrap();
        let (store, again) = begun(&log).await;
        assert_eq!(again.notices.len(), 1, "{:?}", again.notices);
        is_damaged(&log);
        let keys = log.folder().add(NOW_MS).unwrap();
        store.rekey_chain(keys, NOW_MS).await.unwrap();
        store.close().await.unwrap();
        assert!(begun(&log).await.1.notices.is_empty());
        log.sound();
    }
}

/// Two stores with one folder of keys are two logs.
async fn another_store_under_the_same_keys_is_not_missed<D: Tampered>() {
    let (log, other) = (Log::<D>::fresh(), Log::<D>::fresh());
    let (store, _) = begun(&log).await;
    calls(&store, 1, NOW_MS).await;
    let source = AuditKeySource::Folder(log.folder());
    let second = other.open();
    let begun = second.begin_chain(&source, NOW_MS).await.unwrap();
    assert!(begun.notices.is_empty());
    assert_eq!(log.sound().n_calls, 1);
}

/// Which log was sealed here is known beside the keys alone: whoever can write to the database makes nobody forget it.
async fn seals_that_were_deleted_are_missed_whatever_rows_are_left<D: Tampered>() {
    let removals = [
        "DELETE FROM audit_chain; UPDATE audit SET chain_n = NULL, tool = 'x'; DELETE FROM audit WHERE seq = 2",
        "DELETE FROM audit_chain; DELETE FROM audit WHERE seq > 1",
        "DELETE FROM audit_chain WHERE n < 3",
    ];
    for removal in removals {
        let log = Log::<D>::fresh();
        let (store, _) = begun(&log).await;
        calls(&store, 3, NOW_MS).await;
        let origin = log.sound().origin;
        store.close().await.unwrap();
        log.tamper(removal);
        let problems = log.report().problems;
        assert_eq!(problems.len(), 1, "one sentence: {removal}: {problems:#?}");
        assert!(is_missed(&log, &origin), "{removal}: {problems:#?}");
    }
}

/// The log of a store in memory ends with its process: nothing is missed of the one before.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_memory_begins_a_log_of_its_own_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let source = AuditKeySource::Folder(AuditKeyFolder::new(dir.path().join("secrets")));
    for _ in 0..3 {
        let store = memory();
        let begun = store.begin_chain(&source, NOW_MS).await.unwrap();
        assert_eq!(begun.notices, Vec::<String>::new());
        calls(&store, 2, NOW_MS).await;
        store.close().await.unwrap();
    }
}

on_every_database! {
    any: [],
    lasting: [
        seals_that_were_deleted_are_missed_for_ever,
        seals_that_were_deleted_are_missed_whatever_rows_are_left,
        seals_that_were_deleted_under_a_running_host_are_missed,
        a_memory_that_cannot_be_read_stops_nothing,
        another_store_under_the_same_keys_is_not_missed,
    ],
}
