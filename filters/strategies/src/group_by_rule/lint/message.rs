//! What two findings of a rule have in common: the message without names in quotes and numbers.

use std::ops::Range;

use super::parse::Finding;
use crate::has_control;

/// Longest name or number that is told in a note, in bytes; a finding with a longer one is shown itself.
const NAME_BYTES_MAX: usize = 120;

/// The message of a finding with a sign for each name and number.
pub(super) fn template(finding: &Finding<'_>) -> String {
    let n_bytes = finding.texts().map(|text| text.len() + 1).sum::<usize>();
    let mut template = String::with_capacity(n_bytes + 1);
    template.push(if finding.has_path { 'p' } else { 'n' });
    let mut names = finding.names().iter().peekable();
    for (text_idx, text) in finding.texts().enumerate() {
        template.push('\n');
        let mut copied = 0;
        while let Some(name) = names.next_if(|name| name.text_idx() == text_idx) {
            let name = name.range();
            template.push_str(&text[copied..name.start]);
            template.push('\u{1}');
            copied = name.end;
        }
        template.push_str(&text[copied..]);
    }
    template
}

/// Which of the names and numbers are not the same in all findings of a template, in their order.
pub(super) fn varying(findings: &[&Finding<'_>]) -> Vec<bool> {
    let Some(first) = findings.first() else {
        return Vec::new();
    };
    let first: Vec<&str> = all_names(first).collect();
    let mut varying = vec![false; first.len()];
    for finding in findings {
        for (idx, name) in all_names(finding).enumerate() {
            varying[idx] |= first[idx] != name;
        }
    }
    varying
}

/// The names and numbers of a finding at places that vary, each once.
pub(super) fn own_names<'a>(finding: &Finding<'a>, varying: &[bool]) -> Vec<&'a str> {
    let names = all_names(finding)
        .zip(varying)
        .filter(|(_, varies)| **varies);
    let mut own: Vec<&str> = Vec::new();
    for (quoted, _) in names {
        let name = bare(quoted);
        let name = if name.contains([' ', ',']) {
            quoted
        } else {
            name
        };
        if !own.contains(&name) {
            own.push(name);
        }
    }
    own
}

/// Whether a note can tell the names: it holds no control characters, and a place in it is looked for in the output.
pub(super) fn fit_note(finding: &Finding<'_>) -> bool {
    let is_short = |name: &str| name.len() <= NAME_BYTES_MAX && !has_control(name);
    let is_place = |name: &str| {
        let mut parts = name.split(':').skip(1);
        parts.any(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    all_names(finding).all(|name| is_short(name) && !is_place(name))
}

fn all_names<'a>(finding: &Finding<'a>) -> impl Iterator<Item = &'a str> {
    let mut texts = finding.texts().enumerate();
    let mut at = texts.next();
    finding.names().iter().filter_map(move |name| {
        while at.is_some_and(|(text_idx, _)| text_idx < name.text_idx()) {
            at = texts.next();
        }
        at.map(|(_, text)| &text[name.range()])
    })
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

/// What a byte is: part of a word or not.
const OTHER: u8 = 0;
const WORD: u8 = 1;
/// It begins a name, too.
const FIRST: u8 = 2;
/// It is part of a character outside of ASCII.
const WIDE: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [OTHER; 256];
    let mut byte: u8 = 0;
    loop {
        classes[byte as usize] = match byte {
            b'0'..=b'9' => WORD | FIRST,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => WORD,
            b'\'' | b'"' | b'`' => FIRST,
            0x80.. => WIDE,
            _ => OTHER,
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// Tells `found` of the ranges of names in quotes, with the quotes, and of numbers.
pub(super) fn each_name(text: &str, mut found: impl FnMut(Range<usize>)) {
    let mut at = 0;
    let mut is_in_word = false;
    while let Some(byte) = text.as_bytes().get(at) {
        // Nearly all of a text: what continues a word, or begins no name.
        let class = CLASSES[usize::from(*byte)];
        if class == OTHER || class == WORD || (is_in_word && class & WIDE == 0) {
            is_in_word = class & WORD != 0;
            at += 1;
            continue;
        }
        let Some(c) = text[at..].chars().next() else {
            break;
        };
        let end = if is_in_word {
            None
        } else {
            name_end(text, at, c)
        };
        match end {
            Some(end) => {
                found(at..end);
                at = end;
                is_in_word = true;
            }
            None => {
                at += c.len_utf8();
                is_in_word = c.is_alphanumeric() || c == '_';
            }
        }
    }
}

/// The end of the name or number that begins with `c`.
fn name_end(text: &str, at: usize, c: char) -> Option<usize> {
    let rest = &text[at + c.len_utf8()..];
    if let Some((_, close)) = QUOTES.iter().find(|(open, _)| *open == c) {
        let n = rest.find(*close).filter(|n| *n > 0)?;
        return Some(at + c.len_utf8() + n + close.len_utf8());
    }
    if !c.is_ascii_digit() {
        return None;
    }
    let n = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_word = rest[n..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (!is_word).then_some(at + 1 + n)
}
