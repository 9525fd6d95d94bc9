//! Hints: words that make a line worth a closer look.
//!
//! A hint is read from a short notation, so that the table of shapes stays a table.

use zeph_strategies::Case;

/// One word that makes a line worth a closer look.
///
/// Written `word|word`. In a word, `[…]` is any one of some characters. `(?i)` before the first is for words in upper and lower
/// case, `\b` before one for those that no letter, digit or `_` precedes, `^` for those that begin a line; after one, `{n}` asks for `n` letters, digits, `_` or
/// `-`, `{=}` for a value that is given to a name which ends with the word or goes on behind it, and `…c` for the character `c`
/// before the next space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) word: String,
    pub(super) case: Case,
    is_at_border: bool,
    /// Whether the word is the end of a line and what begins the next.
    begins_line: bool,
    n_after: usize,
    is_assigned: bool,
    later: Option<u8>,
}

/// How far a character that is to come later is looked for, in bytes: beyond the longest password in a URL. Without a limit, a
/// line of nothing but hints would take quadratic time.
const LATER_BYTES_MAX: usize = 1300;

impl Hint {
    /// The words of a hint.
    pub(super) fn all(hint: &str) -> Vec<Self> {
        let (case, words) = match hint.strip_prefix("(?i)") {
            Some(words) => (Case::Any, words),
            None => (Case::Exact, hint),
        };
        let words = words.split('|').filter(|word| !word.is_empty());
        words.flat_map(|word| Self::of_word(word, case)).collect()
    }

    fn of_word(written: &str, case: Case) -> Vec<Self> {
        let (begins_line, written) = match written.strip_prefix('^') {
            Some(written) => (true, written),
            None => (false, written),
        };
        let bare = written.strip_prefix(r"\b");
        let is_at_border = bare.is_some();
        let word = bare.unwrap_or(written);
        let (word, later) = match word.split_once('…') {
            Some((word, later)) => (word, later.bytes().next()),
            None => (word, None),
        };
        let (word, after) = match word.strip_suffix('}').and_then(|word| word.split_once('{')) {
            Some((word, after)) => (word, after),
            None => (word, ""),
        };
        let words = expand(word).into_iter();
        words
            .map(|word| Self {
                word: match begins_line {
                    true => format!("\n{word}"),
                    false => word,
                },
                case,
                is_at_border,
                begins_line,
                n_after: after.parse().unwrap_or(0),
                is_assigned: after == "=",
                later,
            })
            .collect()
    }

    /// Whether what stands around the word is as it has to be.
    pub(super) fn fits(&self, text: &[u8], start: usize, end: usize) -> bool {
        let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if self.is_at_border && text[..start].last().is_some_and(is_inner) {
            return false;
        }
        let after = &text[end..];
        let has_after = (after.get(..self.n_after)).is_some_and(|part| part.iter().all(is_token));
        has_after
            && (!self.is_assigned || is_assigned(after))
            && self.later.is_none_or(|later| {
                let near = after.iter().take(LATER_BYTES_MAX);
                let mut word = near.take_while(|byte| !byte.is_ascii_whitespace());
                word.any(|byte| *byte == later)
            })
    }
}

impl Hint {
    /// Whether the first line of `text` is one that it may begin.
    pub(super) fn begins(&self, text: &[u8]) -> bool {
        let word = self.word.trim_start_matches('\n');
        self.begins_line && text.starts_with(word.as_bytes()) && self.fits(text, 0, word.len())
    }

    /// A place in the line that is suspected for the word at `start`.
    pub(super) fn place(&self, start: usize) -> usize {
        start + usize::from(self.begins_line)
    }

    /// Which bytes may follow the word.
    pub(super) fn next(&self) -> &'static [u8] {
        match self.n_after {
            0 => &VISIBLE,
            _ => TOKEN,
        }
    }
}

/// Whether the rest of a name, a quote or none, which may be escaped, and blanks or none stand before a `=` or `:`.
fn is_assigned(text: &[u8]) -> bool {
    // Longer than all that the shapes let follow a word.
    const NAME_BYTES_MAX: usize = 16;
    const BLANKS_MAX: usize = 5;
    // Of JSON in JSON in JSON.
    const BACKSLASHES_MAX: usize = 3;
    let is_name = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    let near = text.iter().take(NAME_BYTES_MAX);
    let text = &text[near.take_while(is_name).count()..];
    let near = text.iter().take(BACKSLASHES_MAX);
    let n_backslashes = near.take_while(|byte| **byte == b'\\').count();
    let text = match &text[n_backslashes..] {
        [b'"' | b'\'', rest @ ..] => rest,
        _ => text,
    };
    let is_blank = |byte: &&u8| matches!(byte, b'\t'..=b'\r' | b' ');
    let n_blanks = text.iter().take(BLANKS_MAX).take_while(is_blank).count();
    matches!(text[n_blanks..], [b'=' | b':', ..])
}

/// What tokens are made of, one by one.
const TOKEN: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// All that is no white space and no control of ASCII.
static VISIBLE: [u8; 222] = {
    let mut all = [0; 222];
    let (mut idx, mut byte) = (0, b'!');
    while idx < all.len() {
        if byte == 0x7f {
            byte += 1;
        }
        all[idx] = byte;
        idx += 1;
        byte = byte.wrapping_add(1);
    }
    all
};

/// What tokens are made of.
pub(super) fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Every word that one with `[…]` stands for.
fn expand(word: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut rest = word;
    while !rest.is_empty() {
        let (literal, class, after) = next_class(rest).unwrap_or((rest, "", ""));
        words.iter_mut().for_each(|word| word.push_str(literal));
        if !class.is_empty() {
            let members = members(class);
            let longer = |word: &String| -> Vec<String> {
                let of = members.iter();
                of.map(|c| {
                    let mut longer = String::with_capacity(word.len() + rest.len());
                    longer.push_str(word);
                    longer.push(*c);
                    longer
                })
                .collect()
            };
            words = words.iter().flat_map(longer).collect();
        }
        rest = after;
    }
    words
}

/// What stands before the first class of a word, the class, and what stands behind it.
fn next_class(word: &str) -> Option<(&str, &str, &str)> {
    let (literal, rest) = word.split_once('[')?;
    let (class, after) = rest.split_once(']')?;
    Some((literal, class, after))
}

/// The characters of a class: one by one, or from one to another. A hyphen at the end is itself.
fn members(class: &str) -> Vec<char> {
    let mut members = Vec::new();
    let mut chars = class.chars();
    while let Some(first) = chars.next() {
        let mut ahead = chars.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) => {
                members.extend(first..=last);
                chars = ahead;
            }
            _ => members.push(first),
        }
    }
    members
}
