//! Turning what a terminal would draw into plain lines.
//!
//! Two steps, both linear: [`strip`] takes out control sequences, [`clean`] folds what progress has overwritten, too, and writes down
//! what colours alone tell in a diff. What can be seen or separates stays, or is counted. A sequence that is cut off or never ends hides nothing: its text is shown. Applying either twice
//! changes nothing.

mod hunks;

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
/// Shape:  any text → the same lines; `\t`, `\n` and `\r` stay, an erased line becomes `\r`, a backspace takes a character back, a NUL
///         ends a line.
/// Limits: linear; borrows when there is nothing to do.
/// Source: ECMA-48, fifth edition, sections 5.4 and 5.6; C1 controls in their two-byte UTF-8 form.
pub fn strip(text: &str) -> Cow<'_, str> {
    strip_counted(text, &mut Changes::default())
}

/// What [`strip`] changed beyond control sequences.
#[derive(Debug, Clone, Copy, Default)]
struct Changes {
    /// Whether what can be seen or stands between others is not to go: a backspace takes back what is drawn over alone, and every NUL ends
    /// a line.
    keeps_all: bool,
    /// Characters that are gone, and could be seen or stood between others.
    n_erased: usize,
    /// Line ends that the text did not have.
    n_line_ends: usize,
}

fn strip_counted<'t>(text: &'t str, changes: &mut Changes) -> Cow<'t, str> {
    let Some(first) = next_control(text, 0) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut next = Some(first);
    while let Some(control) = next {
        out.push_str(&text[copied..control]);
        copied = skip(text, control, &mut out, changes);
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
fn skip(text: &str, at: usize, out: &mut String, changes: &mut Changes) -> usize {
    let Some(control) = text[at..].chars().next() else {
        return text.len();
    };
    let after = at + control.len_utf8();
    match control {
        '\u{1b}' => skip_escape(text, after, out),
        CSI => skip_csi(text, after, out),
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(text, after),
        '\0' if !changes.keeps_all && is_of_wide_text(text.as_bytes(), at) => {
            changes.n_erased += 1;
            after
        }
        '\0' | '\u{85}' => {
            changes.n_line_ends += 1;
            out.push('\n');
            after
        }
        '\u{8}' => {
            let before = out.chars().next_back();
            if let Some(taken) = before.filter(|c| !matches!(c, '\n' | '\r')) {
                let is_seen = is_drawn_over(taken, text[after..].chars().next());
                if is_seen || !changes.keeps_all {
                    out.pop();
                    changes.n_erased += usize::from(!is_seen);
                }
            }
            after
        }
        _ => after,
    }
}

/// Whether nothing is missed of a character that a backspace takes back: it comes again, as in bold, or is blank, an underline or a
/// turning bar.
fn is_drawn_over(taken: char, next: Option<char>) -> bool {
    Some(taken) == next || taken.is_whitespace() || matches!(taken, '_' | '|' | '/' | '-' | '\\')
}

/// Whether a NUL is one of three at least with one byte between each, as in text of two bytes for each character.
fn is_of_wide_text(bytes: &[u8], at: usize) -> bool {
    let is_nul = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&0);
    let is_pair = |first: Option<usize>| {
        let later = |n| first.and_then(|first| first.checked_add(n));
        is_nul(first) && !is_nul(later(1)) && is_nul(later(2))
    };
    let [before, earlier] = [2, 4].map(|n| at.checked_sub(n));
    (is_pair(Some(at)) && (is_pair(Some(at + 2)) || is_pair(before)))
        || (is_pair(before) && is_pair(earlier))
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
    stripped_counted(raw, &mut Changes::default())
}

fn stripped_counted<'r>(raw: &'r [u8], changes: &mut Changes) -> Cow<'r, str> {
    // Most outputs are UTF-8, and finding that out is fast.
    if let Ok(text) = str::from_utf8(raw) {
        return strip_counted(text, changes);
    }
    let text = String::from_utf8_lossy(raw).into_owned();
    match strip_counted(&text, changes) {
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

/// Fewer bytes are not worth the lines that say where the whole is: overwritten states are shown instead.
const GAIN_BYTES_MIN: usize = 200;

/// Lines as they would be seen: of progress the last state.
#[derive(Debug)]
pub struct Clean<'a> {
    /// The text, with `\n` as the only line end.
    pub text: Cow<'a, str>,
    /// How many states of progress were folded away.
    pub n_overwritten: usize,
    /// How many characters are gone that could be seen or stood between others.
    pub n_erased: usize,
    /// Whether its lines are those of the output, one for one.
    pub has_same_lines: bool,
}

impl<'a> Clean<'a> {
    /// A text that is clean.
    pub(crate) fn of_plain(text: &'a str) -> Self {
        Self {
            text: text.into(),
            n_overwritten: 0,
            n_erased: 0,
            has_same_lines: true,
        }
    }

    /// Whether something is missing that is no control sequence: then the output itself must be kept.
    pub fn is_lossy(&self) -> bool {
        self.n_overwritten > 0 || self.n_erased > 0
    }
}

/// Takes out control sequences and folds progress. An overwritten state stays on a line of its own when it says of an error or a
/// warning, when it is of no progress, and all do when little would be gained.
///
/// Shape:  any bytes; `\r\n` is a line end, and so is `\r` where there is no `\n`.
/// Limits: linear; borrows when there is nothing to do, else takes one copy.
pub fn clean(raw: &[u8]) -> Clean<'_> {
    clean_of(raw, Writer::Command)
}

