//! Vectors.

use std::collections::BTreeSet;

use zeph_core::id::Digest;

use super::order;
use super::transaction::Transaction;
use super::value::get;
use crate::operations::Outcome;
use crate::vectors::{VECTORS_MAX, bytes_of, numbers_of};

/// How much older the last use has to be for a new one to be written down: a day.
const USE_STEP_MS: i64 = 24 * 60 * 60 * 1_000;

/// The vectors of these digests, as far as they are there.
pub(super) fn all(
    transaction: &Transaction,
    digests: &[Digest],
    at_ms: i64,
) -> Outcome<Vec<Option<Vec<f32>>>> {
    const SQL: &str = "SELECT vector, used_ms FROM vectors WHERE digest = decode($1, 'hex')";
    let before_ms = at_ms.saturating_sub(USE_STEP_MS);
    let mut used = BTreeSet::new();
    let mut vectors = Vec::with_capacity(digests.len());
    for digest in digests {
        let digest = digest.hex();
        let Some(row) = transaction.query_opt(SQL, &[&digest])? else {
            vectors.push(None);
            continue;
        };
        vectors.push(numbers_of(get(&row, 0)?));
        if get::<i64>(&row, 1)? < before_ms {
            used.insert(digest);
        }
    }
    note_use(transaction, used, (at_ms, before_ms))?;
    Ok(vectors)
}

/// Writes down a use. What another host writes down at the moment need not be: it is not waited for.
fn note_use(
    transaction: &Transaction,
    used: BTreeSet<String>,
    (at_ms, before_ms): (i64, i64),
) -> Outcome<()> {
    const SQL: &str = "
        UPDATE vectors SET used_ms = $2 WHERE digest IN
        (SELECT digest FROM vectors WHERE digest = decode($1, 'hex') AND used_ms < $3 FOR UPDATE SKIP LOCKED)";
    for digest in used {
        transaction.execute(SQL, &[&digest, &at_ms, &before_ms])?;
    }
    Ok(())
}

/// Keeps vectors, and forgets those that were not used for longest.
pub(super) fn keep(
    transaction: &Transaction,
    vectors: &[(Digest, Vec<f32>)],
    at_ms: i64,
) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO vectors (digest, vector, used_ms) VALUES (decode($1, 'hex'), $2, $3)
        ON CONFLICT (digest) DO UPDATE SET vector = excluded.vector, used_ms = excluded.used_ms";
    const FORGET: &str = "
        DELETE FROM vectors WHERE digest IN (SELECT digest FROM vectors ORDER BY used_ms DESC, digest OFFSET $1)";
    order::learned(transaction)?;
    for (digest, vector) in vectors {
        if let Some(bytes) = bytes_of(vector) {
            transaction.execute(SQL, &[&digest.hex(), &bytes, &at_ms])?;
        }
    }
    transaction
        .execute(FORGET, &[&i64::from(VECTORS_MAX)])
        .map(drop)
}
