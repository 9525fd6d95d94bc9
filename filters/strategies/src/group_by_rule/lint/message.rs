//! What two findings of a rule have in common: the message without names in quotes and numbers.

use std::ops::Range;

use super::parse::Finding;
use crate::block::{BLOCK_BYTES, Block, Lanes, alphanumeric, bits, padded, places};
use crate::group_by_rule::is_place;
use crate::has_control;

/// Longest name or number that is told in a note, in bytes; a finding with a longer one is shown itself.
const NAME_BYTES_MAX: usize = 120;

/// Messages that are remembered at most: outputs repeat some, and one that repeats none must not take more memory.
pub(super) const KNOWN_MAX: usize = 4096;

/// Writes the message of a finding with a sign for each name and number; whether a note can tell those: they hold no control
/// characters, and none looks like a place, which would be looked for in the output.
pub(super) fn write_template<'a>(
    output: &'a str,
    finding: &Finding<'a>,
    template: &mut String,
) -> bool {
    template.clear();
    template.push(if finding.has_path() { 'p' } else { 'n' });
    let mut fits_note = true;
    for text in finding.texts(output) {
        let may_have_control = has_control(text);
        template.push('\n');
        let mut copied = 0;
        each_name(text, |name| {
            template.push_str(&text[copied..name.start]);
            template.push('\u{1}');
            copied = name.end;
            let name = &text[name];
            let is_short = name.len() <= NAME_BYTES_MAX;
            fits_note &= is_short && !is_place(name) && !(may_have_control && has_control(name));
        });
        template.push_str(&text[copied..]);
    }
    fits_note
}

/// Which of the names and numbers are not the same in all findings of a template, in their order.
pub(super) fn varying<'a, 'f>(
    output: &'a str,
    mut findings: impl Iterator<Item = &'f Finding<'a>>,
) -> Vec<bool>
where
    'a: 'f,
{
    let mut first = Vec::new();
    if let Some(finding) = findings.next() {
        all_names(output, finding, |name| first.push(name));
    }
    let mut varying = vec![false; first.len()];
    for finding in findings {
        let mut known = first.iter().zip(&mut varying);
        all_names(output, finding, |name| {
            if let Some((first, varies)) = known.next() {
                *varies |= *first != name;
            }
        });
    }
    varying
}

/// The names and numbers of a finding at places that vary, each once.
pub(super) fn own_names<'a>(
    output: &'a str,
    finding: &Finding<'a>,
    varying: &[bool],
) -> Vec<&'a str> {
    let mut own: Vec<&str> = Vec::new();
    if !varying.contains(&true) {
        return own;
    }
    let mut varying = varying.iter();
    all_names(output, finding, |quoted| {
        if varying.next() != Some(&true) {
            return;
        }
        let name = bare(quoted);
        let is_list = name.bytes().any(|byte| matches!(byte, b' ' | b','));
        let name = if is_list { quoted } else { name };
        if !own.contains(&name) {
            own.push(name);
        }
    });
    own
}

/// Looked for anew each time: to note them for every finding takes more than all the rest of it.
fn all_names<'a>(output: &'a str, finding: &Finding<'a>, mut found: impl FnMut(&'a str)) {
    for text in finding.texts(output) {
        each_name(text, |name| found(&text[name]));
    }
}

fn bare(name: &str) -> &str {
    let mut chars = name.chars();
    match (chars.next(), chars.next_back()) {
        (Some(c), Some(_)) if !c.is_ascii_digit() => chars.as_str(),
        _ => name,
    }
}

/// Quotes with what ends them.
const QUOTES: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];

/// The first byte of a number, a quote, or one of the quotes beyond ASCII.
fn may_begin_name(block: &Block) -> u64 {
    bits(block, |lanes| {
        let quotes = [b'\'', b'"', b'`', 0xe2].map(|byte| lanes.equal(byte));
        quotes
            .into_iter()
            .fold(lanes.between(b'0', b'9'), Lanes::or)
    })
}

fn word_bytes(block: &Block) -> u64 {
    bits(block, |lanes| alphanumeric(lanes).or(lanes.equal(b'_')))
}

/// Tells `found` of the ranges of names in quotes, with the quotes, and of numbers.
fn each_name(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    // The end of the last name, behind which a word goes on.
    let mut name_end = None;
    let (blocks, rest) = bytes.as_chunks();
    let rest = padded(rest, b' ');
    let blocks = blocks.iter().chain([&rest]).zip((0..).step_by(BLOCK_BYTES));
    // Whether the byte before a block is part of a word.
    let mut was_word = 0;
    for (block, start) in blocks {
        let (firsts, words) = (may_begin_name(block), word_bytes(block));
        let inside = words << 1 | was_word;
        was_word = words >> (BLOCK_BYTES - 1);
        for at in places(firsts & !inside).map(|place| start + place) {
            let is_free = name_end.is_none_or(|end| at > end) && !is_behind_word(text, at);
            let end = is_free.then(|| end_of_name(text, at)).flatten();
            if let Some(end) = end {
                found(at..end);
                name_end = Some(end);
            }
        }
    }
}

/// Whether a character of a word, of any script, stands before a byte.
fn is_behind_word(text: &str, at: usize) -> bool {
    let before = text.as_bytes()[..at].last();
    before.is_some_and(|before| !before.is_ascii())
        && text[..at]
            .chars()
            .next_back()
            .is_some_and(char::is_alphanumeric)
}

/// The end of the name or number that begins at `at`.
fn end_of_name(text: &str, at: usize) -> Option<usize> {
    let c = text[at..].chars().next()?;
    let rest = &text[at + c.len_utf8()..];
    if let Some((_, close)) = QUOTES.iter().find(|(open, _)| *open == c) {
        let n = match u8::try_from(*close) {
            Ok(close) if close.is_ascii() => memchr::memchr(close, rest.as_bytes()),
            _ => rest.find(*close),
        };
        let n = n.filter(|n| *n > 0)?;
        return Some(at + c.len_utf8() + n + close.len_utf8());
    }
    if !c.is_ascii_digit() {
        return None;
    }
    let n = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_word = rest[n..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (!is_word).then_some(at + 1 + n)
}
