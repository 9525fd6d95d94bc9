//! Whatever entries there are, and wherever they end, the turns are valid.

use proptest::prelude::*;

use super::{
    AssistantEntry, BaseEntry, NoteEntry, ResultEntry, Transcript, TranscriptEntry, UserEntry,
};
use crate::message::{
    Arguments, AssistantTurn, Item, ItemView, Origin, StopReason, ToolCall, Turn,
};
use crate::settings::ProviderKind;
use crate::usage::{SideSpending, Usage};

pub(crate) fn origin() -> Origin {
    Origin {
        provider: "fake".to_owned(),
        kind: ProviderKind::Anthropic,
        model: "model".to_owned(),
    }
}

/// An answer that says `text` and makes `calls` of the tool `read`.
pub(crate) fn answer(text: &str, calls: usize, stop: StopReason) -> AssistantTurn {
    let said = (!text.is_empty()).then(|| Item::neutral(ItemView::Text(text.to_owned())));
    let calls = (0..calls).map(|index| {
        Item::neutral(ItemView::Call(ToolCall {
            id: format!("call-{index}"),
            name: "read".to_owned(),
            arguments: Arguments::read("{\"path\":\"a\"}"),
        }))
    });
    AssistantTurn {
        origin: origin(),
        items: said.into_iter().chain(calls).collect(),
        stop,
    }
}

pub(crate) fn user(text: &str) -> TranscriptEntry {
    TranscriptEntry::User(Box::new(UserEntry {
        text: text.to_owned(),
        attachments: Vec::new(),
        context: String::new(),
        is_summary: false,
        is_by_model: false,
    }))
}

fn assistant(text: &str, calls: usize, stop: StopReason) -> TranscriptEntry {
    TranscriptEntry::Assistant(Box::new(AssistantEntry {
        turn: answer(text, calls, stop),
        usage: Usage::default(),
        cost: None,
    }))
}

fn result(index: usize) -> TranscriptEntry {
    TranscriptEntry::Result(Box::new(ResultEntry {
        index,
        text: format!("result {index}"),
        images: Vec::new(),
        is_error: false,
        handle: None,
        task: None,
        ended_tasks: Vec::new(),
        spent: crate::usage::SideSpending::default(),
    }))
}

fn note(text: &str) -> TranscriptEntry {
    TranscriptEntry::Note(NoteEntry {
        text: text.to_owned(),
        ended_task: None,
    })
}

/// Checks that a provider takes the turns.
pub(crate) fn assert_valid(turns: &[Turn<'_>]) {
    let mut expected: Option<Vec<String>> = None;
    let mut was_user = false;
    for turn in turns {
        match turn {
            Turn::User(user) => {
                assert!(!was_user, "two turns of the user");
                let given = user.results.iter().map(|one| one.call_id.to_string());
                let given: Vec<String> = given.collect();
                assert_eq!(given, expected.take().unwrap_or_default());
                assert!(!user.results.is_empty() || !user.content.is_empty());
                was_user = true;
            }
            Turn::Assistant(answer) => {
                assert!(was_user, "an answer without a turn of the user before it");
                expected = Some(answer.calls().map(|call| call.id.clone()).collect());
                was_user = false;
            }
        }
    }
    assert!(
        expected.is_none_or(|open| open.is_empty()),
        "calls without results"
    );
}

fn any_entry() -> impl Strategy<Value = TranscriptEntry> {
    let plain = prop_oneof![
        Just(user("do it")),
        Just(user("")),
        Just(note("[background complete]")),
        Just(note("")),
        (0..3_usize, 0..2_usize).prop_map(|(calls, text)| {
            assistant(["", "text"][text], calls, StopReason::ToolCalls)
        }),
        (0..3_usize).prop_map(|calls| assistant("cut", calls, StopReason::Length)),
        (0..4_usize).prop_map(|index| TranscriptEntry::Started { index }),
        (0..4_usize).prop_map(result),
    ];
    let several = prop::collection::vec(plain.clone(), 0..4);
    prop_oneof![
        8 => plain,
        1 => several.prop_map(|entries| TranscriptEntry::Base(Box::new(BaseEntry { entries, usage: Usage::default(), cost: None, side: SideSpending::default() }))),
    ]
}

proptest! {
    #[test]
    fn turns_are_valid_wherever_the_entries_end(entries in prop::collection::vec(any_entry(), 0..24)) {
        for end in 0..=entries.len() {
            let transcript = Transcript::load(entries[..end].iter().cloned());
            assert_valid(&transcript.turns());
            assert_valid(&super::derive(&entries[..end]));
        }
    }

    #[test]
    fn stored_entries_come_to_the_same_turns(entries in prop::collection::vec(any_entry(), 0..12)) {
        let lines: Vec<String> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        let loaded = lines.iter().map(|line| serde_json::from_str::<TranscriptEntry>(line).unwrap());
        let said = |turns: Vec<Turn<'_>>| serde_json::to_string(&turns).unwrap();
        assert_eq!(
            said(Transcript::load(loaded).turns()),
            said(Transcript::load(entries).turns()),
        );
    }
}

fn texts_of_results(entries: &[TranscriptEntry]) -> Vec<String> {
    let turns = super::derive(entries);
    let Some(Turn::User(user)) = turns.get(2) else {
        panic!("no turn after the answer: {turns:?}")
    };
    user.results
        .iter()
        .map(|result| result.to_text().into_owned())
        .collect()
}

#[test]
fn what_is_missing_is_told_as_it_is() {
    let entries = [
        user("do it"),
        assistant("", 3, StopReason::ToolCalls),
        TranscriptEntry::Started { index: 0 },
        result(0),
        TranscriptEntry::Started { index: 1 },
        note("[the user interrupted the turn]"),
    ];
    let texts = texts_of_results(&entries);
    assert_eq!(texts[0], "result 0");
    assert!(texts[1].contains("outcome unknown"), "{}", texts[1]);
    assert!(texts[2].contains("not run"), "{}", texts[2]);
}

#[test]
fn no_call_of_a_cut_answer_has_another_result() {
    let entries = [user("do it"), assistant("", 1, StopReason::Length)];
    assert!(texts_of_results(&entries)[0].contains("not complete"));
}

#[test]
fn a_late_result_is_an_orphan() {
    let entries = [
        user("do it"),
        assistant("", 1, StopReason::ToolCalls),
        user("and then?"),
        result(0),
    ];
    assert!(texts_of_results(&entries)[0].contains("not run"));
}

#[test]
fn tasks_are_open_until_their_end_is_told() {
    let TranscriptEntry::Result(mut started) = result(0) else {
        panic!()
    };
    started.task = Some("one".to_owned());
    let mut transcript = Transcript::load([TranscriptEntry::Result(started)]);
    assert_eq!(transcript.open_tasks(), ["one"]);
    transcript.push(TranscriptEntry::Note(NoteEntry {
        text: "ended".to_owned(),
        ended_task: Some("one".to_owned()),
    }));
    assert!(transcript.open_tasks().is_empty());
}
