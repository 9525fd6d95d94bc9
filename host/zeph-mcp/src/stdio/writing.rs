//! A message as the line that is written.
//!
//! Most of what is written are long texts. They are escaped here, eight bytes at a time: in a program that is compiled for size, the general
//! way asks about each byte by itself, and takes nearly three times as long.

use ring::rand::{SecureRandom as _, SystemRandom};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, ServerJsonRpcMessage, ServerResult,
};
use serde::ser::Error as _;

/// Bytes from which on a text is long.
const LONG_TEXT_BYTES: usize = 4 * 1024;

/// A message as the line that is written.
pub(super) fn line(mut message: ServerJsonRpcMessage) -> serde_json::Result<Vec<u8>> {
    let texts = match &mut message {
        JsonRpcMessage::Response(response) => match &mut response.result {
            ServerResult::CallToolResult(result) => taken(result),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let frame = serde_json::to_string(&message)?;
    let n_text_bytes: usize = texts.iter().map(|text| text.text.len()).sum();
    // What grows is copied again and again; what is escaped needs some room.
    let mut line = Vec::with_capacity(frame.len() + 1 + n_text_bytes + n_text_bytes / 8);
    let mut rest = frame.as_str();
    for LongText { place, text } in &texts {
        let (before, after) = rest
            .split_once(place.as_str())
            .ok_or_else(|| serde_json::Error::custom("a text of the result has no place"))?;
        line.extend_from_slice(before.as_bytes());
        push_escaped(&mut line, text);
        rest = after;
    }
    line.extend_from_slice(rest.as_bytes());
    line.push(b'\n');
    Ok(line)
}

/// A text that was taken out of a message.
struct LongText {
    /// What stands there in its place. Nobody can know it before.
    place: String,
    text: String,
}

/// The long texts of a result, in their order. Without random numbers none is taken.
fn taken(result: &mut CallToolResult) -> Vec<LongText> {
    let mut texts = Vec::new();
    for block in &mut result.content {
        let ContentBlock::Text(block) = block else {
            continue;
        };
        if block.text.len() < LONG_TEXT_BYTES {
            continue;
        }
        let mut number = [0; 16];
        if SystemRandom::new().fill(&mut number).is_err() {
            return texts;
        }
        let place = format!("{:032x}", u128::from_ne_bytes(number));
        let text = std::mem::replace(&mut block.text, place.clone());
        texts.push(LongText { place, text });
    }
    texts
}

/// Bytes that are escaped at once.
const PIECE_BYTES: usize = 4 * 1024;

/// Most bytes that one becomes.
const ESCAPED_BYTES_MAX: usize = 6;

/// Adds what stands between the quotes of a string of JSON.
fn push_escaped(line: &mut Vec<u8>, text: &str) {
    let mut escaped = [0; PIECE_BYTES * ESCAPED_BYTES_MAX];
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        let n_bytes = escape(piece, &mut escaped);
        line.extend_from_slice(&escaped[..n_bytes]);
    }
}

/// Writes a piece of a text, escaped, to the beginning of `to`; returns how many bytes it has.
fn escape(piece: &[u8], to: &mut [u8; PIECE_BYTES * ESCAPED_BYTES_MAX]) -> usize {
    let (words, rest) = piece.as_chunks::<8>();
    let mut n = 0;
    for word in words {
        if has_escaped(u64::from_ne_bytes(*word)) {
            for byte in word {
                n = escape_byte(*byte, to, n);
            }
        } else {
            // An assignment: of so few bytes, a copy costs less than the call that copies them.
            if let Some(place) = to[n..].first_chunk_mut() {
                *place = *word;
            }
            n += word.len();
        }
    }
    for byte in rest {
        n = escape_byte(*byte, to, n);
    }
    n
}

/// Whether one of eight bytes cannot stand for itself: a control of ASCII, a quote or a backslash.
///
/// Source: "Determine if a word has a byte less than n", Bit Twiddling Hacks, Sean Eron Anderson.
fn has_escaped(word: u64) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let has_less = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGH;
    let has = |byte: u8| has_less(word ^ (ONES * u64::from(byte)), 1);
    has_less(word, 0x20) | has(b'"') | has(b'\\') != 0
}

#[inline]
fn escape_byte(byte: u8, to: &mut [u8], n: usize) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    if byte >= 0x20 && byte != b'"' && byte != b'\\' {
        to[n] = byte;
        return n + 1;
    }
    to[n] = b'\\';
    to[n + 1] = match byte {
        b'\n' => b'n',
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0c => b'f',
        b'"' | b'\\' => byte,
        _ => {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 0xf));
            to[n + 1..n + 6].copy_from_slice(&[b'u', b'0', b'0', DIGITS[high], DIGITS[low]]);
            return n + 6;
        }
    };
    n + 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use rmcp::model::{
        CallToolResult, ContentBlock, RequestId, ServerJsonRpcMessage, ServerResult,
    };
    use serde_json::json;

    use super::{LONG_TEXT_BYTES, line, push_escaped};

    fn check(texts: &[String]) {
        let content = texts.iter().map(ContentBlock::text).collect();
        let mut result = CallToolResult::success(content);
        result.structured_content = Some(json!({ "text": texts }));
        let result = ServerResult::CallToolResult(result);
        let message = ServerJsonRpcMessage::response(result, RequestId::Number(1));
        let mut expected = serde_json::to_vec(&message).unwrap();
        expected.push(b'\n');
        assert!(line(message).unwrap() == expected, "{texts:?}");
    }

    #[test]
    fn a_long_text_is_written_like_any_other() {
        let controls: String = ('\0'..='\u{a0}').collect();
        let long = format!("\t\"a\"\\\r\n{controls}€🦀 ").repeat(LONG_TEXT_BYTES / 100);
        let plain = "x".repeat(LONG_TEXT_BYTES);
        check(&[]);
        check(&[
            String::new(),
            plain.clone(),
            "short".to_owned(),
            long.clone(),
            long,
            plain,
        ]);
    }

    proptest! {
        #[test]
        fn any_text_is_escaped_as_serde_does(text in "\\PC*|[\0-\x7f]*") {
            let mut escaped = vec![b'"'];
            push_escaped(&mut escaped, &text);
            escaped.push(b'"');
            assert_eq!(escaped, serde_json::to_vec(&text).unwrap());
        }
    }
}
