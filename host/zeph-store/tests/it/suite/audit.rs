//! The audit table: round trips, order, filters, JSON, and what a dead host leaves.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::HostUse;
use zeph_core::id::{CallId, CallPrefix, ConversationId, OverflowId};
use zeph_store::{
    AuditEvent, AuditFilter, AuditRecord, AuditResult, BeginFacts, BeginRecord, ClaimSource,
    Ending, Failed, Finish, HostProcess, StoreError, TokenUse,
};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, agreement, begin, n_rows, success};

fn full_begin() -> BeginRecord {
    BeginRecord {
        plugin: Some("notes".to_owned()),
        plugin_digest: Some(format!("sha256:{}", "0".repeat(64))),
        mcp_server_id: Some("git".to_owned()),
        claim_source: Some(ClaimSource::FileSystem),
        caller_id: Some("caller".to_owned()),
        turn_id: Some("turn-1".to_owned()),
        goal_id: Some("goal-1".to_owned()),
        skill_name: Some("release".to_owned()),
        policy_match: Some("rule 3: allow".to_owned()),
        agreement: Some(agreement()),
        adversarial_verdict: Some("DENY: it leaks".to_owned()),
        correlation_id: Some("c-1".to_owned()),
        resolved_cwd: Some("/home/ünïcode".to_owned()),
        host: Some(HostProcess {
            pid: 4711,
            start: "machine/boot/namespace/12345".to_owned(),
        }),
        facts: BeginFacts {
            user: Some("ann".to_owned()),
            scope: Some("run_as_user=web".to_owned()),
            trust: Some("trusted".to_owned()),
            labels: vec!["private".to_owned(), "untrusted".to_owned()],
            observed: Some("ask by rule 7".to_owned()),
            tokens: Some(TokenUse {
                input: 1_200,
                output: 34,
            }),
            asked: Some(true),
        },
        ..begin("read", ConversationId::new(), NOW_MS)
    }
}

fn endings() -> Vec<Ending> {
    let ending = |result, failed| Ending {
        result,
        duration_ms: 12,
        failed,
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
    let failed = |category, phase| Some(Failed { category, phase });
    let blocked = AuditResult::Blocked {
        reason: "denied\nby a rule".to_owned(),
    };
    let error = AuditResult::Error {
        message: "no such file".to_owned(),
    };
    let mut endings = vec![
        Ending {
            truncated: true,
            overflow_id: Some(OverflowId::new()),
            exit_code: None,
            execution_env: None,
            hosts: vec![HostUse {
                n_refused: 1,
                host: "example.org:443".to_owned(),
                n_connections: 2,
                sent_bytes: 3,
                received_bytes: 4,
            }],
            attempts: Some(3),
            cache_age_ms: Some(u64::from(u32::MAX)),
            cache_bytes: Some(0),
            labels: vec!["untrusted".to_owned()],
            ..ending(AuditResult::Success, None)
        },
        ending(
            blocked,
            failed(ErrorCategory::PolicyBlocked, ErrorPhase::Setup),
        ),
        ending(
            AuditResult::Timeout,
            failed(ErrorCategory::Timeout, ErrorPhase::Execution),
        ),
        ending(
            AuditResult::Cancelled,
            failed(ErrorCategory::Cancelled, ErrorPhase::ResultInterpretation),
        ),
    ];
    let failures = ErrorCategory::ALL.map(|category| failed(category, ErrorPhase::ParamHandling));
    endings.extend(failures.map(|failed| ending(error.clone(), failed)));
    endings
}

async fn rows_come_back_as_recorded<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut begins: Vec<BeginRecord> = ClaimSource::ALL
        .into_iter()
        .map(|source| BeginRecord {
            claim_source: Some(source),
            ..full_begin()
        })
        .collect();
    begins.push(begin("no_such_tool\n", ConversationId::new(), -1));
    for begin in begins {
        for ending in endings() {
            let begin = BeginRecord {
                call_id: CallId::new(),
                ..begin.clone()
            };
            let call = begin.call_id;
            store.audit_begin(begin.clone()).await.unwrap();
            let unfinished = AuditRecord {
                begin,
                finished_at_ms: None,
                ending: None,
            };
            assert_eq!(
                store.audit_record(call).await.unwrap(),
                Some(unfinished.clone())
            );
            let finish = Finish {
                call_id: call,
                at_ms: NOW_MS + 12,
                ending: ending.clone(),
            };
            store.audit_finish(finish).await.unwrap();
            let expected = AuditRecord {
                finished_at_ms: Some(NOW_MS + 12),
                ending: Some(ending),
                ..unfinished
            };
            assert_eq!(store.audit_record(call).await.unwrap(), Some(expected));
        }
    }
    assert_eq!(store.audit_record(CallId::new()).await.unwrap(), None);
}

