//! The codes of the audit: HMAC with SHA-256 (RFC 2104) over stored bytes, in a domain of its own for each purpose. Pure.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Bytes of a code, and of a key.
pub(crate) const CODE_BYTES: usize = 32;

/// A code.
pub(crate) type Code = [u8; CODE_BYTES];

/// What stands for the code before the first.
pub(crate) const NO_CODE: Code = [0; CODE_BYTES];

/// What a code is for: a code of one purpose never passes for one of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeDomain {
    /// The name of a key.
    Key,
    /// What was recorded of a call.
    Record,
    /// An event of the chain in the store.
    Event,
    /// A line of the audit file.
    Line,
    /// A checkpoint.
    Checkpoint,
}

impl CodeDomain {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Key => b"zeph-host audit 1 key\0",
            Self::Record => b"zeph-host audit 1 record\0",
            Self::Event => b"zeph-host audit 1 event\0",
            Self::Line => b"zeph-host audit 1 line\0",
            Self::Checkpoint => b"zeph-host audit 1 checkpoint\0",
        }
    }
}

/// Makes the codes of one key and purpose.
#[derive(Clone)]
pub(crate) struct Coder(Hmac<Sha256>);

impl Coder {
    pub(crate) fn new(key: &[u8; CODE_BYTES], domain: CodeDomain) -> Self {
        // A key shorter than a block counts as one with zeros behind it.
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        block[..key.len()].copy_from_slice(key);
        Self(Hmac::<Sha256>::new(&block).chain_update(domain.label()))
    }

    /// The code of `parts`, one after the other. The caller sees to it that no part can pass for the end of another.
    pub(crate) fn code(&self, parts: &[&[u8]]) -> Code {
        let started = self.0.clone();
        let updated = parts
            .iter()
            .fold(started, |mac, part| mac.chain_update(part));
        updated.finalize().into_bytes().into()
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The code of 64 small hexadecimal digits; none of anything else.
pub(crate) fn from_hex(text: &[u8]) -> Option<Code> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut code = NO_CODE;
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != code.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in code.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::{CodeDomain, Coder, from_hex, hex};

    /// Made with `hmac` and `hashlib` of Python.
    #[test]
    fn codes_are_those_of_another_implementation() {
        let key: [u8; 32] = std::array::from_fn(|n| u8::try_from(n).unwrap());
        let code = |domain| hex(&Coder::new(&key, domain).code(&[b"a", b"", b"bc"]));
        assert_eq!(code(CodeDomain::Event), EVENT);
        assert_eq!(code(CodeDomain::Line), LINE);
    }

    const EVENT: &str = "a94cee55ff22a722263b34f190561e5d68e517e5c3e7a8decacff7f9be5ae22d";
    const LINE: &str = "9671a1cfa33b3f8bc710b2a7a75ea961e905c606895bcbb854d6ea5352887310";

    #[test]
    fn digits_are_read_exactly() {
        let code = std::array::from_fn(|n| u8::try_from(n * 7 % 256).unwrap());
        assert_eq!(from_hex(hex(&code).as_bytes()), Some(code));
        for bad in ["", "00", &"0".repeat(63), &"0".repeat(65), &"A".repeat(64)] {
            assert_eq!(from_hex(bad.as_bytes()), None, "{bad}");
        }
    }
}
