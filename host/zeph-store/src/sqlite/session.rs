//! Sessions of the agent in SQL.

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use zeph_core::id::ConversationId;

use super::audit::parsed;
use super::conversation;
use crate::session::{AppendEnd, NewSession, NewSessionItem, SessionItems, SessionRecord};

const COLUMNS: &str = "conversation_id, title, directory, provider, model, started_at_ms, last_used_ms,
    (SELECT count(*) FROM agent_items WHERE agent_items.conversation_id = agent_sessions.conversation_id)";

/// Begins a session; of one that is there the model is replaced and the use is noted.
pub(super) fn begin(
    connection: &Connection,
    session: &NewSession,
    at_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO agent_sessions (conversation_id, title, directory, provider, model, started_at_ms, last_used_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
        ON CONFLICT (conversation_id) DO UPDATE
        SET provider = excluded.provider, model = excluded.model,
            last_used_ms = max(last_used_ms, excluded.last_used_ms),
            title = CASE title WHEN '' THEN excluded.title ELSE title END";
    conversation::touch(connection, session.conversation, at_ms, 0)?;
    let row = params![
        session.conversation.to_string(),
        session.title,
        session.directory,
        session.provider,
        session.model,
        at_ms
    ];
    connection.prepare_cached(SQL)?.execute(row).map(drop)
}

/// Appends items after the one with the number `after`.
pub(super) fn append(
    connection: &Connection,
    conversation: ConversationId,
    items: &[NewSessionItem],
    after: i64,
    at_ms: i64,
) -> rusqlite::Result<AppendEnd> {
    const USE: &str = "
        UPDATE agent_sessions SET last_used_ms = max(last_used_ms, ?2) WHERE conversation_id = ?1";
    const SQL: &str = "
        INSERT INTO agent_items (conversation_id, at_ms, is_base, item) VALUES (?1, ?2, ?3, ?4)";
    let id = conversation.to_string();
    if connection
        .prepare_cached(USE)?
        .execute(params![id, at_ms])?
        == 0
    {
        return Ok(AppendEnd::NoSession);
    }
    if last(connection, &id)? != after {
        return Ok(AppendEnd::Moved);
    }
    conversation::touch(connection, conversation, at_ms, 0)?;
    let mut statement = connection.prepare_cached(SQL)?;
    for item in items {
        statement.execute(params![id, at_ms, item.is_base, item.json])?;
    }
    Ok(AppendEnd::Appended(last(connection, &id)?))
}

/// The number of the last item; 0 when there is none.
pub(super) fn last(connection: &Connection, id: &str) -> rusqlite::Result<i64> {
    const SQL: &str = "SELECT coalesce(max(seq), 0) FROM agent_items WHERE conversation_id = ?1";
    connection
        .prepare_cached(SQL)?
        .query_row([id], |row| row.get(0))
}

/// The items from the last base on.
pub(super) fn items(
    connection: &Connection,
    conversation: ConversationId,
) -> rusqlite::Result<SessionItems> {
    const SQL: &str = "
        SELECT item, seq FROM agent_items WHERE conversation_id = ?1 AND seq >=
            (SELECT coalesce(max(seq), 0) FROM agent_items WHERE conversation_id = ?1 AND is_base)
        ORDER BY seq";
    read(connection, SQL, params![conversation.to_string()])
}

/// The items after the one with the number `after`.
pub(super) fn items_after(
    connection: &Connection,
    conversation: ConversationId,
    after: i64,
) -> rusqlite::Result<SessionItems> {
    const SQL: &str = "
        SELECT item, seq FROM agent_items WHERE conversation_id = ?1 AND seq > ?2 ORDER BY seq";
    read(connection, SQL, params![conversation.to_string(), after])
}

fn read(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<SessionItems> {
    let mut found = SessionItems::default();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        found.items.push(row.get(0)?);
        found.last = row.get(1)?;
    }
    Ok(found)
}

/// One session.
pub(super) fn of_conversation(
    connection: &Connection,
    conversation: ConversationId,
) -> rusqlite::Result<Option<SessionRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM agent_sessions WHERE conversation_id = ?1");
    connection
        .prepare_cached(&sql)?
        .query_row([conversation.to_string()], record)
        .optional()
}

/// The sessions used last.
pub(super) fn listed(
    connection: &Connection,
    directory: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<SessionRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM agent_sessions WHERE ?1 IS NULL OR directory = ?1
         ORDER BY last_used_ms DESC, conversation_id DESC LIMIT ?2"
    );
    connection
        .prepare_cached(&sql)?
        .query_map(params![directory, limit], record)?
        .collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    Ok(SessionRecord {
        conversation: parsed(row, 0)?,
        title: row.get(1)?,
        directory: row.get(2)?,
        provider: row.get(3)?,
        model: row.get(4)?,
        started_at_ms: row.get(5)?,
        last_used_at_ms: row.get(6)?,
        n_items: row.get(7)?,
    })
}
