//! Texts that may be longer than what an index holds: unique is their digest.

/// The digest of a text, as the indexes over it have it. `escape` takes each byte for itself, whatever the encoding.
macro_rules! digest {
    ($text:literal) => {
        concat!("sha256(decode(replace(", $text, r", '\', '\\'), 'escape'))")
    };
}
pub(super) use digest;
