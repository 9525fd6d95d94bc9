//! How much calls have in common with a learned sequence, by their words.

use std::sync::Arc;

use super::origin::SequenceOrigin;
use super::sequence::{MappedCall, Sequence, SequenceSet};

/// A learned sequence that calls are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearSequence {
    /// What `zeph-host forgive` calls it.
    pub id: i64,
    /// How like, from 0 to 1.
    pub similarity: f64,
}

impl SequenceSet {
    /// The learned sequence that the last calls are most like by their words, if one is at least as like as `threshold`.
    ///
    /// The last call must be one of the tool that the last call of the sequence is of: its name is a word of the sequence.
    pub(super) fn nearest(
        &self,
        window: &[Arc<MappedCall>],
        call: &MappedCall,
        threshold: f64,
    ) -> Option<NearSequence> {
        let mut pair = call.plain.clone();
        if let Some(before) = window.last() {
            pair.extend_from_slice(&before.plain);
            pair.sort_unstable();
        }
        let learned = self.sequences.iter().zip(&self.sorted);
        let near = learned.filter_map(|(sequence, words)| {
            let id = learned_id(sequence)?;
            words.binary_search(&call.tool).ok()?;
            let similarity = alike(words, &call.plain).max(alike(words, &pair));
            (similarity >= threshold).then_some(NearSequence { id, similarity })
        });
        near.max_by(|one, other| one.similarity.total_cmp(&other.similarity))
    }

    /// The learned sequence with this number.
    pub(super) fn learned(&self, wanted: i64) -> Option<&Sequence> {
        let mut sequences = self.sequences.iter();
        sequences.find(|sequence| learned_id(sequence) == Some(wanted))
    }
}

fn learned_id(sequence: &Sequence) -> Option<i64> {
    match sequence.origin {
        SequenceOrigin::Learned { id, .. } => Some(id),
        SequenceOrigin::Configured(_) => None,
    }
}

/// Twice the words two sorted lists share, over the words of both.
#[expect(
    clippy::cast_precision_loss,
    reason = "a call has some dozens of words"
)]
fn alike(one: &[u32], other: &[u32]) -> f64 {
    let (mut shared, mut at) = (0_usize, 0_usize);
    for word in one {
        while other.get(at).is_some_and(|there| there < word) {
            at += 1;
        }
        if other.get(at) == Some(word) {
            shared += 1;
            at += 1;
        }
    }
    match one.len() + other.len() {
        0 => 0.0,
        all => 2.0 * shared as f64 / all as f64,
    }
}
