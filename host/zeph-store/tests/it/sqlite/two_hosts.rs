//! Several hosts on one file: started at once, writing at once, dying in the middle, kept waiting.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Barrier;
use std::time::Duration;

use zeph_core::id::ConversationId;
use zeph_store::{
    AuditFile, AuditFilter, AuditKeyFolder, AuditKeySource, AuditKeys, CallBegin, ChainReport,
    Location, Retention, SingleUseRights, Store, StoreError, StoreOptions, verify_file,
};

use crate::setup::{NOW_MS, begin, fresh, n_rows, names, open, sql, success, told, try_open};
use crate::suite::call::once_rights;

/// Names the store to the test that plays a host in a process of its own, and what it does there.
const ROLE: &str = "ZEPH_STORE_TEST_ROLE";

fn folder(path: &Path) -> AuditKeyFolder {
    AuditKeyFolder::new(path.with_file_name("secrets"))
}

/// A store whose calls are chained.
async fn chained(path: &Path) -> (Store, AuditKeys) {
    let store = open(path);
    let source = AuditKeySource::Folder(folder(path));
    let keys = store.begin_chain(&source, NOW_MS).await.unwrap().keys;
    (store, keys)
}

fn verified(path: &Path, wanted: &BTreeSet<i64>) -> ChainReport {
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_secs(5),
    };
    let keys = folder(path).read().unwrap();
    let location = Location::File(path.to_owned());
    let found = Store::verify_audit(&location, &options, keys.as_ref(), wanted);
    found.unwrap().remove(0)
}

/// Begins `n` calls, one after another.
async fn write_rows(path: &Path, n: usize) {
    let opened = try_open(path).unwrap_or_else(|error| panic!("{}", told(&error)));
    let conversation = ConversationId::new();
    for _ in 0..n {
        opened
            .store
            .audit_begin(begin("read", conversation, NOW_MS))
            .await
            .unwrap();
    }
}

/// Begins a call that holds every grant for one call and every approval there is.
async fn begin_with_all(store: &Store) {
    let approvals = store.list_approvals(NOW_MS).await.unwrap();
    let rights = SingleUseRights {
        approval: approvals.first().map(|approval| approval.id),
        grants: store.list_grants(None).await.unwrap(),
        ..SingleUseRights::default()
    };
    let begin = begin("bash", ConversationId::new(), NOW_MS);
    let begun = store.begin_call(Some(begin), rights, NOW_MS).await;
    assert_eq!(begun.unwrap(), CallBegin::Recorded);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a second host is a second process, and this is how it gets its part"
)]
fn host_process(role: &str, path: &Path) -> Child {
    let part = format!("{role}={}", path.display());
    let this_test = std::env::current_exe().unwrap();
    let mut command = Command::new(this_test);
    command
        .args([
            "--exact",
            "sqlite::two_hosts::plays_a_host_for_another_test",
        ])
        .env(ROLE, part)
        .spawn()
        .unwrap()
}

/// Does nothing by itself: other tests run it in a process of its own.
#[tokio::test]
async fn plays_a_host_for_another_test() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the parent test passes the part to play this way"
    )]
    let Ok(part) = std::env::var(ROLE) else {
        return;
    };
    let (role, path) = part.split_once('=').unwrap();
    let path = PathBuf::from(path);
    match role {
        "write" => write_rows(&path, 500).await,
        "die" => {
            let store = open(&path);
            store
                .audit_begin(begin("read", ConversationId::new(), NOW_MS))
                .await
                .unwrap();
            std::process::abort();
        }
        "calls" => call_without_end(&path).await,
        "hold" => {
            begin_with_all(&open(&path)).await;
            std::process::abort();
        }
        other => panic!("no such role: {other}"),
    }
}

