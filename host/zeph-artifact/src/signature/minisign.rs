//! Signature files of minisign: four lines each, several behind each other when several keys signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake2::digest::Digest as _;
use zeph_core::signer::{MINISIGN_KEY_ID_BYTES, SignerKey};

use super::is_of;

/// Most bytes of a file with signatures.
pub const SIGNATURE_FILE_BYTES_MAX: usize = 64 * 1024;

/// Most signatures of one file. Enough for a change of keys; bounds what a flood of them costs.
pub const SIGNATURES_MAX: usize = 8;

/// Most bytes of a comment. Source: what the program minisign takes.
pub const COMMENT_BYTES_MAX: usize = 8192;

const UNTRUSTED: &str = "untrusted comment: ";
const TRUSTED: &str = "trusted comment: ";

/// A signature over the BLAKE2b hash of the message.
const HASHED: [u8; 2] = *b"ED";

/// A signature over the message itself, as old versions of minisign made them.
const LEGACY: [u8; 2] = *b"Ed";

const SIGNATURE_BYTES: usize = 64;

/// One signature, not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinisignSignature {
    /// The number of the key that is said to have made it.
    pub key_id: [u8; MINISIGN_KEY_ID_BYTES],
    /// What stands in the first line; anybody can change it.
    pub untrusted_comment: String,
    /// What the signature covers besides the message.
    pub trusted_comment: String,
    /// Over the hash of the message.
    signature: [u8; SIGNATURE_BYTES],
    /// Over `signature` and the trusted comment.
    global: [u8; SIGNATURE_BYTES],
}

/// A text that is no signature file of minisign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSignatureFile(String);

/// A detached signature that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedSignature {
    /// Which of the keys made it.
    pub key_idx: usize,
    /// What it covers besides the message.
    pub trusted_comment: String,
}

/// Why no signature of a file counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetachedError {
    /// It is none.
    #[error(transparent)]
    File(#[from] BadSignatureFile),
    /// None of the keys is meant.
    #[error("it was made by {}, which is none of the known keys", key_ids.join(", "))]
    UnknownKey {
        /// The numbers of the keys that are meant.
        key_ids: Vec<String>,
    },
    /// A known key is meant and did not make it.
    #[error(
        "its signature does not match: it was changed after it was signed, or the signature belongs to something else"
    )]
    Mismatch,
}

/// Checks a signature file of minisign over `message`: one good signature of one of `keys` is enough.
///
/// Shape:  keys of other kinds are passed over.
/// Errors: [`DetachedError`].
pub fn verify_detached(
    file: &[u8],
    message: &[u8],
    keys: &[SignerKey],
) -> Result<DetachedSignature, DetachedError> {
    let signatures = MinisignSignature::all(file)?;
    let mut is_known = false;
    for signature in &signatures {
        for (key_idx, key) in keys.iter().enumerate() {
            if !signature.means(key) {
                continue;
            }
            is_known = true;
            if signature.is_of(key, message) {
                let trusted_comment = signature.trusted_comment.clone();
                return Ok(DetachedSignature {
                    key_idx,
                    trusted_comment,
                });
            }
        }
    }
    if is_known {
        return Err(DetachedError::Mismatch);
    }
    let key_ids = signatures
        .iter()
        .map(|one| SignerKey::minisign_id(one.key_id));
    Err(DetachedError::UnknownKey {
        key_ids: key_ids.collect(),
    })
}

impl MinisignSignature {
    /// Reads a file with at least one signature.
    ///
    /// Errors: [`BadSignatureFile`] in one sentence; a file of which one signature cannot be read has none.
    /// Limits: [`SIGNATURE_FILE_BYTES_MAX`], [`SIGNATURES_MAX`].
    pub fn all(file: &[u8]) -> Result<Vec<Self>, BadSignatureFile> {
        if file.len() > SIGNATURE_FILE_BYTES_MAX {
            let problem = format!("a signature file has at most {SIGNATURE_FILE_BYTES_MAX} bytes");
            return Err(BadSignatureFile(problem));
        }
        let text = std::str::from_utf8(file).map_err(|_| bad("a signature file is UTF-8 text"))?;
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        if lines.is_empty() || !lines.len().is_multiple_of(4) {
            return Err(bad("a signature of minisign has four lines"));
        }
        if lines.len() / 4 > SIGNATURES_MAX {
            let problem = format!("a file has at most {SIGNATURES_MAX} signatures");
            return Err(BadSignatureFile(problem));
        }
        let blocks = lines.chunks_exact(4);
        blocks
            .map(|block| Self::block([block[0], block[1], block[2], block[3]]))
            .collect()
    }

