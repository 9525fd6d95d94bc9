//! The begin of a call takes what the call holds for itself alone: all of it or nothing, and no two calls the same.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use zeph_core::argument::Parameters;
use zeph_core::capability::Capability;
use zeph_core::id::{ConversationId, Digest, Pin, PluginId, ToolName};
use zeph_core::lifetime::{GrantLifetime, Lifetime};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_store::{
    AuditFile, AuditFilter, BoundCall, CallBegin, OldGrants, Revoke, SingleUseRights, Store,
    StoreError,
};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, agreement, begin, n_rows, success};

fn pin(n: u8) -> Pin {
    Pin {
        wasm: Digest::new([n; 32]),
        tools: Digest::new([9; 32]),
    }
}

fn notes() -> PluginId {
    PluginId("notes".to_owned())
}

/// A call of `bash` that a person can approve.
fn bound() -> BoundCall {
    let tool = Tool {
        name: ToolName::new("bash").unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(json!({ "type": "object" })).unwrap(),
        output: None,
        kind: ToolKind::Execute,
        annotations: Annotations::default(),
        backend: Backend::Shell,
    };
    BoundCall::new(&tool, None, &Map::new(), None)
}

/// A store with one approval for once and one grant for one call: both as a call that leans on them names them.
pub(crate) async fn once_rights(store: &Store) -> SingleUseRights {
    let conversation = ConversationId::new();
    let approval = store.approve_call(bound(), Lifetime::Once, agreement(), conversation, NOW_MS);
    let given = vec![Capability::Host("a.example".parse().unwrap())];
    let granted = store.add_grants(notes(), pin(1), given, GrantLifetime::Once, NOW_MS);
    SingleUseRights {
        approval: Some(approval.await.unwrap().id),
        grants: granted.await.unwrap(),
        ..SingleUseRights::default()
    }
}

async fn begin_with(store: &Store, rights: SingleUseRights) -> CallBegin {
    let begin = begin("bash", ConversationId::new(), NOW_MS);
    let begun = store.begin_call(Some(begin), rights, NOW_MS).await;
    begun.unwrap()
}

/// How many approvals and grants are there for the next call.
async fn n_left(store: &Store) -> (usize, usize) {
    let approvals = store.list_approvals(NOW_MS).await.unwrap();
    let grants = store.list_grants(None).await.unwrap();
    (approvals.len(), grants.len())
}

async fn calls_at_once_never_share_a_right<D: Database>() {
    let database = D::fresh();
    let hosts: [Store; 4] = std::array::from_fn(|_| database.open());
    let rights = once_rights(&hosts[0]).await;
    let mut calls = JoinSet::new();
    for n in 0..20 {
        let (store, rights) = (hosts[n % hosts.len()].clone(), rights.clone());
        calls.spawn(async move { begin_with(&store, rights).await });
    }
    let begun = calls.join_all().await;
    let n_recorded = begun.iter().filter(|begun| **begun == CallBegin::Recorded);
    assert_eq!(n_recorded.count(), 1);
    // The others left no trace.
    assert_eq!(n_rows(&hosts[1]).await, 1);
    assert_eq!(n_left(&hosts[2]).await, (0, 0));
}

async fn a_call_takes_all_it_leans_on_or_nothing<D: Database>() {
    for revoked_first in [true, false] {
        let database = D::fresh();
        let store = database.open();
        let rights = once_rights(&store).await;
        let left = match revoked_first {
            true => {
                store
                    .revoke_approval(rights.approval.unwrap())
                    .await
                    .unwrap();
                (0, 1)
            }
            false => {
                store.revoke_grants(notes(), Revoke::All).await.unwrap();
                (1, 0)
            }
        };
        assert_eq!(begin_with(&store, rights).await, CallBegin::RightGone);
        assert_eq!(n_left(&store).await, left);
        assert_eq!(n_rows(&store).await, 0);
    }
}

async fn a_call_that_cannot_be_recorded_takes_nothing<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let rights = once_rights(&store).await;
    let begin = begin("bash", ConversationId::new(), NOW_MS);
    store.audit_begin(begin.clone()).await.unwrap();
    let twice = store.begin_call(Some(begin), rights, NOW_MS).await;
    assert!(
        matches!(twice, Err(StoreError::AuditOrder { .. })),
        "{twice:?}"
    );
    assert_eq!(n_left(&store).await, (1, 1));
}

