//! JSON that others write and that the reader here refuses, made readable. Pure.
//!
//! JavaScript cuts texts between the halves of a pair of surrogates and writes the half that is left as `\ud83d`; others write bytes that
//! are not UTF-8, numbers that no machine has, and what nests deeper than the reader goes. One such text or value must not cost the whole
//! message: a text gets U+FFFD there, a value becomes null, and both are counted. [`made`] is asked only when a
//! message cannot be read as it is; [`with_pairs`] of every message of a client.

use std::borrow::Cow;

/// Most levels of objects and arrays that are kept; the reader goes to 127.
const DEPTH_MAX: usize = 120;

/// `json` with U+FFFD for each half of a pair of surrogates, and how many there are; none when there is none.
pub(crate) fn with_pairs(json: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut paired = Cow::Borrowed(json);
    let (mut at, mut n_replaced) = (0, 0);
    while let Some(step) = json
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| *byte == b'\\'))
    {
        at += step;
        let (first, second) = (escaped(json, at), escaped(json, at + 6));
        at += match (first, second) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                paired.to_mut()[at + 2..at + 6].copy_from_slice(b"fffd");
                n_replaced += 1;
                6
            }
            _ => 2,
        };
    }
    (n_replaced > 0).then(|| (paired.into_owned(), n_replaced))
}

/// The code of the escape `\uXXXX` at this place, if there is one.
fn escaped(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// `json` with all that cannot be read replaced, and how much that is.
pub(crate) fn made(json: &[u8]) -> (Vec<u8>, usize) {
    let mut text = String::with_capacity(json.len());
    let mut n_replaced = 0;
    for chunk in json.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            n_replaced += 1;
        }
    }
    let text = text.into_bytes();
    let (text, n_halves) = with_pairs(&text).unwrap_or((text, 0));
    let (values, n_values) = with_values(&text);
    (values, n_replaced + n_halves + n_values)
}

/// `json` with null for numbers out of range and for what nests too deep, and how many values those are.
fn with_values(json: &[u8]) -> (Vec<u8>, usize) {
    let mut values = Vec::with_capacity(json.len());
    let (mut rest, mut depth, mut n_replaced) = (json, 0_usize, 0);
    while let Some(byte) = rest.first() {
        let n_bytes = match byte {
            b'"' => text_bytes(rest),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                rest.iter().take_while(is_part).count()
            }
            b'[' | b'{' if depth >= DEPTH_MAX => nested_bytes(rest),
            _ => 1,
        };
        let (part, others) = rest.split_at(n_bytes);
        let is_replaced = match byte {
            b'-' | b'0'..=b'9' => is_out_of_range(part),
            b'[' | b'{' => depth >= DEPTH_MAX,
            _ => false,
        };
        match byte {
            b'[' | b'{' if !is_replaced => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        n_replaced += usize::from(is_replaced);
        values.extend_from_slice(if is_replaced { b"null" } else { part });
        rest = others;
    }
    (values, n_replaced)
}

fn is_out_of_range(number: &[u8]) -> bool {
    let number = std::str::from_utf8(number)
        .ok()
        .and_then(|number| number.parse::<f64>().ok());
    number.is_some_and(f64::is_infinite)
}

/// Bytes of the text that `json` begins with.
fn text_bytes(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Bytes of the object or array that `json` begins with.
fn nested_bytes(json: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = json.get(at) {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += match byte {
            b'"' => text_bytes(&json[at..]),
            _ => 1,
        };
        if depth == 0 {
            return at;
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{made, with_pairs};

    #[test]
    fn halves_of_pairs_are_replaced() {
        for (json, expect) in [
            (r#""a\ud83d""#, Some(("a\u{fffd}", 1))),
            (r#""\uDE00b""#, Some(("\u{fffd}b", 1))),
            (
                r#""\ud83d\ud83d\ude00\u00e9""#,
                Some(("\u{fffd}\u{1f600}é", 1)),
            ),
            (r#""\ud83d\\ude00""#, Some(("\u{fffd}\\ude00", 1))),
            (r#""\ud83d\ude00 \\ud83d \u12""#, None),
            (r#""\ud8"#, None),
            ("\\", None),
        ] {
            let found = with_pairs(json.as_bytes());
            let found =
                found.map(|(json, n)| (serde_json::from_slice::<String>(&json).unwrap(), n));
            let expect = expect.map(|(text, n)| (text.to_owned(), n));
            assert_eq!(found, expect, "{json}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_replaced() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        for (json, expect, n) in [
            (
                b"{\"a\":\"caf\xe9\"}".to_vec(),
                json!({"a": "caf\u{fffd}"}),
                1,
            ),
            (
                br#"[1e400, -1e999, 1e3, "1e400 [", -0.5]"#.to_vec(),
                json!([null, null, 1e3, "1e400 [", -0.5]),
                2,
            ),
            (
                format!(
                    r#"{{"a":{},"b":{}}}"#,
                    deep(500).replace("[]", r#"["]\""]"#),
                    deep(9)
                )
                .into_bytes(),
                json!({"a": serde_json::from_str::<Value>(&deep(119).replace("[]", "[null]")).unwrap(),
                    "b": serde_json::from_str::<Value>(&deep(9)).unwrap()}),
                1,
            ),
        ] {
            let (made, n_replaced) = made(&json);
            assert_eq!(serde_json::from_slice::<Value>(&made).unwrap(), expect);
            assert_eq!(n_replaced, n);
        }
    }

    proptest! {
        #[test]
        fn what_can_be_read_stays(text in ".{0,40}", number in any::<i64>(), depth in 0_usize..100) {
            let json = json!({"a": [text, number], text: depth});
            let (made, n_replaced) = made(json.to_string().as_bytes());
            prop_assert_eq!(n_replaced, 0);
            prop_assert_eq!(serde_json::from_slice::<Value>(&made).unwrap(), json);
        }

        #[test]
        fn any_bytes_are_made_something(json in prop::collection::vec(any::<u8>(), 0..300)) {
            let _made = made(&json);
        }
    }
}
