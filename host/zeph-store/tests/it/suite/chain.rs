//! The chain over the audit table: what was recorded verifies, and every kind of tampering shows.

mod before;
mod earlier;
mod forged;
mod unreachable;

use std::collections::BTreeSet;
use std::time::Duration;

use tempfile::TempDir;
use zeph_core::id::{CallId, ConversationId};
use zeph_store::{
    AuditKeyFolder, AuditKeySource, AuditKeys, AuditProblemKind, ChainReport, CheckpointDue,
    CheckpointEvery, Location, Retention, Store, StoreError, StoreOptions,
};

use crate::database::{Database, Postgres, SqliteFile, on_every_database};
use crate::setup::{NOW_MS, begin, n_rows, sql, success, told};

const DAY_MS: i64 = 86_400_000;

/// A database that can be changed by another program than a host.
pub(crate) trait Tampered: Database + Sync {
    fn location(&self) -> Location;

    fn tamper(&self, statements: &str);

    /// Bytes in a statement.
    fn blob(digits: &str) -> String;

    /// Of a row of the audit: the column of its host, and its value.
    const HOST: (&str, &str) = ("", "");
}

impl Tampered for SqliteFile {
    fn location(&self) -> Location {
        Location::File(self.path.clone())
    }

    fn tamper(&self, statements: &str) {
        sql(&self.path).execute_batch(statements).unwrap();
    }

    fn blob(digits: &str) -> String {
        format!("x'{digits}'")
    }
}

impl Tampered for Postgres {
    fn location(&self) -> Location {
        Location::Server(Box::new(self.schema.url().parse().unwrap()))
    }

    fn tamper(&self, statements: &str) {
        self.schema.sql(statements);
    }

    fn blob(digits: &str) -> String {
        format!("'\\x{digits}'::bytea")
    }

    const HOST: (&str, &str) = ("host, ", "'host', ");
}

/// A database with the keys of its audit.
pub(crate) struct Log<D> {
    pub(crate) database: D,
    pub(crate) dir: TempDir,
}

impl<D: Tampered> Log<D> {
    pub(crate) fn fresh() -> Self {
        Self {
            database: D::fresh(),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn folder(&self) -> AuditKeyFolder {
        AuditKeyFolder::new(self.dir.path().join("secrets"))
    }

    fn open(&self) -> Store {
        self.database.open()
    }

    /// A store whose calls are chained.
    pub(crate) async fn chained(&self) -> (Store, AuditKeys) {
        let store = self.open();
        let source = AuditKeySource::Folder(self.folder());
        let begun = store.begin_chain(&source, NOW_MS).await.unwrap();
        (store, begun.keys)
    }

    /// What is found of each host.
    pub(crate) fn reports(&self, wanted: &BTreeSet<i64>) -> Vec<ChainReport> {
        let options = StoreOptions {
            at_ms: NOW_MS,
            busy_timeout: Duration::from_secs(5),
        };
        let keys = self.folder().read().unwrap();
        let location = self.database.location();
        Store::verify_audit(&location, &options, keys.as_ref(), wanted).unwrap()
    }

    /// What is found of the only host.
    fn report(&self) -> ChainReport {
        let mut reports = self.reports(&BTreeSet::new());
        assert!(reports.len() <= 1, "{reports:?}");
        let report = reports.pop().unwrap_or_default();
        ChainReport {
            host: None,
            is_own: false,
            ..report
        }
    }

    fn sound(&self) -> ChainReport {
        let report = self.report();
        assert_eq!((&report.problems, report.n_more), (&Vec::new(), 0));
        report
    }

    fn tamper(&self, statements: &str) {
        self.database.tamper(statements);
    }

    fn problems(&self) -> Vec<(AuditProblemKind, Option<String>)> {
        let problems = self.report().problems.into_iter();
        problems
            .map(|problem| (problem.kind, problem.call_id))
            .collect()
    }
}

/// Makes `n` calls, of which every fifth is still running.
pub(crate) async fn calls(store: &Store, n: usize, at_ms: i64) -> Vec<CallId> {
    let conversation = ConversationId::new();
    let mut calls = Vec::new();
    for idx in 0..n {
        let begin = begin("read", conversation, at_ms);
        let call = begin.call_id;
        store.audit_begin(begin).await.unwrap();
        if idx % 5 != 4 {
            store.audit_finish(success(call, at_ms + 1)).await.unwrap();
        }
        calls.push(call);
    }
    calls
}

async fn what_was_recorded_verifies<D: Tampered>() {
    let log = Log::<D>::fresh();
    // Nothing, then rows from before the chain.
    assert_eq!(log.report(), ChainReport::default());
    let old = log.open();
    let conversation = ConversationId::new();
    old.audit_begin(begin("read", conversation, NOW_MS))
        .await
        .unwrap();
    old.close().await.unwrap();
    assert_eq!(log.report().n_before, 1);
    let (store, _) = log.chained().await;
    calls(&store, 20, NOW_MS).await;
    store.close().await.unwrap();
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    let report = log.sound();
    assert_eq!((report.n_before, report.n_calls), (1, 25));
    assert_eq!(report.n_events, 1 + 25 + 20, "the start, begins and ends");
    assert_eq!(report.count, 46);
    let head = store.chain_head().await.unwrap().unwrap();
    assert_eq!((head.count, &head.head), (46, &report.head));
}

async fn hosts_that_share_a_store_share_one_chain<D: Tampered>() {
    let log = Log::<D>::fresh();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .build()
                    .unwrap();
                runtime.block_on(async {
                    let (store, _) = log.chained().await;
                    calls(&store, 100, NOW_MS).await;
                });
            });
        }
    });
    assert_eq!(log.sound().n_calls, 400);
}

