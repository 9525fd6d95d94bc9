//! Whether a strategy's answer is one.
//!
//! It can leave lines out and add notes; it cannot change or repeat lines, and a place that a note names has to stand in the
//! text. Only a strategy of this program may show lines in another order than the output has them, errors first.

use std::collections::HashSet;

use zeph_strategies::{Lines, Piece, Selection, has_control};

use crate::apply::Shown;
use crate::mark::MARK;

/// Longest note, in bytes. The places of some thousands of findings fit.
const NOTE_BYTES_MAX: usize = 64 * 1024;

/// The lines a selection shows.
///
/// Shape:  `lines` are the texts of `shown`, of which the selection is one; `speaker` is the name of a strategy that is not ours and
///         stands in each of its notes.
/// Errors: what is wrong with the answer, in one sentence.
pub(super) fn check(
    selection: &Selection,
    shown: &Shown,
    lines: &Lines<'_>,
    speaker: Option<&str>,
) -> Result<Shown, String> {
    let mut next = Shown::default();
    check_ranges(selection, shown.n_lines(), speaker.is_none())?;
    let mut places = None;
    for piece in &selection.pieces {
        match piece {
            Piece::Keep(range) => next.push_from(shown, range.clone()),
            Piece::Note(note) => {
                check_note(note)?;
                let named = may_hold_place(note)
                    .then(|| words(note))
                    .into_iter()
                    .flatten();
                for place in named.filter(|word| is_place(word)) {
                    let known = places.get_or_insert_with(|| all_places(lines));
                    if !known.contains(place) {
                        return Err(format!(
                            "its note names `{place}`, which is not in the output"
                        ));
                    }
                }
                next.push_note(said(note, speaker));
            }
        }
    }
    Ok(next)
}

/// Every line at most once, and in order unless `any_order`.
fn check_ranges(selection: &Selection, n_lines: usize, any_order: bool) -> Result<(), String> {
    let kept = selection.pieces.iter().filter_map(|piece| match piece {
        Piece::Keep(range) => Some(range),
        Piece::Note(_) => None,
    });
    let mut kept: Vec<_> = kept.collect();
    if any_order {
        kept.sort_by_key(|range| (range.start, range.end));
    }
    let mut at = 0;
    for range in kept {
        let (start, end) = (range.start, range.end);
        if start < at || end < start || end > n_lines {
            return Err(format!(
                "it kept lines {start} to {end} of {n_lines} after line {at}"
            ));
        }
        at = end;
    }
    Ok(())
}

fn check_note(note: &str) -> Result<(), String> {
    if note.len() > NOTE_BYTES_MAX {
        return Err(format!(
            "its note has {} bytes, {NOTE_BYTES_MAX} are allowed",
            note.len()
        ));
    }
    if note.trim().is_empty() || has_control(note) {
        return Err("its note is empty or holds control characters".to_owned());
    }
    Ok(())
}

fn said(note: &str, speaker: Option<&str>) -> String {
    match speaker {
        Some(name) => format!("{MARK}{name} says: {note}"),
        None => format!("{MARK}{note}"),
    }
}

fn all_places<'a>(lines: &Lines<'a>) -> HashSet<&'a str> {
    lines
        .iter()
        .filter(|line| may_hold_place(line))
        .flat_map(|line| words(line).chain(strings(line).flat_map(words)))
        .filter(|word| is_place(word))
        .flat_map(|place| [place, without_rest(place)])
        .collect()
}

/// `path:line` of `path:line:in`.
fn without_rest(place: &str) -> &str {
    let path = place.find(':').map_or(0, |at| at + 1);
    let n_digits = place[path..].bytes().take_while(u8::is_ascii_digit).count();
    &place[..path + n_digits]
}

/// The parts of a line of JSON between quotes and escapes: a place inside a string is one of the text.
fn strings(line: &str) -> impl Iterator<Item = &str> {
    let is_event = line.starts_with('{');
    let parts = line.split('"').filter(move |_| is_event);
    parts.flat_map(|part| part.split("\\t").flat_map(|part| part.split("\\n")))
}

/// Taking a line apart is slow, and few have a place.
fn may_hold_place(line: &str) -> bool {
    let mut pairs = line.as_bytes().windows(2);
    pairs.any(|pair| pair[0] == b':' && pair[1].is_ascii_digit())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_around = |c: char| {
        matches!(
            c,
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | ':' | '.' | '"' | '\'' | '`'
        )
    };
    text.split_whitespace()
        .map(move |word| word.trim_matches(is_around))
}

/// `path:line`, with or without a column.
fn is_place(word: &str) -> bool {
    word.split_once(':').is_some_and(|(path, line)| {
        !path.is_empty() && line.starts_with(|c: char| c.is_ascii_digit())
    })
}
