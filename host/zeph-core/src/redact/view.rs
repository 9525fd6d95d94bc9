//! A text with one layer of escapes undone, and where each of its bytes came from.

mod control;

use std::borrow::Cow;
use std::ops::Range;

pub(super) use control::n_before_controls;
use control::{control, is_control, n_taken_back};

/// Bytes of a character reference such as `&#x0041;` at most; a longer one is text.
const REFERENCE_BYTES_MAX: usize = 10;

/// Blanks at the beginning of a folded line at most.
const INDENT_BYTES_MAX: usize = 16;

/// Bytes that are dropped between two characters at most, so that what is held back of a text in pieces is bounded: several links.
const DROPPED_BYTES_MAX: usize = 4 * 1024;

/// A way to write a character as several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeLayer {
    /// `%41`
    Percent,
    /// `\u0041`, `\x41`, `\"`
    Backslash,
    /// `&#65;`, `&quot;`
    Reference,
    /// The end of a line, and the blanks that begin the next: base64 is folded so.
    Fold,
    /// Colours and whatever else steers a terminal: what cleans an output takes it out.
    Control,
}

/// What stands at one place of a text.
enum EscapeUnit {
    /// One byte, as it is.
    Literal,
    /// A character, and how many bytes it is written as; none for what is dropped.
    Escaped(Option<char>, usize),
    /// So many bytes, which take back the character before them.
    Back(usize),
    /// One byte of any value, and how many bytes it is written as.
    Byte(u8, usize),
    /// Too little of the text is there to tell.
    Open,
}

use EscapeUnit::{Back, Byte, Escaped, Literal, Open};

/// How much was dropped since the text last grew.
#[derive(Default)]
struct Dropped {
    n_grown: usize,
    n_bytes: usize,
}

impl Dropped {
    /// Whether `n_more` bytes are more than may be dropped behind a text of `n_text` bytes.
    fn is_too_much(&mut self, n_text: usize, n_more: usize) -> bool {
        if n_text > self.n_grown {
            *self = Self {
                n_grown: n_text,
                n_bytes: 0,
            };
        }
        self.n_bytes += n_more;
        self.n_bytes > DROPPED_BYTES_MAX
    }
}

/// A text as it is searched.
#[derive(Debug)]
pub(super) struct View<'t> {
    pub(super) bytes: Cow<'t, [u8]>,
    /// Where each byte came from, and where the next would; `None`: from the place it has.
    origins: Option<Vec<usize>>,
    /// Where in the text it begins to be unclear what stands there.
    pub(super) open: usize,
    /// Whether what is behind the last place, an end of a line, belongs to nothing that stands before.
    ends_with_line: bool,
}

