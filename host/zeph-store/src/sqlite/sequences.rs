//! Sequences, and what conversations remember, in SQL.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use zeph_core::id::{CallId, ConversationId, OverflowId};
use zeph_core::policy::{Label, LabelKind, LearnedCause};

use super::audit::{parsed, unreadable};
use super::conversation::touch;
use crate::sequences::{
    CANDIDATES_MAX, ConversationPast, HELD_MAX, LEARNED_MAX, OF_OUTPUTS_MAX, RELEASES_MAX,
    SequenceObservation, SequenceState, StoredSequence, labels_as_json,
};

/// The number that changes with every change.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT version FROM sequence_changes")?
        .query_row([], |row| row.get(0))
}

/// All sequences.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<StoredSequence>> {
    const SQL: &str = "
        SELECT id, words, state, cause, call_id, n_bad, n_good, at_ms FROM sequences ORDER BY id";
    connection
        .prepare_cached(SQL)?
        .query_map([], sequence)?
        .collect()
}

/// Counts how a sequence ended; its number when that makes it a learned one.
pub(super) fn observe(
    connection: &Connection,
    observed: &SequenceObservation,
) -> rusqlite::Result<Option<i64>> {
    let words = json(&observed.words)?;
    let Some(cause) = observed.cause else {
        const GOOD: &str = "UPDATE sequences SET n_good = n_good + 1 WHERE words = ?1";
        connection.prepare_cached(GOOD)?.execute([&words])?;
        return Ok(None);
    };
    const BAD: &str = "
        INSERT INTO sequences (words, state, cause, call_id, n_bad, n_good, at_ms)
        VALUES (?1, 'candidate', ?2, ?3, 1, 0, ?4)
        ON CONFLICT (words) DO UPDATE SET n_bad = n_bad + 1";
    let call = observed.call_id.to_string();
    connection
        .prepare_cached(BAD)?
        .execute(params![words, cause.label(), call, observed.at_ms])?;
    const LEARN: &str = "
        UPDATE sequences SET state = 'learned', cause = ?2, call_id = ?3, at_ms = ?4
        WHERE words = ?1 AND state = 'candidate' AND n_good = 0 AND n_bad >= ?5
        AND (SELECT count(*) FROM sequences WHERE state = 'learned') < ?6
        RETURNING id";
    let learned: Option<i64> = connection
        .prepare_cached(LEARN)?
        .query_row(
            params![
                words,
                cause.label(),
                call,
                observed.at_ms,
                observed.n_needed,
                LEARNED_MAX
            ],
            |row| row.get(0),
        )
        .optional()?;
    forget_candidates(connection)?;
    change(connection)?;
    Ok(learned)
}

fn forget_candidates(connection: &Connection) -> rusqlite::Result<()> {
    const SQL: &str = "
        DELETE FROM sequences WHERE id IN
        (SELECT id FROM sequences WHERE state = 'candidate' ORDER BY at_ms DESC, id DESC LIMIT -1 OFFSET ?1)";
    connection.prepare_cached(SQL)?.execute([CANDIDATES_MAX])?;
    Ok(())
}

/// Learns a sequence that a person revoked.
pub(super) fn revoke(
    connection: &Connection,
    words: &[String],
    call: CallId,
    at_ms: i64,
) -> rusqlite::Result<i64> {
    const SQL: &str = "
        INSERT INTO sequences (words, state, cause, call_id, n_bad, n_good, at_ms)
        VALUES (?1, 'learned', ?2, ?3, 1, 0, ?4)
        ON CONFLICT (words) DO UPDATE SET
            state = 'learned', cause = excluded.cause, call_id = excluded.call_id, at_ms = excluded.at_ms
        RETURNING id";
    let row = params![
        json(words)?,
        LearnedCause::Revoked.label(),
        call.to_string(),
        at_ms
    ];
    let id = connection
        .prepare_cached(SQL)?
        .query_row(row, |row| row.get(0))?;
    change(connection)?;
    Ok(id)
}

/// Lets a sequence happen; says whether it counted.
pub(super) fn forgive(connection: &Connection, id: i64, at_ms: i64) -> rusqlite::Result<bool> {
    const SQL: &str =
        "UPDATE sequences SET state = 'forgiven', at_ms = ?2 WHERE id = ?1 AND state = 'learned'";
    let n_rows = connection.prepare_cached(SQL)?.execute([id, at_ms])?;
    change(connection)?;
    Ok(n_rows > 0)
}

fn change(connection: &Connection) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE sequence_changes SET version = version + 1";
    connection.prepare_cached(SQL)?.execute([])?;
    Ok(())
}

/// Remembers a call, and forgets those before the last `n_calls`.
pub(super) fn remember(
    connection: &Connection,
    conversation: ConversationId,
    (call, words): (CallId, &str),
    n_calls: u32,
    at_ms: i64,
) -> rusqlite::Result<()> {
    const ADD: &str = "
        INSERT INTO conversation_calls (conversation_id, call_id, words) VALUES (?1, ?2, ?3)";
    const FORGET: &str = "
        DELETE FROM conversation_calls WHERE conversation_id = ?1 AND seq <=
        (SELECT seq FROM conversation_calls WHERE conversation_id = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)";
    touch(connection, conversation, at_ms, 0)?;
    let id = conversation.to_string();
    connection
        .prepare_cached(ADD)?
        .execute(params![id, call.to_string(), words])?;
    connection
        .prepare_cached(FORGET)?
        .execute(params![id, n_calls])?;
    Ok(())
}

