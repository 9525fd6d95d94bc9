//! Tables of other versions: those of an earlier program are brought forward with all their rows, and a host goes on when another one
//! brings them forward under it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use zeph_core::id::ConversationId;
use zeph_store::AuditFilter;

use crate::database::{Database as _, Postgres};
use crate::server::Schema;
use crate::setup::{NOW_MS, n_rows};
use crate::suite::chain::{Log, calls};

/// What makes tables of version 1 of those of version 2, and so on. A version without its line fails the test.
const BACK: [&str; 8] = [
    "ALTER TABLE audit DROP COLUMN asked",
    "DROP TABLE passages",
    "DROP TABLE conversation_releases",
    "ALTER TABLE conversation_labels DROP COLUMN stamp",
    "UPDATE schedules SET caller = caller",
    "ALTER TABLE approval_requests DROP COLUMN caller",
    "ALTER TABLE long_tasks DROP COLUMN host_pid, DROP COLUMN host_start",
    "ALTER TABLE host_processes DROP COLUMN replica;
    DROP INDEX schedules_by_name, schedules_of_directory, schedules_due, grant_uses_by_capability, plugin_indexes_by_source,
        conversation_releases_by_destination, observed_decisions_by_hour;
    ALTER TABLE schedules ADD UNIQUE (directory, caller, name);
    CREATE INDEX schedules_due ON schedules (directory, next_ms) WHERE next_ms IS NOT NULL;
    ALTER TABLE grant_uses ADD PRIMARY KEY (plugin, capability);
    ALTER TABLE plugin_indexes ADD PRIMARY KEY (source);
    ALTER TABLE conversation_releases ADD PRIMARY KEY (conversation_id, destination);
    ALTER TABLE observed_decisions ADD PRIMARY KEY (hour_ms, rule, would, decided, tool)",
];

/// How long a host may take to reach its server again.
const PATIENCE: Duration = Duration::from_secs(60);

/// The version of the tables, and all their columns.
fn tables(schema: &Schema) -> String {
    schema.sql(
        "SELECT (SELECT version FROM zeph_host_schema), string_agg(table_name || '.' || column_name, ' '
            ORDER BY table_name, column_name)
        FROM information_schema.columns WHERE table_schema = current_schema()",
    )
}

/// All calls, of all hosts, after it was checked that nothing is wrong with any.
fn n_sound(log: &Log<Postgres>) -> u64 {
    let reports = log.reports(&BTreeSet::new());
    for report in &reports {
        assert_eq!((&report.problems, report.n_more), (&Vec::new(), 0));
    }
    reports.iter().map(|report| report.n_calls).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_every_earlier_version_are_brought_forward() {
    if !Postgres::is_there() {
        return;
    }
    for version in 1..=BACK.len() {
        let log = Log::<Postgres>::fresh();
        let schema = &log.database.schema;
        let (store, _) = log.chained().await;
        calls(&store, 5, NOW_MS).await;
        store.close().await.unwrap();
        let newest = tables(schema);
        for back in BACK[version - 1..].iter().rev() {
            schema.sql(back);
        }
        schema.sql(&format!("UPDATE zeph_host_schema SET version = {version}"));
        assert_ne!(tables(schema), newest, "version {version}");
        let (store, _) = log.chained().await;
        assert_eq!(tables(schema), newest, "version {version}");
        calls(&store, 5, NOW_MS).await;
        assert_eq!(n_rows(&store).await, 10);
        assert_eq!(n_sound(&log), 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_of_version_5_go_to_the_tokens_they_were_made_with() {
    if !Postgres::is_there() {
        return;
    }
    let database = Postgres::fresh();
    database.open().close().await.unwrap();
    let schema = &database.schema;
    let digest = "ab".repeat(32);
    schema.sql(&format!(
        "INSERT INTO tokens (name, digest, created_at_ms) VALUES ('ann', 'sha256:{digest}', x'018a00000000'::bigint)"
    ));
    let (before, after) = (
        "01890000-0000-7000-8000-00000000000",
        "01990000-0000-7000-8000-00000000000",
    );
    let cases = [
        (after, "@ann", true),
        (before, "@ann", true),
        (after, "@bob", true),
        (after, "@ann", false),
        (after, "@oauth:https://a|b", true),
        (after, "", true),
    ];
    for (n, (id, caller, is_model)) in cases.iter().enumerate() {
        schema.sql(&format!(
            "INSERT INTO schedules (id, revision, directory, caller, name, conversation_id, is_model, work, times, at_ms)
            VALUES ('{id}{n}', 1, '/', '{caller}', '{n}', 'c', {is_model}, '{{}}', '{{}}', 0)"
        ));
    }
    for back in BACK[5..].iter().rev() {
        schema.sql(back);
    }
    schema.sql("UPDATE zeph_host_schema SET version = 5");
    database.open().close().await.unwrap();
    let found = schema
        .sql("SELECT string_agg(replace(caller, chr(10), '/'), ' ' ORDER BY name) FROM schedules");
    let none = "0".repeat(64);
    assert_eq!(
        found.trim_end_matches('\n'),
        format!("+ann/{digest} +ann/{none} +bob/{none} @ann @oauth:https://a|b ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_goes_on_when_another_brings_the_tables_forward() {
    if !Postgres::is_there() {
        return;
    }
    let log = Log::<Postgres>::fresh();
    let schema = &log.database.schema;
    let (store, _) = log.chained().await;
    calls(&store, 5, NOW_MS).await;
    // What it asks is prepared by now, and may not depend on the columns there were.
    assert_eq!(n_rows(&store).await, 5);
    schema.sql(
        "BEGIN;
        ALTER TABLE audit ADD COLUMN of_later TEXT;
        ALTER TABLE audit_chain ADD COLUMN of_later TEXT;
        ALTER TABLE conversations ADD COLUMN of_later BIGINT NOT NULL DEFAULT 0;
        CREATE TABLE of_later (id TEXT);
        UPDATE zeph_host_schema SET version = 999;
        COMMIT",
    );
    calls(&store, 5, NOW_MS).await;
    assert_eq!(n_rows(&store).await, 10);
    // On new connections, too: only a start looks at the version.
    schema.end_connections();
    let deadline = Instant::now() + PATIENCE;
    let newest = AuditFilter::newest(1);
    while store.audit_query(newest.clone()).await.is_err() {
        assert!(Instant::now() < deadline, "nothing can be read again");
    }
    let conversation = ConversationId::new();
    while let Err(error) = store.begin_conversation(conversation, NOW_MS).await {
        assert!(Instant::now() < deadline, "{error:?}");
    }
    calls(&store, 5, NOW_MS).await;
    assert_eq!(n_rows(&store).await, 15);
    assert_eq!(n_sound(&log), 15);
}
