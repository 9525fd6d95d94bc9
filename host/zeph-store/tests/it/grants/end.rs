//! How grants end, move, and fail to be read.

use std::slice::from_ref;
use std::time::Duration;

use zeph_core::id::ConversationId;
use zeph_core::lifetime::GrantLifetime;
use zeph_store::{GrantRecord, Retention, Revoke};

use super::{
    DAY_MS, directory, grant, grant_to, host, lifetimes, pin, plugin, release, take, take_at,
};
use crate::setup::{NOW_MS, begin, fresh, memory, n_rows, names, open, sql};

#[tokio::test]
async fn revoking_names_numbers_of_its_plugin_only() {
    let store = memory();
    let given = vec![host("a.example"), host("b.example"), directory("/srv")];
    let mut ids = Vec::new();
    for name in ["notes", "other"] {
        let added = store
            .add_grants(
                plugin(name),
                pin(1),
                given.clone(),
                GrantLifetime::Always,
                NOW_MS,
            )
            .await;
        ids.extend(added.unwrap().iter().map(|grant| grant.id));
    }
    let named = Revoke::Ids(vec![ids[1], ids[3], ids[1], 999]);
    let n_revoked = store.revoke_grants(plugin("notes"), named).await.unwrap();
    assert_eq!(n_revoked, 1);
    let left = store.list_grants(Some(plugin("notes"))).await.unwrap();
    let left: Vec<_> = left.iter().map(|grant| grant.id).collect();
    assert_eq!(left, [ids[0], ids[2]]);
    assert_eq!(store.forget_plugin(plugin("notes")).await.unwrap(), 2);
    assert_eq!(store.forget_plugin(plugin("notes")).await.unwrap(), 0);
    assert_eq!(store.list_grants(None).await.unwrap().len(), 3);
    // Numbers are not used again, also not the highest one.
    store.forget_plugin(plugin("other")).await.unwrap();
    let next = grant(&store, GrantLifetime::Always).await;
    assert!(next.id > ids[5], "{next:?}");
}

#[tokio::test]
async fn an_approved_version_gets_the_grants_of_the_one_before() {
    let until = |days: i64| GrantLifetime::Until {
        at_ms: NOW_MS + days * DAY_MS,
    };
    // Grants as pin 1, 2 and 3; which pin is left behind for pin 3; how many move; what is there as pin 3.
    let cases = [
        ([until(1), until(2), until(3)], Some(pin(1)), 1, until(3)),
        ([until(5), until(2), until(3)], Some(pin(1)), 1, until(5)),
        ([until(1), until(7), until(3)], None, 2, until(7)),
        (
            [until(1), until(2), GrantLifetime::Always],
            Some(pin(9)),
            0,
            GrantLifetime::Always,
        ),
    ];
    for (given, from, n_expected, expected) in cases {
        let store = memory();
        for (n, lifetime) in (1..).zip(given) {
            grant_to(&store, pin(n), lifetime).await;
        }
        let moved = store.rebind_grants(plugin("notes"), from, pin(3)).await;
        assert_eq!(moved.unwrap(), n_expected, "{from:?}");
        let as_approved = store
            .grants_of_call(plugin("notes"), pin(3), ConversationId::new(), NOW_MS)
            .await
            .unwrap();
        let as_approved: Vec<_> = as_approved.iter().map(|grant| grant.lifetime).collect();
        assert_eq!(as_approved, [expected], "{from:?}");
        let n_before = store.list_grants(None).await.unwrap();
        let is_left = |grant: &&GrantRecord| grant.pin != pin(3);
        assert_eq!(n_before.iter().filter(is_left).count(), 2 - n_expected);
    }
}

#[tokio::test]
async fn a_grant_held_by_a_call_moves_with_the_others() {
    let store = memory();
    grant(&store, GrantLifetime::Once).await;
    let taken = take(&store).await;
    let moved = store.rebind_grants(plugin("notes"), Some(pin(1)), pin(2));
    assert_eq!(moved.await.unwrap(), 1);
    release(&store, taken).await;
    assert_eq!(take(&store).await, []);
    assert_eq!(store.list_grants(None).await.unwrap()[0].pin, pin(2));
}

#[tokio::test]
async fn a_session_grant_goes_with_its_conversation() {
    let store = memory();
    let (deleted, swept, kept) = (
        ConversationId::new(),
        ConversationId::new(),
        ConversationId::new(),
    );
    for conversation in [deleted, swept, kept] {
        grant(&store, GrantLifetime::Session { conversation }).await;
    }
    // The store had not known them before.
    assert_eq!(store.list_conversations(10).await.unwrap().len(), 3);
    store.delete_conversation(deleted).await.unwrap();
    assert_eq!(lifetimes(&store).await.len(), 2);
    let later_ms = NOW_MS + 30 * DAY_MS;
    store
        .audit_begin(begin("read", kept, later_ms))
        .await
        .unwrap();
    let retention = Duration::from_secs(7 * 86_400);
    store
        .sweep(Retention::of_outputs(retention), later_ms)
        .await
        .unwrap();
    let left = [GrantLifetime::Session { conversation: kept }];
    assert_eq!(lifetimes(&store).await, left);
    // A conversation that comes back does not bring its grant back.
    store.begin_conversation(deleted, later_ms).await.unwrap();
    assert_eq!(take_at(&store, deleted, later_ms).await, []);
}

/// A sweep so many milliseconds later: how many grants went.
async fn check_swept(lifetime: GrantLifetime, is_taken: bool, later_ms: i64, expected: usize) {
    let store = memory();
    grant(&store, lifetime).await;
    if is_taken {
        take(&store).await;
    }
    // Zero: outputs and conversations are kept for ever, ended grants are not.
    let swept = store.sweep(Retention::default(), NOW_MS + later_ms).await;
    let n_grants = swept.unwrap().n_grants;
    assert_eq!(n_grants, expected, "{lifetime:?} after {later_ms} ms");
}

#[tokio::test]
async fn a_sweep_deletes_what_has_ended() {
    let until = GrantLifetime::Until { at_ms: NOW_MS + 50 };
    check_swept(until, false, 49, 0).await;
    check_swept(until, false, 50, 1).await;
    check_swept(GrantLifetime::Always, false, 400 * DAY_MS, 0).await;
    check_swept(GrantLifetime::Once, false, 400 * DAY_MS, 0).await;
    check_swept(GrantLifetime::Once, true, DAY_MS, 0).await;
    check_swept(GrantLifetime::Once, true, DAY_MS + 1, 1).await;
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
            "cannot be: a host",
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
        let moved = store.rebind_grants(plugin("notes"), None, pin(1)).await;
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
             ALTER TABLE audit DROP COLUMN agreement;
             ALTER TABLE audit DROP COLUMN plugin; ALTER TABLE audit DROP COLUMN plugin_digest;
             DROP TABLE filter_savings; DROP TABLE revoked_defaults; DROP TABLE tokens;
             ALTER TABLE audit DROP COLUMN turn_id; ALTER TABLE audit DROP COLUMN goal_id; ALTER TABLE audit DROP COLUMN skill_name;
             ALTER TABLE audit DROP COLUMN host_pid; ALTER TABLE audit DROP COLUMN host_start; DROP TABLE tool_overflow_parts;
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
