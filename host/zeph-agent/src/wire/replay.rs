//! Turns as they are sent again: as they came to who made them, translated to everybody else.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::message::{AssistantTurn, Block, CallResult, Image, Item, ItemView, Origin, Turn};

/// Who made the calls of a turn, or those that it answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    /// Whether that is who the turn is sent to.
    pub(super) is_own: bool,
    /// The place of the turn in the conversation.
    index: usize,
}

/// The turns of a conversation with their callers.
pub(super) fn exchanges<'a>(
    turns: &'a [Turn<'a>],
    origin: &'a Origin,
) -> impl Iterator<Item = (Caller, &'a Turn<'a>)> {
    let nobody = Caller {
        is_own: false,
        index: 0,
    };
    turns
        .iter()
        .enumerate()
        .scan(nobody, move |caller, (index, turn)| {
            if let Turn::Assistant(turn) = turn {
                let is_own = turn.origin == *origin;
                *caller = Caller { is_own, index };
            }
            Some((*caller, turn))
        })
}

impl Caller {
    /// The id of a call, as it is sent. Ids of others have nine letters and digits: every provider takes those.
    pub(super) fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        match self.is_own {
            true => Cow::Borrowed(id),
            false => Cow::Owned(short(self.index, id)),
        }
    }
}

/// An item as it is sent.
pub(super) enum Sent<'a> {
    /// As it came.
    Own(&'a RawValue, &'a ItemView),
    /// To be written anew.
    Other(&'a ItemView),
}

/// The items of a turn that are sent. Reasoning and what nobody else can read stays with who made it.
pub(super) fn items<'a>(turn: &'a AssistantTurn, caller: Caller) -> impl Iterator<Item = Sent<'a>> {
    turn.items.iter().filter_map(move |item| {
        let Item { view, wire } = item;
        match (wire, view) {
            (Some(wire), _) if caller.is_own => Some(Sent::Own(wire, view)),
            (_, ItemView::Thinking(_) | ItemView::Opaque) => None,
            (_, ItemView::Text(text)) if text.trim().is_empty() => None,
            (_, view) => Some(Sent::Other(view)),
        }
    })
}

/// The texts and the pictures of a result.
pub(super) fn split<'a>(result: &'a CallResult<'_>) -> (Cow<'a, str>, Vec<&'a Image>) {
    let (text, images) = split_unmarked(result);
    // For formats that have no mark of failure.
    match result.is_error && !text.starts_with('[') {
        true => (Cow::Owned(format!("[error] {text}")), images),
        false => (text, images),
    }
}

/// The texts and the pictures of a result, for a format that marks failures itself.
pub(super) fn split_unmarked<'a>(result: &'a CallResult<'_>) -> (Cow<'a, str>, Vec<&'a Image>) {
    let images = result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(&**image),
        Block::Text(_) => None,
    });
    (result.to_text(), images.collect())
}

/// Whether a block says something.
pub(super) fn is_blank(block: &Block<'_>) -> bool {
    block.as_text().is_some_and(|text| text.trim().is_empty())
}

/// An address that holds a picture.
pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.base64)
}

/// What stands before a picture that had to leave its result.
pub(super) fn picture_of(result: &CallResult<'_>) -> String {
    format!("Picture from the result of `{}`:", result.name)
}

/// JSON that is sent as it is, or text that must become JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Json<'a, T> {
    Own(&'a RawValue),
    Other(T),
}

/// FNV-1a over both, in nine digits of base 36. The same in every process: it is part of a prefix that caches compare.
pub(super) fn short(turn: usize, id: &str) -> String {
    let place = (turn as u64).to_le_bytes();
    let bytes = place.iter().chain(id.as_bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut text = String::with_capacity(9);
    for _ in 0..9 {
        let digit = u32::try_from(hash % 36).unwrap_or_default();
        text.extend(char::from_digit(digit, 36));
        hash /= 36;
    }
    text
}
