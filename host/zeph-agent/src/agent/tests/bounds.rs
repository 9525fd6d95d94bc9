//! What stops a turn: rounds, loops, the context, the budget; and compaction, which lets it go on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::fake::{FakeHost, Model, calls, limits, says, with_limits};
use crate::agent::AgentLimits;
use crate::budget::{BudgetLimits, Exhausted};
use crate::event::TurnStatus;
use crate::message::Turn;
use crate::transcript::tests::assert_valid;
use crate::transcript::{Transcript, TranscriptEntry};

/// A model that calls tools for ever.
fn restless(tool: &str) -> Model {
    let model = Model::new([]);
    model.then(calls(&[tool]));
    model
}

#[tokio::test]
async fn rounds_are_bounded() {
    let mut lab = with_limits(restless("edit"), FakeHost::default(), limits());
    let end = lab.turn("for ever").await;
    assert_eq!(end.status, TurnStatus::IterationLimit { max: 10 });
    assert_eq!(lab.agent.host().made().len(), 10);
    assert_valid(&lab.agent.transcript().turns());
}

#[tokio::test]
async fn identical_outputs_are_a_doom_loop() {
    let host = FakeHost::default();
    let end = crate::tool_host::CallEnd::of(crate::tool_host::CallEndKind::Failed, "no such file");
    host.end_with(end);
    let mut lab = with_limits(restless("edit"), host, limits());
    let end = lab.turn("for ever").await;
    assert_eq!(end.status, TurnStatus::DoomLoop);
    assert_eq!(
        end.status.to_string(),
        "Stopping: detected repeated identical tool outputs."
    );
    assert_eq!(lab.agent.host().made().len(), 3);
}

#[tokio::test]
async fn outputs_that_differ_in_what_the_host_adds_are_a_doom_loop() {
    let host = FakeHost::default();
    host.is_aging.store(true, Ordering::Relaxed);
    let mut lab = with_limits(restless("read"), host, limits());
    let end = lab.turn("for ever").await;
    assert_eq!(end.status, TurnStatus::DoomLoop);
    assert_eq!(lab.agent.host().made().len(), 3);
}

#[tokio::test]
async fn a_call_ends_with_the_time_of_its_turn() {
    let max = Duration::from_millis(50);
    let budget = BudgetLimits {
        max_wall: Some(max),
        ..BudgetLimits::default()
    };
    let limits = AgentLimits { budget, ..limits() };
    let host = FakeHost::default();
    host.is_endless.store(true, Ordering::Relaxed);
    let mut lab = with_limits(restless("edit"), host, limits);
    let end = lab.turn("wait").await;
    assert_eq!(end.status, TurnStatus::Budget(Exhausted::Wall { max }));
    assert!(
        lab.results()[0].contains("cancelled"),
        "{:?}",
        lab.results()
    );
    assert!(!lab.cancel.is_cancelled());
    assert_valid(&lab.agent.transcript().turns());
}

#[tokio::test]
async fn budgets_are_checked_before_every_request() {
    let cases = [
        (
            BudgetLimits {
                max_cost_usd: Some(15.0),
                ..BudgetLimits::default()
            },
            2,
        ),
        (
            BudgetLimits {
                max_total_tokens: Some(30),
                ..BudgetLimits::default()
            },
            2,
        ),
        (
            BudgetLimits {
                max_wall: Some(Duration::ZERO),
                ..BudgetLimits::default()
            },
            0,
        ),
    ];
    for (budget, n_requests) in cases {
        let limits = AgentLimits { budget, ..limits() };
        let mut lab = with_limits(restless("edit"), FakeHost::default(), limits);
        let end = lab.turn("for ever").await;
        assert!(matches!(end.status, TurnStatus::Budget(_)), "{end:?}");
        assert_eq!(lab.model.requests().len(), n_requests, "{end:?}");
        assert_valid(&lab.agent.transcript().turns());
    }
    assert!(
        Exhausted::Tokens { max: 30 }
            .to_string()
            .contains("agent.max_total_tokens")
    );
}

#[tokio::test]
async fn a_full_context_stops_the_turn_where_nothing_is_compacted() {
    let limits = AgentLimits {
        compaction: false,
        context_budget_tokens: 1_000,
        ..limits()
    };
    let model = Model::new([calls(&["read"]).taking(800), says("never")]);
    let mut lab = with_limits(model, FakeHost::default(), limits);
    let end = lab.turn("look").await;
    assert_eq!(end.status, TurnStatus::ContextFull);
    assert_eq!(
        end.status.to_string(),
        "Stopping: context window is nearly full."
    );
    assert_eq!(lab.model.requests().len(), 1);
}

#[tokio::test]
async fn a_budget_holds_for_a_session_that_goes_on() {
    let mut first = with_limits(restless("edit"), FakeHost::default(), limits());
    first.turn("for ever").await;
    let stored = Transcript::load(first.agent.journal().entries());
    let resumed = super::fake::resumed(restless("edit"), stored);
    assert_eq!(resumed.agent.spending().usage, first.agent.spending().usage);
    assert_eq!(resumed.agent.spending().cost, first.agent.spending().cost);
}

fn small() -> AgentLimits {
    AgentLimits {
        context_budget_tokens: 4_000,
        max_tool_iterations: 100,
        ..limits()
    }
}