async fn every_kind_of_tampering_is_named<D: Tampered>() {
    use AuditProblemKind::{Changed, Inserted, Removed, Reordered};
    // What is done to call 7 (the eighth), and what is said of it.
    let tries: [(&str, AuditProblemKind); 12] = [
        ("UPDATE audit SET command = '{}' WHERE call_id = :call", Changed),
        ("UPDATE audit SET trust = 'trusted' WHERE call_id = :call", Changed),
        ("UPDATE audit SET result = 'error' WHERE call_id = :call", Changed),
        ("UPDATE audit SET finished_at_ms = NULL WHERE call_id = :call", Changed),
        ("UPDATE audit SET chain_n = 3 WHERE call_id = :call", Changed),
        ("UPDATE audit_chain SET tag = {zeros} WHERE kind = 2 AND call = :blob", Changed),
        ("UPDATE audit_chain SET begun = 1 WHERE kind = 3 AND call = :blob", Changed),
        ("DELETE FROM audit WHERE call_id = :call", Removed),
        (
            "DELETE FROM audit WHERE call_id = :call; DELETE FROM audit_chain WHERE call = :blob",
            Removed,
        ),
        (
            "INSERT INTO audit ({host}call_id, begun_at_ms, tool, command, conversation_id)
             VALUES ({of}'00000000-0000-7000-8000-000000000000', 1, 'read', '{}', 'x')",
            Inserted,
        ),
        (
            "UPDATE audit SET seq = -1 WHERE call_id = :call;
             UPDATE audit SET seq = (SELECT seq FROM audit_chain WHERE kind = 2 AND call = :blob) WHERE call_id = :other;
             UPDATE audit SET seq = (SELECT seq FROM audit_chain WHERE kind = 2 AND call = :otherblob) WHERE call_id = :call",
            Reordered,
        ),
        (
            "UPDATE audit_chain SET n = -1 WHERE kind = 2 AND call = :blob;
             UPDATE audit_chain SET n = (SELECT chain_n FROM audit WHERE call_id = :call) WHERE kind = 2 AND call = :otherblob;
             UPDATE audit_chain SET n = (SELECT chain_n FROM audit WHERE call_id = :other) WHERE n = -1",
            Reordered,
        ),
    ];
    for (statements, kind) in tries {
        let log = Log::<D>::fresh();
        let (store, _) = log.chained().await;
        let made = calls(&store, 20, NOW_MS).await;
        store.close().await.unwrap();
        log.sound();
        let blob = |call: CallId| D::blob(&call.as_uuid().simple().to_string());
        let statements = statements
            .replace("{host}", D::HOST.0)
            .replace("{of}", D::HOST.1)
            .replace("{zeros}", &D::blob(&"00".repeat(32)))
            .replace(":otherblob", &blob(made[11]))
            .replace(":other", &format!("'{}'", made[11]))
            .replace(":blob", &blob(made[7]))
            .replace(":call", &format!("'{}'", made[7]));
        log.tamper(&statements);
        let report = log.report();
        let found = report.problems.iter().find(|problem| problem.kind == kind);
        let found = found.unwrap_or_else(|| panic!("{statements}: {:#?}", report.problems));
        let is_named = match kind {
            Inserted => found.call_id.as_deref() == Some("00000000-0000-7000-8000-000000000000"),
            _ => report.problems.iter().any(|problem| {
                problem.call_id == Some(made[7].to_string()) || problem.call_id.is_none()
            }),
        };
        assert!(is_named, "{statements}: {:#?}", report.problems);
        assert!(
            report.problems.len() <= 4,
            "{statements}: {:#?}",
            report.problems
        );
    }
}

