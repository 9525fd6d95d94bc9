//! Seals: what leaves the host with a client and has to come back as it left, once, and not for ever.
//!
//! A seal holds its content in the clear, with a code over the content and over what it belongs to, made with a key of this process or one
//! that the operator gave to several hosts. It is known by a ticket; a ticket that was redeemed is gone, for all of these hosts. What a seal
//! belongs to is said again by the host that opens it, and is not in it. No key is in the store: who reads or writes that can make no seal.

mod code;
mod keys;
mod uses;

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeph_store::{SealKeyError, SealKeyFile, Store};

use self::code::CODE_BYTES;
use self::keys::SealKeys;
use self::uses::{OpenSeal, SealUses};

/// Bytes of the code of a mark: 128 bits, which nobody can guess.
const MARK_BYTES: usize = 16;

/// The seals a host has given out.
pub(crate) struct Seals {
    keys: SealKeys,
    uses: SealUses,
}

/// What a seal belongs to: it is opened with the same, or not at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// What it is for, so that one kind of seal never passes for another.
    pub(crate) purpose: &'static str,
    /// Who got it. One owner's seals push out no other's.
    pub(crate) owner: Option<&'a str>,
    /// Whatever else it belongs to.
    pub(crate) parts: &'a [&'a [u8]],
}

/// The one use of a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Ticket(pub(crate) Uuid);

/// A seal that was opened.
#[derive(Debug)]
pub(crate) struct Opened<T> {
    pub(crate) content: T,
    pub(crate) ticket: Ticket,
}

/// Why a seal cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadSeal {
    /// It was altered, belongs to something else, or was made with another key.
    Foreign,
    /// Its time is over.
    Expired,
    /// It was redeemed, or too many others of its owner were made since.
    Used,
    /// The store cannot say whether it was redeemed.
    Unknown,
}

#[derive(Serialize)]
struct Letter<'a, T> {
    ticket: Ticket,
    expires_ms: i64,
    content: &'a T,
}

#[derive(Deserialize)]
struct Received<T> {
    ticket: Ticket,
    expires_ms: i64,
    content: T,
}

impl Seals {
    /// Seals that nobody else can make or open.
    pub(crate) fn new() -> Self {
        Self {
            keys: SealKeys::of_process(),
            uses: SealUses::Process(Mutex::default()),
        }
    }

    /// Seals that every host with these keys and this store can make and open, each once.
    ///
    /// Errors: [`SealKeyError`].
    pub(crate) fn shared(file: SealKeyFile, store: Store) -> Result<Self, SealKeyError> {
        Ok(Self {
            keys: SealKeys::of_file(file)?,
            uses: SealUses::Store(store),
        })
    }

    /// Whether other hosts can open them.
    pub(crate) fn are_shared(&self) -> bool {
        matches!(self.keys, SealKeys::Shared(_))
    }

    /// Seals `content`, which can be opened until `expires_ms`. Everyone who has the seal can read it.
    pub(crate) fn seal<T: Serialize>(
        &self,
        subject: Subject<'_>,
        content: &T,
        expires_ms: i64,
        now_ms: i64,
    ) -> String {
        let ticket = Ticket(Uuid::new_v4());
        let letter = Letter {
            ticket,
            expires_ms,
            content,
        };
        let text = serde_json::to_vec(&letter).unwrap_or_default();
        self.uses.remember(
            OpenSeal {
                ticket,
                owner: subject.owner.map(str::to_owned),
                expires_ms,
            },
            now_ms,
        );
        let mut bytes = self.code(subject, &text).to_vec();
        bytes.extend(text);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Opens a seal, whether it was redeemed or not: see [`check`](Self::check).
    ///
    /// Errors: [`BadSeal`].
    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        subject: Subject<'_>,
        seal: &str,
        now_ms: i64,
    ) -> Result<Opened<T>, BadSeal> {
        let bytes = URL_SAFE_NO_PAD.decode(seal).ok();
        let bytes = bytes.ok_or(BadSeal::Foreign)?;
        let (code, text) = bytes.split_at_checked(CODE_BYTES).ok_or(BadSeal::Foreign)?;
        let parts = parts(subject, text);
        if !self.is_code(&parts, code) {
            return Err(BadSeal::Foreign);
        }
        let received: Received<T> = serde_json::from_slice(text).map_err(|_| BadSeal::Foreign)?;
        if received.expires_ms <= now_ms {
            return Err(BadSeal::Expired);
        }
        Ok(Opened {
            content: received.content,
            ticket: received.ticket,
        })
    }

    /// What a seal says, unchecked: it may be anybody's words.
    pub(crate) fn content<T: DeserializeOwned>(seal: &str) -> Option<T> {
        let bytes = URL_SAFE_NO_PAD.decode(seal).ok()?;
        let (_, text) = bytes.split_at_checked(CODE_BYTES)?;
        let received: Received<T> = serde_json::from_slice(text).ok()?;
        Some(received.content)
    }

    /// Whether a seal that was opened can be redeemed.
    ///
    /// Errors: [`BadSeal`].
    pub(crate) async fn check(&self, ticket: Ticket) -> Result<(), BadSeal> {
        self.uses.check(ticket).await
    }

    /// Uses up a seal. Of several that try at once, one succeeds.
    ///
    /// Errors: [`BadSeal`].
    pub(crate) async fn redeem(&self, ticket: Ticket) -> Result<(), BadSeal> {
        self.uses.redeem(ticket).await
    }

    /// A text that says that a host with these keys vouches for `subject`, any number of times.
    pub(crate) fn mark(&self, subject: Subject<'_>) -> String {
        URL_SAFE_NO_PAD.encode(&self.code(subject, &[])[..MARK_BYTES])
    }

    /// Whether `text` is the mark of `subject`.
    pub(crate) fn is_mark(&self, subject: Subject<'_>, text: &str) -> bool {
        let Ok(given) = URL_SAFE_NO_PAD.decode(text) else {
            return false;
        };
        let parts = parts(subject, &[]);
        let keys = self.keys.now();
        given.len() == MARK_BYTES
            && keys
                .iter()
                .any(|key| code::begins_code_of(key, &borrowed(&parts), &given))
    }

    /// How many of this process can be opened.
    #[cfg(test)]
    pub(crate) fn n_open(&self) -> usize {
        self.uses.n_open()
    }

    fn code(&self, subject: Subject<'_>, text: &[u8]) -> [u8; CODE_BYTES] {
        let keys = self.keys.now();
        // There is one at least.
        let key = keys.first().copied().unwrap_or_default();
        code::hmac_sha256(&key, &borrowed(&parts(subject, text)))
    }

    fn is_code(&self, parts: &[Vec<u8>], given: &[u8]) -> bool {
        let keys = self.keys.now();
        let parts = borrowed(parts);
        keys.iter().any(|key| code::is_code_of(key, &parts, given))
    }
}

impl std::fmt::Debug for Seals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seals").finish_non_exhaustive()
    }
}

/// What a code is made over. Each part has its length before it, so that no part can pass for the end of another.
fn parts(subject: Subject<'_>, text: &[u8]) -> Vec<Vec<u8>> {
    let owner: &[&[u8]] = match subject.owner {
        Some(owner) => &[b"of", owner.as_bytes()],
        None => &[b"of nobody"],
    };
    let all = [subject.purpose.as_bytes()].into_iter();
    let all = all.chain(owner.iter().copied());
    let all = all.chain(subject.parts.iter().copied()).chain([text]);
    all.map(|part| [&(part.len() as u64).to_be_bytes(), part].concat())
        .collect()
}

fn borrowed(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

#[cfg(test)]
mod tests;
