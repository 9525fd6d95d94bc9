//! Tokens of the endpoint: random texts that name their bearer, known here by their digests alone.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;
use zeph_core::id::Digest;

/// What every token begins with, so that people and scanners for credentials recognise one.
pub const PREFIX: &str = "zeph_mcp_";

/// Random bytes of a token.
const SECRET_BYTES: usize = 32;

/// Most characters of a token's name.
const NAME_CHARS_MAX: usize = 64;

/// The SHA-256 of a token's text.
#[derive(Clone, Copy)]
pub struct TokenDigest(pub [u8; 32]);

/// A token as it is made: its text exists nowhere else.
pub struct NewToken {
    /// What its bearer sends.
    pub text: String,
    /// What is kept of it.
    pub digest: TokenDigest,
}

/// A token that may be used.
#[derive(Debug, Clone)]
pub struct KnownToken {
    /// Its name, and the id of the caller that uses it.
    pub name: String,
    /// What its text comes to.
    pub digest: TokenDigest,
    /// Patterns of the tools it may call; all tools when there are none.
    pub tools: Option<Vec<String>>,
    /// Calls a minute it may make.
    pub rate: Option<u32>,
    /// From when on it is refused, in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
}

/// The system has no random bytes to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no random bytes")]
pub struct NoRandomness;

/// A name no token can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a token has 1 to {NAME_CHARS_MAX} letters, digits, `.`, `_` or `-`, and begins with a letter or digit"
)]
pub struct BadTokenName;

impl NewToken {
    /// A token of 256 random bits.
    ///
    /// Errors: [`NoRandomness`].
    pub fn random() -> Result<Self, NoRandomness> {
        let mut secret = [0; SECRET_BYTES];
        SystemRandom::new()
            .fill(&mut secret)
            .map_err(|_| NoRandomness)?;
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
        let digest = TokenDigest::of(&text);
        Ok(Self { text, digest })
    }
}

impl TokenDigest {
    /// The digest of a token's text.
    pub fn of(text: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Self(bytes)
    }

    /// Whether both are of one text. Takes as long for every pair.
    pub fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl From<Digest> for TokenDigest {
    fn from(digest: Digest) -> Self {
        let mut bytes = [0; 32];
        #[expect(clippy::cast_possible_truncation, reason = "a digit is below 16")]
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        for (byte, digits) in bytes
            .iter_mut()
            .zip(digest.hex().as_bytes().chunks_exact(2))
        {
            *byte = value(digits[0]) << 4 | value(digits[1]);
        }
        Self(bytes)
    }
}

impl KnownToken {
    /// Whether it is refused at `now_ms` because of its age.
    pub fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms)
    }
}

/// Checks the name of a token. No name holds a colon, which sets the callers of access tokens apart.
///
/// Errors: [`BadTokenName`].
pub fn check_name(name: &str) -> Result<(), BadTokenName> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_good = name.len() <= NAME_CHARS_MAX
        && name.bytes().all(is_plain)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric());
    is_good.then_some(()).ok_or(BadTokenName)
}

/// The token that `text` is the text of. Every token is compared, so the time tells nothing about which one it is.
pub(crate) fn find<'t>(tokens: &'t [KnownToken], text: &str) -> Option<&'t KnownToken> {
    let digest = TokenDigest::of(text);
    let compare = |found, token: &'t KnownToken| match token.digest.is(&digest) {
        true => Some(token),
        false => found,
    };
    tokens.iter().fold(None, compare)
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest")
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use zeph_core::id::Digest;

    use super::{KnownToken, NewToken, PREFIX, TokenDigest, check_name, find};

    #[test]
    fn a_token_is_found_by_its_text_alone() {
        let (one, other) = (NewToken::random(), NewToken::random());
        let (one, other) = (one.expect("random"), other.expect("random"));
        let known = |name: &str, digest: TokenDigest| KnownToken {
            name: name.to_owned(),
            digest,
            tools: None,
            rate: None,
            expires_at_ms: None,
        };
        let tokens = [known("one", one.digest), known("other", other.digest)];
        let name = |text: &str| find(&tokens, text).map(|token| token.name.as_str());
        assert_eq!(name(&one.text), Some("one"));
        assert_eq!(name(&other.text), Some("other"));
        assert_eq!(name(&one.text[..one.text.len() - 1]), None);
        assert_eq!(name(""), None);
        assert_eq!(one.text.len(), PREFIX.len() + 43);
        assert_ne!(one.text, other.text);
        assert!(!format!("{one:?} {tokens:?}").contains(&one.text));
    }

    #[test]
    fn digests_are_those_of_the_store() {
        let mut bytes = [0; 32];
        for (byte, value) in bytes.iter_mut().zip((0..=255).step_by(8)) {
            *byte = value;
        }
        assert_eq!(TokenDigest::from(Digest::new(bytes)).0, bytes);
    }

    #[test]
    fn names_are_plain_words() {
        for name in ["ci", "a", "7", "Team.A_b-c", &"a".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "-a",
            ".a",
            "a b",
            "a:b",
            "a/b",
            "é",
            "a\n",
            &"a".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
