//! Whether a strategy's answer is one.
//!
//! It can leave lines out and add notes; it cannot change, repeat or reorder lines, and a place that a note names has to stand in
//! the text.

use std::collections::HashSet;

use zeph_strategies::{Piece, Selection};

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
    lines: &[&str],
    speaker: Option<&str>,
) -> Result<Shown, String> {
    let mut next = Shown::default();
    let mut at = 0;
    let mut places = None;
    for piece in &selection.pieces {
        match piece {
            Piece::Keep(range)
                if range.start < at || range.end < range.start || range.end > shown.n_lines() =>
            {
                let (start, end, n) = (range.start, range.end, shown.n_lines());
                return Err(format!(
                    "it kept lines {start} to {end} of {n} after line {at}"
                ));
            }
            Piece::Keep(range) => {
                next.push_from(shown, range.clone());
                at = range.end;
            }
            Piece::Note(note) => {
                check_note(note)?;
                for place in words(note).filter(|word| is_place(word)) {
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

fn check_note(note: &str) -> Result<(), String> {
    if note.len() > NOTE_BYTES_MAX {
        return Err(format!(
            "its note has {} bytes, {NOTE_BYTES_MAX} are allowed",
            note.len()
        ));
    }
    if note.trim().is_empty() || note.chars().any(char::is_control) {
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

fn all_places<'a>(lines: &[&'a str]) -> HashSet<&'a str> {
    lines
        .iter()
        .filter(|line| may_hold_place(line))
        .flat_map(|line| words(line))
        .filter(|word| is_place(word))
        .collect()
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
