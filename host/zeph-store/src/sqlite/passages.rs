//! Vectors of passages in SQL.

use rusqlite::{Connection, OptionalExtension as _, params};
use zeph_core::id::Digest;

use crate::passages::{NearestPassages, PASSAGES_MAX, PassageVector, USE_STEP_MS};

/// The places of the keys without a vector.
pub(super) fn missing(
    connection: &Connection,
    space: &Digest,
    keys: &[u128],
    at_ms: i64,
) -> rusqlite::Result<Vec<u32>> {
    const SQL: &str = "SELECT used_ms FROM passages WHERE space = unhex(?1) AND key = ?2";
    const USE: &str = "UPDATE passages SET used_ms = ?3 WHERE space = unhex(?1) AND key = ?2";
    let space = space.hex();
    let before_ms = at_ms.saturating_sub(USE_STEP_MS);
    let mut statement = connection.prepare_cached(SQL)?;
    let mut missing = Vec::new();
    for (place, key) in (0..).zip(keys) {
        let key = key.to_be_bytes();
        let used_ms: Option<i64> = statement
            .query_row(params![space, key], |row| row.get(0))
            .optional()?;
        match used_ms {
            None => missing.push(place),
            Some(used_ms) if used_ms < before_ms => {
                let mut note = connection.prepare_cached(USE)?;
                note.execute(params![space, key, at_ms])?;
            }
            Some(_) => {}
        }
    }
    Ok(missing)
}

/// Keeps vectors, and forgets those that were not used for longest.
pub(super) fn keep(
    connection: &Connection,
    space: &Digest,
    passages: &[(u128, PassageVector)],
    at_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO passages (space, key, vector, used_ms) VALUES (unhex(?1), ?2, ?3, ?4)
        ON CONFLICT (space, key) DO UPDATE SET vector = excluded.vector, used_ms = excluded.used_ms";
    const FORGET: &str = "
        DELETE FROM passages WHERE (space, key) IN (
            SELECT space, key FROM passages ORDER BY used_ms DESC, space DESC, key DESC LIMIT -1 OFFSET ?1)";
    let space = space.hex();
    for (key, vector) in passages {
        let row = params![space, key.to_be_bytes(), vector.bytes(), at_ms];
        connection.prepare_cached(SQL)?.execute(row)?;
    }
    connection.prepare_cached(FORGET)?.execute([PASSAGES_MAX])?;
    Ok(())
}

/// The places of the keys whose vectors are nearest to the query.
pub(super) fn nearest(
    connection: &Connection,
    space: &Digest,
    keys: &[u128],
    (query, max): (&PassageVector, usize),
) -> rusqlite::Result<Vec<(u32, f32)>> {
    const SQL: &str = "SELECT vector FROM passages WHERE space = unhex(?1) AND key = ?2";
    let space = space.hex();
    let mut nearest = NearestPassages::new(query, max);
    let mut statement = connection.prepare_cached(SQL)?;
    for (place, key) in keys.iter().enumerate() {
        let mut rows = statement.query(params![space, key.to_be_bytes()])?;
        if let Some(row) = rows.next()? {
            nearest.add(place, row.get_ref(0)?.as_blob()?);
        }
    }
    Ok(nearest.best())
}