async fn a_fabricated_end_is_found<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    let made = calls(&store, 10, NOW_MS).await;
    store.close().await.unwrap();
    let fabricated = format!(
        "UPDATE audit SET finished_at_ms = 1, result = 'success' WHERE call_id = '{}'",
        made[4]
    );
    log.tamper(&fabricated);
    let report = log.report();
    assert_eq!(report.problems.len(), 1, "{:#?}", report.problems);
    assert_eq!(report.problems[0].kind, AuditProblemKind::Inserted);
    assert_eq!(report.problems[0].call_id, Some(made[4].to_string()));
}

async fn retention_keeps_the_chain_and_what_still_runs<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    calls(&store, 50, NOW_MS - 10 * DAY_MS).await;
    let kept = calls(&store, 50, NOW_MS).await;
    // One of a clock that was ahead.
    let ahead = begin("read", ConversationId::new(), NOW_MS + 900 * DAY_MS);
    store.audit_begin(ahead.clone()).await.unwrap();
    store
        .audit_finish(success(ahead.call_id, NOW_MS))
        .await
        .unwrap();
    let last = calls(&store, 50, NOW_MS).await;
    let of_days = |days: u64| Retention {
        audit: Duration::from_hours(24 * days),
        ..Retention::default()
    };
    let swept = store.sweep(of_days(3), NOW_MS).await.unwrap();
    assert_eq!(swept.n_audit, 50, "those of a dead host too");
    let report = log.sound();
    assert_eq!((report.n_removed_calls, report.n_calls), (50, 101));
    // By number: of the first 50 those that run stay, and are vouched for anew.
    let of_rows = Retention {
        audit_rows_max: 51,
        ..Retention::default()
    };
    let swept = store.sweep(of_rows, NOW_MS).await.unwrap();
    assert_eq!((swept.n_audit, swept.n_carried), (40, 11));
    let report = log.sound();
    assert_eq!(report.n_calls, 61);
    // They end, which is chained as well, and the one that was ahead is in nobody's way.
    store
        .audit_finish(success(kept[4], NOW_MS + 2))
        .await
        .unwrap();
    store
        .audit_finish(success(kept[9], NOW_MS + 2))
        .await
        .unwrap();
    log.sound();
    let of_rows = Retention {
        audit_rows_max: 10,
        ..Retention::default()
    };
    store.sweep(of_rows, NOW_MS).await.unwrap();
    log.sound();
    assert!(store.audit_record(last[49]).await.unwrap().is_some());
    assert!(store.sweep(of_rows, NOW_MS).await.unwrap().is_nothing());
    // What is left is as good as it was.
    let changed = format!(
        "UPDATE audit SET command = 'x' WHERE call_id = '{}'",
        kept[14]
    );
    log.tamper(&changed);
    let problems = log.problems();
    assert_eq!(
        problems,
        [(AuditProblemKind::Changed, Some(kept[14].to_string()))]
    );
}

async fn retention_hides_no_tampering<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    let made = calls(&store, 20, NOW_MS - 10 * DAY_MS).await;
    let changed = format!(
        "UPDATE audit SET command = 'x' WHERE call_id = '{}'; DELETE FROM audit WHERE call_id = '{}';
         UPDATE audit SET result = 'error' WHERE call_id = '{}'",
        made[2], made[3], made[6]
    );
    log.tamper(&changed);
    let retention = Retention {
        audit: Duration::from_hours(24),
        ..Retention::default()
    };
    store.sweep(retention, NOW_MS).await.unwrap();
    assert_eq!(n_rows(&store).await, 0);
    let problems = log.report().problems;
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(
        problems[0].message.starts_with("3 records were not sound"),
        "{problems:#?}"
    );
}

