//! Secret keys in the files of minisign: made, read, and signed with.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake2::digest::Digest as _;
use blake2::digest::consts::U32;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use zeph_core::signer::{MINISIGN_KEY_ID_BYTES, SignerKey};

use super::minisign::MinisignSignature;

/// Most bytes of the file of a key. One of minisign has 300.
pub const KEY_FILE_BYTES_MAX: usize = 4096;

/// Bytes a password may have, as in minisign.
pub const PASSWORD_BYTES_MAX: usize = 1024;

const UNTRUSTED: &str = "untrusted comment: ";
const SIGNS: [u8; 2] = *b"Ed";
const ENCRYPTED: [u8; 2] = *b"Sc";
const PLAIN: [u8; 2] = [0, 0];
const CHECKSUM: [u8; 2] = *b"B2";
const SALT_BYTES: usize = 32;
const SEED_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 32;

/// Number, seed, public key, checksum: what a password encrypts.
const INNER_BYTES: usize = MINISIGN_KEY_ID_BYTES + 2 * SEED_BYTES + CHECKSUM_BYTES;

/// Algorithms, salt, two limits, and the inner part.
const FILE_BYTES: usize = 6 + SALT_BYTES + 16 + INNER_BYTES;

/// Operations and bytes of memory that make scrypt use N = 2¹⁷, r = 8, p = 1: 128 MiB, a third of a second.
///
/// Source: the recommendation of OWASP for passwords.
const LIMITS: (u64, u64) = ((4 * 8) << 17, (128 * 8) << 17);

/// The most a file may ask for: what the program minisign writes, 1 GiB and some seconds.
const LIMITS_MAX: (u64, u64) = (1 << 25, 1 << 30);

/// What protects a secret key in its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protection<'p> {
    /// Nothing but the rights of the file.
    None,
    /// A password.
    Password(&'p str),
}

/// A key pair that signs.
pub struct SecretKey {
    id: [u8; MINISIGN_KEY_ID_BYTES],
    seed: [u8; SEED_BYTES],
    public: [u8; 32],
}

/// Why a file gives no secret key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSecretKey {
    /// It is none.
    #[error("it is no secret key of minisign")]
    NotAKey,
    /// It is encrypted, and no password was given.
    #[error("it is encrypted, and needs its password")]
    NeedsPassword,
    /// The password is not that of the key, or the file was damaged.
    #[error("the password is wrong, or the file is damaged")]
    WrongPassword,
    /// It asks for more memory or time than minisign ever does.
    #[error("decrypting it would take more memory or time than a key of minisign does")]
    Costly,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl SecretKey {
    /// A new one.
    ///
    /// Errors: `NoRandomness`.
    pub fn generate() -> Result<Self, BadSecretKey> {
        let (id, seed) = (random()?, random()?);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        let pair = pair.map_err(|_| BadSecretKey::NoRandomness)?;
        let public = pair.public_key().as_ref().try_into();
        Ok(Self {
            id,
            seed,
            public: public.map_err(|_| BadSecretKey::NoRandomness)?,
        })
    }

    /// The public key.
    pub fn public(&self) -> SignerKey {
        SignerKey::Minisign {
            id: self.id,
            key: self.public,
        }
    }

    /// The content of a public key file.
    pub fn public_file(&self) -> String {
        let id = SignerKey::minisign_id(self.id);
        // minisign writes it as a number.
        let id = id.trim_start_matches('0');
        let line = self.public().to_text();
        format!("{UNTRUSTED}minisign public key {id}\n{line}\n")
    }

    /// The content of a secret key file.
    ///
    /// Errors: `NoRandomness`, `Costly`.
    pub fn to_file(&self, protection: Protection<'_>) -> Result<String, BadSecretKey> {
        let inner = [&self.id[..], &self.seed, &self.public, &self.checksum()].concat();
        let (algorithm, salt, limits, inner) = match protection {
            Protection::None => (PLAIN, [0; SALT_BYTES], (0, 0), inner),
            Protection::Password(password) => {
                let salt = random()?;
                let inner = masked(&inner, password, &salt, LIMITS)?;
                (ENCRYPTED, salt, LIMITS, inner)
            }
        };
        let bytes = [
            &SIGNS[..],
            &algorithm,
            &CHECKSUM,
            &salt,
            &limits.0.to_le_bytes(),
            &limits.1.to_le_bytes(),
            &inner,
        ];
        let kind = match protection {
            Protection::None => "minisign secret key",
            Protection::Password(_) => "minisign encrypted secret key",
        };
        Ok(format!(
            "{UNTRUSTED}{kind}\n{}\n",
            STANDARD.encode(bytes.concat())
        ))
    }

    /// Whether the content of a file needs a password.
    ///
    /// Errors: `NotAKey`.
    pub fn is_encrypted(file: &[u8]) -> Result<bool, BadSecretKey> {
        Ok(KeyFile::read(file)?.is_encrypted)
    }

    /// Reads a secret key file. Blocks for seconds when it is encrypted.
    ///
    /// Errors: all but `NoRandomness`.
    /// Limits: what the program minisign writes: 1 GiB of memory.
    pub fn from_file(file: &[u8], password: Option<&str>) -> Result<Self, BadSecretKey> {
        let file = KeyFile::read(file)?;
        let inner = match (file.is_encrypted, password) {
            (false, _) => file.inner.to_vec(),
            (true, None) => return Err(BadSecretKey::NeedsPassword),
            (true, Some(password)) => masked(&file.inner, password, &file.salt, file.limits)?,
        };
        let wrong = match file.is_encrypted {
            true => BadSecretKey::WrongPassword,
            false => BadSecretKey::NotAKey,
        };
        let mut rest = &inner[..];
        let key = Self {
            id: taken(&mut rest).ok_or(wrong)?,
            seed: taken(&mut rest).ok_or(wrong)?,
            public: taken(&mut rest).ok_or(wrong)?,
        };
        // The program minisign writes no checksum into a key without a password.
        let is_blank = !file.is_encrypted && rest == [0; CHECKSUM_BYTES];
        let is_whole = is_blank || rest == key.checksum();
        // A public half that is not of the secret one would give that away in its signatures.
        let fits = Ed25519KeyPair::from_seed_and_public_key(&key.seed, &key.public).is_ok();
        match is_whole && fits {
            true => Ok(key),
            false => Err(wrong),
        }
    }

    /// Signs `message`. Line breaks and other characters that would end a comment are taken out of both.
    pub fn sign(&self, message: &[u8], untrusted: &str, trusted: &str) -> MinisignSignature {
        let pair = Ed25519KeyPair::from_seed_and_public_key(&self.seed, &self.public)
            .expect("bug: the halves were compared when the key was read");
        let sign = |bytes: &[u8]| {
            let signature = pair.sign(bytes);
            let signature = signature.as_ref().try_into();
            signature.expect("bug: a signature of ed25519 has 64 bytes")
        };
        let (untrusted, trusted) = (on_a_line(untrusted), on_a_line(trusted));
        MinisignSignature::made(self.id, message, (&untrusted, &trusted), sign)
    }

    fn checksum(&self) -> [u8; CHECKSUM_BYTES] {
        let mut hash = blake2::Blake2b::<U32>::new();
        for part in [&SIGNS[..], &self.id, &self.seed, &self.public] {
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// The value never stands in a log.
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public())
    }
}

