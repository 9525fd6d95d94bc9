//! The places for runs in one process, and the share of each caller.

use std::collections::HashMap;

use zeph_store::Owner;

/// Runs at one time.
pub(super) const RUNS_MAX: usize = 16;

/// Of these, those of one caller at most: a quarter, so that nobody keeps the others from theirs.
pub(super) const RUNS_OF_CALLER_MAX: usize = RUNS_MAX / 4;

/// How many of the places are taken, by caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunPlaces(HashMap<Owner, usize>);

impl RunPlaces {
    /// Those that are taken by runs of these callers.
    pub(super) fn taken<'a>(callers: impl Iterator<Item = &'a Owner>) -> Self {
        let mut places = Self::default();
        callers.for_each(|caller| places.take(caller));
        places
    }

    /// Takes one for a run of `caller`.
    pub(super) fn take(&mut self, caller: &Owner) {
        *self.0.entry(caller.clone()).or_default() += 1;
    }

    /// Whether there is none left.
    pub(super) fn are_taken(&self) -> bool {
        self.0.values().sum::<usize>() >= RUNS_MAX
    }

    /// The callers that have their share.
    pub(super) fn busy(&self) -> Vec<Owner> {
        let has_share = |n_runs: usize| n_runs >= RUNS_OF_CALLER_MAX;
        let busy = self.0.iter().filter(|(_, n_runs)| has_share(**n_runs));
        busy.map(|(caller, _)| caller.clone()).collect()
    }
}
