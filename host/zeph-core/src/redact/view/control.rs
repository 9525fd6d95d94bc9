//! What steers a terminal between the characters of a text: colours, links, erasures.
//!
//! The clean-up of outputs takes it out, and so would join the parts of a value that it splits. What the clean-up makes a line of
//! its own (an erased line, a NUL) is dropped here too: a value may go on behind it.

use super::EscapeUnit::{self, Back, Escaped, Literal, Open};

const ESC: u8 = 0x1b;

/// Bytes of the parameters of a control sequence at most, as the clean-up reads them.
const PARAMETERS_BYTES_MAX: usize = 256;

/// Bytes of a string such as a link at most: what programs write has some hundred.
const STRING_BYTES_MAX: usize = 1_024;

/// Whether a byte may begin a control. Ends of lines and tabs are none; 0xc2 begins those of the second set.
pub(super) fn is_control(byte: u8) -> bool {
    (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || matches!(byte, 0x7f | 0xc2)
}

/// The control at the beginning of `rest`.
///
/// Source: ECMA-48, fifth edition, sections 5.4 and 5.6.
pub(super) fn control(rest: &[u8]) -> EscapeUnit {
    match rest {
        [ESC] | [0xc2] => Open,
        [ESC, b'[', ..] | [0xc2, 0x9b, ..] => sequence(rest),
        [ESC, b']' | b'P' | b'X' | b'^' | b'_', ..]
        | [0xc2, 0x90 | 0x98 | 0x9d | 0x9e | 0x9f, ..] => string(rest),
        [ESC, 0x20..=0x2f, ..] => shift(rest),
        [ESC, 0x30..=0x7e, ..] | [0xc2, 0x80..=0x9f, ..] => Escaped(None, 2),
        [0xc2, ..] => Literal,
        [0x08, ..] => Back(1),
        _ => Escaped(None, 1),
    }
}

/// `ESC [ 1 ; 3 1 m`. Of one that is cut off, what introduces it.
fn sequence(rest: &[u8]) -> EscapeUnit {
    let parameters = rest[2..].iter().take(PARAMETERS_BYTES_MAX);
    let n = parameters
        .take_while(|byte| (0x20..=0x3f).contains(*byte))
        .count();
    match rest.get(2 + n) {
        None => Open,
        Some(0x40..=0x7e) => Escaped(None, 3 + n),
        Some(_) => Escaped(None, 2),
    }
}

/// `ESC ( B`
fn shift(rest: &[u8]) -> EscapeUnit {
    let n = rest[1..]
        .iter()
        .take(4)
        .take_while(|byte| (0x20..=0x2f).contains(*byte))
        .count();
    match rest.get(1 + n) {
        None => Open,
        Some(0x30..=0x7e) => Escaped(None, 2 + n),
        Some(_) => Escaped(None, 1),
    }
}

/// `ESC ] 8 ; ; address ESC \`. Of one that does not end in its line, what introduces it.
fn string(rest: &[u8]) -> EscapeUnit {
    let within = &rest[2..rest.len().min(STRING_BYTES_MAX)];
    let end = within
        .iter()
        .enumerate()
        .position(|(idx, byte)| match byte {
            0xc2 => within
                .get(idx + 1)
                .is_none_or(|next| (0x80..=0x9f).contains(next)),
            b'\t' => false,
            _ => *byte < 0x20,
        });
    let Some(end) = end.map(|end| end + 2) else {
        return match rest.len() < STRING_BYTES_MAX {
            true => Open,
            false => Escaped(None, 2),
        };
    };
    match (rest[end], rest.get(end + 1)) {
        (0x07, _) => Escaped(None, end + 1),
        (ESC, Some(b'\\')) | (0xc2, Some(0x9c)) => Escaped(None, end + 2),
        (ESC | 0xc2, None) => Open,
        _ => Escaped(None, 2),
    }
}

/// How many bytes at the end of `bytes` a backspace takes back: a character, but no end of a line.
pub(super) fn n_taken_back(bytes: &[u8]) -> usize {
    let is_first = |byte: &u8| !(0x80..0xc0).contains(byte);
    match bytes.iter().rposition(is_first) {
        Some(first) if !matches!(bytes[first], b'\r' | b'\n') => bytes.len() - first,
        _ => 0,
    }
}

/// How many bytes of `text` stand before the blanks, ends of lines and controls at its end.
pub(in crate::redact) fn n_before_controls(text: &[u8]) -> usize {
    let mut n_bytes = text.len();
    loop {
        n_bytes = text[..n_bytes].trim_ascii_end().len();
        let from = n_bytes.saturating_sub(PARAMETERS_BYTES_MAX);
        let within = &text[from..n_bytes];
        let Some(last) = within.iter().rposition(|byte| is_control(*byte)) else {
            return n_bytes;
        };
        match control(&within[last..]) {
            Escaped(None, n) if last + n == within.len() => n_bytes = from + last,
            _ => return n_bytes,
        }
    }
}