impl fmt::Debug for Protection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Password(_) => "Password",
        })
    }
}

/// A secret key file, taken apart.
struct KeyFile {
    is_encrypted: bool,
    salt: [u8; SALT_BYTES],
    limits: (u64, u64),
    inner: [u8; INNER_BYTES],
}

impl KeyFile {
    fn read(file: &[u8]) -> Result<Self, BadSecretKey> {
        Self::parts(file).ok_or(BadSecretKey::NotAKey)
    }

    fn parts(file: &[u8]) -> Option<Self> {
        if file.len() > KEY_FILE_BYTES_MAX {
            return None;
        }
        let mut lines = std::str::from_utf8(file).ok()?.lines();
        lines.next()?.strip_prefix(UNTRUSTED)?;
        let bytes = STANDARD.decode(lines.next()?.trim()).ok()?;
        if bytes.len() != FILE_BYTES || lines.any(|line| !line.trim().is_empty()) {
            return None;
        }
        let mut rest = &bytes[..];
        let signs: [u8; 2] = taken(&mut rest)?;
        let algorithm: [u8; 2] = taken(&mut rest)?;
        let checksum: [u8; 2] = taken(&mut rest)?;
        let is_known = matches!(algorithm, ENCRYPTED | PLAIN);
        if signs != SIGNS || checksum != CHECKSUM || !is_known {
            return None;
        }
        Some(Self {
            is_encrypted: algorithm == ENCRYPTED,
            salt: taken(&mut rest)?,
            limits: (
                u64::from_le_bytes(taken(&mut rest)?),
                u64::from_le_bytes(taken(&mut rest)?),
            ),
            inner: taken(&mut rest)?,
        })
    }
}

/// The next `N` bytes.
fn taken<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}

/// Encrypts what is plain, and makes plain what is encrypted.
fn masked(
    inner: &[u8],
    password: &str,
    salt: &[u8],
    limits: (u64, u64),
) -> Result<Vec<u8>, BadSecretKey> {
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(BadSecretKey::WrongPassword);
    }
    let params = scrypt_params(limits).ok_or(BadSecretKey::Costly)?;
    let mut stream = [0; INNER_BYTES];
    scrypt::scrypt(password.as_bytes(), salt, &params, &mut stream)
        .map_err(|_| BadSecretKey::Costly)?;
    Ok(inner
        .iter()
        .zip(stream)
        .map(|(byte, mask)| byte ^ mask)
        .collect())
}

/// What the limits of a file mean for scrypt; `None` when they are beyond what minisign writes.
///
/// Source: `pickparams` of libsodium, which minisign derives keys with.
fn scrypt_params((operations, memory): (u64, u64)) -> Option<scrypt::Params> {
    const R: u64 = 8;
    if operations > LIMITS_MAX.0 || memory > LIMITS_MAX.1 {
        return None;
    }
    let operations = operations.max(32_768);
    let is_short_of_operations = operations < memory / 32;
    let n_max = match is_short_of_operations {
        true => operations / (R * 4),
        false => memory / (R * 128),
    };
    let log_n = (1_u8..63).find(|log_n| 1 << log_n > n_max / 2)?;
    let p = match is_short_of_operations {
        true => 1,
        false => ((operations / 4) >> log_n).min(0x3fff_ffff) / R,
    };
    scrypt::Params::new(log_n, 8, u32::try_from(p).ok()?).ok()
}

fn random<const N: usize>() -> Result<[u8; N], BadSecretKey> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| BadSecretKey::NoRandomness)?;
    Ok(bytes)
}

/// A comment ends with its line.
fn on_a_line(comment: &str) -> String {
    let fits = |char: &char| *char == '\t' || !char.is_control();
    comment.chars().filter(fits).collect()
}
