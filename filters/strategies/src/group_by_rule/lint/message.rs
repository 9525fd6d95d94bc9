//! What two findings of a rule have in common: the message without names in quotes and numbers.

use super::parse::Finding;
use crate::has_control;

/// Longest name or number that is told in a note, in bytes; a finding with a longer one is shown itself.
const NAME_BYTES_MAX: usize = 120;

/// The message of a finding with a sign for each name and number.
pub(super) fn template(finding: &Finding<'_>) -> String {
    let mut template = String::from(if finding.has_path { "p" } else { "n" });
    for text in &finding.texts {
        template.push('\n');
        let mut copied = 0;
        for (start, end) in names(text) {
            template.push_str(&text[copied..start]);
            template.push('\u{1}');
            copied = end;
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
pub(super) fn own_names(finding: &Finding<'_>, varying: &[bool]) -> Vec<String> {
    let names = all_names(finding)
        .zip(varying)
        .filter(|(_, varies)| **varies);
    let mut own: Vec<String> = Vec::new();
    for (quoted, _) in names {
        let name = bare(quoted);
        let name = if name.contains([' ', ',']) {
            quoted
        } else {
            name
        };
        if !own.iter().any(|other| other == name) {
            own.push(name.to_owned());
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
    let texts = finding.texts.clone();
    texts.into_iter().flat_map(|text| {
        let names = names(text);
        names.into_iter().map(move |(start, end)| &text[start..end])
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

/// The ranges of names in quotes, with the quotes, and of numbers.
fn names(text: &str) -> Vec<(usize, usize)> {
    let mut names = Vec::new();
    let mut at = 0;
    let mut is_in_word = false;
    while let Some(byte) = text.as_bytes().get(at) {
        // Nearly all of a text: what continues a word, or begins no name.
        let may_begin = matches!(byte, b'\'' | b'"' | b'`' | b'0'..=b'9');
        if byte.is_ascii() && (is_in_word || !may_begin) {
            is_in_word = byte.is_ascii_alphanumeric() || *byte == b'_';
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
                names.push((at, end));
                at = end;
                is_in_word = true;
            }
            None => {
                at += c.len_utf8();
                is_in_word = c.is_alphanumeric() || c == '_';
            }
        }
    }
    names
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
