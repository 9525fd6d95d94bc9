//! Recognising lines that name a place in a file.
//!
//! By hand: it is asked of most lines of a failure, which are none.

use super::head;
use crate::text::is_number;

/// Most words before the message of a diagnostic: `schwerwiegender Fehler: `.
const KIND_WORDS_MAX: usize = 3;

/// Whether `line` names a place in a file, the way compilers and traces do below their messages: `--> a.rs:1`, `at f (a.js:1)`,
/// `File "a.py", line 1`, `a.c:1`.
pub fn is_location(line: &str) -> bool {
    let text = head(line).as_bytes();
    let text = text.trim_ascii_start();
    if let Some(rest) = text
        .strip_prefix(b"--> ")
        .or_else(|| text.strip_prefix(b"::: "))
    {
        return has_number(first_word(rest), 1);
    }
    if let Some(rest) = text.strip_prefix(b"at ") {
        return rest.split(u8::is_ascii_whitespace).any(is_frame);
    }
    if let Some(rest) = text.strip_prefix(b"File ") {
        return rest
            .windows(8)
            .skip(1)
            .any(|part| part.starts_with(b", line ") && part[7].is_ascii_digit());
    }
    has_extension(text)
}

/// Whether a compiler says something of a place, in whatever language: `a.c:1:16: fel: …`, `a.c:1: varning: …`. Whether it is an
/// error cannot be told; a note is none.
pub(crate) fn is_diagnostic(line: &str) -> bool {
    let is_kind = |kind: &str| {
        let mut words = kind.split([' ', '\u{a0}']);
        let is_word = |word: &str| word.chars().all(char::is_alphabetic);
        kind.starts_with(char::is_alphabetic)
            && words.by_ref().take(KIND_WORDS_MAX).all(is_word)
            && words.next().is_none()
    };
    let kind = said_of_place(head(line)).and_then(|said| said.split_once(": "));
    kind.is_some_and(|(kind, _)| kind != "note" && is_kind(kind))
}

/// Whether anything but a note is said of a place, as `a.proto:3:1: "X" is not defined.` or, with the name of a program before it,
/// `vet: ./a.go:2:3: …`: in a run that failed it may be the cause.
pub(crate) fn is_placed(line: &str) -> bool {
    let line = head(line);
    let behind_name = || {
        let (name, rest) = line.split_once(": ")?;
        said_of_place(rest).filter(|_| !name.contains(char::is_whitespace))
    };
    let said = said_of_place(line).or_else(behind_name);
    said.is_some_and(|said| !said.is_empty() && !said.starts_with("note: "))
}

/// What stands behind `path.ext:12: ` or `path.ext:12:3: `.
fn said_of_place(line: &str) -> Option<&str> {
    let (path, rest) = line.split_once(':')?;
    let (_, extension) = path.rsplit_once('.')?;
    let is_file = (1..=EXTENSION_BYTES_MAX).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.contains(|c: char| c.is_ascii_alphabetic())
        && !path.contains(char::is_whitespace);
    let rest = number(rest).filter(|_| is_file)?;
    number(rest).unwrap_or(rest).strip_prefix(' ')
}

/// What follows `12:`.
fn number(text: &str) -> Option<&str> {
    let (number, rest) = text.split_once(':')?;
    is_number(number).then_some(rest)
}

/// `(a.js:1:2)`, `f:1`.
fn is_frame(word: &[u8]) -> bool {
    let before = word.iter().position(|byte| matches!(byte, b':' | b'('));
    before.is_some_and(|before| has_number(&word[before + 1..], 0))
}

/// `…:1`, with so many bytes before the colon at least.
fn has_number(word: &[u8], n_before: usize) -> bool {
    let numbers = word.windows(2).skip(n_before);
    let mut numbers = numbers.filter(|pair| pair[0] == b':');
    numbers.any(|pair| pair[1].is_ascii_digit())
}

/// Most bytes behind the dot in the name of a file.
const EXTENSION_BYTES_MAX: usize = 6;

/// `a.rs:1`, in the first word.
fn has_extension(text: &[u8]) -> bool {
    let mut colons = memchr::memchr_iter(b':', text);
    let path = colons.find_map(|at| {
        let path = &text[..at];
        let is_number = text.get(at + 1).is_some_and(u8::is_ascii_digit);
        let alphanumeric = path.iter().rev().take(EXTENSION_BYTES_MAX + 1);
        let n = alphanumeric
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        let has_name = path.len() >= n + 2 && path[path.len() - n - 1] == b'.';
        let is_named = is_number && has_name && (1..=EXTENSION_BYTES_MAX).contains(&n);
        is_named.then_some(path)
    });
    // What follows the first one is in no earlier word.
    path.is_some_and(|path| !path.iter().any(u8::is_ascii_whitespace))
}

fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(u8::is_ascii_whitespace);
    &text[..end.unwrap_or(text.len())]
}