async fn a_grant_that_moved_to_another_version_is_gone<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let rights = once_rights(&store).await;
    store
        .rebind_grants(notes(), None, pin(2), OldGrants::Go)
        .await
        .unwrap();
    assert_eq!(begin_with(&store, rights).await, CallBegin::RightGone);
    assert_eq!(n_left(&store).await, (1, 1));
}

async fn an_approval_that_was_made_longer_is_not_used_up<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let rights = once_rights(&store).await;
    let conversation = ConversationId::new();
    let always = store.approve_call(bound(), Lifetime::Always, agreement(), conversation, NOW_MS);
    always.await.unwrap();
    assert_eq!(begin_with(&store, rights).await, CallBegin::RightGone);
    assert_eq!(n_left(&store).await, (1, 1));
}

async fn the_end_gives_back_what_was_not_used_and_completes_the_row<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let rights = once_rights(&store).await;
    let begin = begin("bash", ConversationId::new(), NOW_MS);
    let call = begin.call_id;
    let begun = store.begin_call(Some(begin), rights.clone(), NOW_MS).await;
    assert_eq!(begun.unwrap(), CallBegin::Recorded);
    assert_eq!(n_left(&store).await, (0, 0));
    let finish = success(call, NOW_MS);
    let finished = store.finish_call(Some(finish), rights.grants);
    finished.await.unwrap();
    let record = store.audit_record(call).await.unwrap().unwrap();
    assert!(record.ending.is_some());
    // The approval let it run: it stays used up.
    assert_eq!(n_left(&store).await, (0, 1));
}

/// A host with an audit file, and the path of that.
fn with_file<D: Database>(database: &D, folder: &TempDir) -> (Store, PathBuf) {
    let path = folder.path().join("audit.jsonl");
    let file = AuditFile::open(&path, 0).unwrap();
    (database.open().with_audit_file(file), path)
}

async fn the_file_has_a_line_for_each_begin_and_end_and_none_for_what_did_not_begin<D: Database>() {
    let (database, folder) = (D::fresh(), tempfile::tempdir().unwrap());
    let (store, path) = with_file(&database, &folder);
    let rights = once_rights(&store).await;
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let (store, rights) = (store.clone(), rights.clone());
        calls.spawn(async move {
            let begin = begin("bash", ConversationId::new(), NOW_MS);
            let call = begin.call_id;
            let begun = store.begin_call(Some(begin), rights, NOW_MS).await.unwrap();
            if begun == CallBegin::Recorded {
                let finish = Some(success(call, NOW_MS));
                store.finish_call_soon(finish, Vec::new()).await.unwrap();
            }
        });
    }
    calls.join_all().await;
    // Whatever is asked later sees the end.
    let rows = store.audit_query(AuditFilter::newest(100)).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert!(rows[0].ending.is_some());
    let text = std::fs::read_to_string(path).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events: Vec<&Value> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(events, ["begin", "finish"], "{text}");
}

async fn a_call_without_its_line_in_the_file_does_not_begin<D: Database>() {
    let (database, folder) = (D::fresh(), tempfile::tempdir().unwrap());
    let (store, path) = with_file(&database, &folder);
    let rights = once_rights(&store).await;
    // Neither to write nor to open anew: for root too.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let lost = begin("bash", ConversationId::new(), NOW_MS);
    let begun = store.begin_call(Some(lost), rights.clone(), NOW_MS).await;
    assert!(
        matches!(begun, Err(StoreError::AuditFile { .. })),
        "{begun:?}"
    );
    assert_eq!((n_rows(&store).await, n_left(&store).await), (0, (1, 1)));
    std::fs::remove_dir(&path).unwrap();
    assert_eq!(begin_with(&store, rights).await, CallBegin::Recorded);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
}

on_every_database! {
    any: [
        a_call_takes_all_it_leans_on_or_nothing,
        a_call_that_cannot_be_recorded_takes_nothing,
        a_grant_that_moved_to_another_version_is_gone,
        an_approval_that_was_made_longer_is_not_used_up,
        the_end_gives_back_what_was_not_used_and_completes_the_row,
        the_file_has_a_line_for_each_begin_and_end_and_none_for_what_did_not_begin,
        a_call_without_its_line_in_the_file_does_not_begin,
    ],
    lasting: [
        calls_at_once_never_share_a_right,
    ],
}
