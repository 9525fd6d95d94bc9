//! The keys that seals are made with: of this process, or of a file that several hosts share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;
use zeph_store::{SEAL_KEY_BYTES, SealKeyError, SealKeyFile, SealKeyStamp};

/// How old what is known of the file may be.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A key.
pub(super) type Key = [u8; SEAL_KEY_BYTES];

/// Where the keys come from.
pub(super) enum SealKeys {
    /// One of this process alone.
    Process(Key),
    /// Those of a file, as it is now.
    Shared(SharedKeys),
}

/// The keys of a file, read again when it changes.
pub(super) struct SharedKeys {
    file: SealKeyFile,
    /// Protects the exchange of the whole.
    known: Mutex<KnownKeys>,
}

#[derive(Clone)]
struct KnownKeys {
    keys: Arc<[Key]>,
    stamp: Option<SealKeyStamp>,
    looked: Instant,
}

impl SealKeys {
    /// A key that nobody else has.
    pub(super) fn of_process() -> Self {
        let mut key = [0; SEAL_KEY_BYTES];
        for half in key.chunks_mut(16) {
            half.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        Self::Process(key)
    }

    /// The keys of `file`.
    ///
    /// Errors: [`SealKeyError`].
    pub(super) fn of_file(file: SealKeyFile) -> Result<Self, SealKeyError> {
        let known = KnownKeys {
            stamp: file.stamp(),
            keys: file.read()?.into(),
            looked: Instant::now(),
        };
        let known = Mutex::new(known);
        Ok(Self::Shared(SharedKeys { file, known }))
    }

    /// The keys of this moment: the one that seals, and others that open.
    pub(super) fn now(&self) -> Arc<[Key]> {
        match self {
            Self::Process(key) => Arc::from([*key]),
            Self::Shared(shared) => shared.now(),
        }
    }
}

impl SharedKeys {
    fn now(&self) -> Arc<[Key]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked.elapsed() < LOOK_AGAIN {
            return Arc::clone(&known.keys);
        }
        known.looked = Instant::now();
        let stamp = self.file.stamp();
        if stamp != known.stamp {
            known.stamp = stamp;
            match self.file.read() {
                Ok(keys) => known.keys = keys.into(),
                // A file that is being exchanged is there again in a moment; what was sealed stays sealed.
                Err(error) => {
                    known.stamp = None;
                    tracing::warn!(%error, "the keys that were read before stay in use");
                }
            }
        }
        Arc::clone(&known.keys)
    }
}