async fn a_call_begins_once_and_ends_once<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let begin = full_begin();
    let call = begin.call_id;
    let early = store.audit_finish(success(call, NOW_MS)).await.unwrap_err();
    store.audit_begin(begin.clone()).await.unwrap();
    let twice = store.audit_begin(begin).await.unwrap_err();
    store.audit_finish(success(call, NOW_MS)).await.unwrap();
    let again = store.audit_finish(success(call, NOW_MS)).await.unwrap_err();
    for error in [early, twice, again] {
        assert!(
            matches!(error, StoreError::AuditOrder { call: named, .. } if named == call),
            "{error}"
        );
        assert!(error.to_string().contains(&call.to_string()));
    }
    assert_eq!(store.list_conversations(10).await.unwrap()[0].n_calls, 1);
}

/// Ends that are asked for at once, one of them twice and one of a call that never began: the others are written all the same.
async fn of_ends_at_once_only_the_wrong_ones_fail<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let mut calls = Vec::new();
    for _ in 0..40 {
        let begin = full_begin();
        calls.push(begin.call_id);
        store.audit_begin(begin).await.unwrap();
    }
    calls.extend([calls[7], CallId::new()]);
    let mut ends = JoinSet::new();
    for call in calls {
        let store = store.clone();
        ends.spawn(async move { store.audit_finish(success(call, NOW_MS)).await });
    }
    let ends = ends.join_all().await;
    let wrong: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    let unfinished = AuditFilter {
        unfinished_only: true,
        ..AuditFilter::newest(100)
    };
    assert_eq!(store.audit_query(unfinished).await.unwrap(), []);
    assert_eq!(n_rows(&store).await, 40);
}

async fn filters_select_and_order<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let conversations = [ConversationId::new(), ConversationId::new()];
    let mut calls = Vec::new();
    // Call number n: tool read or grep, conversation 0 or 1, at second n; even ones have ended, 4 and 8 in failure.
    for n in 0..10_u8 {
        let tool = if n < 5 { "read" } else { "grep" };
        let begin = begin(
            tool,
            conversations[usize::from(n % 3 == 0)],
            i64::from(n) * 1_000,
        );
        calls.push(CallPrefix::from(begin.call_id));
        let mut finish = success(begin.call_id, i64::from(n) * 1_000 + 7);
        if n == 4 || n == 8 {
            finish.ending.failed = Some(Failed {
                category: ErrorCategory::Timeout,
                phase: ErrorPhase::Execution,
            });
        }
        store.audit_begin(begin).await.unwrap();
        if n % 2 == 0 {
            store.audit_finish(finish).await.unwrap();
        }
    }
    let all = AuditFilter {
        newest_first: false,
        ..AuditFilter::newest(100)
    };
    let start = &calls[0].as_str()[..4];
    let cases: [(AuditFilter, &[i64]); 13] = [
        (all.clone(), &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (
            AuditFilter {
                call: Some(calls[6].clone()),
                ..all.clone()
            },
            &[6],
        ),
        (
            AuditFilter {
                call: start.parse().ok(),
                limit: 2,
                ..all.clone()
            },
            &[0, 1],
        ),
        (
            AuditFilter {
                call: "ffff".parse().ok(),
                ..all.clone()
            },
            &[],
        ),
        (AuditFilter::newest(3), &[9, 8, 7]),
        (
            AuditFilter {
                limit: 2,
                ..all.clone()
            },
            &[0, 1],
        ),
        (
            AuditFilter {
                limit: 0,
                ..all.clone()
            },
            &[],
        ),
        (
            AuditFilter {
                tool: Some("grep".to_owned()),
                ..all.clone()
            },
            &[5, 6, 7, 8, 9],
        ),
        (
            AuditFilter {
                tool: Some("' OR 1 --".to_owned()),
                ..all.clone()
            },
            &[],
        ),
        (
            AuditFilter {
                category: Some(ErrorCategory::Timeout),
                ..all.clone()
            },
            &[4, 8],
        ),
        (
            AuditFilter {
                conversation: Some(conversations[1]),
                ..all.clone()
            },
            &[0, 3, 6, 9],
        ),
        (
            AuditFilter {
                since_ms: Some(3_000),
                until_ms: Some(6_000),
                ..all.clone()
            },
            &[3, 4, 5],
        ),
        (
            AuditFilter {
                unfinished_only: true,
                since_ms: Some(4_000),
                ..all
            },
            &[5, 7, 9],
        ),
    ];
    for (filter, expected) in cases {
        let rows = store.audit_query(filter.clone()).await.unwrap();
        let seconds: Vec<i64> = rows.iter().map(|row| row.begin.at_ms / 1_000).collect();
        assert_eq!(seconds, expected, "{filter:?}");
    }
}

