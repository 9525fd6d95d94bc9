//! Sequences, and what conversations remember.

use tokio_postgres::Row;
use zeph_core::id::{CallId, ConversationId, OverflowId};
use zeph_core::policy::{Label, LabelKind, LearnedCause};

use super::conversation::touch;
use super::digest::digest;
use super::order;
use super::transaction::Transaction;
use super::value::{get, parsed, unreadable};
use crate::operations::Outcome;
use crate::sequences::{
    CANDIDATES_MAX, ConversationPast, HELD_MAX, LEARNED_MAX, OF_OUTPUTS_MAX, RELEASES_MAX,
    SequenceObservation, SequenceState, StoredSequence, labels_as_json,
};

/// The number that changes with every change.
pub(super) fn version(transaction: &Transaction) -> Outcome<i64> {
    get(
        &transaction.query_one("SELECT version FROM sequence_changes", &[])?,
        0,
    )
}

/// All sequences.
pub(super) fn all(transaction: &Transaction) -> Outcome<Vec<StoredSequence>> {
    const SQL: &str = "
        SELECT id, words, state, cause, call_id, n_bad, n_good, at_ms FROM sequences ORDER BY id";
    let rows = transaction.query(SQL, &[])?;
    rows.iter().map(sequence).collect()
}

/// Counts how a sequence ended; its number when that makes it a learned one.
pub(super) fn observe(
    transaction: &Transaction,
    observed: &SequenceObservation,
) -> Outcome<Option<i64>> {
    let words = json(&observed.words);
    let Some(cause) = observed.cause else {
        return good(transaction, &words).map(|()| None);
    };
    const BAD: &str = concat!(
        "INSERT INTO sequences AS s (words, state, cause, call_id, n_bad, n_good, at_ms)
        VALUES ($1, 'candidate', $2, $3, 1, 0, $4)
        ON CONFLICT (",
        digest!("words"),
        ") DO UPDATE SET n_bad = s.n_bad + 1"
    );
    const LEARN: &str = concat!(
        "UPDATE sequences SET state = 'learned', cause = $2, call_id = $3, at_ms = $4
        WHERE ",
        digest!("words"),
        " = ",
        digest!("$1::text"),
        " AND state = 'candidate' AND n_good = 0 AND n_bad >= $5
        AND (SELECT count(*) FROM sequences WHERE state = 'learned') < $6
        RETURNING id"
    );
    order::learned(transaction)?;
    let (cause, call) = (cause.label(), observed.call_id.to_string());
    transaction.execute(BAD, &[&words, &cause, &call, &observed.at_ms])?;
    let learned = transaction.query_opt(
        LEARN,
        &[
            &words,
            &cause,
            &call,
            &observed.at_ms,
            &i64::from(observed.n_needed),
            &i64::from(LEARNED_MAX),
        ],
    )?;
    forget_candidates(transaction)?;
    change(transaction)?;
    learned.map(|row| get(&row, 0)).transpose()
}

/// Counts that a sequence went well. Almost none of those that do ever went wrong: nothing is locked for them.
fn good(transaction: &Transaction, words: &str) -> Outcome<()> {
    const KNOWN: &str = concat!(
        "SELECT id FROM sequences WHERE ",
        digest!("words"),
        " = ",
        digest!("$1::text")
    );
    const GOOD: &str = "UPDATE sequences SET n_good = n_good + 1 WHERE id = $1";
    let Some(row) = transaction.query_opt(KNOWN, &[&words])? else {
        return Ok(());
    };
    order::learned(transaction)?;
    let id: i64 = get(&row, 0)?;
    transaction.execute(GOOD, &[&id]).map(drop)
}

fn forget_candidates(transaction: &Transaction) -> Outcome<()> {
    const SQL: &str = "
        DELETE FROM sequences WHERE id IN
        (SELECT id FROM sequences WHERE state = 'candidate' ORDER BY at_ms DESC, id DESC OFFSET $1)";
    transaction
        .execute(SQL, &[&i64::from(CANDIDATES_MAX)])
        .map(drop)
}

/// Learns a sequence that a person revoked.
pub(super) fn revoke(
    transaction: &Transaction,
    words: &[String],
    call: CallId,
    at_ms: i64,
) -> Outcome<i64> {
    const SQL: &str = concat!(
        "INSERT INTO sequences (words, state, cause, call_id, n_bad, n_good, at_ms)
        VALUES ($1, 'learned', $2, $3, 1, 0, $4)
        ON CONFLICT (",
        digest!("words"),
        ") DO UPDATE SET
            state = 'learned', cause = excluded.cause, call_id = excluded.call_id, at_ms = excluded.at_ms
        RETURNING id"
    );
    order::learned(transaction)?;
    let row = transaction.query_one(
        SQL,
        &[
            &json(words),
            &LearnedCause::Revoked.label(),
            &call.to_string(),
            &at_ms,
        ],
    )?;
    change(transaction)?;
    get(&row, 0)
}

/// Lets a sequence happen; says whether it counted.
pub(super) fn forgive(transaction: &Transaction, id: i64, at_ms: i64) -> Outcome<bool> {
    const SQL: &str =
        "UPDATE sequences SET state = 'forgiven', at_ms = $2 WHERE id = $1 AND state = 'learned'";
    order::learned(transaction)?;
    let n_rows = transaction.execute(SQL, &[&id, &at_ms])?;
    change(transaction)?;
    Ok(n_rows > 0)
}

fn change(transaction: &Transaction) -> Outcome<()> {
    transaction
        .execute("UPDATE sequence_changes SET version = version + 1", &[])
        .map(drop)
}

/// Remembers a call, and forgets those before the last `n_calls`.
pub(super) fn remember(
    transaction: &Transaction,
    conversation: ConversationId,
    (call, words): (CallId, &str),
    n_calls: u32,
    at_ms: i64,
) -> Outcome<()> {
    const ADD: &str = "
        INSERT INTO conversation_calls (conversation_id, call_id, words) VALUES ($1, $2, $3)";
    const FORGET: &str = "
        DELETE FROM conversation_calls WHERE conversation_id = $1 AND seq <=
        (SELECT seq FROM conversation_calls WHERE conversation_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
    // The row of the conversation is locked by it: calls of one are remembered one after the other.
    touch(transaction, conversation, at_ms, 0)?;
    let id = conversation.to_string();
    transaction.execute(ADD, &[&id, &call.to_string(), &words])?;
    transaction
        .execute(FORGET, &[&id, &i64::from(n_calls)])
        .map(drop)
}

/// What a conversation remembers.
pub(super) fn past(
    transaction: &Transaction,
    conversation: ConversationId,
    n_calls: u32,
) -> Outcome<ConversationPast> {
    const CALLS: &str = "
        SELECT call_id, words FROM conversation_calls WHERE conversation_id = $1 ORDER BY seq DESC LIMIT $2";
    const LABELS: &str = "
        SELECT output_id, kind, source, stamp FROM conversation_labels
        WHERE conversation_id = $1 AND (output_id IS NOT NULL) = $2 ORDER BY seq DESC LIMIT $3";
    const RELEASES: &str = "
        SELECT destination, labels FROM conversation_releases
        WHERE conversation_id = $1 ORDER BY destination";
    let id = conversation.to_string();
    let rows = transaction.query(CALLS, &[&id, &i64::from(n_calls)])?;
    let calls = rows.iter().rev();
    let calls = calls.map(|row| Ok((parsed(row, 0)?, get(row, 1)?)));
    let calls = calls.collect::<Outcome<_>>()?;
    let mut labels = Vec::new();
    for (of_outputs, n_labels) in [(true, OF_OUTPUTS_MAX), (false, HELD_MAX)] {
        let rows = transaction.query(LABELS, &[&id, &of_outputs, &i64::from(n_labels)])?;
        for row in &rows {
            labels.push(label(row)?);
        }
    }
    labels.reverse();
    let releases = transaction.query(RELEASES, &[&id])?;
    Ok(ConversationPast {
        calls,
        labels,
        releases: releases.iter().map(release).collect::<Outcome<_>>()?,
    })
}

/// Keeps labels, each once.
pub(super) fn keep_labels(
    transaction: &Transaction,
    conversation: ConversationId,
    output: Option<OverflowId>,
    labels: &[Label],
    at_ms: i64,
) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO conversation_labels (conversation_id, output_id, kind, source, stamp, at_ms)
        SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint WHERE NOT EXISTS
        (SELECT 1 FROM conversation_labels
         WHERE conversation_id = $1 AND output_id IS NOT DISTINCT FROM $2 AND kind = $3 AND source = $4
         AND stamp IS NOT DISTINCT FROM $5)";
    // It locks the row of the conversation, so that no other host keeps the same at the moment.
    touch(transaction, conversation, at_ms, 0)?;
    let (id, output) = (conversation.to_string(), output.map(|id| id.to_string()));
    for label in labels {
        transaction.execute(
            SQL,
            &[
                &id,
                &output,
                &label.kind.label(),
                &label.source,
                &label.stamp,
                &at_ms,
            ],
        )?;
    }
    Ok(())
}

/// Keeps what was let go to a destination, and forgets the oldest releases of the conversation beyond the most there may be.
pub(super) fn keep_release(
    transaction: &Transaction,
    conversation: ConversationId,
    (destination, labels): (&str, &[Label]),
    at_ms: i64,
) -> Outcome<()> {
    const SQL: &str = concat!(
        "INSERT INTO conversation_releases (conversation_id, destination, labels, at_ms) VALUES ($1, $2, $3, $4)
        ON CONFLICT (conversation_id, ",
        digest!("destination"),
        ") DO UPDATE SET labels = excluded.labels, at_ms = excluded.at_ms"
    );
    const FORGET: &str = "
        DELETE FROM conversation_releases WHERE conversation_id = $1 AND destination IN
        (SELECT destination FROM conversation_releases WHERE conversation_id = $1
         ORDER BY at_ms DESC, destination OFFSET $2)";
    touch(transaction, conversation, at_ms, 0)?;
    let id = conversation.to_string();
    let labels = labels_as_json(labels);
    transaction.execute(SQL, &[&id, &destination, &labels, &at_ms])?;
    transaction
        .execute(FORGET, &[&id, &i64::from(RELEASES_MAX)])
        .map(drop)
}

fn release(row: &Row) -> Outcome<(String, Vec<Label>)> {
    let labels: &str = get(row, 1)?;
    let labels = serde_json::from_str(labels).map_err(|error| unreadable(1, error))?;
    Ok((get(row, 0)?, labels))
}

fn label(row: &Row) -> Outcome<(Option<OverflowId>, Label)> {
    let output: Option<&str> = get(row, 0)?;
    let output = output.map(|_| parsed(row, 0)).transpose()?;
    let kind: &str = get(row, 1)?;
    let kind = LabelKind::of_label(kind).ok_or_else(|| unknown(1, kind))?;
    let label = Label {
        kind,
        source: get(row, 2)?,
        stamp: get(row, 3)?,
    };
    Ok((output, label))
}

fn sequence(row: &Row) -> Outcome<StoredSequence> {
    let (words, state, cause): (&str, &str, &str) = (get(row, 1)?, get(row, 2)?, get(row, 3)?);
    let number = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(StoredSequence {
        id: get(row, 0)?,
        words: serde_json::from_str(words).map_err(|error| unreadable(1, error))?,
        state: SequenceState::of_label(state).ok_or_else(|| unknown(2, state))?,
        cause: LearnedCause::of_label(cause).ok_or_else(|| unknown(3, cause))?,
        call_id: parsed(row, 4)?,
        n_bad: number(get(row, 5)?),
        n_good: number(get(row, 6)?),
        at_ms: get(row, 7)?,
    })
}

fn unknown(column: usize, label: &str) -> crate::operations::OperationFault {
    unreadable(column, format!("`{label}` is not known"))
}

fn json(words: &[String]) -> String {
    serde_json::to_string(words).unwrap_or_default()
}
