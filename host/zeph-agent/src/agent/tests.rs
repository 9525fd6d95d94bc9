//! The loop against a model made of answers, and a host made of results.

mod bounds;
mod choice;
mod fake;
mod images;
mod spending;
mod window;

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use self::fake::{FakeHost, Model, calls, fails, lab, says, user_entry};
use crate::event::TurnStatus;
use crate::message::{StopReason, Turn};
use crate::tool_host::{CallEnd, CallEndKind};
use crate::transcript::tests::assert_valid;
use crate::transcript::{Transcript, TranscriptEntry};

#[tokio::test]
async fn a_model_calls_tools_until_it_has_finished() {
    let model = Model::new([calls(&["read", "edit"]), says("all done")]);
    let mut lab = lab(model, FakeHost::default());
    let end = lab.turn("mend it").await;
    assert_eq!(
        (end.status, end.text.as_str()),
        (TurnStatus::Done, "all done")
    );
    assert_eq!(lab.agent.host().made(), ["read", "edit"]);
    assert_valid(&lab.agent.transcript().turns());
    assert_eq!(lab.agent.spending().requests, 2);
}

#[tokio::test]
async fn calls_that_only_read_run_side_by_side_and_others_in_order() {
    let model = Model::new([calls(&["read", "read", "edit", "read"]), says("done")]);
    let mut lab = lab(model, FakeHost::default());
    lab.turn("look").await;
    let host = lab.agent.host();
    assert_eq!(host.most_at_once.load(Ordering::Relaxed), 2);
    assert_eq!(host.made(), ["read", "read", "edit", "read"]);
}

#[tokio::test]
async fn no_call_of_an_answer_without_a_good_end_runs() {
    for (stop, is_refusal) in [
        (StopReason::Length, false),
        (StopReason::MalformedCall, false),
        (StopReason::Other("incomplete".to_owned()), false),
        (StopReason::Refusal, true),
    ] {
        let mut cut = calls(&["edit"]);
        cut.stop(stop);
        let mut lab = lab(Model::new([cut, says("again")]), FakeHost::default());
        let end = lab.turn("mend it").await;
        assert!(lab.agent.host().made().is_empty());
        assert_eq!(matches!(end.status, TurnStatus::Refused), is_refusal);
        assert_eq!(matches!(end.status, TurnStatus::Cut(_)), !is_refusal);
        let next = lab.turn("go on").await;
        assert_eq!(next.status, TurnStatus::Done);
        assert_valid(&lab.agent.transcript().turns());
    }
}

#[tokio::test]
async fn an_answer_that_says_nothing_ends_the_turn() {
    let mut lab = lab(Model::new([says("")]), FakeHost::default());
    assert_eq!(lab.turn("hello").await.status, TurnStatus::Empty);
}

#[tokio::test]
async fn a_provider_that_fails_ends_the_turn_and_the_next_one_works() {
    let mut lab = lab(Model::new([fails(), says("here")]), FakeHost::default());
    assert!(matches!(
        lab.turn("hello").await.status,
        TurnStatus::ProviderFailed(_)
    ));
    assert_eq!(lab.turn("again").await.status, TurnStatus::Done);
    assert_valid(&lab.agent.transcript().turns());
}

#[tokio::test]
async fn a_call_that_is_wrong_may_be_corrected_once() {
    let host = FakeHost::default();
    host.end_with(CallEnd::of(CallEndKind::Malformed, "[error] no path"));
    let model = Model::new([calls(&["edit"]), calls(&["edit"]), says("I give up")]);
    let mut lab = lab(model, host);
    assert_eq!(lab.turn("mend it").await.status, TurnStatus::Done);
    let results = lab.results();
    assert!(results[0].contains("make it once more"), "{}", results[0]);
    assert!(results[1].contains("final"), "{}", results[1]);
}

