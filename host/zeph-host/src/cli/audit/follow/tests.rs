use std::time::Duration;

use zeph_core::id::{CallId, ConversationId};
use zeph_store::{
    AuditResult, BeginFacts, BeginRecord, Ending, Finish, Location, Store, StoreOptions,
};

use super::FollowState;

fn store() -> Store {
    let options = StoreOptions {
        at_ms: 0,
        busy_timeout: Duration::from_secs(1),
    };
    Store::open(Location::Memory, options).unwrap().store
}

async fn begin(store: &Store, at_ms: i64) -> CallId {
    let call_id = CallId::new();
    let begin = BeginRecord {
        call_id,
        at_ms,
        tool: "read".to_owned(),
        plugin: None,
        plugin_digest: None,
        mcp_server_id: None,
        command: "{}".to_owned(),
        conversation_id: ConversationId::new(),
        claim_source: None,
        caller_id: None,
        turn_id: None,
        goal_id: None,
        skill_name: None,
        policy_match: None,
        agreement: None,
        adversarial_verdict: None,
        correlation_id: None,
        resolved_cwd: None,
        host: None,
        facts: BeginFacts::default(),
    };
    store.audit_begin(begin).await.unwrap();
    call_id
}

async fn finish(store: &Store, call_id: CallId) {
    let ending = Ending {
        result: AuditResult::Success,
        duration_ms: 1,
        failed: None,
        truncated: false,
        overflow_id: None,
        exit_code: None,
        execution_env: None,
        hosts: Vec::new(),
        attempts: None,
        cache_age_ms: None,
        cache_bytes: None,
        labels: Vec::new(),
    };
    let finish = Finish {
        call_id,
        at_ms: 0,
        ending,
    };
    store.audit_finish(finish).await.unwrap();
}

async fn news(followed: &mut FollowState, store: &Store) -> Vec<CallId> {
    let news = followed.news(store).await.unwrap();
    news.iter().map(|record| record.begin.call_id).collect()
}

#[tokio::test]
async fn every_end_is_news_once() {
    let store = store();
    let before = begin(&store, 99_000).await;
    finish(&store, before).await;
    let running = begin(&store, 99_500).await;
    let mut followed = FollowState::after(&store, &[], 100_000).await.unwrap();
    assert!(news(&mut followed, &store).await.is_empty());

    let long = begin(&store, 101_000).await;
    let short = begin(&store, 102_000).await;
    finish(&store, short).await;
    assert_eq!(news(&mut followed, &store).await, [short]);
    assert!(news(&mut followed, &store).await.is_empty());

    // Committed late by another process, and the end of a call that began before everything.
    let late = begin(&store, 100_500).await;
    finish(&store, late).await;
    finish(&store, running).await;
    assert_eq!(news(&mut followed, &store).await, [running, late]);

    let later = begin(&store, 900_000).await;
    finish(&store, later).await;
    finish(&store, long).await;
    assert_eq!(news(&mut followed, &store).await, [long, later]);
    assert!(news(&mut followed, &store).await.is_empty());
}

/// More rows than one query reads, within the time that is looked back.
#[tokio::test]
async fn a_burst_is_read_to_its_end() {
    let store = store();
    let mut followed = FollowState::after(&store, &[], 0).await.unwrap();
    let mut calls = Vec::new();
    for idx in 0..2_500 {
        let call = begin(&store, idx).await;
        finish(&store, call).await;
        calls.push(call);
    }
    assert_eq!(news(&mut followed, &store).await, calls);
    assert!(news(&mut followed, &store).await.is_empty());
}
