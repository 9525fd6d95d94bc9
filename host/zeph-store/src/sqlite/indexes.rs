//! Indexes of plugins in SQL.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::audit::parsed;
use crate::indexes::SeenIndex;

/// The last index of this source.
pub(super) fn seen(connection: &Connection, source: &str) -> rusqlite::Result<Option<SeenIndex>> {
    const SQL: &str =
        "SELECT source, number, document, keys, configured FROM plugin_indexes WHERE source = ?1";
    connection
        .prepare_cached(SQL)?
        .query_row([source], read)
        .optional()
}

/// Keeps an index unless a later one, or another one of the same number, is there; says whether it did.
pub(super) fn keep(
    connection: &Connection,
    index: &SeenIndex,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    const SQL: &str = "
        INSERT INTO plugin_indexes (source, number, document, keys, configured, at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (source) DO UPDATE SET
            number = excluded.number, document = excluded.document, keys = excluded.keys,
            configured = excluded.configured, at_ms = excluded.at_ms
        WHERE excluded.number > plugin_indexes.number
            OR (excluded.number = plugin_indexes.number AND excluded.document = plugin_indexes.document)";
    let SeenIndex {
        source,
        number,
        document,
        keys,
        configured,
    } = index;
    let (keys, configured) = (keys.join("\n"), configured.join("\n"));
    let row = params![
        source,
        number,
        document.to_string(),
        keys,
        configured,
        at_ms
    ];
    Ok(connection.prepare_cached(SQL)?.execute(row)? == 1)
}

fn read(row: &Row<'_>) -> rusqlite::Result<SeenIndex> {
    let lines = |column: usize| {
        let text: String = row.get(column)?;
        Ok::<_, rusqlite::Error>(text.lines().map(str::to_owned).collect())
    };
    Ok(SeenIndex {
        source: row.get(0)?,
        number: row.get(1)?,
        document: parsed(row, 2)?,
        keys: lines(3)?,
        configured: lines(4)?,
    })
}
