//! Stored outputs in SQL.

use rusqlite::{Connection, OptionalExtension as _, params};
use zeph_core::id::{ConversationId, OverflowId};

use super::audit::parsed;
use super::conversation::touch;
use crate::operations::NewOutput;
use crate::overflow::StoredOutput;

/// Most bytes of an output in one row. SQLite copies a row several times to write it; what goes beyond is in rows of its own.
const PART_BYTES: usize = 1 << 20;

/// Stores an output.
pub(super) fn put(connection: &Connection, output: &NewOutput<'_>) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO tool_overflow (id, conversation_id, created_at_ms, n_bytes, content, filter_rules)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let NewOutput {
        id,
        conversation,
        content,
        rules,
        at_ms,
    } = *output;
    let (first, rest) = content.split_at(content.len().min(PART_BYTES));
    touch(connection, conversation, at_ms, 0)?;
    connection.prepare_cached(SQL)?.execute(params![
        id.to_string(),
        conversation.to_string(),
        at_ms,
        i64::try_from(content.len()).unwrap_or(i64::MAX),
        first,
        rules
    ])?;
    insert_parts(connection, id, rest)
}

/// Reads an output of this conversation.
pub(super) fn read(
    connection: &Connection,
    conversation: ConversationId,
    id: OverflowId,
) -> rusqlite::Result<Option<Vec<u8>>> {
    const SQL: &str =
        "SELECT content, n_bytes FROM tool_overflow WHERE id = ?1 AND conversation_id = ?2";
    let key = [id.to_string(), conversation.to_string()];
    let first: Option<(Vec<u8>, i64)> = connection
        .prepare_cached(SQL)?
        .query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((mut content, n_bytes)) = first else {
        return Ok(None);
    };
    append_parts(connection, id, &mut content)?;
    // Another length: some of it was swept.
    let is_whole = i64::try_from(content.len()).is_ok_and(|len| len == n_bytes);
    Ok(is_whole.then_some(content))
}

const NEWEST: &str = "
    SELECT id, n_bytes, created_at_ms FROM tool_overflow
    WHERE conversation_id = ?1 AND n_bytes >= 0 ORDER BY created_at_ms DESC, rowid DESC LIMIT ?2";

/// The outputs of a conversation, newest first.
pub(super) fn listed(
    connection: &Connection,
    conversation: ConversationId,
    limit: u32,
) -> rusqlite::Result<Vec<StoredOutput>> {
    let mut statement = connection.prepare_cached(NEWEST)?;
    let rows = statement.query_map(params![conversation.to_string(), limit], |row| {
        Ok(StoredOutput {
            id: parsed(row, 0)?,
            n_bytes: row.get::<_, i64>(1)?.unsigned_abs(),
            at_ms: row.get(2)?,
        })
    })?;
    rows.collect()
}

/// Deletes parts of old outputs, and old outputs that have none: freeing a large row touches each of its pages. One that loses a part is gone
/// for readers from then on, which its length says. Says how many parts and how many outputs.
pub(super) fn sweep(
    connection: &Connection,
    before_ms: i64,
    n_max: u32,
) -> rusqlite::Result<(usize, usize)> {
    const PART: &str = "
        DELETE FROM tool_overflow_parts WHERE rowid IN
        (SELECT tool_overflow_parts.rowid FROM tool_overflow JOIN tool_overflow_parts ON overflow_id = id
         WHERE created_at_ms < ?1 LIMIT 1) RETURNING overflow_id";
    const GONE: &str = "UPDATE tool_overflow SET n_bytes = -1 WHERE id = ?1 AND n_bytes >= 0";
    const OUTPUTS: &str = "
        DELETE FROM tool_overflow WHERE rowid IN
        (SELECT rowid FROM tool_overflow WHERE created_at_ms < ?1 ORDER BY created_at_ms LIMIT ?2)";
    let of: Option<String> = connection
        .prepare_cached(PART)?
        .query_row([before_ms], |row| row.get(0))
        .optional()?;
    let Some(id) = of else {
        let mut outputs = connection.prepare_cached(OUTPUTS)?;
        return Ok((0, outputs.execute(params![before_ms, n_max])?));
    };
    connection.prepare_cached(GONE)?.execute([id])?;
    Ok((1, 0))
}

/// Stores what follows the first part of an output.
fn insert_parts(connection: &Connection, id: OverflowId, rest: &[u8]) -> rusqlite::Result<()> {
    const SQL: &str =
        "INSERT INTO tool_overflow_parts (overflow_id, part, content) VALUES (?1, ?2, ?3)";
    let id = id.to_string();
    for (part, number) in rest.chunks(PART_BYTES).zip(1_i64..) {
        let mut statement = connection.prepare_cached(SQL)?;
        statement.execute(params![id, number, part])?;
    }
    Ok(())
}

/// Reads what follows the first part of an output.
fn append_parts(
    connection: &Connection,
    id: OverflowId,
    content: &mut Vec<u8>,
) -> rusqlite::Result<()> {
    const SQL: &str =
        "SELECT content FROM tool_overflow_parts WHERE overflow_id = ?1 ORDER BY part";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query([id.to_string()])?;
    while let Some(row) = rows.next()? {
        content.extend_from_slice(row.get_ref(0)?.as_blob()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params};
    use zeph_core::id::{ConversationId, OverflowId};

    use super::{NEWEST, NewOutput, PART_BYTES, listed, put, read, sweep};
    use crate::sqlite::schema;

    #[test]
    fn an_output_that_lost_a_part_is_gone() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let (conversation, id) = (ConversationId::new(), OverflowId::new());
        let content = vec![b'x'; 3 * PART_BYTES];
        let output = NewOutput {
            id,
            conversation,
            content: &content,
            rules: None,
            at_ms: 1,
        };
        put(&connection, &output).unwrap();
        let found = || read(&connection, conversation, id).unwrap();
        let n_listed = || listed(&connection, conversation, 10).unwrap().len();
        assert_eq!(found().map(|content| content.len()), Some(content.len()));
        assert_eq!(sweep(&connection, 2, 8).unwrap(), (1, 0));
        assert_eq!((found(), n_listed()), (None, 0));
        assert_eq!(sweep(&connection, 2, 8).unwrap(), (1, 0));
        assert_eq!(sweep(&connection, 2, 8).unwrap(), (0, 1));
    }

    #[test]
    fn the_newest_outputs_are_found_without_sorting_all_of_a_conversation() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let asked = format!("EXPLAIN QUERY PLAN {NEWEST}");
        let mut statement = connection.prepare(&asked).unwrap();
        let steps = statement.query_map(params!["any", 50], |row| row.get(3));
        let steps: Vec<String> = steps.unwrap().map(Result::unwrap).collect();
        assert!(
            steps[0].contains("INDEX tool_overflow_by_conversation"),
            "{steps:?}"
        );
        // Of one moment the last term of the order may be.
        let sorts_all = |step: &String| step.ends_with("FOR ORDER BY");
        assert!(!steps.iter().any(sorts_all), "{steps:?}");
    }
}
