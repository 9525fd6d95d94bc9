//! Vectors of passages.

use std::collections::{BTreeMap, HashMap, HashSet};

use zeph_core::id::Digest;

use super::order;
use super::transaction::Transaction;
use super::value::get;
use crate::operations::Outcome;
use crate::passages::{NearestPassages, PASSAGES_MAX, PassageVector, USE_STEP_MS};

/// Keys that are asked for at once: their vectors are held in memory meanwhile.
const KEYS_AT_ONCE: usize = 4_096;

/// The places of the keys without a vector.
pub(super) fn missing(
    transaction: &Transaction,
    space: &Digest,
    keys: &[u128],
    at_ms: i64,
) -> Outcome<Vec<u32>> {
    const SQL: &str = "
        SELECT key, used_ms FROM passages WHERE space = decode($1, 'hex') AND key = ANY($2::bytea[])";
    let before_ms = at_ms.saturating_sub(USE_STEP_MS);
    let space = space.hex();
    let mut known: HashSet<Vec<u8>> = HashSet::new();
    let mut used = Vec::new();
    for keys in keys.chunks(KEYS_AT_ONCE) {
        for row in &transaction.query(SQL, &[&space, &bytes(keys)])? {
            let key: Vec<u8> = get(row, 0)?;
            if get::<i64>(row, 1)? < before_ms {
                used.push(key.clone());
            }
            known.insert(key);
        }
    }
    if !used.is_empty() {
        note_use(transaction, &space, &used, at_ms)?;
    }
    let places = (0..).zip(keys);
    let missing = places.filter(|(_, key)| !known.contains(key.to_be_bytes().as_slice()));
    Ok(missing.map(|(place, _)| place).collect())
}

/// Writes down a use. What another host writes down at the moment need not be: it is not waited for.
fn note_use(transaction: &Transaction, space: &str, used: &[Vec<u8>], at_ms: i64) -> Outcome<()> {
    const SQL: &str = "
        UPDATE passages SET used_ms = $3 WHERE (space, key) IN
        (SELECT space, key FROM passages WHERE space = decode($1, 'hex') AND key = ANY($2::bytea[]) FOR UPDATE SKIP LOCKED)";
    transaction.execute(SQL, &[&space, &used, &at_ms]).map(drop)
}

/// Keeps vectors, and forgets those that were not used for longest.
pub(super) fn keep(
    transaction: &Transaction,
    space: &Digest,
    passages: &[(u128, PassageVector)],
    at_ms: i64,
) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO passages (space, key, vector, used_ms)
        SELECT decode($1, 'hex'), new.key, new.vector, $4 FROM unnest($2::bytea[], $3::bytea[]) AS new (key, vector)
        ON CONFLICT (space, key) DO UPDATE SET vector = excluded.vector, used_ms = excluded.used_ms";
    const FORGET: &str = "
        DELETE FROM passages WHERE (space, key) IN
        (SELECT space, key FROM passages ORDER BY used_ms DESC, space DESC, key DESC OFFSET $1)";
    order::learned(transaction)?;
    // One statement changes a row once: of one key the last counts.
    let last: BTreeMap<[u8; 16], &[u8]> = passages
        .iter()
        .map(|(key, vector)| (key.to_be_bytes(), vector.bytes()))
        .collect();
    let keys: Vec<Vec<u8>> = last.keys().map(|key| key.to_vec()).collect();
    let vectors: Vec<&[u8]> = last.into_values().collect();
    transaction.execute(SQL, &[&space.hex(), &keys, &vectors, &at_ms])?;
    transaction
        .execute(FORGET, &[&i64::from(PASSAGES_MAX)])
        .map(drop)
}

/// The places of the keys whose vectors are nearest to the query.
pub(super) fn nearest(
    transaction: &Transaction,
    space: &Digest,
    keys: &[u128],
    (query, max): (&PassageVector, usize),
) -> Outcome<Vec<(u32, f32)>> {
    const SQL: &str = "
        SELECT key, vector FROM passages WHERE space = decode($1, 'hex') AND key = ANY($2::bytea[])";
    let space = space.hex();
    let mut nearest = NearestPassages::new(query, max);
    for (number, keys) in keys.chunks(KEYS_AT_ONCE).enumerate() {
        let rows = transaction.query(SQL, &[&space, &bytes(keys)])?;
        let mut vectors: HashMap<&[u8], &[u8]> = HashMap::with_capacity(rows.len());
        for row in &rows {
            vectors.insert(get(row, 0)?, get(row, 1)?);
        }
        for (place, key) in keys.iter().enumerate() {
            if let Some(vector) = vectors.get(key.to_be_bytes().as_slice()) {
                nearest.add(number * KEYS_AT_ONCE + place, vector);
            }
        }
    }
    Ok(nearest.best())
}

fn bytes(keys: &[u128]) -> Vec<Vec<u8>> {
    keys.iter().map(|key| key.to_be_bytes().to_vec()).collect()
}
