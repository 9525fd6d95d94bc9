//! Stored outputs.

use zeph_core::id::{ConversationId, OverflowId};

use super::conversation::TOUCH;
use super::transaction::Transaction;
use super::value::{count, get, parsed};
use crate::operations::{NewOutput, Outcome};
use crate::overflow::StoredOutput;

pub(super) mod pending;

/// Most bytes of an output in one row. A row is copied several times on its way; what goes beyond is in rows of its own.
const PART_BYTES: usize = 1 << 20;

/// Stores an output: a short one together with those of other jobs of the transaction.
pub(super) fn put(transaction: &Transaction, output: &NewOutput<'_>) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO tool_overflow (id, conversation_id, created_at_ms, n_bytes, content, filter_rules)
        VALUES ($1, $2, $3, $4, $5, $6)";
    if transaction.is_together() && output.content.len() <= pending::SHORT_BYTES_MAX {
        transaction.pending_outputs.borrow_mut().push(output);
        return Ok(());
    }
    let NewOutput {
        id,
        conversation,
        content,
        rules,
        at_ms,
    } = *output;
    let (first, rest) = content.split_at(content.len().min(PART_BYTES));
    let n_bytes = i64::try_from(content.len()).unwrap_or(i64::MAX);
    let (id, conversation) = (id.to_string(), conversation.to_string());
    transaction.query_all(&[
        (TOUCH, &[&conversation, &at_ms, &0_i64]),
        (SQL, &[&id, &conversation, &at_ms, &n_bytes, &first, &rules]),
    ])?;
    insert_parts(transaction, &id, rest)
}

/// Reads an output of this conversation.
pub(super) fn read(
    transaction: &Transaction,
    conversation: ConversationId,
    id: OverflowId,
) -> Outcome<Option<Vec<u8>>> {
    const SQL: &str = "
        SELECT content, n_bytes FROM tool_overflow WHERE id = $1 AND conversation_id = $2";
    let id = id.to_string();
    let first = transaction.query_opt(SQL, &[&id, &conversation.to_string()])?;
    let Some(first) = first else {
        return Ok(None);
    };
    let mut content: Vec<u8> = get(&first, 0)?;
    let n_bytes = usize::try_from(count(&first, 1)?).unwrap_or(usize::MAX);
    if n_bytes > content.len() {
        append_parts(transaction, &id, &mut content)?;
    }
    // It was being swept meanwhile.
    Ok((content.len() == n_bytes).then_some(content))
}

/// The outputs of a conversation, newest first.
pub(super) fn listed(
    transaction: &Transaction,
    conversation: ConversationId,
    limit: u32,
) -> Outcome<Vec<StoredOutput>> {
    const SQL: &str = "
        SELECT id, n_bytes, created_at_ms FROM tool_overflow
        WHERE conversation_id = $1 ORDER BY created_at_ms DESC, seq DESC LIMIT $2";
    let rows = transaction.query(SQL, &[&conversation.to_string(), &i64::from(limit)])?;
    let outputs = rows.iter().map(|row| {
        Ok(StoredOutput {
            id: parsed(row, 0)?,
            n_bytes: count(row, 1)?,
            at_ms: get(row, 2)?,
        })
    });
    outputs.collect()
}

/// Deletes old outputs with their parts. Says how many parts and how many outputs.
///
/// Unlike a page of SQLite, a long row costs the writer nothing here: the server frees it later.
pub(super) fn sweep(
    transaction: &Transaction,
    before_ms: i64,
    n_max: u32,
) -> Outcome<(usize, usize)> {
    const SQL: &str = "
        DELETE FROM tool_overflow WHERE id IN
            (SELECT id FROM tool_overflow WHERE created_at_ms < $1 ORDER BY created_at_ms LIMIT $2
             FOR UPDATE SKIP LOCKED)";
    let n_outputs = transaction.execute(SQL, &[&before_ms, &i64::from(n_max)])?;
    Ok((0, usize::try_from(n_outputs).unwrap_or(usize::MAX)))
}

/// Stores what follows the first part of an output.
fn insert_parts(transaction: &Transaction, id: &str, rest: &[u8]) -> Outcome<()> {
    const SQL: &str =
        "INSERT INTO tool_overflow_parts (overflow_id, part, content) VALUES ($1, $2, $3)";
    for (part, number) in rest.chunks(PART_BYTES).zip(1_i64..) {
        transaction.execute(SQL, &[&id, &number, &part])?;
    }
    Ok(())
}

/// Reads what follows the first part of an output, a part at a time.
fn append_parts(transaction: &Transaction, id: &str, content: &mut Vec<u8>) -> Outcome<()> {
    const SQL: &str =
        "SELECT content FROM tool_overflow_parts WHERE overflow_id = $1 AND part = $2";
    for number in 1_i64.. {
        let Some(row) = transaction.query_opt(SQL, &[&id, &number])? else {
            break;
        };
        content.extend_from_slice(get(&row, 0)?);
    }
    Ok(())
}