/// What a conversation remembers.
pub(super) fn past(
    connection: &Connection,
    conversation: ConversationId,
    n_calls: u32,
) -> rusqlite::Result<ConversationPast> {
    const CALLS: &str = "
        SELECT call_id, words FROM conversation_calls WHERE conversation_id = ?1 ORDER BY seq DESC LIMIT ?2";
    const LABELS: &str = "
        SELECT output_id, kind, source, stamp FROM conversation_labels
        WHERE conversation_id = ?1 AND (output_id IS NOT NULL) = ?2 ORDER BY seq DESC LIMIT ?3";
    const RELEASES: &str = "
        SELECT destination, labels FROM conversation_releases
        WHERE conversation_id = ?1 ORDER BY destination";
    let id = conversation.to_string();
    let mut calls: Vec<(CallId, String)> = connection
        .prepare_cached(CALLS)?
        .query_map(params![id, n_calls], |row| {
            Ok((parsed(row, 0)?, row.get(1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    calls.reverse();
    let mut labels = Vec::new();
    for (of_outputs, n_labels) in [(true, OF_OUTPUTS_MAX), (false, HELD_MAX)] {
        let mut statement = connection.prepare_cached(LABELS)?;
        for row in statement.query_map(params![id, of_outputs, n_labels], label)? {
            labels.push(row?);
        }
    }
    labels.reverse();
    let releases = connection
        .prepare_cached(RELEASES)?
        .query_map([&id], release)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(ConversationPast {
        calls,
        labels,
        releases,
    })
}

/// Keeps labels, each once.
pub(super) fn keep_labels(
    connection: &Connection,
    conversation: ConversationId,
    output: Option<OverflowId>,
    labels: &[Label],
    at_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO conversation_labels (conversation_id, output_id, kind, source, stamp, at_ms)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS
        (SELECT 1 FROM conversation_labels
         WHERE conversation_id = ?1 AND output_id IS ?2 AND kind = ?3 AND source = ?4 AND stamp IS ?5)";
    touch(connection, conversation, at_ms, 0)?;
    let (id, output) = (conversation.to_string(), output.map(|id| id.to_string()));
    for label in labels {
        let mut statement = connection.prepare_cached(SQL)?;
        let kind = label.kind.label();
        statement.execute(params![id, output, kind, label.source, label.stamp, at_ms])?;
    }
    Ok(())
}

/// Keeps what was let go to a destination, and forgets the oldest releases of the conversation beyond the most there may be.
pub(super) fn keep_release(
    connection: &Connection,
    conversation: ConversationId,
    (destination, labels): (&str, &[Label]),
    at_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO conversation_releases (conversation_id, destination, labels, at_ms) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (conversation_id, destination) DO UPDATE SET labels = excluded.labels, at_ms = excluded.at_ms";
    const FORGET: &str = "
        DELETE FROM conversation_releases WHERE conversation_id = ?1 AND destination IN
        (SELECT destination FROM conversation_releases WHERE conversation_id = ?1
         ORDER BY at_ms DESC, destination LIMIT -1 OFFSET ?2)";
    touch(connection, conversation, at_ms, 0)?;
    let id = conversation.to_string();
    let labels = labels_as_json(labels);
    connection
        .prepare_cached(SQL)?
        .execute(params![id, destination, labels, at_ms])?;
    connection
        .prepare_cached(FORGET)?
        .execute(params![id, RELEASES_MAX])?;
    Ok(())
}

fn release(row: &Row<'_>) -> rusqlite::Result<(String, Vec<Label>)> {
    let labels: String = row.get(1)?;
    let labels = serde_json::from_str(&labels).map_err(|error| unreadable(1, error))?;
    Ok((row.get(0)?, labels))
}

fn label(row: &Row<'_>) -> rusqlite::Result<(Option<OverflowId>, Label)> {
    let output: Option<String> = row.get(0)?;
    let output = output.map(|_| parsed(row, 0)).transpose()?;
    let kind: String = row.get(1)?;
    let kind = LabelKind::of_label(&kind).ok_or_else(|| unknown(1, &kind))?;
    let label = Label {
        kind,
        source: row.get(2)?,
        stamp: row.get(3)?,
    };
    Ok((output, label))
}

fn sequence(row: &Row<'_>) -> rusqlite::Result<StoredSequence> {
    let (words, state, cause): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
    Ok(StoredSequence {
        id: row.get(0)?,
        words: serde_json::from_str(&words).map_err(|error| unreadable(1, error))?,
        state: SequenceState::of_label(&state).ok_or_else(|| unknown(2, &state))?,
        cause: LearnedCause::of_label(&cause).ok_or_else(|| unknown(3, &cause))?,
        call_id: parsed(row, 4)?,
        n_bad: row.get(5)?,
        n_good: row.get(6)?,
        at_ms: row.get(7)?,
    })
}

fn unknown(column: usize, label: &str) -> rusqlite::Error {
    let message = format!("`{label}` is not known");
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, message.into())
}

fn json(words: &[String]) -> rusqlite::Result<String> {
    serde_json::to_string(words)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
