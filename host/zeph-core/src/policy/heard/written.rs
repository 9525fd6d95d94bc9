//! What calls wrote that could become an address, kept so that a result which repeats it can be told from one that names something.

use super::{HEARD_MAX, URL_BYTES_MAX};
use crate::failure::is_tag;

/// Most bytes of what calls wrote that are remembered of a session.
pub(super) const WRITTEN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What stands behind each text: a blank, which none holds.
const TEXT_END: char = '\n';

/// Texts of calls, as [`compared`] makes them. A result that repeats one, wherever it begins to and ends, names what one of these begins
/// with.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    /// One behind the other. What several begin in, as the addresses of one long word do, is there once.
    text: String,
    /// Where in `text` each begins, in the order of what stands there.
    starts: Vec<usize>,
    is_full: bool,
}

impl Written {
    /// Whether the limit was reached, so that something is not remembered.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Remembers what stands in `word` from each of `places` on, as much as an address may have, and gives those places that are news. They
    /// ascend.
    pub(super) fn add(&mut self, word: &str, places: &[usize]) -> Vec<usize> {
        let mut news = Vec::new();
        let ends = places.iter().copied().skip(1).chain([word.len()]);
        let mut text = String::new();
        let mut starts = Vec::with_capacity(places.len());
        for (place, end) in places.iter().zip(ends) {
            starts.push(text.len());
            text.push_str(&compared(&word[*place..end]));
        }
        // How much of `text` is remembered, and where what is remembered in one piece begins there and here.
        let mut end = 0;
        let mut piece = None;
        for (place, start) in places.iter().zip(starts) {
            let until = text.floor_char_boundary(start + URL_BYTES_MAX);
            if self.has_compared(&text[start..until]) {
                continue;
            }
            if start >= end {
                self.end_text();
                piece = None;
                end = start;
            }
            let (there, here) = *piece.get_or_insert((start, self.text.len()));
            if !self.has_room(until - end) {
                self.is_full = true;
                break;
            }
            self.text.push_str(&text[end..until]);
            end = until;
            self.begin_at(here + start - there);
            news.push(*place);
        }
        self.end_text();
        news
    }

    /// Whether a call wrote `text`, alone or as the beginning of something longer.
    pub(super) fn has(&self, text: &str) -> bool {
        self.has_compared(&compared(text))
    }

    /// Whether `text`, which replaces `word` where an address is normalised, is the beginning of it as it is compared.
    pub(super) fn is_same(text: &str, word: &str) -> bool {
        compared(word).starts_with(&compared(text))
    }

    fn has_compared(&self, text: &str) -> bool {
        let next = self.starts.get(self.n_before(text));
        next.is_some_and(|start| self.text[*start..].starts_with(text))
    }

    /// How many of the texts come before `text`.
    fn n_before(&self, text: &str) -> usize {
        self.starts
            .partition_point(|start| &self.text[*start..] < text)
    }

    fn has_room(&self, n_bytes: usize) -> bool {
        self.starts.len() < HEARD_MAX && self.text.len() + n_bytes < WRITTEN_BYTES_MAX
    }

    fn begin_at(&mut self, start: usize) {
        let place = self.n_before(&self.text[start..]);
        self.starts.insert(place, start);
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(TEXT_END) {
            self.text.push(TEXT_END);
        }
    }

    #[cfg(test)]
    pub(super) fn n_texts(&self) -> usize {
        self.starts.len()
    }

    #[cfg(test)]
    pub(super) fn n_bytes(&self) -> usize {
        self.text.len()
    }
}

/// `text` as it is compared: in lower case, without the escapes of visible characters, without what nobody sees, and with the slashes that
/// browsers make of backslashes.
fn compared(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => visible(*high, *low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = match escaped {
            Some(_) => &rest[3..],
            None => after,
        };
    }
    if bytes.is_ascii() {
        bytes.make_ascii_lowercase();
    }
    let text = String::from_utf8_lossy(&bytes);
    if bytes.is_ascii() {
        return text.replace('\\', "/");
    }
    let seen = text.chars().filter(|letter| !is_tag(*letter));
    let slashed = seen.map(|letter| if letter == '\\' { '/' } else { letter });
    slashed.flat_map(char::to_lowercase).collect()
}

/// The byte of two hexadecimal digits, unless it is a blank or a control.
fn visible(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let value = digit(high)? * 16 + digit(low)?;
    let byte = u8::try_from(value).ok()?;
    (byte > b' ' && byte != 0x7f).then_some(byte)
}
