//! Sessions of the agent.

use tokio_postgres::Row;
use zeph_core::id::ConversationId;

use super::conversation;
use super::transaction::Transaction;
use super::value::{count, get, parsed};
use crate::operations::Outcome;
use crate::session::{AppendEnd, NewSession, NewSessionItem, SessionItems, SessionRecord};

/// Begins a session; of one that is there the model is replaced and the use is noted.
pub(super) fn begin(transaction: &Transaction, session: &NewSession, at_ms: i64) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO agent_sessions AS s (conversation_id, title, directory, provider, model, started_at_ms, last_used_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $6)
        ON CONFLICT (conversation_id) DO UPDATE
        SET provider = excluded.provider, model = excluded.model,
            last_used_ms = greatest(s.last_used_ms, excluded.last_used_ms),
            title = CASE s.title WHEN '' THEN excluded.title ELSE s.title END";
    conversation::touch(transaction, session.conversation, at_ms, 0)?;
    let id = session.conversation.to_string();
    let NewSession {
        conversation: _,
        title,
        directory,
        provider,
        model,
    } = session;
    let row = transaction.execute(SQL, &[&id, title, directory, provider, model, &at_ms]);
    row.map(drop)
}

/// Appends items after the one with the number `after`.
pub(super) fn append(
    transaction: &Transaction,
    conversation: ConversationId,
    items: &[NewSessionItem],
    after: i64,
    at_ms: i64,
) -> Outcome<AppendEnd> {
    const USE: &str = "
        UPDATE agent_sessions SET last_used_ms = greatest(last_used_ms, $2) WHERE conversation_id = $1";
    const SQL: &str = "
        INSERT INTO agent_items (conversation_id, at_ms, is_base, item) VALUES ($1, $2, $3, $4)";
    let id = conversation.to_string();
    // In the order of all who write: the conversation, then what it owns. Its row also keeps the items of two hosts in order.
    let is_there = "SELECT 1 FROM agent_sessions WHERE conversation_id = $1";
    if transaction.query_opt(is_there, &[&id])?.is_none() {
        return Ok(AppendEnd::NoSession);
    }
    conversation::touch(transaction, conversation, at_ms, 0)?;
    if transaction.execute(USE, &[&id, &at_ms])? == 0 {
        return Ok(AppendEnd::NoSession);
    }
    // Nobody appends to it until this transaction has ended.
    if last(transaction, &id)? != after {
        return Ok(AppendEnd::Moved);
    }
    for item in items {
        transaction.execute(SQL, &[&id, &at_ms, &item.is_base, &item.json])?;
    }
    last(transaction, &id).map(AppendEnd::Appended)
}

/// The number of the last item; 0 when there is none.
pub(super) fn last(transaction: &Transaction, id: &str) -> Outcome<i64> {
    const SQL: &str = "SELECT coalesce(max(seq), 0) FROM agent_items WHERE conversation_id = $1";
    let row = transaction.query_opt(SQL, &[&id])?;
    row.map_or(Ok(0), |row| get(&row, 0))
}

/// The items from the last base on.
pub(super) fn items(
    transaction: &Transaction,
    conversation: ConversationId,
) -> Outcome<SessionItems> {
    const SQL: &str = "
        SELECT item, seq FROM agent_items WHERE conversation_id = $1 AND seq >=
            (SELECT coalesce(max(seq), 0) FROM agent_items WHERE conversation_id = $1 AND is_base)
        ORDER BY seq";
    read(&transaction.query(SQL, &[&conversation.to_string()])?)
}

/// The items after the one with the number `after`.
pub(super) fn items_after(
    transaction: &Transaction,
    conversation: ConversationId,
    after: i64,
) -> Outcome<SessionItems> {
    const SQL: &str = "
        SELECT item, seq FROM agent_items WHERE conversation_id = $1 AND seq > $2 ORDER BY seq";
    read(&transaction.query(SQL, &[&conversation.to_string(), &after])?)
}

fn read(rows: &[Row]) -> Outcome<SessionItems> {
    let items = rows.iter().map(|row| get(row, 0)).collect::<Outcome<_>>()?;
    let last = rows.last().map_or(Ok(0), |row| get(row, 1))?;
    Ok(SessionItems { items, last })
}

/// One session.
pub(super) fn of_conversation(
    transaction: &Transaction,
    conversation: ConversationId,
) -> Outcome<Option<SessionRecord>> {
    const SQL: &str = "
        SELECT conversation_id, title, directory, provider, model, started_at_ms, last_used_ms,
            (SELECT count(*) FROM agent_items WHERE agent_items.conversation_id = agent_sessions.conversation_id)
        FROM agent_sessions WHERE conversation_id = $1";
    let row = transaction.query_opt(SQL, &[&conversation.to_string()])?;
    row.as_ref().map(record).transpose()
}

/// The sessions used last.
pub(super) fn listed(
    transaction: &Transaction,
    directory: Option<&str>,
    limit: u32,
) -> Outcome<Vec<SessionRecord>> {
    const SQL: &str = "
        SELECT conversation_id, title, directory, provider, model, started_at_ms, last_used_ms,
            (SELECT count(*) FROM agent_items WHERE agent_items.conversation_id = agent_sessions.conversation_id)
        FROM agent_sessions WHERE $1::text IS NULL OR directory = $1
        ORDER BY last_used_ms DESC, conversation_id DESC LIMIT $2";
    let rows = transaction.query(SQL, &[&directory, &i64::from(limit)])?;
    rows.iter().map(record).collect()
}

fn record(row: &Row) -> Outcome<SessionRecord> {
    Ok(SessionRecord {
        conversation: parsed(row, 0)?,
        title: get(row, 1)?,
        directory: get(row, 2)?,
        provider: get(row, 3)?,
        model: get(row, 4)?,
        started_at_ms: get(row, 5)?,
        last_used_at_ms: get(row, 6)?,
        n_items: count(row, 7)?,
    })
}
