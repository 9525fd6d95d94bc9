//! What a session has used up: it stays what it was when prices change and when the conversation is cleared, and is estimated where a
//! provider does not report it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::fake::{FakeHost, Lab, Model, breaks, calls, lab, limits, resumed, says, with_limits};
use crate::agent::AgentLimits;
use crate::budget::BudgetLimits;
use crate::event::TurnStatus;
use crate::provider::Provider;
use crate::transcript::{Transcript, TranscriptEntry};
use crate::usage::Cost;

fn stored(lab: &Lab) -> Transcript {
    Transcript::load(lab.agent.journal().entries())
}

/// One answer of 10 tokens at 1 USD each, and one at 3 USD each.
async fn of_two_models() -> Lab {
    let mut lab = lab(Model::new([says("first")]), FakeHost::default());
    lab.turn("one").await;
    let other = Model::new([says("second")]).costing(3_000_000.0);
    lab.agent.use_provider(Arc::new(other) as Arc<dyn Provider>);
    lab.turn("two").await;
    assert_eq!(lab.agent.spending().cost, Cost::from_usd(40.0));
    lab
}

#[tokio::test]
async fn answers_keep_the_price_they_had_when_the_session_goes_on_with_another_model() {
    let lab = of_two_models().await;
    for price in [0.0, 3_000_000.0, 9_000_000.0] {
        let later = resumed(Model::new([]).costing(price), stored(&lab));
        assert_eq!(later.agent.spending().cost, Cost::from_usd(40.0));
    }
}

#[tokio::test]
async fn answers_keep_the_price_they_had_when_the_conversation_is_cleared() {
    let mut lab = of_two_models().await;
    lab.agent.clear().await.unwrap();
    let spending = *lab.agent.spending();
    let later = resumed(Model::new([]), stored(&lab));
    assert_eq!(later.agent.spending().cost, spending.cost);
    assert_eq!(later.agent.spending().usage, spending.usage);
}

#[tokio::test]
async fn answers_stored_without_their_cost_have_the_price_of_today() {
    let lab = of_two_models().await;
    let entries = lab.agent.journal().entries().into_iter().map(|mut entry| {
        if let TranscriptEntry::Assistant(answer) = &mut entry {
            answer.cost = None;
        }
        entry
    });
    let later = resumed(
        Model::new([]).costing(2_000_000.0),
        Transcript::load(entries),
    );
    assert_eq!(later.agent.spending().cost, Cost::from_usd(40.0));
}

#[tokio::test]
async fn a_cleared_conversation_is_not_there_again_after_a_resume() {
    let model = Model::new([calls(&["edit"]), says("done"), says("anew")]);
    let mut lab = lab(model, FakeHost::default());
    lab.turn("the first secret").await;
    lab.agent.clear().await.unwrap();
    assert!(stored(&lab).entries().is_empty());
    lab.turn("something else").await;
    let turns = &lab.model.requests()[2].turns;
    assert_eq!(turns.len(), 1, "{turns:?}");
    let later = resumed(Model::new([]), stored(&lab));
    let turns = format!("{:?}", later.agent.transcript().turns());
    assert!(turns.contains("something else"), "{turns}");
    assert!(!turns.contains("the first secret"), "{turns}");
}

#[tokio::test]
async fn bounds_hold_where_a_provider_reports_no_usage() {
    let by_tokens = AgentLimits {
        budget: BudgetLimits {
            max_total_tokens: Some(2_000),
            ..BudgetLimits::default()
        },
        ..limits()
    };
    let by_cost = AgentLimits {
        budget: BudgetLimits {
            max_cost_usd: Some(2_000.0),
            ..BudgetLimits::default()
        },
        ..limits()
    };
    let by_context = AgentLimits {
        compaction: false,
        context_budget_tokens: 2_000,
        ..limits()
    };
    for limits in [by_tokens, by_cost, by_context] {
        let host = FakeHost::default();
        host.output_bytes.store(2_000, Ordering::Relaxed);
        let model = Model::new([]).silent();
        model.then(calls(&["edit"]));
        let mut lab = with_limits(model, host, limits);
        let end = lab.turn("for ever").await;
        let status = &end.status;
        assert!(
            matches!(status, TurnStatus::Budget(_) | TurnStatus::ContextFull),
            "{status:?}"
        );
        let usage = lab.agent.spending().usage;
        assert_eq!(usage.estimated, usage.total());
        let later = resumed(Model::new([]), stored(&lab));
        assert_eq!(later.agent.spending().usage, usage);
    }
}

#[tokio::test]
async fn an_answer_that_fails_or_is_cancelled_counts_as_far_as_it_came() {
    for is_cancelled in [false, true] {
        let mut lab = lab(Model::new([breaks()]), FakeHost::default());
        if is_cancelled {
            // At the text: before it comes that the model is waited for.
            lab.observer.cancel_at(1);
        }
        let status = lab.turn("go").await.status;
        let is_as_meant = match is_cancelled {
            true => matches!(status, TurnStatus::Interrupted),
            false => matches!(status, TurnStatus::ProviderFailed(_)),
        };
        assert!(is_as_meant, "{status:?}");
        let spending = *lab.agent.spending();
        // What was said and not reported is about a hundred tokens.
        assert_eq!((spending.usage.input, spending.usage.output), (10, 100));
        assert_eq!(spending.usage.estimated, 99);
        assert_eq!(spending.cost, Cost::from_usd(10.0));
        let later = resumed(Model::new([]), stored(&lab));
        assert_eq!(later.agent.spending().usage, spending.usage);
        assert_eq!(later.agent.spending().cost, spending.cost);
    }
}

#[tokio::test]
async fn what_a_provider_reports_is_no_estimate() {
    let lab = of_two_models().await;
    assert_eq!(lab.agent.spending().usage.estimated, 0);
}