impl<'t> View<'t> {
    /// The text as it is.
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self {
            bytes: Cow::Borrowed(text),
            origins: None,
            open: text.len(),
            ends_with_line: false,
        }
    }

    /// The place in the text where the byte `at` came from; for the end, where it would end.
    pub(super) fn origin(&self, at: usize) -> usize {
        self.origins.as_ref().map_or(at, |origins| origins[at])
    }

    /// The last place at or before `place` of the text that does not lie inside an escape.
    pub(super) fn border(&self, place: usize) -> usize {
        let Some(origins) = &self.origins else {
            return place;
        };
        let n_before = origins.partition_point(|origin| *origin <= place);
        match n_before.checked_sub(1) {
            None => 0,
            Some(last) if last + 1 == origins.len() && self.ends_with_line => place,
            Some(last) => origins[last],
        }
    }

    /// This view with `layer` undone; `None` when nothing is escaped that way. At its end a text is all there is.
    pub(super) fn without(&self, layer: EscapeLayer, is_end: bool) -> Option<View<'static>> {
        if !layer.may_be_in(&self.bytes) {
            return None;
        }
        let n_bytes = self.bytes.len();
        let mut bytes = Vec::with_capacity(n_bytes);
        let mut origins = Vec::with_capacity(n_bytes + 1);
        let mut dropped = Dropped::default();
        let mut at = 0;
        while at < n_bytes {
            let rest = &self.bytes[at..];
            let n_plain = layer.n_plain(rest);
            if n_plain > 0 {
                bytes.extend_from_slice(&rest[..n_plain]);
                self.push_origins(at..at + n_plain, &mut origins);
                at += n_plain;
                continue;
            }
            let n_before = bytes.len();
            let n_escaped = match layer.unit(rest) {
                Open if !is_end => break,
                Escaped(None, n) | Back(n) if dropped.is_too_much(n_before, n) => {
                    bytes.push(rest[0]);
                    1
                }
                Open | Literal => {
                    bytes.push(rest[0]);
                    1
                }
                Byte(byte, n_bytes) => {
                    bytes.push(byte);
                    n_bytes
                }
                Back(n_bytes) => {
                    let n_kept = bytes.len() - n_taken_back(&bytes);
                    bytes.truncate(n_kept);
                    origins.truncate(n_kept);
                    at += n_bytes;
                    continue;
                }
                Escaped(character, n_bytes) => {
                    let mut space = [0; 4];
                    let text = character.map(|character| &*character.encode_utf8(&mut space));
                    bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
                    n_bytes
                }
            };
            origins.resize(origins.len() + bytes.len() - n_before, self.origin(at));
            at += n_escaped;
        }
        // What is escaped is longer than what it stands for.
        let has_changed = bytes.len() != at;
        let is_cut = at < n_bytes;
        // Whether a line goes on matters only to a secret that has begun before.
        let is_open = is_cut && layer != EscapeLayer::Fold;
        origins.push(self.origin(at));
        (has_changed || is_cut).then(|| View {
            open: match is_open {
                true => self.origin(at),
                false => self.open,
            },
            bytes: Cow::Owned(bytes),
            origins: Some(origins),
            ends_with_line: !is_open && (is_cut || self.ends_with_line),
        })
    }
}

impl View<'_> {
    /// Appends where the bytes of a range came from.
    fn push_origins(&self, range: Range<usize>, origins: &mut Vec<usize>) {
        match &self.origins {
            None => origins.extend(range),
            Some(own) => origins.extend_from_slice(&own[range]),
        }
    }
}

impl EscapeLayer {
    pub(super) const ALL: [Self; 5] = [
        Self::Percent,
        Self::Backslash,
        Self::Reference,
        Self::Fold,
        Self::Control,
    ];

    /// Whether `byte` may begin what is escaped.
    fn is_sign(self, byte: u8) -> bool {
        match self {
            Self::Percent => byte == b'%',
            Self::Backslash => byte == b'\\',
            Self::Reference => byte == b'&',
            Self::Fold => matches!(byte, b'\r' | b'\n'),
            Self::Control => is_control(byte),
        }
    }

    /// Whether anything may be escaped so. By blocks, so that texts in which nothing is are passed over many bytes at a time.
    fn may_be_in(self, bytes: &[u8]) -> bool {
        const BLOCK_BYTES: usize = 64;
        let has_sign = |block: &[u8]| {
            let signs = block.iter().map(|byte| self.is_sign(*byte));
            signs.fold(false, |any, is_sign| any | is_sign)
        };
        bytes.chunks(BLOCK_BYTES).any(has_sign)
    }

    /// How many of the first bytes of `rest` stand for themselves.
    fn n_plain(self, rest: &[u8]) -> usize {
        let is_sign = |byte: &u8| self.is_sign(*byte);
        rest.iter().position(is_sign).unwrap_or(rest.len())
    }

    fn unit(self, rest: &[u8]) -> EscapeUnit {
        match (self, rest[0]) {
            (Self::Percent, b'%') => hexadecimal(rest, 1, 2).map_byte(),
            (Self::Backslash, b'\\') => backslash(rest),
            (Self::Reference, b'&') => reference(rest),
            (Self::Fold, b'\r' | b'\n') => fold(rest),
            (Self::Control, byte) if is_control(byte) => control(rest),
            _ => Literal,
        }
    }
}

/// A number in a text.
enum Digits {
    Value(u32, usize),
    None,
    Cut,
}