#[tokio::test]
async fn wrong_calls_of_one_answer_may_each_be_corrected() {
    let host = FakeHost::default();
    host.end_with(CallEnd::of(CallEndKind::Malformed, "[error] no path"));
    let answers = [calls(&["read", "read", "read"]), calls(&["read", "read"])];
    let model = Model::new(answers);
    let mut lab = lab(model, host);
    assert_eq!(lab.turn("read them").await.status, TurnStatus::Done);
    let is_final: Vec<bool> = lab
        .results()
        .iter()
        .map(|text| text.contains("final"))
        .collect();
    assert_eq!(is_final, [false, false, false, true, true]);
}

#[tokio::test]
async fn arguments_that_do_not_parse_are_not_run_and_not_repaired() {
    let model = Model::new([fake::malformed_call("edit"), says("sorry")]);
    let mut lab = lab(model, FakeHost::default());
    lab.turn("mend it").await;
    assert!(lab.agent.host().made().is_empty());
    assert!(lab.results()[0].contains("[error]"));
}

#[tokio::test]
async fn an_approval_nobody_gives_is_told_and_the_loop_goes_on() {
    let host = FakeHost::default();
    host.end_with(CallEnd::of(
        CallEndKind::NeedsApproval,
        "[error] needs approval",
    ));
    let mut lab = lab(Model::new([calls(&["edit"]), says("I could not")]), host);
    let end = lab.turn("mend it").await;
    assert_eq!((end.status, end.needs_approval), (TurnStatus::Done, true));
}

#[tokio::test]
async fn a_batch_is_counted_once_and_refused_as_a_whole() {
    let host = FakeHost::default();
    host.batches_left.store(1, Ordering::Relaxed);
    let model = Model::new([
        calls(&["read", "read"]),
        calls(&["edit", "edit"]),
        says("done"),
    ]);
    let mut lab = lab(model, host);
    lab.turn("look").await;
    assert_eq!(lab.agent.host().made(), ["read", "read"]);
    let results = lab.results();
    assert!(
        results[2..].iter().all(|text| text.contains("quota")),
        "{results:?}"
    );
}

#[tokio::test]
async fn background_ends_are_told_at_the_beginning_of_a_turn() {
    let host = FakeHost::default();
    host.tell("[background complete] run_id=one exit_code=0");
    let mut lab = lab(Model::new([says("seen")]), host);
    lab.turn("and?").await;
    let turns = lab.agent.transcript().turns();
    let Turn::User(user) = &turns[0] else {
        panic!()
    };
    assert!(
        user.content[0]
            .as_text()
            .unwrap()
            .starts_with("[background complete]")
    );
}

#[tokio::test]
async fn background_ends_are_told_while_a_turn_goes_on() {
    let host = FakeHost::default();
    host.tell_later("[background complete] run_id=one exit_code=0");
    let mut lab = lab(Model::new([calls(&["edit"]), says("seen")]), host);
    assert_eq!(lab.turn("go").await.status, TurnStatus::Done);
    let request = lab.model.requests().pop().unwrap().turns.concat();
    assert!(request.contains("[background complete]"), "{request}");
    assert_valid(&lab.agent.transcript().turns());
}

#[tokio::test]
async fn background_ends_that_come_with_a_result_are_told_too() {
    let host = FakeHost::default();
    let message = "[background complete] run_id=one exit_code=0";
    host.end_with(CallEnd {
        messages: vec![message.to_owned()],
        ..CallEnd::of(CallEndKind::Done, format!("{message}\n\nread"))
    });
    let mut lab = lab(Model::new([calls(&["read"]), says("seen")]), host);
    lab.turn("look").await;
    assert_eq!(*lab.observer.notices.lock().unwrap(), [message]);
}