/// Makes sealed calls until the process is killed.
async fn call_without_end(path: &Path) {
    let opened = try_open(path).unwrap_or_else(|error| panic!("{}", told(&error)));
    let source = AuditKeySource::Folder(folder(path));
    let keys = opened
        .store
        .begin_chain(&source, NOW_MS)
        .await
        .unwrap()
        .keys;
    let file = AuditFile::open(&path.with_file_name("audit.jsonl"), 200_000).unwrap();
    let store = opened.store.with_audit_file(file.chained(keys));
    let retention = Retention {
        audit_rows_max: 200,
        ..Retention::default()
    };
    store
        .retain(retention, || NOW_MS + 90_000_000)
        .await
        .unwrap();
    let conversation = ConversationId::new();
    loop {
        let begin = begin("read", conversation, NOW_MS);
        let call = begin.call_id;
        store.audit_begin(begin).await.unwrap();
        let finish = success(call, NOW_MS + 1);
        store
            .finish_call_soon(Some(finish), Vec::new())
            .await
            .unwrap();
    }
}

/// Stores whose hosts are killed side by side: a part of a round is waiting.
const LANES: u64 = 4;

/// Hosts that are killed at any moment leave a log that verifies: 12 rounds, or 200 with `ZEPH_SLOW_TESTS=1`.
#[test]
fn killed_hosts_leave_a_log_that_verifies() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the operator of the tests asks for the slow ones"
    )]
    let is_slow = std::env::var("ZEPH_SLOW_TESTS").is_ok();
    let n_rounds: u64 = if is_slow { 200 } else { 12 };
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || kill_hosts(lane, n_rounds / LANES));
        }
    });
}

fn kill_hosts(lane: u64, n_rounds: u64) {
    let (_dir, path) = fresh();
    block_on(chained(&path));
    for round in 0..n_rounds {
        let mut hosts = [host_process("calls", &path), host_process("calls", &path)];
        // Not the same moment twice.
        let moment = (lane * n_rounds + round) * 37 % 150;
        std::thread::sleep(Duration::from_millis(60 + moment));
        for host in &mut hosts {
            host.kill().unwrap();
            host.wait().unwrap();
        }
        let report = verified(&path, &BTreeSet::new());
        assert_eq!(report.problems, [], "round {round}");
        let keys = folder(&path).read().unwrap().unwrap();
        let file = verify_file(&path.with_file_name("audit.jsonl"), &keys, &BTreeSet::new());
        assert_eq!(file.unwrap().problems, [], "round {round}");
    }
    let report = verified(&path, &BTreeSet::new());
    assert!(report.count > 20, "the hosts made calls: {report:?}");
    let ends = "SELECT count(*) FROM audit WHERE finished_at_ms IS NOT NULL AND chain_n IS NULL";
    let n_without_begin: i64 = sql(&path).query_row(ends, [], |row| row.get(0)).unwrap();
    assert_eq!(n_without_begin, 0);
}

#[tokio::test]
async fn two_processes_write_to_one_fresh_store() {
    let (_dir, path) = fresh();
    let mut hosts = [host_process("write", &path), host_process("write", &path)];
    write_rows(&path, 500).await;
    for host in &mut hosts {
        assert!(host.wait().unwrap().success());
    }
    assert_eq!(n_rows(&open(&path)).await, 1_500);
}

#[tokio::test]
async fn a_begin_row_outlives_the_host() {
    let (_dir, path) = fresh();
    let status = host_process("die", &path).wait().unwrap();
    assert!(!status.success());
    let store = open(&path);
    let unfinished = AuditFilter {
        unfinished_only: true,
        ..AuditFilter::newest(10)
    };
    let rows = store.audit_query(unfinished).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].begin.tool.as_str(), &rows[0].ending),
        ("read", &None)
    );
}

