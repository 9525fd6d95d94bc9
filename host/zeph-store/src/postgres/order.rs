//! The lock behind which all hosts change what they learn together.

use super::transaction::Transaction;
use crate::operations::Outcome;

/// Waits until no other host changes trust, sequences, vectors or counts, whose rows all hosts share. It is one lock for all of them: with
/// several, hosts that want them in another order would wait for each other.
pub(super) fn learned(transaction: &Transaction) -> Outcome<()> {
    transaction.lock("what hosts learn")
}
