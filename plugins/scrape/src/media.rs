//! What a body is: HTML, JSON, other text, or something that is no text and is named instead of shown.
//!
//! The server's `Content-Type` decides, but for content that begins like a well-known binary format, or holds a NUL: servers that know
//! no better call everything text.

use encoding_rs::Encoding;

/// HTML that is written as XML.
const XHTML: &str = "application/xhtml+xml";
/// Bytes looked at.
const PROBE_BYTES: usize = 8 * 1024;

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page.
    Html,
    /// JSON, which is shown as it came.
    Json,
    /// Any other text.
    Text,
    /// No text: what it is, as in `a PDF document`.
    Binary(&'static str),
}

/// A `Content-Type`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaType {
    /// `type/subtype` in small letters; empty when the server said none.
    pub essence: String,
    /// The parameter `charset`.
    pub charset: Option<String>,
}

impl MediaType {
    /// What a header says. What is no media type is as none.
    pub fn parse(header: &str) -> Self {
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_valid = essence
            .split_once('/')
            .is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty())
                .then(|| value.to_owned())
        });
        Self {
            essence: if is_valid { essence } else { String::new() },
            charset,
        }
    }

    /// Whether the server says that a page is XML.
    pub fn is_xhtml(&self) -> bool {
        self.essence == XHTML
    }

    /// What a body of this type is, going by its first bytes too.
    pub fn kind(&self, body: &[u8]) -> Kind {
        let head = &body[..body.len().min(PROBE_BYTES)];
        if let Some(name) = signature(head) {
            return Kind::Binary(name);
        }
        if let Some(kind) = self.declared() {
            let is_wide = self
                .charset
                .as_deref()
                .is_some_and(|label| label.to_ascii_lowercase().starts_with("utf-16"))
                || Encoding::for_bom(head).is_some();
            return match memchr::memchr(0, head).is_some() && !is_wide {
                true if !matches!(kind, Kind::Binary(_)) => Kind::Binary("binary data"),
                _ => kind,
            };
        }
        match () {
            () if Encoding::for_bom(head).is_none() && memchr::memchr(0, head).is_some() => {
                Kind::Binary("binary data")
            }
            () if looks_like_html(head) => Kind::Html,
            () => Kind::Text,
        }
    }

    /// What the server says it is; none when it says nothing of use.
    fn declared(&self) -> Option<Kind> {
        let essence = self.essence.as_str();
        match essence {
            "" | "application/octet-stream" | "application/unknown" | "unknown/unknown" => None,
            "text/html" | XHTML => Some(Kind::Html),
            "text/plain" => Some(Kind::Text),
            _ if essence == "application/json" || essence.ends_with("+json") => Some(Kind::Json),
            _ if essence.starts_with("text/")
                || essence.ends_with("+xml")
                || TEXTS.contains(&essence) =>
            {
                Some(Kind::Text)
            }
            "application/pdf" => Some(Kind::Binary("a PDF document")),
            _ if essence.starts_with("image/") => Some(Kind::Binary("an image")),
            _ if essence.starts_with("video/") => Some(Kind::Binary("a video")),
            _ if essence.starts_with("audio/") => Some(Kind::Binary("an audio recording")),
            _ if essence.starts_with("font/") => Some(Kind::Binary("a font")),
            _ => None,
        }
    }
}

/// Text in types whose names do not say so.
const TEXTS: [&str; 12] = [
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/x-ndjson",
    "application/jsonl",
    "application/graphql",
    "application/sql",
    "application/x-sh",
];

/// Where a signature stands, the signature, and what it means.
///
/// Source: the magic numbers of each format's specification.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0, b"%PDF-", "a PDF document"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF87a", "a GIF image"),
    (0, b"GIF89a", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (4, b"ftypavif", "an AVIF image"),
    (4, b"ftyp", "an MP4 video or recording"),
    (0, b"PK\x03\x04", "a ZIP archive, or a document made of one"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"\x7fELF", "a program or library"),
    (0, b"MZ\x90\x00", "a program or library"),
    (0, b"\x00asm", "a WebAssembly module"),
    (
        0,
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "a document of an office program",
    ),
    (0, b"OggS", "an Ogg video or recording"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM video"),
    (0, b"wOFF", "a font"),
    (0, b"wOF2", "a font"),
];

/// What content that begins like this is, when it is no text.
fn signature(head: &[u8]) -> Option<&'static str> {
    let known = SIGNATURES.iter().find(|(offset, signature, _)| {
        head.get(*offset..)
            .is_some_and(|rest| rest.starts_with(signature))
    });
    let (_, signature, name) = known?;
    // Some begin with letters that text may begin with: those need proof that it is no text.
    let is_plain = signature.is_ascii()
        && *signature != b"%PDF-"
        && memchr::memchr(0, head).is_none()
        && std::str::from_utf8(head).is_ok();
    (!is_plain).then_some(name)
}

/// Whether a body of no declared type begins like a page.
fn looks_like_html(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&head[..head.len().min(1024)]).to_ascii_lowercase();
    let head = head.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    [
        "<!doctype html",
        "<html",
        "<head",
        "<body",
        "<!--",
        "<title",
        "<meta",
        "<div",
        "<p>",
    ]
    .iter()
    .any(|tag| head.starts_with(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_taken_apart() {
        for (header, essence, charset) in [
            ("text/html; charset=UTF-8", "text/html", Some("UTF-8")),
            (
                "Text/HTML;charset=\"iso-8859-1\"",
                "text/html",
                Some("iso-8859-1"),
            ),
            (
                "text/plain; format=flowed; Charset = koi8-r ",
                "text/plain",
                Some("koi8-r"),
            ),
            ("text/html; charset=", "text/html", None),
            ("nonsense", "", None),
            ("", "", None),
        ] {
            let media = MediaType::parse(header);
            assert_eq!(
                (media.essence.as_str(), media.charset.as_deref()),
                (essence, charset),
                "{header}"
            );
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (header, body, expected) in [
            ("text/html", &b"<p>hi"[..], Kind::Html),
            ("application/xhtml+xml", b"<html/>", Kind::Html),
            ("", b"  <!DOCTYPE HTML><p>", Kind::Html),
            ("", b"plain words", Kind::Text),
            ("application/octet-stream", b"plain words", Kind::Text),
            ("application/ld+json", b"{}", Kind::Json),
            ("image/svg+xml", b"<svg/>", Kind::Text),
            ("text/plain", b"GIF89a is a format", Kind::Text),
            ("application/pdf", b"", Kind::Binary("a PDF document")),
            ("text/html", b"%PDF-1.7\n", Kind::Binary("a PDF document")),
            (
                "text/plain",
                b"\x89PNG\r\n\x1a\n\0\0",
                Kind::Binary("a PNG image"),
            ),
            ("image/x-unknown", b"abc", Kind::Binary("an image")),
            ("text/html", b"<p>\0</p>", Kind::Binary("binary data")),
            ("", b"a\0b", Kind::Binary("binary data")),
            ("text/html; charset=utf-16le", b"<\0p\0>\0", Kind::Html),
            ("text/html", b"\xff\xfe<\0p\0>\0", Kind::Html),
        ] {
            assert_eq!(
                MediaType::parse(header).kind(body),
                expected,
                "{header} {body:?}"
            );
        }
    }
}