async fn a_removed_beginning_is_no_retention<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    calls(&store, 20, NOW_MS).await;
    store.close().await.unwrap();
    log.tamper(
        "DELETE FROM audit WHERE chain_n < 11; DELETE FROM audit_chain WHERE n BETWEEN 2 AND 10",
    );
    let kinds = log.problems();
    assert!(
        kinds.contains(&(AuditProblemKind::Removed, None)),
        "{kinds:?}"
    );
    log.tamper("DELETE FROM audit_chain WHERE n = 1");
    let report = log.report();
    assert!(report.origin.is_empty() && report.n_more > 0, "{report:?}");
}

async fn without_its_key_nothing_is_recorded<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    let folder = log.folder();
    let kept = log.dir.path().join("kept.json");
    std::fs::rename(folder.file(), &kept).unwrap();
    let source = AuditKeySource::Folder(folder.clone());
    let host = log.open();
    let error = host.begin_chain(&source, NOW_MS).await.unwrap_err();
    assert!(
        matches!(error, StoreError::AuditKeyMissing { .. }),
        "{error:?}"
    );
    assert!(told(&error).contains("audit rekey"), "{}", told(&error));
    assert!(!folder.file().exists(), "no other key was made");
    // The operator goes on with another key.
    let keys = folder.add(NOW_MS).unwrap();
    host.rekey_chain(keys, NOW_MS).await.unwrap();
    calls(&host, 5, NOW_MS).await;
    let report = log.sound();
    assert_eq!((report.n_lost, report.n_calls), (10, 5));
    // A host of before goes on with the new one too; without it, it records nothing.
    calls(&store, 1, NOW_MS).await;
    assert_eq!(log.sound().n_calls, 6);
    let keys = folder.add(NOW_MS).unwrap();
    host.rekey_chain(keys, NOW_MS).await.unwrap();
    std::fs::rename(&kept, folder.file()).unwrap();
    let begun = store
        .audit_begin(begin("read", ConversationId::new(), NOW_MS))
        .await;
    let error = begun.unwrap_err();
    assert!(matches!(error, StoreError::AuditKeyChanged), "{error:?}");
}

async fn a_lost_key_hides_nothing_that_comes_after_it<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    std::fs::remove_file(log.folder().file()).unwrap();
    let keys = log.folder().add(NOW_MS).unwrap();
    store.rekey_chain(keys, NOW_MS).await.unwrap();
    let made = calls(&store, 5, NOW_MS).await;
    assert_eq!(log.sound().lost_keys.len(), 1);
    let insert = "
        INSERT INTO audit ({host}call_id, begun_at_ms, tool, command, conversation_id)
        VALUES ({of}'00000000-0000-7000-8000-000000000000', 1, 'read', '{}', 'x')";
    let insert = insert
        .replace("{host}", D::HOST.0)
        .replace("{of}", D::HOST.1);
    log.tamper(&insert);
    let added = Some("00000000-0000-7000-8000-000000000000".to_owned());
    assert_eq!(log.problems(), [(AuditProblemKind::Inserted, added)]);
    log.tamper("DELETE FROM audit WHERE begun_at_ms = 1");
    // The last call runs on; its end is fabricated.
    log.tamper(&format!(
        "UPDATE audit SET finished_at_ms = 1, result = 'success' WHERE call_id = '{}'",
        made[4]
    ));
    let ended = Some(made[4].to_string());
    assert_eq!(log.problems(), [(AuditProblemKind::Inserted, ended)]);
    log.tamper(&format!(
        "UPDATE audit SET finished_at_ms = NULL, result = NULL WHERE call_id = '{}'",
        made[4]
    ));
    log.sound();
}

