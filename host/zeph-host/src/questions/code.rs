//! The authentication code of a seal: HMAC with SHA-256 (RFC 2104). Pure.
//!
//! Written out because the library for it switches on a feature of `digest` that everything above it, the compiler of components
//! included, would be built anew for.

use sha2::{Digest as _, Sha256};

/// Bytes of a code.
pub(super) const CODE_BYTES: usize = 32;

/// Bytes that SHA-256 takes at once.
const BLOCK_BYTES: usize = 64;

/// The code of `parts`, one after the other, under `key`.
pub(super) fn hmac_sha256(key: &[u8; 32], parts: &[&[u8]]) -> [u8; CODE_BYTES] {
    let inner = parts.iter().fold(
        Sha256::new().chain_update(padded(key, 0x36)),
        |hash, part| hash.chain_update(part),
    );
    let outer = Sha256::new().chain_update(padded(key, 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

/// Whether both are the same, in a time that says nothing about where they differ.
pub(super) fn is_same(ours: &[u8; CODE_BYTES], given: &[u8]) -> bool {
    let pairs = ours.iter().zip(given);
    let differing = pairs.fold(0, |differing, (ours, given)| differing | (ours ^ given));
    given.len() == CODE_BYTES && std::hint::black_box(differing) == 0
}

fn padded(key: &[u8; 32], with: u8) -> [u8; BLOCK_BYTES] {
    let mut block = [with; BLOCK_BYTES];
    for (byte, key) in block.iter_mut().zip(key) {
        *byte ^= key;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::{hmac_sha256, is_same};

    /// A key shorter than a block counts as one with zeros behind it, so the cases of RFC 4231 with shorter keys fit.
    fn code(key: &[u8], parts: &[&[u8]]) -> String {
        let mut whole = [0; 32];
        whole[..key.len()].copy_from_slice(key);
        let code = hmac_sha256(&whole, parts);
        code.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn codes_are_those_of_rfc_4231() {
        let counted: Vec<u8> = (1..=25).collect();
        for (key, text, expect) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &counted,
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
        ] {
            assert_eq!(code(key, &[text]), expect);
            let (head, tail) = text.split_at(3);
            assert_eq!(code(key, &[head, b"", tail]), expect);
        }
    }

    #[test]
    fn only_the_whole_code_is_the_same() {
        let code = [7; 32];
        assert!(is_same(&code, &code));
        for other in [&[][..], &[7; 31], &[7; 33], &[0; 32]] {
            assert!(!is_same(&code, other));
        }
    }
}
