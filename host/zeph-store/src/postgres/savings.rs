//! The sums of what shortening outputs saved.

use tokio_postgres::Row;
use zeph_core::id::{ConversationId, OverflowId};

use super::conversation::touch;
use super::transaction::Transaction;
use super::value::{count, get};
use crate::operations::Outcome;
use crate::savings::{
    ALL_OUTPUTS, AskedCalls, CacheSavings, FilteredOutput, NO_CONVERSATION, Savings, asked_sums,
};

/// Adds one output to the sums.
pub(super) fn count_filtered(
    transaction: &Transaction,
    conversation: ConversationId,
    output: &FilteredOutput,
    at_ms: i64,
) -> Outcome<()> {
    touch(transaction, conversation, at_ms, 0)?;
    let id = conversation.to_string();
    let rules = output.rules.iter().map(String::as_str);
    sorted(rules).try_for_each(|rule| add(transaction, &id, &Savings::of_output(rule, output)))
}

/// Counts that an output was read, the first time.
pub(super) fn count_read_back(
    transaction: &Transaction,
    conversation: ConversationId,
    id: OverflowId,
) -> Outcome<()> {
    const TAKE: &str = "
        UPDATE tool_overflow SET is_read_back = TRUE
        WHERE id = $1 AND conversation_id = $2 AND filter_rules IS NOT NULL AND NOT is_read_back
        RETURNING filter_rules";
    let conversation = conversation.to_string();
    let taken = transaction.query_opt(TAKE, &[&id.to_string(), &conversation])?;
    let Some(row) = taken else { return Ok(()) };
    // What another program wrote there counts for no rule.
    let rules: Vec<String> = serde_json::from_str(get(&row, 0)?).unwrap_or_default();
    sorted(rules.iter().map(String::as_str)).try_for_each(|rule| {
        let one = Savings {
            rule: rule.to_owned(),
            n_read_back: 1,
            ..Savings::default()
        };
        add(transaction, &conversation, &one)
    })
}

/// The sums of one conversation or of all.
pub(super) fn sums(
    transaction: &Transaction,
    conversation: Option<ConversationId>,
) -> Outcome<Vec<Savings>> {
    const SQL: &str = r#"
        SELECT rule, sum(n_outputs)::bigint, sum(n_shortened)::bigint, sum(lines_before)::bigint, sum(lines_after)::bigint,
            sum(bytes_before)::bigint, sum(bytes_after)::bigint, sum(n_full)::bigint, sum(n_partial)::bigint,
            sum(n_fallback)::bigint, sum(n_read_back)::bigint
        FROM filter_savings WHERE $1::text IS NULL OR conversation_id = $1
        GROUP BY rule ORDER BY rule COLLATE "C""#;
    let conversation = conversation.map(|id| id.to_string());
    let rows = transaction.query(SQL, &[&conversation])?;
    rows.iter().map(savings_of).collect()
}

/// The calls that were answered from an earlier one.
pub(super) fn of_cache(
    transaction: &Transaction,
    conversation: Option<ConversationId>,
) -> Outcome<CacheSavings> {
    const SQL: &str = "
        SELECT count(*), coalesce(sum(cache_bytes), 0)::bigint
        FROM audit WHERE cache_age_ms IS NOT NULL AND ($1::text IS NULL OR conversation_id = $1)";
    let conversation = conversation.map(|id| id.to_string());
    let row = transaction.query_one(SQL, &[&conversation])?;
    Ok(CacheSavings {
        n_hits: count(&row, 0)?,
        bytes: count(&row, 1)?,
    })
}

/// How often calls needed a person.
pub(super) fn asked(
    transaction: &Transaction,
    conversation: Option<ConversationId>,
) -> Outcome<AskedCalls> {
    const SQL: &str = concat!(
        "SELECT ",
        asked_sums!(),
        " AND ($1::text IS NULL OR conversation_id = $1)"
    );
    let conversation = conversation.map(|id| id.to_string());
    let row = transaction.query_one(SQL, &[&conversation])?;
    Ok(AskedCalls {
        n_calls: count(&row, 0)?,
        n_asked: count(&row, 1)?,
        n_unanswered: count(&row, 2)?,
    })
}

/// Lets the sums of a conversation that goes go on under none.
pub(super) fn fold(transaction: &Transaction, conversation: &str) -> Outcome<()> {
    const GONE: &str = "
        DELETE FROM filter_savings WHERE conversation_id = $1
        RETURNING rule, n_outputs, n_shortened, lines_before, lines_after, bytes_before, bytes_after, n_full,
            n_partial, n_fallback, n_read_back";
    let rows = transaction.query(GONE, &[&conversation])?;
    let mut gone: Vec<Savings> = rows.iter().map(savings_of).collect::<Outcome<_>>()?;
    gone.sort_unstable_by(|a, b| a.rule.cmp(&b.rule));
    gone.iter()
        .try_for_each(|row| add(transaction, NO_CONVERSATION, row))
}

/// The rules of one output with the one over all, in the order in which everybody takes their rows.
fn sorted<'a>(rules: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let mut rules: Vec<&str> = std::iter::once(ALL_OUTPUTS).chain(rules).collect();
    rules.sort_unstable();
    rules.into_iter()
}

fn add(transaction: &Transaction, conversation: &str, row: &Savings) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO filter_savings AS s (conversation_id, rule, n_outputs, n_shortened, lines_before, lines_after, bytes_before,
            bytes_after, n_full, n_partial, n_fallback, n_read_back)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (conversation_id, rule) DO UPDATE SET
            n_outputs = s.n_outputs + excluded.n_outputs,
            n_shortened = s.n_shortened + excluded.n_shortened,
            lines_before = s.lines_before + excluded.lines_before,
            lines_after = s.lines_after + excluded.lines_after,
            bytes_before = s.bytes_before + excluded.bytes_before,
            bytes_after = s.bytes_after + excluded.bytes_after,
            n_full = s.n_full + excluded.n_full,
            n_partial = s.n_partial + excluded.n_partial,
            n_fallback = s.n_fallback + excluded.n_fallback,
            n_read_back = s.n_read_back + excluded.n_read_back";
    // The database counts up to 2^63: more bytes than any machine prints.
    let numbers = row.numbers().map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    let [a, b, c, d, e, f, g, h, i, j] = &numbers;
    let added = transaction.execute(
        SQL,
        &[&conversation, &row.rule, a, b, c, d, e, f, g, h, i, j],
    );
    added.map(drop)
}

fn savings_of(row: &Row) -> Outcome<Savings> {
    Ok(Savings {
        rule: get(row, 0)?,
        n_outputs: count(row, 1)?,
        n_shortened: count(row, 2)?,
        lines_before: count(row, 3)?,
        lines_after: count(row, 4)?,
        bytes_before: count(row, 5)?,
        bytes_after: count(row, 6)?,
        n_full: count(row, 7)?,
        n_partial: count(row, 8)?,
        n_fallback: count(row, 9)?,
        n_read_back: count(row, 10)?,
    })
}
