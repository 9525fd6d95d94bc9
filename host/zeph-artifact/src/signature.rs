//! Signatures of minisign and the bundles of Sigstore: read from the files of strangers, and checked with keys that were given.
//!
//! Nothing here decides whether a signer may vouch for something: that is [`crate::trust`].

use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};
use zeph_core::signer::SignerKey;

pub mod comment;
pub mod minisign;
pub mod secret;
pub mod sigstore;

pub use minisign::{DetachedError, DetachedSignature, verify_detached};

/// Whether `key` made `signature` over `message`. Ed25519 as in RFC 8032, ECDSA with SHA-256 and a signature in DER.
fn is_of(key: &SignerKey, message: &[u8], signature: &[u8]) -> bool {
    let verified = match key {
        SignerKey::Minisign { key, .. } | SignerKey::Ed25519(key) => {
            UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
        }
        SignerKey::P256(point) => {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature)
        }
    };
    verified.is_ok()
}

#[cfg(test)]
mod tests;
