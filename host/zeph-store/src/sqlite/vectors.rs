//! Vectors in SQL.

use rusqlite::{Connection, OptionalExtension as _, params};
use zeph_core::id::Digest;

use crate::vectors::{VECTORS_MAX, bytes_of, numbers_of};

/// How much older the last use has to be for a new one to be written down: a day.
const USE_STEP_MS: i64 = 24 * 60 * 60 * 1_000;

/// The vectors of these digests, as far as they are there.
pub(super) fn all(
    connection: &Connection,
    digests: &[Digest],
    at_ms: i64,
) -> rusqlite::Result<Vec<Option<Vec<f32>>>> {
    const SQL: &str = "SELECT vector FROM vectors WHERE digest = unhex(?1)";
    const USE: &str = "UPDATE vectors SET used_ms = ?2 WHERE digest = unhex(?1) AND used_ms < ?3";
    let vectors = digests.iter().map(|digest| {
        let digest = digest.hex();
        let mut statement = connection.prepare_cached(SQL)?;
        let bytes: Option<Vec<u8>> = statement
            .query_row([&digest], |row| row.get(0))
            .optional()?;
        if bytes.is_some() {
            let row = params![digest, at_ms, at_ms.saturating_sub(USE_STEP_MS)];
            connection.prepare_cached(USE)?.execute(row)?;
        }
        Ok(bytes.and_then(|bytes| numbers_of(&bytes)))
    });
    vectors.collect()
}

/// Keeps vectors, and forgets those that were not used for longest.
pub(super) fn keep(
    connection: &Connection,
    vectors: &[(Digest, Vec<f32>)],
    at_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO vectors (digest, vector, used_ms) VALUES (unhex(?1), ?2, ?3)
        ON CONFLICT (digest) DO UPDATE SET vector = excluded.vector, used_ms = excluded.used_ms";
    const FORGET: &str = "
        DELETE FROM vectors WHERE digest IN (
            SELECT digest FROM vectors ORDER BY used_ms DESC, digest LIMIT -1 OFFSET ?1)";
    for (digest, vector) in vectors {
        if let Some(bytes) = bytes_of(vector) {
            let row = params![digest.hex(), bytes, at_ms];
            connection.prepare_cached(SQL)?.execute(row)?;
        }
    }
    connection.prepare_cached(FORGET)?.execute([VECTORS_MAX])?;
    Ok(())
}
