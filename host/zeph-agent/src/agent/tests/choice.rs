//! The choice of tools, and what calls take beside the requests of the loop.

use std::sync::atomic::Ordering;

use super::fake::{FakeHost, Lab, Model, calls, lab, limits, resumed_on, says, with_limits};
use crate::budget::BudgetLimits;
use crate::event::TurnStatus;
use crate::tool_host::{CallEnd, CallEndKind};
use crate::transcript::Transcript;
use crate::usage::{Cost, SideSpending, Usage};

fn choosing() -> FakeHost {
    let host = FakeHost::default();
    host.selects.store(true, Ordering::Relaxed);
    host
}

/// The tools of each request.
fn shown(lab: &Lab) -> Vec<String> {
    let requests = lab.model.requests().into_iter();
    requests.map(|request| request.tools).collect()
}

#[tokio::test]
async fn tools_are_chosen_once_and_stay_after_a_resume() {
    let model = Model::new([calls(&["edit"]), says("done"), says("and again")]);
    let mut first = lab(model, choosing());
    first.turn("read it").await;
    first.turn("now edit it").await;
    let tools = shown(&first);
    assert_eq!(tools.len(), 3);
    assert!(
        tools[0].contains("read") && !tools[0].contains("edit"),
        "{tools:?}"
    );
    assert!(tools.iter().all(|one| *one == tools[0]), "{tools:?}");
    assert_eq!(first.agent.host().n_selected.load(Ordering::Relaxed), 1);
    let stored = Transcript::load(first.agent.journal().entries());
    let mut later = resumed_on(Model::new([says("ok")]), choosing(), stored);
    later.turn("go on").await;
    assert_eq!(shown(&later), tools[..1]);
    assert_eq!(later.agent.host().n_selected.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_conversation_that_is_compacted_chooses_anew() {
    let host = choosing();
    host.output_bytes.store(9_000, Ordering::Relaxed);
    let model = Model::new([calls(&["read"]), says("done"), says("later")]);
    let narrow = crate::agent::AgentLimits {
        context_budget_tokens: 4_000,
        ..limits()
    };
    let mut lab = with_limits(model.summarises("short"), host, narrow);
    lab.turn("read it").await;
    let is_shorter = lab.agent.compact_now(&*lab.observer, &lab.cancel).await;
    assert_eq!(is_shorter, Ok(true));
    lab.turn("and then").await;
    let tools = shown(&lab);
    assert!(tools[0].contains("read"), "{tools:?}");
    assert!(tools.last().unwrap().contains("edit"), "{tools:?}");
    let stored = Transcript::load(lab.agent.journal().entries());
    assert_eq!(stored.tools(), lab.agent.transcript().tools());
}

#[tokio::test]
async fn what_choosing_tools_takes_counts_also_after_a_resume() {
    let took = SideSpending {
        usage: Usage {
            input: 40,
            ..Usage::default()
        },
        cost: Cost::from_usd(0.5),
        requests: 2,
    };
    let host = choosing();
    *host.selecting.lock().unwrap() = took;
    let mut first = lab(Model::new([says("done"), says("again")]), host);
    first.turn("read it").await;
    first.turn("and again").await;
    let spent = *first.agent.spending();
    // Two answers of 10 and 5 tokens, and one choice.
    assert_eq!((spent.usage.total(), spent.requests), (70, 4));
    let stored = Transcript::load(first.agent.journal().entries());
    assert_eq!(stored.side_spending(), took);
    let later = resumed_on(Model::new([]), FakeHost::default(), stored);
    assert_eq!(later.agent.spending().usage.total(), 70);
    assert_eq!(later.agent.spending().cost, spent.cost);
}

fn judged() -> CallEnd {
    CallEnd {
        spent: SideSpending {
            usage: Usage {
                input: 50,
                ..Usage::default()
            },
            cost: Cost::from_usd(0.25),
            requests: 1,
        },
        ..CallEnd::of(CallEndKind::Done, "seen")
    }
}

#[tokio::test]
async fn what_calls_take_counts_in_the_budget_and_is_stored() {
    let host = FakeHost::default();
    host.end_with(judged());
    let bounded = crate::agent::AgentLimits {
        budget: BudgetLimits {
            max_total_tokens: Some(60),
            ..BudgetLimits::default()
        },
        ..limits()
    };
    let model = Model::new([calls(&["read"]), says("never said")]);
    let mut lab = with_limits(model, host, bounded);
    let end = lab.turn("look").await;
    assert!(
        matches!(end.status, TurnStatus::Budget(_)),
        "{:?}",
        end.status
    );
    let spending = *lab.agent.spending();
    assert_eq!((spending.usage.total(), spending.requests), (65, 2));
    let stored = Transcript::load(lab.agent.journal().entries());
    assert_eq!(stored.side_spending().usage.input, 50);
    let later = resumed_on(Model::new([]), FakeHost::default(), stored);
    assert_eq!(later.agent.spending().usage, spending.usage);
    assert_eq!(later.agent.spending().cost, spending.cost);
}

#[tokio::test]
async fn what_other_models_cost_keeps_its_price_when_a_conversation_is_compacted() {
    let host = FakeHost::default();
    host.end_with(CallEnd {
        text: "seen ".repeat(1_800),
        ..judged()
    });
    let narrow = crate::agent::AgentLimits {
        context_budget_tokens: 4_000,
        ..limits()
    };
    let model = Model::new([calls(&["read"]), says("done"), says("later")]);
    let mut lab = with_limits(model.summarises("short"), host, narrow);
    lab.turn("look").await;
    lab.turn("and then").await;
    let is_shorter = lab.agent.compact_now(&*lab.observer, &lab.cancel).await;
    assert_eq!(is_shorter, Ok(true));
    let spending = *lab.agent.spending();
    assert!(spending.cost >= judged().spent.cost, "{spending:?}");
    let stored = Transcript::load(lab.agent.journal().entries());
    assert_eq!(stored.side_spending(), judged().spent);
    let later = resumed_on(Model::new([]), FakeHost::default(), stored);
    assert_eq!(later.agent.spending().usage, spending.usage);
    assert_eq!(later.agent.spending().cost, spending.cost);
}
