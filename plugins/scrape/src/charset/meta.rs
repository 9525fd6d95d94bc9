//! The charset a page says of itself: `<meta charset>`, `<meta http-equiv>` or the head of an XML file.
//!
//! Source: "Prescan a byte stream to determine its encoding" of the HTML standard, without its rarer ways of writing.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Bytes looked at: the standard asks for 1,024, and pages with long heads put it later.
const HEAD_BYTES: usize = 4096;

/// The charset that the first bytes declare.
pub(super) fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let label = of_xml(head).or_else(|| of_meta(head))?;
    match Encoding::for_label_no_replacement(label.as_bytes())? {
        // Whoever could read this did not read UTF-16.
        encoding if encoding == UTF_16LE || encoding == UTF_16BE => Some(UTF_8),
        encoding if encoding == X_USER_DEFINED => Some(WINDOWS_1252),
        encoding => Some(encoding),
    }
}

fn of_xml(head: &[u8]) -> Option<String> {
    let rest = head.strip_prefix(b"<?xml")?;
    let end = memchr::memmem::find(rest, b"?>")?;
    attribute(&rest[..end], "encoding")
}

fn of_meta(head: &[u8]) -> Option<String> {
    let mut rest = head;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at..];
        if let Some(inside) = rest.strip_prefix(b"<!--") {
            rest = &inside[memchr::memmem::find(inside, b"-->")? + 3..];
            continue;
        }
        let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        let (tag, after) = rest.split_at(end);
        if tag
            .get(1..5)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
            && !tag.get(5).is_some_and(u8::is_ascii_alphanumeric)
            && let Some(label) = of_tag(&tag[5..])
        {
            return Some(label);
        }
        rest = after;
    }
    None
}

fn of_tag(tag: &[u8]) -> Option<String> {
    if let Some(label) = attribute(tag, "charset") {
        return Some(label);
    }
    let is_type = attribute(tag, "http-equiv")?.eq_ignore_ascii_case("content-type");
    let content = attribute(tag, "content").filter(|_| is_type)?;
    let at = content.to_ascii_lowercase().find("charset")?;
    let value = content[at + "charset".len()..]
        .trim_start()
        .strip_prefix('=')?;
    let value = value.trim_start().trim_matches(['"', '\'']);
    let end = value.find([';', ' ', '"', '\'']).unwrap_or(value.len());
    (end > 0).then(|| value[..end].to_owned())
}

/// The value of an attribute in the inside of a tag.
fn attribute(tag: &[u8], name: &str) -> Option<String> {
    let mut rest = tag;
    loop {
        let start = rest
            .iter()
            .position(|byte| !byte.is_ascii_whitespace() && *byte != b'/')?;
        rest = &rest[start..];
        let end = rest
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || *byte == b'=')
            .unwrap_or(rest.len());
        let (found, after) = rest.split_at(end.max(1));
        let after = after.trim_ascii_start();
        let Some(value) = after.strip_prefix(b"=") else {
            rest = after;
            continue;
        };
        let (value, after) = value_of(value.trim_ascii_start());
        if found.eq_ignore_ascii_case(name.as_bytes()) {
            return Some(String::from_utf8_lossy(value).trim().to_owned())
                .filter(|value| !value.is_empty());
        }
        rest = after;
    }
}

/// A value, quoted or not, and what follows it.
fn value_of(text: &[u8]) -> (&[u8], &[u8]) {
    if let Some((quote @ (b'"' | b'\''), inside)) = text.split_first() {
        let end = memchr::memchr(*quote, inside).unwrap_or(inside.len());
        return (&inside[..end], inside.get(end + 1..).unwrap_or_default());
    }
    let end = text
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(text.len());
    text.split_at(end)
}
