//! The turns that entries come to.

use std::borrow::Cow;

use super::{Attachment, ResultEntry, TranscriptEntry, UserEntry};
use crate::message::{AssistantTurn, Block, CallResult, Turn, UserTurn};

/// Of a call that never began.
const NOT_RUN: &str = "[error] not run: the turn ended before this call began";

/// Of a call that began and has no result.
const UNKNOWN: &str = "[error] outcome unknown: the host ended while this call ran. It is not made again; look at what it changed before you go on";

/// Of a call of an answer that was not complete.
const INCOMPLETE: &str = "[error] not run: the answer that made this call was not complete";

/// Stands where two answers would follow each other, or an answer would come first.
const GO_ON: &str = "[the conversation goes on]";

/// What a model is sent of `entries`.
///
/// Shape: user and assistant in turn, the user first; after an assistant's turn with calls comes one with exactly their results, in
/// their order.
pub fn derive(entries: &[TranscriptEntry]) -> Vec<Turn<'_>> {
    let mut turns = DerivedTurns::default();
    let mut rest = entries;
    while let [entry, after @ ..] = rest {
        rest = after;
        match entry {
            TranscriptEntry::User(user) => turns.user(user),
            TranscriptEntry::Note(note) => turns.text(&note.text),
            TranscriptEntry::Assistant(answer) => turns.assistant(&answer.turn, after),
            TranscriptEntry::Base(base) => turns = DerivedTurns(derive(&base.entries)),
            TranscriptEntry::Started { .. }
            | TranscriptEntry::Result(_)
            | TranscriptEntry::Tools { .. }
            | TranscriptEntry::Spent(_) => {}
        }
    }
    turns.0
}

#[derive(Default)]
struct DerivedTurns<'a>(Vec<Turn<'a>>);

impl<'a> DerivedTurns<'a> {
    fn user(&mut self, user: &'a UserEntry) {
        let attached = user.attachments.iter().map(attached);
        let texts = [&user.text, &user.context].into_iter();
        let texts = texts.filter(|text| !text.trim().is_empty());
        let said = attached.chain(texts.map(|text| Block::Text(Cow::Borrowed(text))));
        let said: Vec<Block> = said.collect();
        match said.is_empty() {
            true => self.text(GO_ON),
            false => self.open().content.extend(said),
        }
    }

    fn text(&mut self, text: &'a str) {
        if !text.trim().is_empty() {
            self.open().content.push(Block::Text(Cow::Borrowed(text)));
        }
    }

    /// Hands the turn of the user that can still be added to.
    fn open(&mut self) -> &mut UserTurn<'a> {
        if !matches!(self.0.last(), Some(Turn::User(_))) {
            self.0.push(Turn::User(UserTurn::default()));
        }
        match self.0.last_mut() {
            Some(Turn::User(user)) => user,
            _ => unreachable!("a turn of the user is last"),
        }
    }

    fn assistant(&mut self, turn: &'a AssistantTurn, after: &'a [TranscriptEntry]) {
        if turn.is_empty() {
            return;
        }
        if !matches!(self.0.last(), Some(Turn::User(_))) {
            self.text(GO_ON);
        }
        self.0.push(Turn::Assistant(Cow::Borrowed(turn)));
        let n_calls = turn.calls().count();
        if n_calls == 0 {
            return;
        }
        let results = turn.calls().enumerate().map(|(index, call)| {
            let result = result_of(index, after);
            let missing = || {
                let text = match (turn.calls_may_run(), was_started(index, after)) {
                    (_, true) => UNKNOWN,
                    (true, false) => NOT_RUN,
                    (false, false) => INCOMPLETE,
                };
                CallResult::text(call, text, true)
            };
            result.map_or_else(missing, |result| CallResult {
                content: content(result),
                ..CallResult::text(call, "", result.is_error)
            })
        });
        // Exactly as long as it has to be: most answers make one call, and a request holds as many lists as there are answers.
        let mut all = Vec::with_capacity(n_calls);
        all.extend(results);
        self.0.push(Turn::User(UserTurn {
            results: all,
            content: Vec::new(),
        }));
    }
}

/// The entries that belong to the last answer.
fn of_answer(after: &[TranscriptEntry]) -> impl Iterator<Item = &TranscriptEntry> {
    after.iter().take_while(|entry| {
        !matches!(
            entry,
            TranscriptEntry::Assistant(_) | TranscriptEntry::Base(_) | TranscriptEntry::User(_)
        )
    })
}

fn result_of(index: usize, after: &[TranscriptEntry]) -> Option<&ResultEntry> {
    of_answer(after).find_map(|entry| match entry {
        TranscriptEntry::Result(result) if result.index == index => Some(&**result),
        _ => None,
    })
}

fn was_started(index: usize, after: &[TranscriptEntry]) -> bool {
    of_answer(after).any(
        |entry| matches!(entry, TranscriptEntry::Started { index: started } if *started == index),
    )
}

fn content(result: &ResultEntry) -> Vec<Block<'_>> {
    let text = std::iter::once(Block::Text(Cow::Borrowed(&result.text)));
    let images = result.images.iter().map(Cow::Borrowed);
    text.chain(images.map(Block::Image)).collect()
}

/// What is attached, as the model reads it.
fn attached(attachment: &Attachment) -> Block<'_> {
    if let Some(image) = &attachment.image {
        return Block::Image(Cow::Borrowed(image));
    }
    let text = attachment.text.as_deref().unwrap_or_default();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Block::Text(Cow::Owned(format!(
        "<file path={:?}>\n{text}{end}</file>",
        attachment.name
    )))
}
