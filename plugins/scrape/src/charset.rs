//! Bytes become text: by byte order mark, then the header's charset, then what the page says of itself, then what the bytes look like.
//!
//! Labels are often wrong, so a label has to fit: bytes that are UTF-8 beyond doubt are read as that.

mod meta;

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::media::Kind;

/// A text and the charset it was read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The text. What cannot be read is `�`.
    pub text: String,
    /// The name of the charset.
    pub charset: &'static str,
}

/// Reads `bytes` as text.
///
/// Shape: `label` is the charset of the header, if there was one.
pub fn decode(bytes: Vec<u8>, label: Option<&str>, kind: Kind) -> Decoded {
    if let Some((encoding, mark)) = Encoding::for_bom(&bytes) {
        return read(&bytes[mark..], encoding);
    }
    // Text in UTF-8 is by far the most: it is moved, not copied.
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if text.is_ascii() || !is_wide(label) => return utf8_or(text, label, kind),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let declared = declared(&bytes, label, kind);
    let candidates = declared.iter().copied();
    let fitting = candidates
        .into_iter()
        .find(|encoding| is_free_of_errors(&bytes, encoding));
    if let Some(encoding) = fitting {
        return read(&bytes, encoding);
    }
    match declared.first() {
        Some(encoding) if *encoding != UTF_8 || has_wide_letters(&bytes) => read(&bytes, encoding),
        None if has_wide_letters(&bytes) => read(&bytes, UTF_8),
        _ => read(&bytes, WINDOWS_1252),
    }
}

/// Text that is UTF-8 beyond doubt, unless a charset is declared in which plain letters mean something else.
fn utf8_or(text: String, label: Option<&str>, kind: Kind) -> Decoded {
    let declared = declared(text.as_bytes(), label, kind);
    match declared.first() {
        // Escapes of plain letters (ISO-2022-JP), or pairs of bytes that happen to be valid: only what several bytes make is unsure.
        Some(encoding)
            if !encoding.is_ascii_compatible()
                || (!encoding.is_single_byte() && *encoding != UTF_8 && !text.is_ascii()) =>
        {
            let read_as = read(text.as_bytes(), encoding);
            match read_as.text.contains('\u{fffd}') {
                true => Decoded {
                    text,
                    charset: UTF_8.name(),
                },
                false => read_as,
            }
        }
        _ => Decoded {
            text,
            charset: UTF_8.name(),
        },
    }
}

/// The charsets that header and page name, in the order in which they count.
fn declared(bytes: &[u8], label: Option<&str>, kind: Kind) -> Vec<&'static Encoding> {
    let header = label.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    let own = match kind {
        Kind::Html | Kind::Text => meta::declared(bytes),
        Kind::Json | Kind::Binary(_) => None,
    };
    let mut all: Vec<_> = header.into_iter().chain(own).collect();
    all.dedup();
    all
}

fn is_wide(label: Option<&str>) -> bool {
    let encoding = label.and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    encoding.is_some_and(|encoding| !encoding.is_ascii_compatible())
}

fn read(bytes: &[u8], encoding: &'static Encoding) -> Decoded {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    Decoded {
        text: text.into_owned(),
        charset: encoding.name(),
    }
}

fn is_free_of_errors(bytes: &[u8], encoding: &'static Encoding) -> bool {
    encoding
        .decode_without_bom_handling_and_without_replacement(bytes)
        .is_some()
}

/// Whether damaged UTF-8 is UTF-8 nevertheless: more letters of several bytes are whole than broken.
fn has_wide_letters(bytes: &[u8]) -> bool {
    let text: Cow<'_, str> = String::from_utf8_lossy(bytes);
    let n_broken = text.matches('\u{fffd}').count();
    let n_whole = text
        .chars()
        .filter(|letter| !letter.is_ascii() && *letter != '\u{fffd}')
        .count();
    n_whole > n_broken
}

#[cfg(test)]
mod tests;
