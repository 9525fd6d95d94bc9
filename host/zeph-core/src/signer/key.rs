//! Public keys as operators write them: a line of minisign, or a PEM block.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// Most bytes of the text of a key. The longest useful one, a PEM block with line breaks, has 200.
pub const KEY_TEXT_BYTES_MAX: usize = 4096;

/// Bytes of the number that minisign gives to a key. It is chosen with the key and vouches for nothing.
pub const MINISIGN_KEY_ID_BYTES: usize = 8;

/// How a public key of minisign begins, before its number and the key itself.
const MINISIGN_ALGORITHM: &[u8] = b"Ed";

/// Bytes of a public key of minisign: algorithm, number, key.
const MINISIGN_BYTES: usize = 2 + MINISIGN_KEY_ID_BYTES + 32;

/// What stands before an ed25519 key in its DER form (RFC 8410).
const ED25519_DER: &[u8] = &[
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// What stands before an uncompressed point of P-256 in its DER form (RFC 5480).
const P256_DER: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignerKey {
    /// Of minisign: ed25519 with a number.
    Minisign {
        /// Tells which key a signature means.
        id: [u8; MINISIGN_KEY_ID_BYTES],
        /// The ed25519 key.
        key: [u8; 32],
    },
    /// An ed25519 key in PEM.
    Ed25519([u8; 32]),
    /// An ECDSA key on P-256 in PEM: `0x04`, x, y.
    P256([u8; 65]),
}

/// Why a text is no public key that signatures can be checked with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSignerKey(&'static str);

impl SignerKey {
    /// The number of a key of minisign as its program writes it.
    pub fn minisign_id(id: [u8; MINISIGN_KEY_ID_BYTES]) -> String {
        format!("{:016X}", u64::from_le_bytes(id))
    }

    /// Whether both are one key, in whichever form each is written.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.ed25519(), other.ed25519()) {
            (Some(one), Some(other)) => one == other,
            _ => self == other,
        }
    }

    fn ed25519(&self) -> Option<&[u8; 32]> {
        match self {
            Self::Minisign { key, .. } | Self::Ed25519(key) => Some(key),
            Self::P256(_) => None,
        }
    }

    /// The line that operators write: base64 for a key of minisign, PEM for the others.
    pub fn to_text(&self) -> String {
        match self {
            Self::Minisign { id, key } => STANDARD.encode([MINISIGN_ALGORITHM, id, key].concat()),
            Self::Ed25519(_) | Self::P256(_) => {
                let der = STANDARD.encode(self.der());
                let lines: Vec<&str> = (0..der.len())
                    .step_by(64)
                    .map(|start| &der[start..der.len().min(start + 64)])
                    .collect();
                format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", lines.join("\n"))
            }
        }
    }

    /// The DER form (SubjectPublicKeyInfo), which fingerprints are made of.
    pub fn der(&self) -> Vec<u8> {
        match self {
            Self::Minisign { key, .. } | Self::Ed25519(key) => [ED25519_DER, key].concat(),
            Self::P256(point) => [P256_DER, point].concat(),
        }
    }
}

impl FromStr for SignerKey {
    type Err = BadSignerKey;

    fn from_str(text: &str) -> Result<Self, BadSignerKey> {
        if text.len() > KEY_TEXT_BYTES_MAX {
            return Err(BadSignerKey("it is too long for a public key"));
        }
        let text = text.trim();
        if text.contains("PRIVATE KEY") || text.contains("secret key") {
            return Err(BadSignerKey(
                "this is a secret key: it belongs in no configuration; write the public one",
            ));
        }
        match text.starts_with("-----") {
            true => pem(text),
            false => minisign(text),
        }
    }
}

/// The content of a `.pub` file, or its second line alone.
fn minisign(text: &str) -> Result<SignerKey, BadSignerKey> {
    let line = match text.strip_prefix("untrusted comment:") {
        Some(rest) => rest.split_once('\n').map(|(_, line)| line.trim()),
        None => Some(text),
    };
    let bytes = line.and_then(|line| STANDARD.decode(line).ok());
    let bytes = bytes.ok_or(BadSignerKey(
        "this is neither a line of minisign (`RW…`) nor a PEM block with a public key",
    ))?;
    if bytes.len() != MINISIGN_BYTES || !bytes.starts_with(MINISIGN_ALGORITHM) {
        return Err(BadSignerKey(
            "this is no public key of minisign, which has 56 characters and begins with `RW`",
        ));
    }
    let (id, key) = bytes[MINISIGN_ALGORITHM.len()..].split_at(MINISIGN_KEY_ID_BYTES);
    let whole = "bug: the length was looked at";
    Ok(SignerKey::Minisign {
        id: id.try_into().expect(whole),
        key: key.try_into().expect(whole),
    })
}

/// One block, and nothing around it.
fn pem(text: &str) -> Result<SignerKey, BadSignerKey> {
    let inner = text
        .strip_prefix(PEM_BEGIN)
        .and_then(|rest| rest.strip_suffix(PEM_END));
    let inner = inner.ok_or(BadSignerKey(
        "this PEM block holds no public key alone (`-----BEGIN PUBLIC KEY-----`)",
    ))?;
    let joined: String = inner.split_ascii_whitespace().collect();
    let der = STANDARD.decode(joined);
    let der = der.map_err(|_| BadSignerKey("this PEM block is not valid base64"))?;
    let of = |prefix: &[u8]| der.strip_prefix(prefix);
    if let Some(key) = of(ED25519_DER).and_then(|key| key.try_into().ok()) {
        return Ok(SignerKey::Ed25519(key));
    }
    let point: Option<[u8; 65]> = of(P256_DER).and_then(|point| point.try_into().ok());
    match point.filter(|point| point[0] == 4) {
        Some(point) => Ok(SignerKey::P256(point)),
        None => Err(BadSignerKey(
            "this PEM block holds a key of another kind; ed25519 and ECDSA on P-256 (uncompressed) can be used",
        )),
    }
}

/// As people compare keys: the number of minisign, or the kind and the SHA-256 of the DER form.
impl fmt::Display for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Minisign { id, .. } => {
                return write!(f, "minisign {}", Self::minisign_id(*id));
            }
            Self::Ed25519(_) => "ed25519",
            Self::P256(_) => "ecdsa-p256",
        };
        let mut hex = String::new();
        for byte in Sha256::digest(self.der()) {
            write!(hex, "{byte:02x}")?;
        }
        write!(f, "{kind} sha256:{hex}")
    }
}
