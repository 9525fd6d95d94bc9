//! The texts that a value is found by. What only escapes characters is undone by a view instead.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Fewer bytes occur by chance.
const BYTES_MIN: usize = 8;

/// Fewer different bytes are a line of dashes.
const DIFFERENT_BYTES_MIN: usize = 4;

/// Lines of a value that are looked for alone at most: a key of RSA with 16,384 bits has two hundred.
const LINES_MAX: usize = 256;

/// A line with blanks in it is looked for alone from so many bytes on: `apiVersion: v1` is ordinary text.
const LINE_BYTES_MIN: usize = 16;

/// A part of a line is looked for alone from so many bytes on: as long as keys and tokens are.
const WORD_BYTES_MIN: usize = 20;

/// Whether `value` is long and varied enough to be found and removed without harm to other text: 8 bytes, 4 different ones.
pub fn is_hideable(value: &str) -> bool {
    let different: BTreeSet<u8> = value.bytes().collect();
    value.len() >= BYTES_MIN && different.len() >= DIFFERENT_BYTES_MIN
}

/// Everything that `value` is looked for as.
pub(super) fn texts(value: &str) -> BTreeSet<Vec<u8>> {
    let mut texts = BTreeSet::new();
    for part in parts(value) {
        texts.insert(part.as_bytes().to_vec());
        // Forms write a space so.
        texts.insert(part.replace(' ', "+").into_bytes());
        let hex = hex(&part);
        texts.insert(hex.to_ascii_uppercase().into_bytes());
        texts.insert(hex.into_bytes());
        for spelled in spellings(&part) {
            texts.extend(base64s(spelled.as_bytes()));
        }
    }
    texts
}

/// The value, and what it is without the scheme that stands before it in a header.
fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![value.to_owned()];
    parts.extend(of_lines(value));
    if let Some((scheme, credential)) = value.split_once(' ') {
        let credential = credential.trim();
        parts.push(credential.to_owned());
        let decoded = STANDARD.decode(credential).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(pair) = decoded.filter(|_| scheme.eq_ignore_ascii_case("basic")) {
            parts.extend(
                pair.split_once(':')
                    .map(|(_, password)| password.to_owned()),
            );
            parts.push(pair);
        }
    }
    parts.retain(|part| is_hideable(part));
    parts
}

/// What a value of several lines is besides: joined, and each line and each long word that may be secret by itself. Programs write such a
/// value with other ends of lines, indented, behind the signs of a diff or in part.
fn of_lines(value: &str) -> Vec<String> {
    // Variables and JSON hold keys with escaped ends of lines, which programs undo.
    let text = value.replace("\\r", "\r").replace("\\n", "\n");
    let lines = text.split(['\r', '\n']).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let mut parts = vec![lines.concat()];
    if lines.len() == 1 {
        return parts;
    }
    for line in lines.into_iter().take(LINES_MAX) {
        let is_whole = line.len() >= LINE_BYTES_MIN || !line.contains(char::is_whitespace);
        let words = line.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '='));
        let words = words.filter(|word| word.len() >= WORD_BYTES_MIN);
        let alone = Some(line).filter(|_| is_whole).into_iter().chain(words);
        let alone = alone.filter(|part| is_telling(part));
        parts.extend(alone.map(str::to_owned));
    }
    parts
}

/// Whether a part of a value is no address, no frame of a key and no ordinary word: it holds digits among letters.
fn is_telling(part: &str) -> bool {
    let has = |is_one: fn(&u8) -> bool| part.bytes().any(|byte| is_one(&byte));
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    is_mixed && !part.contains("://") && !part.contains("-----")
}

/// What may be encoded in base64: the value, and the value escaped as most programs do it.
fn spellings(part: &str) -> BTreeSet<String> {
    let json = serde_json::Value::from(part).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let percent = |is_form: bool| {
        let mut text = String::new();
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    text.push(char::from(byte));
                }
                b' ' if is_form => text.push('+'),
                other => push_hex(&mut text, "%", other, true),
            }
        }
        text
    };
    BTreeSet::from([part.to_owned(), json, percent(false), percent(true)])
}

/// The characters of base64 that depend on `bytes` alone, for each of the three places where they can begin in a group.
fn base64s(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..3).flat_map(move |n_before| {
        let padded = [&vec![0; n_before], bytes].concat();
        let whole = (n_before * 8).div_ceil(6)..padded.len() * 8 / 6;
        [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD]
            .map(|engine| engine.encode(&padded).as_bytes()[whole.clone()].to_vec())
    })
}

fn hex(part: &str) -> String {
    let mut text = String::new();
    part.bytes()
        .for_each(|byte| push_hex(&mut text, "", byte, false));
    text
}

fn push_hex(text: &mut String, before: &str, byte: u8, is_upper: bool) {
    let written = match is_upper {
        true => write!(text, "{before}{byte:02X}"),
        false => write!(text, "{before}{byte:02x}"),
    };
    written.expect("bug: writing to a string cannot fail");
}
