//! The keys of the authorisation server as they change: fetched when they are needed, again after a while, and when a token names one that
//! is not among them. However many tokens do, they are fetched seldom, and by one request at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::fetch::Source;
use super::jwk::{self, PublicKey};
use super::jwt::{AccessTokenError, Header};

/// After how long the keys are fetched again, so that one that was withdrawn counts no longer.
const FRESH_MAX: Duration = Duration::from_secs(600);

/// How long keys count when they cannot be fetched again.
const STALE_MAX: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub(super) struct Keys {
    source: Source,
    fetch_again_after: Duration,
    known: Mutex<Known>,
    /// One request fetches, the others wait for what it finds.
    fetches: Semaphore,
}

#[derive(Debug, Default)]
struct Known {
    keys: Arc<Vec<PublicKey>>,
    /// When these keys were fetched.
    fetched: Option<Instant>,
    /// When it was last tried.
    tried: Option<Instant>,
}

impl Keys {
    pub(super) fn new(source: Source, fetch_again_after: Duration) -> Self {
        Self {
            source,
            fetch_again_after,
            known: Mutex::default(),
            fetches: Semaphore::new(1),
        }
    }

    /// The key a token is signed with, as it claims.
    ///
    /// Errors: there is none, or there are no keys at all.
    pub(super) async fn find(&self, header: &Header) -> Result<PublicKey, AccessTokenError> {
        if let Some(key) = self.among_those_younger_than(FRESH_MAX, header) {
            return Ok(key);
        }
        self.refresh(header).await;
        if let Some(key) = self.among_those_younger_than(STALE_MAX, header) {
            return Ok(key);
        }
        // Where the newest keys could not be fetched, this may be one of them.
        let known = self.known();
        match known.is_younger_than(STALE_MAX) && known.fetched >= known.tried {
            true => Err(AccessTokenError::UnknownKey),
            false => Err(AccessTokenError::NoKeys),
        }
    }

    fn among_those_younger_than(&self, age: Duration, header: &Header) -> Option<PublicKey> {
        let known = self.known();
        let keys = known.is_younger_than(age).then(|| Arc::clone(&known.keys));
        drop(known);
        jwk::find(&keys?, header).cloned()
    }

    async fn refresh(&self, header: &Header) {
        let Ok(_permit) = self.fetches.acquire().await else {
            return;
        };
        // Another request may have fetched them meanwhile.
        let is_there = self.among_those_younger_than(FRESH_MAX, header).is_some();
        if is_there || !self.begin_to_try() {
            return;
        }
        let fetched = self.source.fetch().await;
        match fetched.and_then(|json| jwk::read_set(&json).map_err(Into::into)) {
            Ok(keys) => {
                let mut known = self.known();
                known.keys = Arc::new(keys);
                known.fetched = Some(Instant::now());
            }
            Err(error) => {
                let url = self.source.url();
                tracing::warn!(%url, error = &*error, "the keys of the authorization server cannot be fetched");
            }
        }
    }

    /// Whether it is time to fetch again; it is then taken as tried.
    fn begin_to_try(&self) -> bool {
        let mut known = self.known();
        let is_time = known
            .tried
            .is_none_or(|tried| tried.elapsed() >= self.fetch_again_after);
        if is_time {
            known.tried = Some(Instant::now());
        }
        is_time
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_younger_than(&self, age: Duration) -> bool {
        self.fetched.is_some_and(|fetched| fetched.elapsed() < age)
    }
}
