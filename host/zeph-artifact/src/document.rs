//! What a signature of minisign covers: the digests of all that a plugin is, as one short text.
//!
//! The text is made from the plugin and never read: whoever checks a signature computes what it has to cover, so nothing that stands in a
//! document of a stranger is believed.

use zeph_core::id::Digest;

/// What the text says it is, so that no signature over another JSON text can pass for one of a plugin.
const KIND: &str = "application/vnd.zeph-host.digests.v1+json";

/// The digests of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestDocument {
    /// Of the bytes of the component.
    pub component: Digest,
    /// Of the requests of its manifest.
    pub manifest: Digest,
    /// Of the tools it lists, with its requests: what its operator is shown.
    pub definitions: Digest,
}

impl DigestDocument {
    /// The text: JSON without spaces and line breaks, the keys sorted, digests as `sha256:` and 64 small hexadecimal digits.
    pub fn text(&self) -> String {
        let Self {
            component,
            manifest,
            definitions,
        } = self;
        format!(
            r#"{{"component":"{component}","definitions":"{definitions}","manifest":"{manifest}","type":"{KIND}"}}"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::DigestDocument;

    /// Signatures that authors made are over exactly this: it never changes.
    #[test]
    fn the_text_is_canonical_json() {
        let digest = |digit: char| {
            let digits = digit.to_string().repeat(64);
            format!("sha256:{digits}").parse().unwrap()
        };
        let document = DigestDocument {
            component: digest('a'),
            manifest: digest('b'),
            definitions: digest('c'),
        };
        let text = document.text();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value.to_string(), text);
        let (a, b, c) = (digest('a'), digest('b'), digest('c'));
        let expect = format!(
            r#"{{"component":"{a}","definitions":"{c}","manifest":"{b}","type":"application/vnd.zeph-host.digests.v1+json"}}"#
        );
        assert_eq!(text, expect);
    }
}