#[tokio::test]
async fn old_results_go_first_and_stay_readable() {
    let host = FakeHost::default();
    host.output_bytes.store(2_000, Ordering::Relaxed);
    let answers = (0..6).map(|_| calls(&["edit"]));
    let model = Model::new(answers).counting();
    model.then_says("done");
    let mut lab = with_limits(model, host, small());
    let end = lab.turn("look at everything").await;
    assert_eq!(end.status, TurnStatus::Done);
    let results = lab.results();
    assert!(
        results[0].contains("`read_overflow` reads them as overflow:1"),
        "{}",
        results[0]
    );
    assert!(results.last().unwrap().contains("xxx"));
    assert!(lab.agent.context_tokens() < 4_000 * 7 / 10);
    assert_valid(&lab.agent.transcript().turns());
}

#[tokio::test]
async fn a_summary_keeps_the_words_of_the_user_and_what_stands() {
    let model = Model::new([]).counting();
    model.then_says("the summary of it all");
    let mut lab = with_limits(model, FakeHost::default(), small());
    for n in 0..12 {
        lab.turn(&format!("request {n} {}", "word ".repeat(200)))
            .await;
    }
    let turns = lab.agent.transcript().turns();
    assert_valid(&turns);
    let Turn::User(first) = &turns[0] else {
        panic!()
    };
    let text = first.content[0].as_text().unwrap();
    assert!(text.contains("the summary of it all"), "{text}");
    assert!(text.contains("approved: write:src/**"), "{text}");
    assert!(text.contains("<user>\nrequest "), "{text}");
    assert!(lab.agent.context_tokens() < 4_000);
}

#[tokio::test]
async fn a_summary_that_is_not_shorter_is_not_used() {
    let model = Model::new([]).counting().summarises(&"long ".repeat(5_000));
    let mut lab = with_limits(model, FakeHost::default(), small());
    let mut ends = Vec::new();
    for _ in 0..19 {
        ends.push(lab.turn(&"word ".repeat(140)).await.status);
    }
    assert_eq!(ends.last(), Some(&TurnStatus::ContextFull), "{ends:?}");
    let notices = lab.observer.notices.lock().unwrap().clone();
    assert!(
        notices.iter().any(|notice| notice.contains("not shorter")),
        "{notices:?}"
    );
    let is_base = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::Base(_));
    let entries = lab.agent.journal().entries();
    assert!(!entries.iter().any(is_base));
    // What it took is known after a resume.
    let stored = Transcript::load(entries);
    let usage = stored.usage() + stored.side_spending().usage;
    assert_eq!(usage, lab.agent.spending().usage);
}

#[tokio::test]
async fn a_turn_compacts_three_times_and_no_more() {
    let host = FakeHost::default();
    host.output_bytes.store(9_000, Ordering::Relaxed);
    let mut lab = with_limits(restless("edit").counting(), host, small());
    let end = lab.turn("read on").await;
    let notices = lab.observer.notices.lock().unwrap().clone();
    let n_compacted = notices
        .iter()
        .filter(|notice| *notice == "compacted")
        .count();
    assert!(n_compacted <= 3, "{notices:?}");
    assert_eq!(end.status, TurnStatus::ContextFull);
    assert_valid(&lab.agent.transcript().turns());
}

#[tokio::test]
async fn a_long_turn_is_compacted_as_often_as_it_fills_up() {
    let limits = AgentLimits {
        max_tool_iterations: 60,
        ..small()
    };
    // One result fits into the room that compaction leaves, or three.
    for n_bytes in [5_000, 1_800] {
        let host = FakeHost::default();
        host.output_bytes.store(n_bytes, Ordering::Relaxed);
        let model = restless("edit").counting().summarises("They were edited.");
        let mut lab = with_limits(model, host, limits.clone());
        let end = lab.turn("read on").await;
        assert_eq!(end.status, TurnStatus::IterationLimit { max: 60 });
        let notices = lab.observer.notices.lock().unwrap().clone();
        let compacted = notices.iter().filter(|notice| *notice == "compacted");
        assert!(compacted.count() > 3, "{notices:?}");
    }
}

#[tokio::test]
async fn what_is_kept_is_bounded_by_the_context_and_not_by_the_number_of_rounds() {
    const TURNS: usize = 40;
    let limits = AgentLimits {
        max_tool_iterations: 25,
        ..small()
    };
    let host = FakeHost::default();
    host.output_bytes.store(200, Ordering::Relaxed);
    let model = restless("edit").counting().summarises("They were edited.");
    let mut lab = with_limits(model, host, limits);
    let mut kept = Vec::new();
    for turn in 0..TURNS {
        let end = lab.turn(&format!("round {turn}")).await;
        assert_eq!(end.status, TurnStatus::IterationLimit { max: 25 });
        let transcript = lab.agent.transcript();
        kept.push((
            transcript.entries().len(),
            crate::compaction::transcript_bytes(transcript),
        ));
    }
    assert_eq!(lab.agent.host().made().len(), 25 * TURNS);
    let most = |kept: &[(usize, u64)]| {
        let entries = kept.iter().map(|(entries, _)| *entries).max();
        let bytes = kept.iter().map(|(_, bytes)| *bytes).max();
        (entries.unwrap(), bytes.unwrap())
    };
    let (early, late) = (most(&kept[..TURNS / 2]), most(&kept[TURNS / 2..]));
    assert!(late.1 <= 4_000 * 4, "{kept:?}");
    assert!(
        late.0 <= early.0 + 10 && late.1 <= early.1 + 2_000,
        "{kept:?}"
    );
}