/// Who wrote an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// A command that says how far it is.
    Command,
    /// The author of the file that a command prints. Its lines may end with `\r`.
    File,
}

/// As [`clean`], with who wrote it. In a file, lines of the same words with other numbers are records.
pub(crate) fn clean_of(raw: &[u8], writer: Writer) -> Clean<'_> {
    if let Some(text) = plain(raw) {
        return Clean::of_plain(text);
    }
    let raw = &*hunks::told(raw);
    let returns = match memchr::memchr(b'\n', raw) {
        Some(_) => Returns::Overwrite(writer),
        None => Returns::EndLines,
    };
    let clean = drawn(raw, returns, Changes::default());
    let is_worth_it = raw.len() >= clean.text.len() + GAIN_BYTES_MIN;
    match clean.n_overwritten > 0 && !is_worth_it {
        true => drawn(raw, Returns::Separate, Changes::default()),
        false => clean,
    }
}

/// Takes out control sequences and nothing else: what they tell of a diff is written down, overwritten states have lines of their own, what a
/// backspace erased stays, and a NUL ends a line.
///
/// Shape:  as of [`clean`]; never [lossy](Clean::is_lossy).
/// Limits: as of [`clean`].
pub(crate) fn clean_whole(raw: &[u8]) -> Clean<'_> {
    if let Some(text) = plain(raw) {
        return Clean::of_plain(text);
    }
    let raw = &*hunks::told(raw);
    let returns = match memchr::memchr(b'\n', raw) {
        Some(_) => Returns::Separate,
        None => Returns::EndLines,
    };
    let keeping = Changes {
        keeps_all: true,
        ..Changes::default()
    };
    drawn(raw, returns, keeping)
}

/// What a `\r` means that ends no line with a `\n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returns {
    /// The line is written anew.
    Overwrite(Writer),
    /// As above, and what is overwritten gets a line of its own.
    Separate,
    /// The end of a line.
    EndLines,
}

fn drawn(raw: &[u8], returns: Returns, changes: Changes) -> Clean<'static> {
    let mut drawn = Drawn {
        text: String::with_capacity(raw.len()),
        returns,
        n_overwritten: 0,
        changes,
    };
    for piece in pieces(raw) {
        let text = stripped_counted(piece, &mut drawn.changes);
        drawn.add(&text);
    }
    Clean {
        text: Cow::Owned(drawn.text),
        n_overwritten: drawn.n_overwritten,
        n_erased: drawn.changes.n_erased,
        has_same_lines: drawn.changes.n_line_ends == 0,
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
    let mut folded = String::with_capacity(text.len());
    let (mut start, mut copied, mut was_blank) = (0, 0, false);
    for end in line_ends(text.as_bytes()).chain([text.len()]) {
        if start == text.len() {
            break;
        }
        let is_blank = is_blank(&text[start..end]);
        let after = text.len().min(end + 1);
        if is_blank && was_blank {
            folded.push_str(&text[copied..start]);
            copied = after;
        }
        (start, was_blank) = (after, is_blank);
    }
    folded.push_str(&text[copied..]);
    folded
}

/// What is drawn so far.
struct Drawn {
    text: String,
    returns: Returns,
    n_overwritten: usize,
    changes: Changes,
}

impl Drawn {
    /// Adds whole lines without control sequences.
    fn add(&mut self, text: &str) {
        if !text.contains('\r') {
            self.text.push_str(text);
            return;
        }
        if self.returns == Returns::EndLines {
            self.changes.n_line_ends += text.matches('\r').count();
            self.text.push_str(&text.replace('\r', "\n"));
            return;
        }
        for line in text.split_inclusive('\n') {
            let (line, end) = line
                .strip_suffix('\n')
                .map_or((line, ""), |line| (line, "\n"));
            self.add_states(line.trim_end_matches('\r'));
            self.text.push_str(end);
        }
    }

    fn add_states(&mut self, seen: &str) {
        if !seen.contains('\r') {
            self.text.push_str(seen);
            return;
        }
        let mut states = seen.split('\r').filter(|state| !is_blank(state)).peekable();
        while let Some(state) = states.next() {
            let Some(next) = states.peek() else {
                self.text.push_str(state);
                return;
            };
            let is_folded = |writer| severity(state).is_none() && is_progress(state, next, writer);
            if let Returns::Overwrite(writer) = self.returns
                && is_folded(writer)
            {
                self.n_overwritten += 1;
                continue;
            }
            self.text.push_str(state);
            self.text.push('\n');
            self.changes.n_line_ends += 1;
        }
    }
}

/// Whether a state is one of progress, of which the next tells the same and more: shares, counts, bars and turning signs, or the
/// same words with other numbers. Lines of a file that end with `\r` are none, as a rule.
fn is_progress(state: &str, next: &str, writer: Writer) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = char> {
        text.chars().filter(|c| c.is_alphabetic())
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let is_count = |(at, _): (usize, &str)| {
        let (before, after) = (state[..at].trim_end(), state[at + 1..].trim_start());
        before.ends_with(is_digit) && after.starts_with(is_digit)
    };
    state.contains('%')
        || !state.contains(char::is_alphanumeric)
        || (writer == Writer::Command
            && state.contains(char::is_alphabetic)
            && letters(state).eq(letters(next)))
        || state.match_indices('/').any(is_count)
}

#[cfg(test)]
mod tests;
