//! Seals: what leaves the host with a client and has to come back as it left, once, and not for ever.
//!
//! A seal holds its content in the clear, with a code over the content and over what it belongs to, made with a key that only this
//! process has. It is known by a ticket; a ticket that was redeemed is gone. What a seal belongs to is said again by whoever opens it,
//! and is not in it.

mod code;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::code::CODE_BYTES;

/// Seals of one owner that can be opened at one time; a new one takes the place of the owner's oldest.
pub(crate) const OPEN_MAX: usize = 1_024;

/// Seals of all owners that can be opened at one time; a new one takes the place of the oldest.
const ALL_MAX: usize = 16 * OPEN_MAX;

/// The seals a host has given out.
pub(crate) struct Seals {
    key: [u8; 32],
    /// Those that were not redeemed yet, oldest first. Protects the list for the moment of reading or changing it.
    open: Mutex<VecDeque<Open>>,
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
    /// It was altered, belongs to something else, or was made by another process.
    Foreign,
    /// Its time is over.
    Expired,
    /// It was redeemed, or too many others of its owner were made since.
    Used,
}

struct Open {
    ticket: Ticket,
    owner: Option<String>,
    expires_ms: i64,
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
    /// Seals that nobody else can make.
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        for half in key.chunks_mut(16) {
            half.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        Self {
            key,
            open: Mutex::default(),
        }
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
        self.remember(
            Open {
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

    /// Opens a seal. It can be opened again until it is redeemed.
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
        if !code::is_code_of(&self.key, &borrowed(&parts), code) {
            return Err(BadSeal::Foreign);
        }
        let received: Received<T> = serde_json::from_slice(text).map_err(|_| BadSeal::Foreign)?;
        if received.expires_ms <= now_ms {
            return Err(BadSeal::Expired);
        }
        let is_open = |open: &Open| open.ticket == received.ticket;
        if !self.list().iter().any(is_open) {
            return Err(BadSeal::Used);
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

    /// Uses up a seal. Of several that try at once, one is told that it was there.
    pub(crate) fn redeem(&self, ticket: Ticket) -> bool {
        let mut open = self.list();
        let place = open.iter().position(|open| open.ticket == ticket);
        place.and_then(|place| open.remove(place)).is_some()
    }

    /// How many can be opened.
    #[cfg(test)]
    pub(crate) fn n_open(&self) -> usize {
        self.list().len()
    }

    fn remember(&self, new: Open, now_ms: i64) {
        let mut open = self.list();
        open.retain(|open| open.expires_ms > now_ms);
        let n_own = open.iter().filter(|open| open.owner == new.owner).count();
        let oldest = match n_own >= OPEN_MAX {
            true => open.iter().position(|open| open.owner == new.owner),
            false => (open.len() >= ALL_MAX).then_some(0),
        };
        if let Some(oldest) = oldest {
            open.remove(oldest);
        }
        open.push_back(new);
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn code(&self, subject: Subject<'_>, text: &[u8]) -> [u8; CODE_BYTES] {
        code::hmac_sha256(&self.key, &borrowed(&parts(subject, text)))
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
