//! Whether a strategy's answer is one.
//!
//! It can leave lines out and add notes; it cannot change or repeat lines, and a place that a note names has to stand in the
//! text. Only a strategy of this program may show lines in another order than the output has them, errors first.

use std::ops::Range;

use foldhash::fast::RandomState;
use zeph_core::text::is_deceptive;
use zeph_strategies::{Lines, Piece, Selection, has_control};

use crate::apply::{Shown, ShownIndex};

type HashSet<T> = std::collections::HashSet<T, RandomState>;

/// Longest note, in bytes. The places of some thousands of findings fit.
const NOTE_BYTES_MAX: usize = 64 * 1024;

/// The lines a selection shows.
///
/// Shape:  `lines` are the texts of `shown`, of which the selection is one; `speaker` is the name of a strategy that is not ours and
///         stands in each of its notes.
/// Errors: what is wrong with the answer, in one sentence; otherwise its pieces are taken.
pub(super) fn check(
    selection: &mut Selection,
    shown: &ShownIndex<'_>,
    lines: &Lines<'_>,
    speaker: Option<&str>,
) -> Result<Shown, String> {
    check_ranges(selection, shown.n_lines(), speaker.is_none())?;
    if speaker.is_some() {
        selection.pieces.iter_mut().for_each(make_visible);
    }
    let mut named = HashSet::default();
    for piece in &selection.pieces {
        if let Piece::Note(note) = piece {
            check_note(note)?;
            named.extend(places_in(note, false));
        }
    }
    if let Some(place) = first_missing(named, lines) {
        return Err(format!(
            "its note names `{place}`, which is not in the output"
        ));
    }
    // Notes can be half of a long output: there is one of each at a time.
    let pieces = selection.pieces.iter();
    let n_notes = pieces
        .filter(|piece| matches!(piece, Piece::Note(_)))
        .count();
    let mut next = Shown::with_room(selection.pieces.len(), n_notes);
    for piece in std::mem::take(&mut selection.pieces) {
        match piece {
            Piece::Keep(range) => shown.push_to(&mut next, range),
            Piece::Note(note) => next.push_note(said(note, speaker)),
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

/// Removes what a reader would not see from the words of a stranger.
fn make_visible(piece: &mut Piece) {
    if let Piece::Note(note) = piece
        && !note.is_ascii()
    {
        note.retain(|character| character.is_control() || !is_deceptive(character));
    }
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

fn said(note: String, speaker: Option<&str>) -> String {
    match speaker {
        Some(name) => format!("{name} says: {note}"),
        None => note,
    }
}

/// The first of the places named that does not stand in the text.
fn first_missing<'n>(mut missing: HashSet<&'n str>, lines: &Lines<'_>) -> Option<&'n str> {
    let mut places = lines.iter().flat_map(places);
    while !missing.is_empty() {
        let Some(place) = places.next() else {
            break;
        };
        missing.remove(place);
        missing.remove(without_rest(place));
    }
    missing.into_iter().min()
}

/// What stands before the time of an event.
const TIME_BYTES: usize = "{\"Time\":\"".len();

/// The places in a line. In a line of JSON, one inside a string is one too.
fn places(line: &str) -> impl Iterator<Item = &str> {
    let is_event = line.starts_with('{');
    // An event of `go test` begins with its time, which is no place.
    let time = line.strip_prefix("{\"Time\":\"");
    let n_time = time.and_then(|time| memchr::memchr(b'"', time.as_bytes()));
    let line = n_time.map_or(line, |n| &line[TIME_BYTES + n..]);
    places_in(line, is_event)
}

/// The places in a text; whether one inside a string is one, too.
///
/// Only around a colon with a digit behind it: taking every line apart into words is slow, and few hold a place.
fn places_in(line: &str, is_event: bool) -> impl Iterator<Item = &str> {
    let colons = memchr::memchr_iter(b':', line.as_bytes());
    let colons = colons.filter(|at| line.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit));
    // What has several colons is told once.
    let (mut word_end, mut string_end) = (0, 0);
    let words = colons.flat_map(move |at| {
        let word = (at >= word_end).then(|| part_around(line, at, false));
        let of_string = (is_event && at >= string_end).then(|| part_around(line, at, true));
        word_end = word.as_ref().map_or(word_end, |word| word.end);
        string_end = of_string.as_ref().map_or(string_end, |part| part.end);
        [word, of_string]
    });
    let words = words.flatten().map(|word| bare(&line[word]));
    words.filter(|word| is_place(word))
}

/// What stands around a byte between white space, or in a string between quotes and escapes, too.
fn part_around(line: &str, at: usize, is_string: bool) -> Range<usize> {
    // By bytes: nearly all are ASCII.
    let bytes = line.as_bytes();
    let is_edge = |byte: &u8| {
        let is_space = matches!(byte, b'\t'..=b'\r' | b' ');
        is_space || !byte.is_ascii() || (is_string && *byte == b'"')
    };
    let start = bytes[..at].iter().rposition(is_edge);
    let end = bytes[at..].iter().position(is_edge).map(|n| at + n);
    let is_plain = [start, end]
        .iter()
        .flatten()
        .all(|edge| bytes[*edge].is_ascii());
    let (start, end) = match is_plain {
        true => (
            start.map_or(0, |start| start + 1),
            end.unwrap_or(line.len()),
        ),
        false => wide_part_around(line, at, is_string),
    };
    let word = &line[start..end];
    if !is_string {
        return start..end;
    }
    let is_escape = |pair: &&[u8]| matches!(*pair, b"\\t" | b"\\n");
    let (before, behind) = word.as_bytes().split_at(at - start);
    let n_before = before
        .windows(2)
        .rposition(|pair| is_escape(&pair))
        .map_or(0, |n| n + 2);
    let n_behind = behind.windows(2).position(|pair| is_escape(&pair));
    start + n_before..n_behind.map_or(end, |n| at + n)
}

/// The beginning and the end of what stands around a byte between white space of any kind, or quotes.
#[cold]
fn wide_part_around(line: &str, at: usize, is_string: bool) -> (usize, usize) {
    let is_edge = |c: char| c.is_whitespace() || (is_string && c == '"');
    let start = line[..at].char_indices().rfind(|(_, c)| is_edge(*c));
    let end = line[at..].find(is_edge).map_or(line.len(), |n| at + n);
    (start.map_or(0, |(start, c)| start + c.len_utf8()), end)
}

/// `path:line` of `path:line:in`.
fn without_rest(place: &str) -> &str {
    let path = place.find(':').map_or(0, |at| at + 1);
    let n_digits = place[path..].bytes().take_while(u8::is_ascii_digit).count();
    &place[..path + n_digits]
}

/// A word without what stands around words.
fn bare(word: &str) -> &str {
    let is_bare = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    if is_bare(word.as_bytes().first()) && is_bare(word.as_bytes().last()) {
        return word;
    }
    let is_around = |c: char| {
        matches!(
            c,
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | ':' | '.' | '"' | '\'' | '`'
        )
    };
    word.trim_matches(is_around)
}

/// `path:line`, with or without a column.
fn is_place(word: &str) -> bool {
    // By bytes: it is asked of every word of a list of places.
    let colon = word.bytes().position(|byte| byte == b':');
    colon.is_some_and(|at| at > 0 && word.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit))
}
