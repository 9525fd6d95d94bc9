//! The sums of what shortening outputs saved, in SQL.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use zeph_core::id::{ConversationId, OverflowId};

use super::conversation::touch;
use crate::savings::{
    ALL_OUTPUTS, AskedCalls, CacheSavings, FilteredOutput, NO_CONVERSATION, Savings, asked_sums,
};

/// Adds one output to the sums.
pub(super) fn count_filtered(
    connection: &Connection,
    conversation: ConversationId,
    output: &FilteredOutput,
    at_ms: i64,
) -> rusqlite::Result<()> {
    touch(connection, conversation, at_ms, 0)?;
    let rules = output.rules.iter().map(String::as_str);
    let id = conversation.to_string();
    std::iter::once(ALL_OUTPUTS)
        .chain(rules)
        .try_for_each(|rule| add(connection, &id, &Savings::of_output(rule, output)))
}

/// Counts that an output was read, the first time.
pub(super) fn count_read_back(
    connection: &Connection,
    conversation: ConversationId,
    id: OverflowId,
) -> rusqlite::Result<()> {
    const TAKE: &str = "
        UPDATE tool_overflow SET is_read_back = 1
        WHERE id = ?1 AND conversation_id = ?2 AND filter_rules IS NOT NULL AND is_read_back = 0
        RETURNING filter_rules";
    let key = [id.to_string(), conversation.to_string()];
    let rules: Option<String> = connection
        .prepare_cached(TAKE)?
        .query_row(key, |row| row.get(0))
        .optional()?;
    let Some(rules) = rules else { return Ok(()) };
    // What another program wrote there counts for no rule.
    let rules: Vec<String> = serde_json::from_str(&rules).unwrap_or_default();
    for rule in std::iter::once(ALL_OUTPUTS).chain(rules.iter().map(String::as_str)) {
        let one = Savings {
            rule: rule.to_owned(),
            n_read_back: 1,
            ..Savings::default()
        };
        add(connection, &conversation.to_string(), &one)?;
    }
    Ok(())
}

/// The sums of one conversation or of all.
pub(super) fn sums(
    connection: &Connection,
    conversation: Option<ConversationId>,
) -> rusqlite::Result<Vec<Savings>> {
    const SQL: &str = "
        SELECT rule, sum(n_outputs), sum(n_shortened), sum(lines_before), sum(lines_after), sum(bytes_before),
            sum(bytes_after), sum(n_full), sum(n_partial), sum(n_fallback), sum(n_read_back)
        FROM filter_savings WHERE ?1 IS NULL OR conversation_id = ?1
        GROUP BY rule ORDER BY rule";
    let conversation = conversation.map(|id| id.to_string());
    connection
        .prepare_cached(SQL)?
        .query_map([&conversation], savings_of)?
        .collect()
}

/// The calls that were answered from an earlier one.
pub(super) fn of_cache(
    connection: &Connection,
    conversation: Option<ConversationId>,
) -> rusqlite::Result<CacheSavings> {
    const SQL: &str = "
        SELECT count(*), coalesce(sum(cache_bytes), 0)
        FROM audit WHERE cache_age_ms IS NOT NULL AND (?1 IS NULL OR conversation_id = ?1)";
    let conversation = conversation.map(|id| id.to_string());
    let savings = |row: &Row<'_>| {
        Ok(CacheSavings {
            n_hits: row.get(0)?,
            bytes: row.get(1)?,
        })
    };
    connection
        .prepare_cached(SQL)?
        .query_row([&conversation], savings)
}

/// How often calls needed a person.
pub(super) fn asked(
    connection: &Connection,
    conversation: Option<ConversationId>,
) -> rusqlite::Result<AskedCalls> {
    const SQL: &str = concat!(
        "SELECT ",
        asked_sums!(),
        " AND (?1 IS NULL OR conversation_id = ?1)"
    );
    let conversation = conversation.map(|id| id.to_string());
    let asked = |row: &Row<'_>| {
        Ok(AskedCalls {
            n_calls: row.get(0)?,
            n_asked: row.get(1)?,
            n_unanswered: row.get(2)?,
        })
    };
    connection
        .prepare_cached(SQL)?
        .query_row([&conversation], asked)
}

/// Lets the sums of a conversation that goes go on under none.
pub(super) fn fold(connection: &Connection, conversation: &str) -> rusqlite::Result<()> {
    const GONE: &str = "
        DELETE FROM filter_savings WHERE conversation_id = ?1
        RETURNING rule, n_outputs, n_shortened, lines_before, lines_after, bytes_before, bytes_after, n_full,
            n_partial, n_fallback, n_read_back";
    let gone: Vec<Savings> = connection
        .prepare_cached(GONE)?
        .query_map([conversation], savings_of)?
        .collect::<rusqlite::Result<_>>()?;
    gone.iter()
        .try_for_each(|row| add(connection, NO_CONVERSATION, row))
}

fn add(connection: &Connection, conversation: &str, row: &Savings) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO filter_savings VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        ON CONFLICT DO UPDATE SET
            n_outputs = n_outputs + excluded.n_outputs,
            n_shortened = n_shortened + excluded.n_shortened,
            lines_before = lines_before + excluded.lines_before,
            lines_after = lines_after + excluded.lines_after,
            bytes_before = bytes_before + excluded.bytes_before,
            bytes_after = bytes_after + excluded.bytes_after,
            n_full = n_full + excluded.n_full,
            n_partial = n_partial + excluded.n_partial,
            n_fallback = n_fallback + excluded.n_fallback,
            n_read_back = n_read_back + excluded.n_read_back";
    // SQLite counts up to 2^63: more bytes than any machine prints.
    let numbers = row.numbers().map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    let [a, b, c, d, e, f, g, h, i, j] = numbers;
    connection.prepare_cached(SQL)?.execute(params![
        conversation,
        row.rule,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j
    ])?;
    Ok(())
}

fn savings_of(row: &Row<'_>) -> rusqlite::Result<Savings> {
    let number = |idx: usize| -> rusqlite::Result<u64> {
        let n: i64 = row.get(idx)?;
        Ok(u64::try_from(n).unwrap_or(0))
    };
    Ok(Savings {
        rule: row.get(0)?,
        n_outputs: number(1)?,
        n_shortened: number(2)?,
        lines_before: number(3)?,
        lines_after: number(4)?,
        bytes_before: number(5)?,
        bytes_after: number(6)?,
        n_full: number(7)?,
        n_partial: number(8)?,
        n_fallback: number(9)?,
        n_read_back: number(10)?,
    })
}
