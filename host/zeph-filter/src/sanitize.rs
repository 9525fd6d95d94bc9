//! Turning what a terminal would draw into plain lines.
//!
//! Two steps, both linear: [`strip`] takes out control sequences, [`collapse`] folds what was overwritten and runs of blank
//! lines. A sequence that is cut off or never ends hides nothing: its text is shown. Applying either twice changes nothing.

use std::borrow::Cow;

use zeph_strategies::severity;

/// Longest parameters of a control sequence, in bytes; what goes on longer is none. Real ones have some thirty.
const PARAMETERS_BYTES_MAX: usize = 256;

const ESC: u8 = 0x1b;
const CSI: char = '\u{9b}';

/// Text without control sequences: CSI, OSC with hyperlinks, DCS and other strings, private modes, single controls.
///
/// Shape:  any text → the same lines; `\t`, `\n` and `\r` stay, an erased line becomes `\r`, a backspace takes a character back.
/// Limits: linear; borrows when there is nothing to do.
/// Source: ECMA-48, fifth edition, sections 5.4 and 5.6; C1 controls in their two-byte UTF-8 form.
pub fn strip(text: &str) -> Cow<'_, str> {
    let Some(first) = next_control(text, 0) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut next = Some(first);
    while let Some(control) = next {
        out.push_str(&text[copied..control]);
        copied = skip(text, control, &mut out);
        next = next_control(text, copied);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The next byte from `at` on that begins something to take out.
fn next_control(text: &str, at: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[at..];
    let found = bytes.iter().enumerate().position(|(idx, byte)| match byte {
        b'\t' | b'\n' | b'\r' => false,
        0x00..=0x1f | 0x7f => true,
        0xc2 => bytes
            .get(idx + 1)
            .is_some_and(|next| (0x80..=0x9f).contains(next)),
        _ => false,
    });
    found.map(|n| at + n)
}

/// Reads the control at `at`, leaves in `out` what it means for the text, and returns where the text goes on.
fn skip(text: &str, at: usize, out: &mut String) -> usize {
    let Some(control) = text[at..].chars().next() else {
        return text.len();
    };
    let after = at + control.len_utf8();
    match control {
        '\u{1b}' => skip_escape(text, after, out),
        CSI => skip_csi(text, after, out),
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(text, after),
        '\u{85}' => {
            out.push('\n');
            after
        }
        '\u{8}' => {
            if out
                .chars()
                .next_back()
                .is_some_and(|c| !matches!(c, '\n' | '\r'))
            {
                out.pop();
            }
            after
        }
        _ => after,
    }
}

/// After `ESC`.
fn skip_escape(text: &str, at: usize, out: &mut String) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(at) {
        Some(b'[') => skip_csi(text, at + 1, out),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => skip_string(text, at + 1),
        Some(0x20..=0x2f) => {
            let n = bytes[at..]
                .iter()
                .take(4)
                .take_while(|byte| (0x20..=0x2f).contains(*byte))
                .count();
            let is_whole = bytes
                .get(at + n)
                .is_some_and(|byte| (0x30..=0x7e).contains(byte));
            if is_whole { at + n + 1 } else { at }
        }
        Some(0x30..=0x7e) => at + 1,
        _ => at,
    }
}

/// After the introducer of a control sequence.
fn skip_csi(text: &str, at: usize, out: &mut String) -> usize {
    let bytes = &text.as_bytes()[at..];
    let n = bytes
        .iter()
        .take(PARAMETERS_BYTES_MAX)
        .take_while(|byte| (0x20..=0x3f).contains(*byte))
        .count();
    let parameters = &text[at..at + n];
    match bytes.get(n) {
        Some(b'K') if parameters == "2" => out.push('\r'),
        Some(b'G') if matches!(parameters, "" | "0" | "1") => out.push('\r'),
        Some(0x40..=0x7e) => {}
        // Cut off, or something else in the middle of it.
        _ => return at,
    }
    at + n + 1
}

/// After the introducer of a string: to its end, or nothing when the line or another control ends it first. An unfinished
/// string would otherwise hide all that follows.
fn skip_string(text: &str, at: usize) -> usize {
    let bytes = &text.as_bytes()[at..];
    let end = bytes.iter().enumerate().position(|(idx, byte)| match byte {
        0xc2 => bytes
            .get(idx + 1)
            .is_some_and(|next| (0x80..=0x9f).contains(next)),
        b'\t' => false,
        _ => *byte < 0x20,
    });
    let Some(end) = end else {
        return at;
    };
    match (bytes[end], bytes.get(end + 1)) {
        (0x07, _) => at + end + 1,
        (ESC, Some(b'\\')) | (0xc2, Some(0x9c)) => at + end + 2,
        _ => at,
    }
}

/// Lines as they would be seen: of what overwrote itself the last state, of blank lines one.
#[derive(Debug)]
pub struct Lines<'a> {
    /// The text, with `\n` as the only line end.
    pub text: Cow<'a, str>,
    /// How many states of progress were folded away.
    pub n_overwritten: usize,
}

/// Folds carriage returns and runs of blank lines. An overwritten state that says of an error or a warning stays, on a line
/// of its own.
///
/// Shape:  the result of [`strip`]; `\r\n` is a line end.
/// Limits: linear; borrows when there is nothing to do.
pub fn collapse(text: Cow<'_, str>) -> Lines<'_> {
    if !needs_collapse(&text) {
        return Lines {
            text,
            n_overwritten: 0,
        };
    }
    let mut out = String::with_capacity(text.len());
    let mut n_overwritten = 0;
    let mut was_blank = false;
    for line in text.split_inclusive('\n') {
        let (line, end) = line
            .strip_suffix('\n')
            .map_or((line, ""), |line| (line, "\n"));
        let seen = line.trim_end_matches('\r');
        let mut states = seen
            .split('\r')
            .filter(|state| !state.trim().is_empty())
            .peekable();
        let is_blank = states.peek().is_none();
        if is_blank && was_blank {
            continue;
        }
        was_blank = is_blank;
        while let Some(state) = states.next() {
            if states.peek().is_none() {
                out.push_str(state);
            } else if severity(state).is_some() {
                out.push_str(state);
                out.push('\n');
            } else {
                n_overwritten += 1;
            }
        }
        if is_blank && !seen.contains('\r') {
            out.push_str(seen);
        }
        out.push_str(end);
    }
    Lines {
        text: Cow::Owned(out),
        n_overwritten,
    }
}

fn needs_collapse(text: &str) -> bool {
    let mut was_blank = false;
    text.contains('\r')
        || text.lines().any(|line| {
            let is_blank = line.trim().is_empty();
            let is_run = is_blank && was_blank;
            was_blank = is_blank;
            is_run
        })
}

#[cfg(test)]
mod tests;
