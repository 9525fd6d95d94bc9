//! Rows that were altered, and tables of an older version.

use std::slice::from_ref;

use zeph_core::id::ConversationId;
use zeph_core::lifetime::{GrantLifetime, Lifetime};
use zeph_store::{OldGrants, Revoke};

use crate::setup::{NOW_MS, begin, fresh, n_rows, names, open, sql};
use crate::suite::approvals;
use crate::suite::grants::{grant, host, pin, plugin, take};

#[tokio::test]
async fn a_row_that_makes_no_sense_approves_nothing() {
    let changes = [
        "UPDATE approvals SET lifetime = 'forever'",
        "UPDATE approvals SET lifetime = 'always'",
        "UPDATE approvals SET conversation_id = NULL",
        "UPDATE approvals SET id = 'x'",
        "UPDATE approvals SET arguments_bytes = -1",
        "UPDATE approvals SET tool = 'b a s h'",
    ];
    for change in changes {
        let (_dir, path) = fresh();
        let store = open(&path);
        let conversation = ConversationId::new();
        approvals::approved(&store, conversation, Lifetime::Session).await;
        sql(&path).execute(change, []).unwrap();
        assert_eq!(
            approvals::take(&store, conversation).await,
            None,
            "{change}"
        );
        assert_eq!(store.list_approvals(NOW_MS).await.unwrap(), [], "{change}");
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_grants_nothing_and_is_told() {
    let (_dir, path) = fresh();
    let store = open(&path);
    let good = grant(&store, GrantLifetime::Always).await;
    let damages: [(&str, &str); 13] = [
        ("capability = 'no JSON'", "capability is none"),
        (
            "capability = '{\"kind\":\"everything\"}'",
            "capability is none",
        ),
        (
            "capability = '{\"kind\":\"host\",\"name\":\"a b\"}'",
            "capability is none this program knows: a host",
        ),
        (
            "capability = '{\"kind\":\"directory\",\"path\":\"srv\",\"rights\":{\"read\":true,\"write\":false,\"create\":false,\"delete\":false}}'",
            "is absolute",
        ),
        (
            "capability = '{\"kind\":\"directory\",\"path\":\"/srv\",\"rights\":{\"read\":true}}'",
            "capability is none",
        ),
        ("lifetime = 'for ever'", "lifetime `for ever`"),
        ("lifetime = 'until'", "lifetime `until`"),
        ("lifetime = 'session'", "lifetime `session`"),
        ("lifetime = 'once', until_ms = 5", "lifetime `once`"),
        ("until_ms = 9000000000000000000", "lifetime `always`"),
        (
            "capability = CAST(x'ff' AS TEXT)",
            "`capability` is no text",
        ),
        ("wasm = 'sha256:00'", "`wasm` is no digest"),
        ("tools = ''", "`tools` is no digest"),
    ];
    for (damage, expected) in damages {
        let mut bad = store
            .add_grants(
                plugin("notes"),
                pin(1),
                vec![host("b.example")],
                GrantLifetime::Always,
                NOW_MS,
            )
            .await
            .unwrap();
        let bad = bad.remove(0);
        let changed = sql(&path).execute(
            &format!("UPDATE grants SET {damage} WHERE id = ?1"),
            [bad.id],
        );
        assert_eq!(changed.unwrap(), 1);

        assert_eq!(take(&store).await, from_ref(&good), "{damage}");
        let listed = store.list_grants(None).await.unwrap();
        assert_eq!(listed, from_ref(&good), "{damage}");
        let told = store.unreadable_grants().await.unwrap();
        assert_eq!(told.len(), 1, "{damage}: {told:?}");
        assert_eq!((told[0].id, told[0].plugin.as_str()), (bad.id, "notes"));
        assert!(told[0].problem.contains(expected), "{damage}: {told:?}");
        // Moving the others leaves it where it grants nothing.
        let moved = store
            .rebind_grants(plugin("notes"), None, pin(1), OldGrants::Go)
            .await;
        assert_eq!(moved.unwrap(), 0, "{damage}");

        let revoked = store.revoke_grants(plugin("notes"), Revoke::Ids(vec![bad.id]));
        assert_eq!(revoked.await.unwrap(), 1, "{damage}");
        assert_eq!(store.unreadable_grants().await.unwrap(), [], "{damage}");
    }
}

#[tokio::test]
async fn a_store_of_the_first_version_gets_the_tables_and_keeps_its_rows() {
    let (dir, path) = fresh();
    let store = open(&path);
    let conversation = ConversationId::new();
    store
        .audit_begin(begin("read", conversation, NOW_MS))
        .await
        .unwrap();
    store.close().await.unwrap();
    sql(&path)
        .execute_batch(
            "DROP INDEX conversations_by_use; DROP TABLE grants; DROP TABLE approval_requests; DROP TABLE approvals;
             ALTER TABLE audit DROP COLUMN exit_code; ALTER TABLE audit DROP COLUMN execution_env;
             ALTER TABLE audit DROP COLUMN agreement; ALTER TABLE audit DROP COLUMN hosts;
             ALTER TABLE audit DROP COLUMN attempts;
             ALTER TABLE audit DROP COLUMN cache_age_ms; ALTER TABLE audit DROP COLUMN cache_bytes;
             ALTER TABLE audit DROP COLUMN plugin; ALTER TABLE audit DROP COLUMN plugin_digest;
             ALTER TABLE audit DROP COLUMN mcp_server_id; ALTER TABLE audit DROP COLUMN adversarial_verdict;
             ALTER TABLE audit DROP COLUMN user; ALTER TABLE audit DROP COLUMN scope; ALTER TABLE audit DROP COLUMN trust;
             ALTER TABLE audit DROP COLUMN labels; ALTER TABLE audit DROP COLUMN observed;
             ALTER TABLE audit DROP COLUMN tokens_in; ALTER TABLE audit DROP COLUMN tokens_out; ALTER TABLE audit DROP COLUMN asked;
             ALTER TABLE audit DROP COLUMN result_labels; ALTER TABLE audit DROP COLUMN chain_n;
             DROP TABLE audit_chain; DROP TABLE audit_checkpoint;
             DROP TABLE filter_savings; DROP TABLE revoked_defaults; DROP TABLE tokens; DROP TABLE agent_items; DROP TABLE agent_sessions;
             DROP TABLE goal_tasks; DROP TABLE goals; DROP TABLE grant_uses; DROP TABLE grant_uses_since;
             DROP TABLE schedule_runs; DROP TABLE schedules; DROP TABLE vectors; DROP TABLE passages; DROP TABLE trust; DROP TABLE trust_windows;
             DROP TABLE trust_version; DROP TABLE observed_decisions; DROP TABLE plugin_indexes;
             DROP TABLE used_seals; DROP TABLE call_buckets; DROP TABLE output_callers; DROP TABLE offer_version;
             DROP TABLE sequences; DROP TABLE sequence_changes; DROP TABLE conversation_calls; DROP TABLE conversation_labels;
             DROP TABLE conversation_releases;
             ALTER TABLE audit DROP COLUMN turn_id; ALTER TABLE audit DROP COLUMN goal_id; ALTER TABLE audit DROP COLUMN skill_name;
             ALTER TABLE audit DROP COLUMN host_pid; ALTER TABLE audit DROP COLUMN host_start; DROP TABLE tool_overflow_parts;
             ALTER TABLE conversations DROP COLUMN n_counted; ALTER TABLE conversations DROP COLUMN counted_batch;
             DROP TABLE long_task_questions; DROP TABLE long_tasks;
             ALTER TABLE tool_overflow DROP COLUMN filter_rules; ALTER TABLE tool_overflow DROP COLUMN is_read_back;
             PRAGMA user_version = 1",
        )
        .unwrap();
    let store = open(&path);
    grant(&store, GrantLifetime::Always).await;
    assert_eq!(take(&store).await.len(), 1);
    assert_eq!(n_rows(&store).await, 1);
    let is_aside = |name: &String| name.contains("corrupt");
    assert!(!names(dir.path()).iter().any(is_aside));
}
