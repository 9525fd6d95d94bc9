//! Whether a conversation was shown any content of a result.

use zeph_filter::compression::FILTERED;

use crate::overflow::{OMITTED, STORED};

/// Whether a text for a model has more than what the host says about content that it does not show.
pub(super) fn shows_content(text: &str) -> bool {
    let is_notice = |line: &str| {
        line.is_empty()
            || line.starts_with(STORED)
            || line.starts_with(FILTERED)
            || line.starts_with("[note] ")
            || line.starts_with("[full output not stored")
            || line.starts_with("[… ") && line.ends_with(OMITTED)
    };
    text.lines().any(|line| !is_notice(line.trim()))
}

#[cfg(test)]
mod tests {
    use super::shows_content;

    #[test]
    fn notices_are_no_content() {
        for (text, expect) in [
            ("", false),
            ("\n\n", false),
            ("[output filtered: 19 lines beside the goal]\n[full output stored — ID: overflow:x — 9 bytes]", false),
            ("[… 900 characters omitted …]", false),
            ("KEY=1\n[full output stored — ID: overflow:x — 9 bytes]", true),
            ("KEY=1", true),
        ] {
            assert_eq!(shows_content(text), expect, "{text}");
        }
    }
}
