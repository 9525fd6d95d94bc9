//! A server that goes away, hangs, only reads, or hands over to another one.

use std::time::{Duration, Instant};

use zeph_core::id::ConversationId;
use zeph_store::{
    AuditFile, AuditFilter, AuditKeyFolder, AuditKeySource, Location, Store, StoreError,
    StoreOptions,
};

use crate::server::{Server, USER, as_user, free_port, programs, run};
use crate::setup::{NOW_MS, begin, success, told};

/// Longer than a store waits between two tries.
const RECOVERY: Duration = Duration::from_secs(20);

fn open(url: &str) -> Store {
    let options = StoreOptions {
        at_ms: NOW_MS,
        busy_timeout: Duration::from_millis(300),
    };
    let url = Box::new(url.parse().unwrap());
    let opened = Store::open(Location::Server(url), options);
    opened
        .unwrap_or_else(|error| panic!("{}", told(&error)))
        .store
}

fn url(server: &Server) -> String {
    format!(
        "postgres://{USER}:s3cr3t@127.0.0.1:{}/postgres?connect_timeout=1",
        server.port
    )
}

/// Begins conversations until that works; how many it took.
async fn begin_until_well(store: &Store) -> usize {
    let started = Instant::now();
    for n in 1.. {
        let begun = store
            .begin_conversation(ConversationId::new(), NOW_MS)
            .await;
        match begun {
            Ok(()) => return n,
            Err(error) => assert!(started.elapsed() < RECOVERY, "{}", told(&error)),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!()
}

#[tokio::test]
async fn calls_fail_closed_while_the_server_is_away_and_go_on_afterwards() {
    if programs().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::of_test(&folder.path().join("server"), "");
    let store = open(&url(&server));
    let conversation = ConversationId::new();
    store
        .begin_conversation(conversation, NOW_MS)
        .await
        .unwrap();
    store.list_conversations(1).await.unwrap();

    server.crash();
    for _ in 0..50 {
        let written = store
            .begin_conversation(ConversationId::new(), NOW_MS)
            .await;
        let read = store.list_conversations(10).await;
        for error in [written.unwrap_err(), read.unwrap_err()] {
            assert!(matches!(error, StoreError::ServerAway { .. }), "{error:?}");
            let told = told(&error);
            assert!(told.contains("does not answer"), "{told}");
            assert!(!told.contains("s3cr3t"), "{told}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    server.run(std::process::id());
    begin_until_well(&store).await;
    let listed = store.list_conversations(10).await.unwrap();
    // What was answered before is there, and of what failed nothing.
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().any(|one| one.id == conversation));
}

#[tokio::test]
async fn ends_of_calls_while_the_server_is_away_are_recorded_when_it_is_back() {
    if programs().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::of_test(&folder.path().join("server"), "");
    let audit_file = folder.path().join("audit.jsonl");
    let store = open(&url(&server)).with_audit_file(AuditFile::open(&audit_file, 0).unwrap());
    let keys = AuditKeySource::Folder(AuditKeyFolder::new(folder.path().join("secrets")));
    store.begin_chain(&keys, NOW_MS).await.unwrap();
    let mut calls = Vec::new();
    for _ in 0..300 {
        let call = begin("read", ConversationId::new(), NOW_MS);
        calls.push(call.call_id);
        store.audit_begin(call).await.unwrap();
    }
    // A crash may undo the last of them as long as they are not on the disk.
    server.sql("", "CHECKPOINT");

    server.crash();
    let (waiting, others) = calls.split_first().unwrap();
    for call in others {
        let end = Some(success(*call, NOW_MS + 1));
        store.finish_call_soon(end, Vec::new()).await.unwrap();
    }
    // Who waits is told, and need not come again.
    let ended = store.audit_finish(success(*waiting, NOW_MS + 1)).await;
    let error = ended.unwrap_err();
    assert!(matches!(error, StoreError::ServerAway { .. }), "{error:?}");
    assert!(
        store
            .audit_begin(begin("read", ConversationId::new(), NOW_MS))
            .await
            .is_err()
    );

    server.run(std::process::id());
    begin_until_well(&store).await;
    let unfinished = AuditFilter {
        unfinished_only: true,
        ..AuditFilter::newest(1000)
    };
    let started = Instant::now();
    while !store
        .audit_query(unfinished.clone())
        .await
        .unwrap()
        .is_empty()
    {
        assert!(started.elapsed() < RECOVERY);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let rows = store.audit_query(AuditFilter::newest(1000)).await.unwrap();
    assert_eq!(rows.len(), calls.len());
    let ends = std::fs::read_to_string(audit_file).unwrap();
    assert_eq!(ends.matches(r#""event":"finish""#).count(), calls.len());
}

#[tokio::test]
async fn a_connection_that_was_lost_at_rest_is_no_reason_to_fail() {
    if programs().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::of_test(&folder.path().join("server"), "");
    let store = open(&url(&server));
    for _ in 0..3 {
        store
            .begin_conversation(ConversationId::new(), NOW_MS)
            .await
            .unwrap();
        store.list_conversations(1).await.unwrap();
        server.crash();
        server.run(std::process::id());
    }
    store
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap();
    assert_eq!(store.list_conversations(10).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for_forever() {
    if programs().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::of_test(&folder.path().join("server"), "");
    let store = open(&url(&server));
    store
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap();
    server.signal_all("-STOP");
    let error = store
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::ServerAway { .. }), "{error:?}");
    server.signal_all("-CONT");
    begin_until_well(&store).await;
}

#[tokio::test]
async fn a_statement_waits_for_another_within_the_time_limit() {
    if programs().is_none() {
        return;
    }
    let schema = Server::of_run().unwrap().schema();
    let store = open(&schema.url());
    let conversation = ConversationId::new();
    store
        .begin_conversation(conversation, NOW_MS)
        .await
        .unwrap();
    let holder = schema.clone();
    let held = std::thread::spawn(move || {
        holder.sql("BEGIN; LOCK TABLE conversations; SELECT pg_sleep(2)");
    });
    while schema.sql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = 'conversations'::regclass") == "0\n" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let error = store
        .begin_conversation(conversation, NOW_MS)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert!(
        told(&error).contains("more than 300 ms"),
        "{}",
        told(&error)
    );
    held.join().unwrap();
    store
        .begin_conversation(conversation, NOW_MS)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_server_that_only_reads_is_told_and_left() {
    if programs().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::of_test(&folder.path().join("server"), "");
    let store = open(&url(&server));
    store
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap();
    let only_reads = |value: &str| {
        server.sql(
            "-c default_transaction_read_only=off",
            &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"),
        );
        server.sql("", "SELECT pg_reload_conf()");
    };
    only_reads("on");
    // Until the server has read its settings again.
    let started = Instant::now();
    let error = loop {
        let begun = store
            .begin_conversation(ConversationId::new(), NOW_MS)
            .await;
        match begun {
            Err(error) => break error,
            Ok(()) => assert!(started.elapsed() < RECOVERY),
        }
    };
    assert!(
        matches!(error, StoreError::ServerReadOnly { .. }),
        "{error:?}"
    );
    assert!(
        told(&error).contains("target_session_attrs=read-write"),
        "{}",
        told(&error)
    );
    store.list_conversations(10).await.unwrap();
    only_reads("off");
    begin_until_well(&store).await;
}

/// A standby of `primary`, made from a copy of it.
fn standby_of(primary: &Server, folder: &std::path::Path) -> Server {
    let standby = Server {
        folder: folder.join("standby"),
        port: free_port(),
    };
    let base = folder.join("standby");
    std::fs::create_dir_all(&base).unwrap();
    run(std::process::Command::new("chmod").arg("777").arg(&base));
    run(as_user(programs().unwrap().join("pg_basebackup"))
        .args([
            "-h",
            "127.0.0.1",
            "-U",
            USER,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        ])
        .args(["-p", &primary.port.to_string(), "-D"])
        .arg(standby.data()));
    let settings = format!("port = {}\nunix_socket_directories = ''\n", standby.port);
    let conf = standby.data().join("postgresql.conf");
    let own = std::fs::read_to_string(&conf).unwrap();
    std::fs::write(&conf, own + &settings).unwrap();
    standby.run(std::process::id());
    standby
}

#[tokio::test]
async fn a_failover_moves_the_store_to_the_server_that_writes() {
    if programs().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    run(std::process::Command::new("chmod")
        .arg("755")
        .arg(folder.path()));
    let settings = "wal_level = replica\nmax_wal_senders = 4\nhot_standby = on\n";
    let primary = Server::of_test(&folder.path().join("primary"), settings);
    let standby = standby_of(&primary, folder.path());
    let both = format!(
        "postgres://{USER}@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write&connect_timeout=1",
        primary.port, standby.port
    );
    let store = open(&both);
    let conversation = ConversationId::new();
    store
        .begin_conversation(conversation, NOW_MS)
        .await
        .unwrap();
    // The standby follows in its time: the table first, then its row.
    for (question, answer) in [
        ("SELECT to_regclass('conversations') IS NOT NULL", "t\n"),
        ("SELECT count(*) FROM conversations", "1\n"),
    ] {
        while standby.sql("", question) != answer {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    // Another store that knows the standby alone: it may read there, and not write.
    let reading = open(&url(&standby));
    let error = reading
        .begin_conversation(ConversationId::new(), NOW_MS)
        .await
        .unwrap_err();
    assert!(
        matches!(error, StoreError::ServerReadOnly { .. }),
        "{error:?}"
    );

    // The old one becomes a server that only reads; the connection to it is of no use any more.
    primary.sql("", "ALTER SYSTEM SET default_transaction_read_only = on");
    standby.sql("", "SELECT pg_promote(true, 30)");
    primary.sql("", "SELECT pg_reload_conf()");
    while primary.sql("", "SHOW default_transaction_read_only") != "on\n" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let again = ConversationId::new();
    let started = Instant::now();
    // Sessions read the setting between two statements; until then the old one takes what comes.
    while standby.sql(
        "",
        &format!("SELECT count(*) FROM conversations WHERE id = '{again}'"),
    ) != "1\n"
    {
        let begun = store.begin_conversation(again, NOW_MS).await;
        assert!(begun.is_ok(), "{}", told(&begun.unwrap_err()));
        assert!(started.elapsed() < RECOVERY);
    }
    begin_until_well(&reading).await;
    let listed = store.list_conversations(10).await.unwrap();
    assert!(listed.iter().any(|one| one.id == conversation));
}
