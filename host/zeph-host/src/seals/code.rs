//! The authentication code of a seal: HMAC with SHA-256 (RFC 2104). Pure.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Bytes of a code.
pub(super) const CODE_BYTES: usize = 32;

/// The code of `parts`, one after the other, under `key`.
pub(super) fn hmac_sha256(key: &[u8; 32], parts: &[&[u8]]) -> [u8; CODE_BYTES] {
    mac(key, parts).finalize().into_bytes().into()
}

/// Whether `given` is the code of `parts`, in a time that says nothing about where it differs.
pub(super) fn is_code_of(key: &[u8; 32], parts: &[&[u8]], given: &[u8]) -> bool {
    mac(key, parts).verify_slice(given).is_ok()
}

/// Whether `given` is how the code of `parts` begins, in a time that says nothing about where it differs.
pub(super) fn begins_code_of(key: &[u8; 32], parts: &[&[u8]], given: &[u8]) -> bool {
    mac(key, parts).verify_truncated_left(given).is_ok()
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new(&padded(key));
    parts.iter().fold(mac, |mac, part| mac.chain_update(part))
}

/// A key shorter than a block counts as one with zeros behind it.
fn padded(key: &[u8; 32]) -> hmac::digest::Key<Hmac<Sha256>> {
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..key.len()].copy_from_slice(key);
    block
}

#[cfg(test)]
mod tests {
    use super::{hmac_sha256, is_code_of};

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
        let (key, parts) = ([7; 32], [&b"call"[..], b"state"]);
        let code = hmac_sha256(&key, &parts);
        assert!(is_code_of(&key, &parts, &code));
        for other in [&[][..], &code[..31], &[&code[..], &[0]].concat(), &[0; 32]] {
            assert!(!is_code_of(&key, &parts, other));
        }
        assert!(!is_code_of(&[8; 32], &parts, &code));
        assert!(!is_code_of(&key, &[b"call"], &code));
    }
}