impl Digits {
    fn map_byte(self) -> EscapeUnit {
        match self {
            Self::Value(value, n_bytes) => {
                u8::try_from(value).map_or(Literal, |byte| Byte(byte, n_bytes))
            }
            Self::None => Literal,
            Self::Cut => Open,
        }
    }
}

/// The number of `n_digits` hexadecimal digits after `n_before` bytes.
fn hexadecimal(rest: &[u8], n_before: usize, n_digits: usize) -> Digits {
    let digits = rest.iter().skip(n_before).take(n_digits);
    let mut value = 0;
    for digit in digits.clone() {
        match char::from(*digit).to_digit(16) {
            Some(digit) => value = value * 16 + digit,
            None => return Digits::None,
        }
    }
    match digits.count() == n_digits {
        true => Digits::Value(value, n_before + n_digits),
        false => Digits::Cut,
    }
}

fn backslash(rest: &[u8]) -> EscapeUnit {
    let escaped = |character| Escaped(Some(character), 2);
    match rest.get(1) {
        None => Open,
        Some(b'u') => utf16(rest),
        Some(b'x') => hexadecimal(rest, 2, 2).map_byte(),
        Some(b'b') => escaped('\u{8}'),
        Some(b'f') => escaped('\u{c}'),
        Some(b'n') => escaped('\n'),
        Some(b'r') => escaped('\r'),
        Some(b't') => escaped('\t'),
        Some(sign @ (b'"' | b'\'' | b'/' | b'\\')) => escaped(char::from(*sign)),
        Some(_) => Literal,
    }
}

/// `\u0041`, or a pair of surrogates.
fn utf16(rest: &[u8]) -> EscapeUnit {
    let (first, n_bytes) = match hexadecimal(rest, 2, 4) {
        Digits::Value(value, n_bytes) => (value, n_bytes),
        Digits::None => return Literal,
        Digits::Cut => return Open,
    };
    if let Some(character) = char::from_u32(first) {
        return Escaped(Some(character), n_bytes);
    }
    let next = &rest[n_bytes..];
    if next.len() < 2 && b"\\u".starts_with(next) {
        return Open;
    }
    match (next.starts_with(b"\\u"), hexadecimal(next, 2, 4)) {
        (true, Digits::Cut) => Open,
        (true, Digits::Value(second @ 0xdc00..0xe000, _)) if first < 0xdc00 => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            Escaped(char::from_u32(code), 2 * n_bytes)
        }
        _ => Literal,
    }
}

fn reference(rest: &[u8]) -> EscapeUnit {
    let within = &rest[..rest.len().min(REFERENCE_BYTES_MAX)];
    let Some(end) = within.iter().position(|byte| *byte == b';') else {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
        let may_end = within.len() < REFERENCE_BYTES_MAX && within[1..].iter().all(is_name);
        return if may_end { Open } else { Literal };
    };
    let name = std::str::from_utf8(&within[1..end]).unwrap_or_default();
    let number = name
        .strip_prefix('#')
        .map(|number| match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        });
    let character = match (name, number) {
        (_, Some(Ok(code))) => char::from_u32(code),
        ("amp", _) => Some('&'),
        ("lt", _) => Some('<'),
        ("gt", _) => Some('>'),
        ("quot", _) => Some('"'),
        ("apos", _) => Some('\''),
        _ => None,
    };
    character.map_or(Literal, |character| Escaped(Some(character), end + 1))
}

/// One end of a line and the blanks after it; an empty line folds nothing.
fn fold(rest: &[u8]) -> EscapeUnit {
    let n_end = match rest {
        [b'\r'] => return Open,
        [b'\r', b'\n', ..] => 2,
        [b'\r', ..] => return Literal,
        _ => 1,
    };
    let indent = rest[n_end..].iter().take(INDENT_BYTES_MAX);
    let n_indent = indent
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    match rest.get(n_end + n_indent) {
        None => Open,
        Some(b'\r' | b'\n') => Literal,
        Some(_) => Escaped(None, n_end + n_indent),
    }
}
