//! Short outputs that one transaction stores for several callers: written together, with one journey to the server for all of them.

use crate::operations::{NewOutput, Outcome};
use crate::postgres::conversation::last_used;
use crate::postgres::fault::Trouble;
use crate::postgres::transaction::{Statement, Transaction};

/// Longest output that is kept until others are written, too. Longer ones are not copied once more.
pub(super) const SHORT_BYTES_MAX: usize = 16 * 1024;

/// Outputs that are not written yet, in order, column by column.
#[derive(Default)]
pub(in crate::postgres) struct PendingOutputs {
    ids: Vec<String>,
    conversations: Vec<String>,
    times: Vec<i64>,
    contents: Vec<Vec<u8>>,
    rules: Vec<Option<String>>,
}

impl PendingOutputs {
    pub(super) fn push(&mut self, output: &NewOutput<'_>) {
        self.ids.push(output.id.to_string());
        self.conversations.push(output.conversation.to_string());
        self.times.push(output.at_ms);
        self.contents.push(output.content.to_vec());
        self.rules.push(output.rules.map(str::to_owned));
    }
}

/// Writes what is pending. Where that fails, each job has to run alone, so that only the culprit fails.
pub(in crate::postgres) fn write(transaction: &Transaction) -> Outcome<()> {
    const TOUCH: &str = concat!(
        "INSERT INTO conversations AS c (id, started_at_ms, last_used_ms, n_calls)
         SELECT id, min(at_ms), max(at_ms), 0 FROM unnest($1::text[], $2::bigint[]) AS used (id, at_ms)
         GROUP BY id ORDER BY id
         ON CONFLICT (id) DO UPDATE SET last_used_ms = ",
        last_used!()
    );
    const INSERT: &str = "
        INSERT INTO tool_overflow (id, conversation_id, created_at_ms, n_bytes, content, filter_rules)
        SELECT id, conversation, at_ms, octet_length(content), content, rules
        FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[], $5::text[]) WITH ORDINALITY
            AS new (id, conversation, at_ms, content, rules, place)
        ORDER BY place";
    let PendingOutputs {
        ids,
        conversations,
        times,
        contents,
        rules,
    } = transaction.pending_outputs.take();
    if ids.is_empty() {
        return Ok(());
    }
    let statements: [Statement<'_>; 2] = [
        (TOUCH, &[&conversations, &times]),
        (INSERT, &[&ids, &conversations, &times, &contents, &rules]),
    ];
    let written = transaction.query_all(&statements);
    written.map(drop).inspect_err(|_| {
        if transaction.trouble() == Some(Trouble::Final) {
            transaction.run_apart();
        }
    })
}
