//! The sequences of this moment: those of the operator, and those that were learned in any process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use zeph_core::policy::{Mode, Sequence, SequenceOrigin, SequenceSet};
use zeph_store::{SequenceState, Store, StoreError, StoredSequence};

/// How long what was read counts: what another process learned or forgave is known after that.
const FRESH: Duration = Duration::from_millis(250);

/// Sequences that are looked for together.
#[derive(Debug)]
pub(crate) struct KnownSequences {
    pub(crate) set: SequenceSet,
    /// Differs from that of any other set of this process.
    pub(crate) version: u64,
    /// What the learned ones mean, once it is asked for.
    pub(super) vectors: OnceCell<Vec<(i64, Vec<f32>)>>,
}

/// What was read of the store, and when.
#[derive(Debug)]
pub(crate) struct SequenceCache {
    configured: Arc<[Sequence]>,
    /// Held for moments only.
    state: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    known: Option<Arc<KnownSequences>>,
    candidates: HashSet<Vec<String>>,
    /// What the store called its state.
    of_store: Option<i64>,
    read_at: Option<Instant>,
    n_made: u64,
}

impl SequenceCache {
    pub(super) fn new(configured: Arc<[Sequence]>) -> Self {
        Self {
            configured,
            state: Mutex::default(),
        }
    }

    /// The sequences of this moment.
    ///
    /// Errors: [`StoreError`] when the store cannot be read.
    pub(super) async fn now(&self, store: &Store) -> Result<Arc<KnownSequences>, StoreError> {
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        let read_at = Instant::now();
        let version = store.sequences_version().await?;
        if let Some(known) = self.still(version, read_at) {
            return Ok(known);
        }
        let stored = store.list_sequences().await?;
        Ok(self.take(stored, version, read_at))
    }

    fn fresh(&self) -> Option<Arc<KnownSequences>> {
        let state = self.lock();
        let is_fresh = state.read_at.is_some_and(|at| at.elapsed() < FRESH);
        state.known.clone().filter(|_| is_fresh)
    }

    fn still(&self, version: i64, read_at: Instant) -> Option<Arc<KnownSequences>> {
        let mut state = self.lock();
        if state.of_store != Some(version) {
            return None;
        }
        state.read_at = Some(read_at);
        state.known.clone()
    }

    fn take(
        &self,
        stored: Vec<StoredSequence>,
        version: i64,
        read_at: Instant,
    ) -> Arc<KnownSequences> {
        let (learned, others): (Vec<_>, Vec<_>) = stored
            .into_iter()
            .partition(|sequence| sequence.state == SequenceState::Learned);
        let learned = learned.into_iter().filter_map(sequence);
        let set = SequenceSet::new(self.configured.iter().cloned().chain(learned).collect());
        let mut state = self.lock();
        state.n_made += 1;
        let known = Arc::new(KnownSequences {
            set,
            version: state.n_made,
            vectors: OnceCell::new(),
        });
        let candidates = others.into_iter().filter(is_candidate);
        state.candidates = candidates.map(|sequence| sequence.words).collect();
        state.known = Some(Arc::clone(&known));
        state.of_store = Some(version);
        state.read_at = Some(read_at);
        known
    }

    /// Reads again at the next call: this process changed something.
    pub(crate) fn forget(&self) {
        self.lock().read_at = None;
    }

    /// Whether there is any sequence.
    pub(super) fn has_sequences(&self) -> bool {
        let state = self.lock();
        state
            .known
            .as_ref()
            .is_some_and(|known| !known.set.is_empty())
    }

    /// Whether any sequence went wrong that is not learned yet.
    pub(super) fn has_candidates(&self) -> bool {
        !self.lock().candidates.is_empty()
    }

    /// Whether this one did.
    pub(super) fn is_candidate(&self, words: &[String]) -> bool {
        self.lock().candidates.contains(words)
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_candidate(sequence: &StoredSequence) -> bool {
    sequence.state == SequenceState::Candidate && sequence.n_good == 0
}

/// A learned sequence; one that cannot be compiled, or would block everything, says nothing.
fn sequence(stored: StoredSequence) -> Option<Sequence> {
    if !super::is_specific(&stored.words) {
        tracing::warn!(
            sequence = stored.id,
            "a learned sequence is not used: it would block every call of a tool"
        );
        return None;
    }
    let origin = SequenceOrigin::Learned {
        id: stored.id,
        cause: stored.cause,
        call: stored.call_id,
    };
    Sequence::new(&stored.words, Mode::Deny, origin).ok()
}