#[test]
fn json_has_the_fields_of_the_specification_and_no_nulls() {
    let full = full_begin();
    let plain = begin("read", full.conversation_id, 999);
    let (call, conversation) = (full.call_id, full.conversation_id);
    let overflow = OverflowId::new();
    let mut failed = success(call, NOW_MS + 1_000);
    failed.ending = Ending {
        result: AuditResult::Blocked {
            reason: "a rule".to_owned(),
        },
        failed: Some(Failed {
            category: ErrorCategory::PolicyBlocked,
            phase: ErrorPhase::Setup,
        }),
        truncated: true,
        overflow_id: Some(overflow),
        exit_code: None,
        execution_env: None,
        labels: vec!["untrusted".to_owned()],
        ..failed.ending
    };
    let begin_fields = json!({
        "call_id": call, "timestamp": "1753900000", "tool": "read", "command": "{\"path\":\"a.txt\"}",
        "conversation_id": conversation, "claim_source": "file_system", "caller_id": "caller",
        "turn_id": "turn-1", "goal_id": "goal-1", "skill_name": "release",
        "policy_match": "rule 3: allow", "agreement": {"how": "command_line", "who": "ann"},
        "adversarial_verdict": "DENY: it leaks", "correlation_id": "c-1", "resolved_cwd": "/home/ünïcode",
        "plugin": "notes", "plugin_digest": format!("sha256:{}", "0".repeat(64)), "mcp_server_id": "git",
        "host": {"pid": 4711, "start": "machine/boot/namespace/12345"},
        "user": "ann", "scope": "run_as_user=web", "trust": "trusted", "labels": ["private", "untrusted"],
        "observed": "ask by rule 7", "asked": true, "tokens": {"input": 1200, "output": 34},
    });
    let ending_fields = json!({
        "result": {"type": "blocked", "reason": "a rule"}, "duration_ms": 7, "error_category": "policy_blocked",
        "error_domain": "action", "error_phase": "setup", "truncated": true, "overflow_id": overflow,
        "result_labels": ["untrusted"],
    });
    let with = |mut fields: Value, more: Value| {
        let more = more.as_object().unwrap().clone();
        fields.as_object_mut().unwrap().extend(more);
        fields
    };
    let record = AuditRecord {
        begin: full.clone(),
        finished_at_ms: Some(1),
        ending: Some(failed.ending.clone()),
    };
    let event = |event: AuditEvent<'_>| serde_json::to_value(event).unwrap();
    assert_eq!(
        serde_json::to_value(&record).unwrap(),
        with(begin_fields.clone(), ending_fields.clone())
    );
    assert_eq!(
        event(AuditEvent::Begin(&full)),
        with(json!({"event": "begin"}), begin_fields)
    );
    let finish_head = json!({"event": "finish", "call_id": call, "timestamp": "1753900001"});
    assert_eq!(
        event(AuditEvent::Finish(&failed)),
        with(finish_head, ending_fields)
    );
    assert_eq!(
        serde_json::to_value(AuditRecord {
            begin: plain.clone(),
            finished_at_ms: None,
            ending: None
        })
        .unwrap(),
        json!({
            "call_id": plain.call_id, "timestamp": "0", "tool": "read", "command": "{\"path\":\"a.txt\"}",
            "conversation_id": conversation,
        })
    );
    assert_eq!(
        event(AuditEvent::Finish(&success(call, 0))),
        json!({"event": "finish", "call_id": call, "timestamp": "0", "result": {"type": "success"}, "duration_ms": 7})
    );
}

async fn a_begin_is_committed_when_it_resolves<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let watcher = database.open();
    for n_expected in 1..=50 {
        store.audit_begin(full_begin()).await.unwrap();
        assert_eq!(n_rows(&watcher).await, n_expected);
    }
}

async fn one_failing_operation_fails_alone<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let taken = full_begin();
    store.audit_begin(taken.clone()).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..200 {
        let (store, taken) = (store.clone(), taken.clone());
        let begin = if n % 10 == 0 { taken } else { full_begin() };
        tasks.spawn(async move { store.audit_begin(begin).await.is_ok() });
    }
    let n_ok = tasks.join_all().await.into_iter().filter(|ok| *ok).count();
    assert_eq!(n_ok, 180);
    assert_eq!(n_rows(&store).await, 181);
}

async fn what_is_queued_is_kept_by_close_and_by_drop<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let stale = store.clone();
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let store = store.clone();
        tasks.spawn(async move { store.audit_begin(full_begin()).await.is_ok() });
    }
    tokio::task::yield_now().await;
    store.close().await.unwrap();
    let n_ok = tasks.join_all().await.into_iter().filter(|ok| *ok).count();
    let error = stale.audit_begin(full_begin()).await.unwrap_err();
    assert!(matches!(error, StoreError::Closed { .. }), "{error}");
    assert!(matches!(
        stale.close().await,
        Err(StoreError::Closed { .. })
    ));

    let store = database.open();
    assert_eq!(n_rows(&store).await, n_ok);
    // A future that was polled once has queued its work; dropping it and the store loses nothing.
    {
        let queued = store.audit_begin(full_begin());
        let mut queued = std::pin::pin!(queued);
        let waker = std::task::Waker::noop();
        let polled = queued
            .as_mut()
            .poll(&mut std::task::Context::from_waker(waker));
        drop(polled);
    }
    drop(store);
    assert_eq!(n_rows(&database.open()).await, n_ok + 1);
}

on_every_database! {
    any: [
        rows_come_back_as_recorded,
        a_call_begins_once_and_ends_once,
        of_ends_at_once_only_the_wrong_ones_fail,
        filters_select_and_order,
        one_failing_operation_fails_alone,
    ],
    lasting: [
        a_begin_is_committed_when_it_resolves,
        what_is_queued_is_kept_by_close_and_by_drop,
    ],
}
