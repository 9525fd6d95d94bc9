//! Tells binary content from text by its first bytes, and names the commonest formats.

/// Bytes looked at. Text files have no NUL this early, binary ones nearly always do.
pub const PROBE_BYTES: usize = 8 * 1024;

/// Where a signature stands, the signature, and what it means.
///
/// Source: the magic numbers of each format's specification.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF87a", "GIF image"),
    (0, b"GIF89a", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (0, b"%PDF-", "PDF document"),
    (0, b"PK\x03\x04", "ZIP archive (or a document made of one)"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (257, b"ustar", "tar archive"),
    (0, b"\x7fELF", "ELF program or library"),
    (0, b"\x00asm", "WebAssembly"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"OggS", "Ogg media"),
    (0, b"ID3", "MP3 audio"),
    (0, b"fLaC", "FLAC audio"),
    (8, b"WAVE", "WAV audio"),
    (4, b"ftyp", "MP4 media"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM media"),
    (0, b"wOFF", "WOFF font"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"!<arch>\n", "static library"),
    (0, b"\xff\xfe", "UTF-16 text"),
    (0, b"\xfe\xff", "UTF-16 text"),
];

/// What the content is, when it is no text.
///
/// Shape: `head` is the first [`PROBE_BYTES`] of a file, or all of a shorter one.
pub fn binary_kind(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(PROBE_BYTES)];
    let has_nul = memchr::memchr(0, head).is_some();
    // Some signatures are plain letters that text may begin with: those need proof that it is no text.
    let is_text =
        !has_nul && std::str::from_utf8(head).is_ok_and(|text| !text.starts_with("%PDF-"));
    if is_text {
        return None;
    }
    let known = SIGNATURES.iter().find(|(offset, signature, _)| {
        head.get(*offset..)
            .is_some_and(|rest| rest.starts_with(signature))
    });
    match known {
        Some((_, _, name)) => Some(name),
        None if has_nul => Some("binary data"),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::binary_kind;

    #[test]
    fn text_is_text() {
        for text in [
            "",
            "plain",
            "ID3 is a tag",
            "BZh",
            "ünïcode ✓",
            "\u{feff}with a mark",
        ] {
            assert_eq!(binary_kind(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(binary_kind(b"caf\xe9 au lait"), None, "Latin-1 is text");
    }

    #[test]
    fn binary_is_named() {
        assert_eq!(binary_kind(b"\x89PNG\r\n\x1a\n\0\0"), Some("PNG image"));
        assert_eq!(binary_kind(b"%PDF-1.7\n1 0 obj"), Some("PDF document"));
        assert_eq!(binary_kind(b"\xff\xfea\0b\0"), Some("UTF-16 text"));
        assert_eq!(binary_kind(b"a\0b"), Some("binary data"));
    }
}
