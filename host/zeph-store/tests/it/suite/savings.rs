//! What shortening outputs saved.

use std::time::Duration;

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::id::ConversationId;
use zeph_store::{
    AskedCalls, CacheSavings, Failed, FilteredOutput, Retention, RuleCoverage, Savings, Store,
};

use crate::database::{Database, on_every_database};
use crate::setup::{NOW_MS, begin, success};

const DAY_MS: i64 = 86_400_000;

fn output(rules: &[&str], fit: RuleCoverage) -> FilteredOutput {
    FilteredOutput {
        rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        is_shortened: fit != RuleCoverage::Fallback,
        lines: (100, 10),
        bytes: (4_000, 400),
        fit,
    }
}

async fn of(store: &Store, conversation: Option<ConversationId>, rule: &str) -> Savings {
    let all = store.savings(conversation).await.unwrap();
    let found = all.iter().find(|savings| savings.rule == rule);
    found.cloned().unwrap_or_default()
}

async fn outputs_are_summed_by_conversation_and_rule<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (one, other) = (ConversationId::new(), ConversationId::new());
    store.count_filtered(one, output(&["a", "b"], RuleCoverage::Full), NOW_MS);
    store.count_filtered(one, output(&["a"], RuleCoverage::Fallback), NOW_MS);
    store.count_filtered(other, output(&["a"], RuleCoverage::Partial), NOW_MS);
    store.close().await.unwrap();

    let store = database.open();
    let rules: Vec<String> = store
        .savings(None)
        .await
        .unwrap()
        .into_iter()
        .map(|savings| savings.rule)
        .collect();
    assert_eq!(rules, ["", "a", "b"]);
    let a = Savings {
        rule: "a".to_owned(),
        n_outputs: 3,
        n_shortened: 2,
        lines_before: 300,
        lines_after: 30,
        bytes_before: 12_000,
        bytes_after: 1_200,
        n_full: 1,
        n_partial: 1,
        n_fallback: 1,
        n_read_back: 0,
    };
    assert_eq!(of(&store, None, "a").await, a);
    assert_eq!(of(&store, None, "").await.n_outputs, 3);
    assert_eq!(of(&store, Some(one), "a").await.n_outputs, 2);
    assert_eq!(of(&store, Some(other), "b").await.n_outputs, 0);
}

async fn an_output_is_read_back_once<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (owner, other) = (ConversationId::new(), ConversationId::new());
    let rules = vec!["a".to_owned(), "b".to_owned()];
    let content = b"raw \xff bytes".to_vec();
    let id = store
        .put_filtered(owner, content.clone(), rules, NOW_MS)
        .await
        .unwrap();
    assert_eq!(store.overflow(owner, id).await.unwrap(), Some(content));
    store.count_read_back(other, id);
    assert_eq!(of(&store, None, "a").await.n_read_back, 0);
    for _ in 0..3 {
        store.count_read_back(owner, id);
    }
    for rule in ["", "a", "b"] {
        assert_eq!(of(&store, Some(owner), rule).await.n_read_back, 1, "{rule}");
    }
    let cut = store
        .put_overflow(owner, b"x".to_vec(), NOW_MS)
        .await
        .unwrap();
    store.count_read_back(owner, cut);
    assert_eq!(
        of(&store, None, "").await.n_read_back,
        1,
        "no rule cut that one"
    );
}

async fn sums_outlive_their_conversation<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (old, new) = (ConversationId::new(), ConversationId::new());
    store.count_filtered(old, output(&["a"], RuleCoverage::Full), NOW_MS);
    store.count_filtered(
        new,
        output(&["a"], RuleCoverage::Full),
        NOW_MS + 10 * DAY_MS,
    );
    let swept = store
        .sweep(
            Retention::of_outputs(Duration::from_hours(24)),
            NOW_MS + 10 * DAY_MS,
        )
        .await
        .unwrap();
    assert_eq!(swept.n_conversations, 1);
    assert_eq!(of(&store, Some(old), "a").await.n_outputs, 0);
    assert_eq!(of(&store, Some(new), "a").await.n_outputs, 1);
    assert_eq!(of(&store, None, "a").await.n_outputs, 2);
}

async fn calls_that_were_answered_from_a_result_are_counted<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (one, other) = (ConversationId::new(), ConversationId::new());
    for (conversation, cached) in [
        (one, Some(10)),
        (one, None),
        (one, Some(4)),
        (other, Some(1)),
    ] {
        let begun = begin("read", conversation, NOW_MS);
        let mut finish = success(begun.call_id, NOW_MS + 1);
        finish.ending.cache_age_ms = cached.map(|_| 7);
        finish.ending.cache_bytes = cached;
        store.audit_begin(begun).await.unwrap();
        store.audit_finish(finish).await.unwrap();
    }
    let savings = |n_hits, bytes| CacheSavings { n_hits, bytes };
    for (conversation, expected) in [
        (None, savings(3, 15)),
        (Some(one), savings(2, 14)),
        (Some(ConversationId::new()), savings(0, 0)),
    ] {
        assert_eq!(store.cache_savings(conversation).await.unwrap(), expected);
    }
}

async fn calls_that_needed_a_person_are_counted<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (one, other) = (ConversationId::new(), ConversationId::new());
    for (conversation, asked, is_answered) in [
        (one, None, true),
        (one, Some(false), true),
        (one, Some(true), true),
        (one, Some(true), false),
        (other, Some(false), true),
    ] {
        let mut begun = begin("write", conversation, NOW_MS);
        begun.facts.asked = asked;
        let mut finish = success(begun.call_id, NOW_MS + 1);
        if !is_answered {
            finish.ending.failed = Some(Failed {
                category: ErrorCategory::ConfirmationRequired,
                phase: ErrorPhase::Setup,
            });
        }
        store.audit_begin(begun).await.unwrap();
        store.audit_finish(finish).await.unwrap();
    }
    let asked = |n_calls, n_asked, n_unanswered| AskedCalls {
        n_calls,
        n_asked,
        n_unanswered,
    };
    for (conversation, expected) in [
        (None, asked(4, 2, 1)),
        (Some(other), asked(1, 0, 0)),
        (Some(ConversationId::new()), AskedCalls::default()),
    ] {
        assert_eq!(store.asked_calls(conversation).await.unwrap(), expected);
    }
}

on_every_database! {
    any: [
        calls_that_needed_a_person_are_counted,
        calls_that_were_answered_from_a_result_are_counted,
        an_output_is_read_back_once,
        sums_outlive_their_conversation,
    ],
    lasting: [
        outputs_are_summed_by_conversation_and_rule,
    ],
}