/// Cancels at each event in turn; the transcript is valid, and the next turn works.
#[tokio::test]
async fn a_turn_can_be_cancelled_at_every_event() {
    for at in 0..24 {
        let answers = [
            calls(&["read", "edit", "edit"]),
            calls(&["read"]),
            says("done"),
        ];
        let model = Model::new(answers);
        model.then_says("after all");
        let mut lab = lab(model, FakeHost::default());
        lab.observer.cancel_at(at);
        let end = lab.turn("mend it").await;
        assert!(
            matches!(end.status, TurnStatus::Done | TurnStatus::Interrupted),
            "{end:?}"
        );
        assert_valid(&lab.agent.transcript().turns());
        lab.observer.cancel_at(usize::MAX);
        lab.cancel = CancellationToken::new();
        assert_eq!(lab.turn("go on").await.status, TurnStatus::Done);
        assert_valid(&lab.agent.transcript().turns());
    }
}

/// A process that is killed leaves a prefix of the entries: each of them is a conversation that can go on.
#[tokio::test]
async fn every_beginning_of_a_stored_conversation_is_valid() {
    let model = Model::new([
        calls(&["read", "edit", "edit"]),
        calls(&["read"]),
        says("done"),
    ]);
    let mut lab = lab(model, FakeHost::default());
    lab.turn("mend it").await;
    let stored = lab.agent.journal().entries();
    assert!(stored.len() > 10);
    for end in 0..=stored.len() {
        let transcript = Transcript::load(stored[..end].iter().cloned());
        assert_valid(&transcript.turns());
        let mut resumed = fake::resumed(Model::new([says("on it")]), transcript);
        assert_eq!(resumed.turn("go on").await.status, TurnStatus::Done);
        let turns = resumed.agent.transcript().turns();
        assert_valid(&turns);
        assert!(
            resumed.agent.host().made().is_empty(),
            "a call was made again"
        );
    }
}

#[tokio::test]
async fn what_was_sent_before_stays_as_it_was() {
    let answers = (0..10).flat_map(|_| [calls(&["read"]), says("next")]);
    let model = Model::new(answers);
    let mut lab = lab(model, FakeHost::default());
    for n in 0..10 {
        lab.turn(&format!("step {n}")).await;
    }
    let requests = lab.model.requests();
    for pair in requests.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        assert_eq!(
            (&before.system, &before.tools),
            (&after.system, &after.tools)
        );
        assert_eq!(before.turns[..], after.turns[..before.turns.len()]);
    }
    assert_eq!(requests.len(), 20);
}

#[tokio::test]
async fn tasks_of_an_earlier_process_are_told_as_lost() {
    let host = FakeHost::default();
    host.end_with(CallEnd {
        task: Some("one".to_owned()),
        ..CallEnd::of(CallEndKind::Done, "started")
    });
    let mut lab = lab(Model::new([calls(&["edit"]), says("it runs")]), host);
    lab.turn("serve it").await;
    let stored = Transcript::load(lab.agent.journal().entries());
    let mut resumed = fake::resumed(Model::new([says("lost, then"), says("yes")]), stored);
    // Who only looks stores nothing: another process may go on with the conversation.
    let preview = resumed.agent.preview(Some(user_entry("and?"))).await;
    assert!(preview.body.contains("run_id=one"), "{}", preview.body);
    assert!(resumed.agent.journal().entries().is_empty());
    let is_lost = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::Note(note) if note.text.contains("run_id=one"));
    for text in ["and?", "really?"] {
        resumed.turn(text).await;
        let entries = resumed.agent.journal().entries();
        assert_eq!(entries.iter().filter(|entry| is_lost(entry)).count(), 1);
        // Stored together with the message of the user: a conversation that another process owns is not written to.
        let of_lost = entries.iter().position(is_lost).unwrap();
        assert!(
            matches!(&entries[of_lost + 1], TranscriptEntry::User(user) if user.text == "and?")
        );
    }
    let transcript = resumed.agent.transcript();
    assert!(transcript.open_tasks().is_empty());
    assert_valid(&transcript.turns());
}