    fn block([untrusted, signature, trusted, global]: [&str; 4]) -> Result<Self, BadSignatureFile> {
        let untrusted_comment = comment(untrusted, UNTRUSTED)?;
        let trusted_comment = comment(trusted, TRUSTED)?;
        let bytes = decoded(signature)?;
        let (algorithm, bytes) = bytes.split_at_checked(2).unwrap_or_default();
        if algorithm == LEGACY {
            return Err(bad(
                "it is a legacy signature of minisign, over the whole message; sign it again with minisign 0.10 or newer, without `-l`",
            ));
        }
        if algorithm != HASHED {
            return Err(bad("it is no signature of minisign with ed25519"));
        }
        let (key_id, signature) = bytes
            .split_at_checked(MINISIGN_KEY_ID_BYTES)
            .unwrap_or_default();
        let cut = || bad("its signature is cut off or too long");
        Ok(Self {
            key_id: key_id.try_into().map_err(|_| cut())?,
            untrusted_comment,
            trusted_comment,
            signature: signature.try_into().map_err(|_| cut())?,
            global: decoded(global)?.try_into().map_err(|_| cut())?,
        })
    }

    /// Whether `key` is the one that is said to have made it. Numbers can be the same by accident or on purpose.
    pub fn means(&self, key: &SignerKey) -> bool {
        matches!(key, SignerKey::Minisign { id, .. } if *id == self.key_id)
    }

    /// Whether `key` made it over `message`, with the trusted comment it has.
    pub fn is_of(&self, key: &SignerKey, message: &[u8]) -> bool {
        let hash = blake2::Blake2b512::digest(message);
        self.means(key)
            && is_of(key, &hash, &self.signature)
            && is_of(key, &self.covered(), &self.global)
    }

    /// Whether `key` wrote the trusted comment, over whatever message the signature is.
    pub fn is_comment_of(&self, key: &SignerKey) -> bool {
        self.means(key) && is_of(key, &self.covered(), &self.global)
    }

    fn covered(&self) -> Vec<u8> {
        [&self.signature, self.trusted_comment.as_bytes()].concat()
    }

    /// The four lines.
    pub fn to_text(&self) -> String {
        let signature = [&HASHED, &self.key_id[..], &self.signature].concat();
        format!(
            "{UNTRUSTED}{}\n{}\n{TRUSTED}{}\n{}\n",
            self.untrusted_comment,
            STANDARD.encode(signature),
            self.trusted_comment,
            STANDARD.encode(self.global),
        )
    }

    /// Makes one. `sign` signs with the key that has the number `key_id`; comments are one line each.
    pub(super) fn made(
        key_id: [u8; MINISIGN_KEY_ID_BYTES],
        message: &[u8],
        (untrusted_comment, trusted_comment): (&str, &str),
        sign: impl Fn(&[u8]) -> [u8; SIGNATURE_BYTES],
    ) -> Self {
        let hash = blake2::Blake2b512::digest(message);
        let mut made = Self {
            key_id,
            untrusted_comment: untrusted_comment.to_owned(),
            trusted_comment: trusted_comment.to_owned(),
            signature: sign(&hash),
            global: [0; SIGNATURE_BYTES],
        };
        made.global = sign(&made.covered());
        made
    }
}

fn comment(line: &str, prefix: &str) -> Result<String, BadSignatureFile> {
    let comment = line.strip_prefix(prefix).ok_or_else(|| {
        BadSignatureFile(format!("a line that begins with `{prefix}` is missing"))
    })?;
    if comment.len() > COMMENT_BYTES_MAX {
        return Err(bad("a comment of it is too long"));
    }
    Ok(comment.to_owned())
}

fn decoded(line: &str) -> Result<Vec<u8>, BadSignatureFile> {
    let decoded = STANDARD.decode(line);
    decoded.map_err(|_| bad("its signature is not valid base64"))
}

fn bad(problem: &str) -> BadSignatureFile {
    BadSignatureFile(problem.to_owned())
}
