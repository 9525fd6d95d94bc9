//! Turning what a terminal would draw into plain lines.
//!
//! Two steps, both linear: [`strip`] takes out control sequences, [`clean`] folds what was overwritten and runs of blank lines
//! too. A sequence that is cut off or never ends hides nothing: its text is shown. Applying either twice changes nothing.

use std::borrow::Cow;

use zeph_strategies::{
    BLOCK_BYTES, has_control_or_return, is_blank, line_ends, may_begin_control, padded, places,
    severity,
};

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
    let is_control = |idx: &usize| bytes[*idx] != 0xc2 || is_c1(bytes.get(idx + 1));
    let (blocks, rest) = bytes.as_chunks();
    for (block, start) in blocks.iter().zip((0..).step_by(BLOCK_BYTES)) {
        // Whether there is any takes half as long to find out.
        if !has_control_or_return(block) {
            continue;
        }
        let found = places(may_begin_control(block));
        if let Some(n) = found.map(|n| start + n).find(is_control) {
            return Some(at + n);
        }
    }
    let start = bytes.len() - rest.len();
    let mut found = places(may_begin_control(&padded(rest, b' '))).map(|n| start + n);
    found.find(is_control).map(|n| at + n)
}

/// Whether the byte after 0xc2 makes it a control of the second set.
fn is_c1(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| (0x80..=0x9f).contains(byte))
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
        0xc2 => is_c1(bytes.get(idx + 1)),
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

/// The text of any bytes, without control sequences.
///
/// Shape:  as of [`strip`]; what is no UTF-8 becomes U+FFFD.
pub(crate) fn stripped(raw: &[u8]) -> Cow<'_, str> {
    // Most outputs are UTF-8, and finding that out is fast.
    if let Ok(text) = str::from_utf8(raw) {
        return strip(text);
    }
    let text = String::from_utf8_lossy(raw).into_owned();
    match strip(&text) {
        Cow::Owned(stripped) => Cow::Owned(stripped),
        Cow::Borrowed(_) => Cow::Owned(text),
    }
}

/// Bytes of an output that are worked on at once, up to the end of their line: what is made of them on the way is small and
/// stays in the cache.
const PIECE_BYTES: usize = 64 * 1024;

/// An output in pieces of whole lines, which can be stripped one by one: no control sequence goes beyond its line.
pub(crate) fn pieces(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let ahead = rest.get(PIECE_BYTES..).unwrap_or_default();
        let line_end = ahead.iter().position(|byte| *byte == b'\n');
        let end = line_end.map_or(rest.len(), |n| PIECE_BYTES + n + 1);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Lines as they would be seen: of what overwrote itself the last state, of blank lines one.
#[derive(Debug)]
pub struct Clean<'a> {
    /// The text, with `\n` as the only line end.
    pub text: Cow<'a, str>,
    /// How many states of progress were folded away.
    pub n_overwritten: usize,
}

/// Takes out control sequences and folds carriage returns and runs of blank lines. An overwritten state that says of an error
/// or a warning stays, on a line of its own.
///
/// Shape:  any bytes; `\r\n` is a line end.
/// Limits: linear; borrows when there is nothing to do, else takes one copy.
pub fn clean(raw: &[u8]) -> Clean<'_> {
    if let Some(text) = plain(raw) {
        let is_clean = !has_blank_run(text);
        return Clean {
            text: if is_clean {
                text.into()
            } else {
                folded(text).into()
            },
            n_overwritten: 0,
        };
    }
    let mut folded = Folded {
        text: String::with_capacity(raw.len()),
        n_overwritten: 0,
        was_blank: false,
    };
    for piece in pieces(raw) {
        folded.add(&stripped(piece));
    }
    Clean {
        text: Cow::Owned(folded.text),
        n_overwritten: folded.n_overwritten,
    }
}

/// The text of an output that is UTF-8 without control sequences and carriage returns.
pub(crate) fn plain(raw: &[u8]) -> Option<&str> {
    let text = str::from_utf8(raw).ok()?;
    let (blocks, rest) = raw.as_chunks();
    let may_have =
        blocks.iter().any(has_control_or_return) || has_control_or_return(&padded(rest, b' '));
    let has_other = || next_control(text, 0).is_some() || memchr::memchr(b'\r', raw).is_some();
    (!may_have || !has_other()).then_some(text)
}

/// A plain text without blank lines that follow blank ones.
pub(crate) fn folded(text: &str) -> String {
    let mut folded = Folded {
        text: String::with_capacity(text.len()),
        n_overwritten: 0,
        was_blank: false,
    };
    folded.add_plain(text);
    folded.text
}

/// What is folded so far.
struct Folded {
    text: String,
    n_overwritten: usize,
    /// Whether the last line is blank.
    was_blank: bool,
}

impl Folded {
    /// Adds whole lines.
    fn add(&mut self, text: &str) {
        if !text.contains('\r') {
            self.add_plain(text);
            return;
        }
        for line in text.split_inclusive('\n') {
            let (line, end) = line
                .strip_suffix('\n')
                .map_or((line, ""), |line| (line, "\n"));
            self.add_line(line.trim_end_matches('\r'), end);
        }
    }

    /// Adds whole lines without a carriage return: all but blank ones after blank ones.
    fn add_plain(&mut self, text: &str) {
        let (mut start, mut copied) = (0, 0);
        for end in line_ends(text.as_bytes()).chain([text.len()]) {
            if start == text.len() {
                break;
            }
            let is_blank = is_blank(&text[start..end]);
            let after = text.len().min(end + 1);
            if is_blank && self.was_blank {
                self.text.push_str(&text[copied..start]);
                copied = after;
            }
            (start, self.was_blank) = (after, is_blank);
        }
        self.text.push_str(&text[copied..]);
    }

    fn add_line(&mut self, seen: &str, end: &str) {
        let mut states = seen.split('\r').filter(|state| !is_blank(state)).peekable();
        let is_blank = states.peek().is_none();
        if is_blank && self.was_blank {
            return;
        }
        self.was_blank = is_blank;
        while let Some(state) = states.next() {
            if states.peek().is_none() {
                self.text.push_str(state);
            } else if severity(state).is_some() {
                self.text.push_str(state);
                self.text.push('\n');
            } else {
                self.n_overwritten += 1;
            }
        }
        if is_blank && !seen.contains('\r') {
            self.text.push_str(seen);
        }
        self.text.push_str(end);
    }
}

fn has_blank_run(text: &str) -> bool {
    let (mut start, mut was_blank) = (0, false);
    line_ends(text.as_bytes()).chain([text.len()]).any(|end| {
        let is_blank = start < text.len() && is_blank(&text[start..end]);
        let is_run = is_blank && was_blank;
        (start, was_blank) = (end + 1, is_blank);
        is_run
    })
}

#[cfg(test)]
mod tests;
