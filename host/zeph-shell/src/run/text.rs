//! Bytes of a stream as text, piece by piece: any bytes in, valid UTF-8 out, and a character cut in two by the border of a
//! read comes out whole.

/// Decodes one stream. What is no UTF-8 becomes U+FFFD, as [`String::from_utf8_lossy`] would have it for the whole.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The begin of a character whose rest has not come yet: at most 3 bytes.
    carry: Vec<u8>,
}

impl Decoder {
    /// Appends to `out` what is complete after `bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let bytes = if self.carry.is_empty() {
            bytes
        } else {
            joined = [std::mem::take(&mut self.carry).as_slice(), bytes].concat();
            joined.as_slice()
        };
        // Nearly always, and many times faster than to look for what is wrong.
        if let Ok(valid) = std::str::from_utf8(bytes) {
            return out.push_str(valid);
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_begin(invalid) {
                self.carry = invalid.to_vec();
            } else {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// The stream is at its end, or a part of it is missing: a character that was begun will not be completed.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !self.carry.is_empty() {
            self.carry.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Forgets a character that was begun.
    pub(crate) fn reset(&mut self) {
        self.carry.clear();
    }
}

/// Whether more bytes could make a character of these.
fn is_begin(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests;
