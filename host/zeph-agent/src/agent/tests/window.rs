//! What does not fit into the budget, or into the window of the model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::fake::{FakeHost, Lab, Model, calls, lab, limits, user_entry, with_limits};
use crate::agent::AgentLimits;
use crate::event::TurnStatus;
use crate::provider::Provider;
use crate::transcript::{Attachment, UserEntry};

/// A budget of 16,000 bytes.
fn small() -> AgentLimits {
    AgentLimits {
        context_budget_tokens: 4_000,
        ..limits()
    }
}

fn sent(lab: &Lab) -> Vec<String> {
    let requests = lab.model.requests().into_iter();
    requests.map(|request| request.turns.concat()).collect()
}

async fn attach(lab: &mut Lab, n_bytes: usize) -> TurnStatus {
    let entry = UserEntry {
        attachments: vec![Attachment {
            name: "huge.log".to_owned(),
            text: Some(format!("HEAD{}TAIL", "y".repeat(n_bytes))),
            image: None,
        }],
        ..user_entry("what does it say?")
    };
    let turn = lab.agent.turn(entry, &*lab.observer, &lab.cancel);
    turn.await.status
}

#[tokio::test]
async fn a_file_is_sent_before_it_is_compacted() {
    // Earlier messages, bytes of the file, and whether it is cut.
    for (n_earlier, n_bytes, is_cut) in [(0, 12_000, false), (6, 7_000, false), (6, 60_000, true)] {
        let model = Model::new([]).counting().summarises("what was before");
        let mut lab = with_limits(model, FakeHost::default(), small());
        for n in 0..n_earlier {
            lab.turn(&format!("{n} {}", "word ".repeat(200))).await;
        }
        assert_eq!(attach(&mut lab, n_bytes).await, TurnStatus::Done);
        let request = sent(&lab).pop().unwrap();
        assert!(request.contains("HEADyyyy") && request.contains("yyyyTAIL"));
        assert!(request.contains("what does it say?"));
        let n_sent = request.matches('y').count();
        assert_eq!(n_sent < n_bytes, is_cut, "{n_bytes}: {n_sent}");
        assert!(n_sent > 4_000, "{n_bytes}: {n_sent}");
        let is_named = request.contains("reads all of it as overflow:1");
        assert_eq!(is_named, is_cut, "{n_bytes}");
        let is_summed_up = request.contains("what was before");
        assert_eq!(is_summed_up, n_earlier > 0, "{n_bytes}");
    }
}

#[tokio::test]
async fn results_of_one_answer_are_seen_however_long_they_are() {
    let host = FakeHost::default();
    host.output_bytes.store(3_000, Ordering::Relaxed);
    let model = Model::new([calls(&["read"; 8])]).counting();
    let mut lab = with_limits(model, host, small());
    assert_eq!(lab.turn("look at all").await.status, TurnStatus::Done);
    assert_eq!(lab.model.requests().len(), 2);
    for (n, result) in (1..).zip(lab.results()) {
        assert!(result.starts_with(&format!("output {n}")), "{result}");
        assert!(result.ends_with("xxx"), "{result}");
        assert!(result.contains("overflow:1"), "{result}");
        assert!((900..2_000).contains(&result.len()), "{}", result.len());
    }
}

#[tokio::test]
async fn a_window_that_is_smaller_than_the_budget_is_found_once() {
    let model = Model::new([]).counting().summarises("what was before");
    let mut lab = lab(model.holding(8_000), FakeHost::default());
    for _ in 0..20 {
        let end = lab.turn(&"word ".repeat(300)).await;
        assert_eq!(end.status, TurnStatus::Done);
    }
    let n_refused = sent(&lab).iter().filter(|one| one.len() > 8_000).count();
    assert_eq!(n_refused, 1);
}

#[tokio::test]
async fn a_conversation_goes_on_with_a_model_of_a_small_window() {
    let mut lab = lab(Model::new([]).counting(), FakeHost::default());
    for n in 0..20 {
        lab.turn(&format!("{n} {}", "word ".repeat(1_200))).await;
    }
    let other = Model::new([]).counting().summarises("what was before");
    lab.model = Arc::new(other.holding(24_000));
    let provider = Arc::clone(&lab.model) as Arc<dyn Provider>;
    lab.agent.use_provider(provider);
    assert_eq!(lab.turn("and you?").await.status, TurnStatus::Done);
    let request = sent(&lab).pop().unwrap();
    assert!(request.contains("what was before") && request.contains("and you?"));
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_sent_without_its_middle() {
    let model = || Model::new([]).counting().summarises("what was before");
    let long = format!("HEAD{}what is it?", "y".repeat(60_000));
    let with_budget = with_limits(model(), FakeHost::default(), small());
    let with_window = lab(model().holding(16_000), FakeHost::default());
    for mut lab in [with_budget, with_window] {
        lab.turn("hello").await;
        assert_eq!(lab.turn(&long).await.status, TurnStatus::Done);
        let request = sent(&lab).pop().unwrap();
        for kept in [
            "HEADyyyy",
            "yyyywhat is it?",
            "reads all of it as overflow:1",
        ] {
            assert!(request.contains(kept), "{kept}");
        }
        assert_eq!(lab.turn("and now?").await.status, TurnStatus::Done);
    }
}

#[tokio::test]
async fn the_last_words_of_the_user_are_cut_for_a_model_of_a_small_window() {
    let mut lab = lab(Model::new([]).counting(), FakeHost::default());
    lab.turn(&"word ".repeat(10_000)).await;
    let other = Model::new([]).counting().summarises("what was before");
    lab.model = Arc::new(other.holding(16_000));
    let provider = Arc::clone(&lab.model) as Arc<dyn Provider>;
    lab.agent.use_provider(provider);
    assert_eq!(lab.turn("and you?").await.status, TurnStatus::Done);
}

#[tokio::test]
async fn a_prompt_that_is_too_long_for_the_model_says_what_helps() {
    let mut lab = lab(Model::new([]).holding(300), FakeHost::default());
    let end = lab.turn(&"word ".repeat(300)).await;
    let words = "`agent.context_budget_tokens`";
    assert!(end.status.to_string().contains(words), "{}", end.status);
    assert_eq!(lab.turn("hello").await.status, end.status);
}
