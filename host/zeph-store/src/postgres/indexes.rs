//! Indexes of plugins.

use super::digest::digest;
use super::transaction::Transaction;
use super::value::{get, parsed};
use crate::indexes::SeenIndex;
use crate::operations::Outcome;

/// The last index of this source.
pub(super) fn seen(transaction: &Transaction, source: &str) -> Outcome<Option<SeenIndex>> {
    const SQL: &str =
        "SELECT source, number, document, keys, configured FROM plugin_indexes WHERE source = $1";
    let Some(row) = transaction.query_opt(SQL, &[&source])? else {
        return Ok(None);
    };
    let lines = |column: usize| -> Outcome<Vec<String>> {
        let text: &str = get(&row, column)?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    Ok(Some(SeenIndex {
        source: get(&row, 0)?,
        number: get(&row, 1)?,
        document: parsed(&row, 2)?,
        keys: lines(3)?,
        configured: lines(4)?,
    }))
}

/// Keeps an index unless a later one, or another one of the same number, is there; says whether it did.
pub(super) fn keep(transaction: &Transaction, index: &SeenIndex, at_ms: i64) -> Outcome<bool> {
    const SQL: &str = concat!(
        "INSERT INTO plugin_indexes (source, number, document, keys, configured, at_ms)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (",
        digest!("source"),
        ") DO UPDATE SET
            number = excluded.number, document = excluded.document, keys = excluded.keys,
            configured = excluded.configured, at_ms = excluded.at_ms
        WHERE excluded.number > plugin_indexes.number
            OR (excluded.number = plugin_indexes.number AND excluded.document = plugin_indexes.document)"
    );
    let SeenIndex {
        source,
        number,
        document,
        keys,
        configured,
    } = index;
    let document = document.to_string();
    let (keys, configured) = (keys.join("\n"), configured.join("\n"));
    let row = [
        source as _,
        number as _,
        &document as _,
        &keys as _,
        &configured as _,
        &at_ms as _,
    ];
    Ok(transaction.execute(SQL, &row)? == 1)
}