#[tokio::test]
async fn what_a_call_held_when_its_host_died_is_used_up() {
    let (_dir, path) = fresh();
    let store = open(&path);
    once_rights(&store).await;
    let status = host_process("hold", &path).wait().unwrap();
    assert!(!status.success());
    assert_eq!(n_rows(&store).await, 1, "it had begun");
    assert_eq!(store.list_approvals(NOW_MS).await.unwrap(), []);
    assert_eq!(store.list_grants(None).await.unwrap(), []);
    let day_later_ms = NOW_MS + 86_400_001;
    let swept = store
        .sweep(Retention::default(), day_later_ms)
        .await
        .unwrap();
    assert_eq!(swept.n_grants, 1);
}

/// Runs `host` in several threads that begin together, each with its own runtime.
fn at_once(n_hosts: usize, host: impl Fn() + Sync) {
    let barrier = Barrier::new(n_hosts);
    std::thread::scope(|scope| {
        for _ in 0..n_hosts {
            scope.spawn(|| {
                barrier.wait();
                host();
            });
        }
    });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn two_stores_in_one_process_write_at_once() {
    let (_dir, path) = fresh();
    at_once(2, || block_on(write_rows(&path, 500)));
    assert_eq!(block_on(n_rows(&open(&path))), 1_000);
}

#[test]
fn hosts_that_find_damage_together_set_it_aside_once() {
    let (_good, good) = fresh();
    drop(open(&good));
    sql(&good)
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let header = fs::read(&good).unwrap()[..100].to_vec();
    for _ in 0..10 {
        let (dir, path) = fresh();
        fs::write(&path, &header).unwrap();
        at_once(4, || block_on(write_rows(&path, 3)));
        let n_aside = names(dir.path())
            .iter()
            .filter(|name| {
                name.contains("corrupt") && !name.contains("-shm") && !name.contains("-wal")
            })
            .count();
        assert_eq!(n_aside, 1, "{:?}", names(dir.path()));
        assert_eq!(block_on(n_rows(&open(&path))), 12);
    }
}

#[tokio::test]
async fn a_store_held_by_another_is_told_after_the_time_limit() {
    let (_dir, path) = fresh();
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_millis(30),
    };
    let store = Store::open(Location::File(path.clone()), options)
        .unwrap()
        .store;
    let other = sql(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let conversation = ConversationId::new();
    let error = store
        .begin_conversation(conversation, NOW_MS)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert!(
        told(&error).contains("held by another process for more than 30 ms"),
        "{}",
        told(&error)
    );
    // Reading goes on, and so does writing once the other has finished.
    assert_eq!(store.list_conversations(10).await.unwrap(), []);
    other.execute_batch("COMMIT").unwrap();
    store
        .begin_conversation(conversation, NOW_MS)
        .await
        .unwrap();
}

/// A disk that is full for a moment is the same: what fails for now is not lost.
#[tokio::test]
async fn the_end_of_a_call_that_cannot_be_recorded_for_now_is_kept() {
    let (_dir, path) = fresh();
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_millis(30),
    };
    let opened = Store::open(Location::File(path.clone()), options).unwrap();
    let store = opened.store;
    let begin = begin("bash", ConversationId::new(), NOW_MS);
    let call = begin.call_id;
    store.audit_begin(begin).await.unwrap();
    let other = sql(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.audit_finish(success(call, NOW_MS)).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    other.execute_batch("COMMIT").unwrap();
    // At the latest, what is kept is written with the end of the store.
    store.close().await.unwrap();
    let ended = "SELECT count(*) FROM audit WHERE finished_at_ms IS NOT NULL";
    let n_ended: i64 = other.query_row(ended, [], |row| row.get(0)).unwrap();
    assert_eq!(n_ended, 1);
}

#[test]
fn a_start_waits_for_another_start_within_the_time_limit() {
    let (_dir, path) = fresh();
    drop(open(&path));
    let lock = fs::File::open(path.with_extension("db.lock")).unwrap();
    lock.lock().unwrap();
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_millis(30),
    };
    let error = Store::open(Location::File(path.clone()), options).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    drop(lock);
    drop(open(&path));
}