async fn retention_takes_calls_whose_key_was_lost<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    std::fs::remove_file(log.folder().file()).unwrap();
    let keys = log.folder().add(NOW_MS).unwrap();
    store.rekey_chain(keys, NOW_MS).await.unwrap();
    calls(&store, 5, NOW_MS).await;
    let retention = |audit_rows_max| Retention {
        audit_rows_max,
        ..Retention::default()
    };
    let now = NOW_MS + 2 * DAY_MS;
    store.sweep(retention(8), now).await.unwrap();
    assert_eq!(n_rows(&store).await, 8);
    assert_eq!(log.sound().n_removed_calls, 2);
    store.sweep(retention(3), now).await.unwrap();
    assert_eq!(n_rows(&store).await, 3);
    assert_eq!(log.sound().n_removed_calls, 7);
}

async fn a_checkpoint_of_the_future_silences_none<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    let due = |at_ms, every| CheckpointDue { at_ms, every };
    let ahead = due(NOW_MS + 365 * DAY_MS, None);
    assert!(store.take_checkpoint(ahead).await.unwrap().is_some());
    calls(&store, 1, NOW_MS).await;
    let hourly = Some(CheckpointEvery::Time(Duration::from_hours(1)));
    let taken = store.take_checkpoint(due(NOW_MS, hourly)).await.unwrap();
    assert!(taken.is_some());
    calls(&store, 1, NOW_MS).await;
    let again = due(NOW_MS + 1_000, hourly);
    assert!(store.take_checkpoint(again).await.unwrap().is_none());
}

async fn a_keyring_out_of_reach_stops_no_call<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    let id = store.chain_key().await.unwrap().unwrap();
    store.close().await.unwrap();
    // As if the key were in a keyring.
    let folder = log.folder();
    let whole = std::fs::read_to_string(folder.file()).unwrap();
    let text = format!(r#"{{"version":1,"keys":[{{"id":"{id}","created_at_ms":1}}]}}"#);
    std::fs::write(folder.file(), text).unwrap();
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    let kinds = log.problems();
    assert_eq!(
        kinds,
        [(AuditProblemKind::KeyMissing, None)],
        "of what the keyring vouches for"
    );
    // Where the keyring can be reached, all of it verifies.
    let now = std::fs::read_to_string(folder.file()).unwrap();
    let key = whole.split("\"key\": \"").nth(1).unwrap()[..64].to_owned();
    let named = format!("\"id\": \"{id}\",");
    let both = now.replace(&named, &format!("{named} \"key\": \"{key}\","));
    std::fs::write(folder.file(), both).unwrap();
    assert_eq!(log.sound().n_calls, 10);
}

async fn a_key_that_was_exchanged_vouches_for_what_it_did<D: Tampered>() {
    let log = Log::<D>::fresh();
    let (store, _) = log.chained().await;
    let made = calls(&store, 5, NOW_MS).await;
    let keys = log.folder().add(NOW_MS).unwrap();
    store.rekey_chain(keys, NOW_MS).await.unwrap();
    calls(&store, 5, NOW_MS).await;
    let report = log.sound();
    assert_eq!((report.n_lost, report.n_calls), (0, 10));
    let changed = format!(
        "UPDATE audit SET command = 'x' WHERE call_id = '{}'",
        made[0]
    );
    log.tamper(&changed);
    assert_eq!(
        log.problems(),
        [(AuditProblemKind::Changed, Some(made[0].to_string()))]
    );
    // Retention passes the exchange.
    let retention = Retention {
        audit_rows_max: 3,
        ..Retention::default()
    };
    store.sweep(retention, NOW_MS + 2 * DAY_MS).await.unwrap();
    assert_eq!(log.problems().len(), 1, "the change is counted");
}

on_every_database! {
    any: [],
    lasting: [
        what_was_recorded_verifies,
        hosts_that_share_a_store_share_one_chain,
        every_kind_of_tampering_is_named,
        a_fabricated_end_is_found,
        retention_keeps_the_chain_and_what_still_runs,
        retention_hides_no_tampering,
        a_removed_beginning_is_no_retention,
        without_its_key_nothing_is_recorded,
        a_lost_key_hides_nothing_that_comes_after_it,
        retention_takes_calls_whose_key_was_lost,
        a_checkpoint_of_the_future_silences_none,
        a_keyring_out_of_reach_stops_no_call,
        a_key_that_was_exchanged_vouches_for_what_it_did,
    ],
}
