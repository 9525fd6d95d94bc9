//! What shortening outputs saved, summed by conversation and rule.
//!
//! Sums outlive their conversation: when it is swept they go on under none. Writing them never makes a call wait.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use zeph_core::id::{ConversationId, OverflowId};

use crate::conversation::touch;
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Access;

/// The name under which all outputs are summed. No rule has an empty name.
const ALL: &str = "";

/// The conversation of sums whose own is gone.
const NO_CONVERSATION: &str = "";

/// Sums over outputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Savings {
    /// The rule that worked; empty for the sums over all outputs, where one that several rules worked on counts once.
    pub rule: String,
    /// Outputs it was tried on.
    pub n_outputs: u64,
    /// Outputs that were shortened.
    pub n_shortened: u64,
    /// Lines as the commands printed them.
    pub lines_before: u64,
    /// Lines that were shown.
    pub lines_after: u64,
    /// Bytes as the commands printed them.
    pub bytes_before: u64,
    /// Bytes that were shown.
    pub bytes_after: u64,
    /// Outputs that were as expected.
    pub n_full: u64,
    /// Outputs that were handled by a guess.
    pub n_partial: u64,
    /// Outputs that were not as expected.
    pub n_fallback: u64,
    /// Shortened outputs whose whole was read back.
    pub n_read_back: u64,
}

/// One output that rules were tried on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredOutput {
    /// The rules, in order.
    pub rules: Vec<String>,
    /// Whether it was shortened.
    pub is_shortened: bool,
    /// Lines before and after.
    pub lines: (u64, u64),
    /// Bytes before and after.
    pub bytes: (u64, u64),
    /// How sure the rules were.
    pub fit: Fit,
}

/// How well an output fitted its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// As expected.
    Full,
    /// By a guess.
    Partial,
    /// Not as expected.
    Fallback,
}

impl Store {
    /// Adds one output to the sums. Returns at once; when too much waits to be written it is omitted.
    pub fn count_filtered(&self, conversation: ConversationId, output: FilteredOutput, at_ms: i64) {
        let work = move |connection: &Connection| {
            touch(connection, conversation, at_ms, 0)?;
            let rules = output.rules.iter().map(String::as_str);
            for rule in std::iter::once(ALL).chain(rules) {
                add(
                    connection,
                    &conversation.to_string(),
                    &row_of(rule, &output),
                )?;
            }
            Ok(())
        };
        self.queue_and_go("count a shortened output", work);
    }

    /// Stores the full text of an output that `rules` shortened, as [`Store::put_overflow`] does.
    pub async fn put_filtered(
        &self,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        rules: Vec<String>,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        let rules = serde_json::Value::from(rules).to_string();
        self.put(conversation, content, Some(rules), at_ms).await
    }

    /// Counts that a stored output was read, once for each output that rules shortened. Returns at once.
    pub fn count_read_back(&self, conversation: ConversationId, id: OverflowId) {
        const TAKE: &str = "
            UPDATE tool_overflow SET is_read_back = 1
            WHERE id = ?1 AND conversation_id = ?2 AND filter_rules IS NOT NULL AND is_read_back = 0
            RETURNING filter_rules";
        let work = move |connection: &Connection| {
            let key = [id.to_string(), conversation.to_string()];
            let rules: Option<String> = connection
                .prepare_cached(TAKE)?
                .query_row(key, |row| row.get(0))
                .optional()?;
            let Some(rules) = rules else { return Ok(()) };
            // What another program wrote there counts for no rule.
            let rules: Vec<String> = serde_json::from_str(&rules).unwrap_or_default();
            for rule in std::iter::once(ALL).chain(rules.iter().map(String::as_str)) {
                let one = Savings {
                    rule: rule.to_owned(),
                    n_read_back: 1,
                    ..Savings::default()
                };
                add(connection, &conversation.to_string(), &one)?;
            }
            Ok(())
        };
        self.queue_and_go("count an output that was read back", work);
    }

    /// The sums of one conversation or of all, that over all outputs first, then by name.
    pub async fn savings(
        &self,
        conversation: Option<ConversationId>,
    ) -> Result<Vec<Savings>, StoreError> {
        const SQL: &str = "
            SELECT rule, sum(n_outputs), sum(n_shortened), sum(lines_before), sum(lines_after), sum(bytes_before),
                sum(bytes_after), sum(n_full), sum(n_partial), sum(n_fallback), sum(n_read_back)
            FROM filter_savings WHERE ?1 IS NULL OR conversation_id = ?1
            GROUP BY rule ORDER BY rule";
        let conversation = conversation.map(|id| id.to_string());
        let work = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(SQL)?;
            let rows = statement.query_map([&conversation], savings_of)?;
            rows.collect()
        };
        self.run("read what was saved", Access::Read, work).await
    }

    /// Lets the sums of conversations that are gone go on under none.
    pub(crate) async fn fold_savings(&self) -> Result<(), StoreError> {
        const GONE: &str =
            "conversation_id <> '' AND conversation_id NOT IN (SELECT id FROM conversations)";
        let work = move |connection: &Connection| {
            let gone: Vec<Savings> = {
                let sql = format!(
                    "SELECT rule, n_outputs, n_shortened, lines_before, lines_after, bytes_before, bytes_after, n_full,
                        n_partial, n_fallback, n_read_back FROM filter_savings WHERE {GONE}"
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let rows = statement.query_map([], savings_of)?;
                rows.collect::<rusqlite::Result<_>>()?
            };
            for row in &gone {
                add(connection, NO_CONVERSATION, row)?;
            }
            if !gone.is_empty() {
                let sql = format!("DELETE FROM filter_savings WHERE {GONE}");
                connection.prepare_cached(&sql)?.execute([])?;
            }
            Ok(())
        };
        self.run("fold what was saved", Access::Write, work).await
    }
}

fn row_of(rule: &str, output: &FilteredOutput) -> Savings {
    let FilteredOutput {
        rules: _,
        is_shortened,
        lines,
        bytes,
        fit,
    } = output;
    let one_if = u64::from;
    Savings {
        rule: rule.to_owned(),
        n_outputs: 1,
        n_shortened: one_if(*is_shortened),
        lines_before: lines.0,
        lines_after: lines.1,
        bytes_before: bytes.0,
        bytes_after: bytes.1,
        n_full: one_if(*fit == Fit::Full),
        n_partial: one_if(*fit == Fit::Partial),
        n_fallback: one_if(*fit == Fit::Fallback),
        n_read_back: 0,
    }
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
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let Savings {
        rule,
        n_outputs,
        n_shortened,
        lines_before,
        lines_after,
        bytes_before,
        bytes_after,
        n_full,
        n_partial,
        n_fallback,
        n_read_back,
    } = row;
    connection.prepare_cached(SQL)?.execute(params![
        conversation,
        rule,
        number(*n_outputs),
        number(*n_shortened),
        number(*lines_before),
        number(*lines_after),
        number(*bytes_before),
        number(*bytes_after),
        number(*n_full),
        number(*n_partial),
        number(*n_fallback),
        number(*n_read_back),
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
