//! Begins and ends of calls that one transaction records: written together at its end, or before its next statement, with one journey to the
//! server for all of them.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use zeph_core::id::CallId;

use crate::audit::chain::EventKind;
use crate::audit::columns::{
    FIRST_OF_END, N_BEGIN, begin_columns, begin_values, end_columns, end_values,
};
use crate::audit::record::{BeginRecord, Finish};
use crate::audit::seal::{NewEvent, SealedAudit as _};
use crate::audit::value::{Value, record_bytes};
use crate::operations::Outcome;
use crate::postgres::transaction::{Statement, Transaction};
use crate::postgres::value::{get, storable};

/// What is not written yet, in order.
pub(in crate::postgres) type PendingCalls = Vec<PendingCall>;

/// A begin or an end, as it will be stored.
pub(in crate::postgres) struct PendingCall {
    kind: EventKind,
    call: CallId,
    /// The call as it is stored.
    id: String,
    values: Vec<Value<'static>>,
}

impl PendingCall {
    pub(super) fn begin(begin: &BeginRecord) -> Self {
        Self {
            kind: EventKind::Begin,
            call: begin.call_id,
            id: begin.call_id.to_string(),
            values: begin_values(begin).map(stored).into(),
        }
    }

    pub(super) fn end(finish: &Finish) -> Self {
        Self {
            kind: EventKind::Finish,
            call: finish.call_id,
            id: finish.call_id.to_string(),
            values: end_values(finish).map(stored).into(),
        }
    }

    fn is_begin(&self) -> bool {
        self.kind == EventKind::Begin
    }

    /// What its tag is made over.
    fn record(&self) -> Vec<u8> {
        let first = if self.is_begin() { 0 } else { FIRST_OF_END };
        record_bytes(first, &self.values)
    }
}

/// Writes what is pending, with its events; false when the row of a begin is there already, or that of an end is not.
pub(in crate::postgres) fn write(transaction: &Transaction) -> Outcome<bool> {
    let pending = transaction.pending.take();
    if pending.is_empty() {
        return Ok(true);
    }
    let begins = BeginColumns::of(&pending, transaction.next_event()?);
    let ends: Vec<&PendingCall> = pending.iter().filter(|call| !call.is_begin()).collect();
    let host = transaction.host();
    let begin_row = begins.row(&host);
    let end_rows: Vec<_> = ends.iter().map(|call| end_row(call)).collect();
    let inserts = (!begins.is_empty()).then_some((INSERT, begin_row.as_slice()));
    let updates = end_rows.iter().map(|row| (UPDATE, row.as_slice()));
    let statements: Vec<Statement<'_>> = inserts.into_iter().chain(updates).collect();
    let mut answers = transaction.query_all(&statements)?.into_iter();
    let mut begun = match begins.is_empty() {
        true => HashMap::new(),
        false => seqs(&answers.next().unwrap_or_default())?,
    };
    let mut are_all = true;
    for call in &pending {
        let row = match call.is_begin() {
            // A row answers for one of them.
            true => begun.remove(&call.id).map(|seq| (seq, None)),
            false => ended(&answers.next().unwrap_or_default())?,
        };
        match row {
            Some(row) => append(transaction, call, row)?,
            None => are_all = false,
        }
    }
    Ok(are_all)
}

/// Adds the event of what was written: of its row, and for an end of the event of its begin.
fn append(
    transaction: &Transaction,
    call: &PendingCall,
    (seq, begun): (i64, Option<i64>),
) -> Outcome<()> {
    let event = NewEvent {
        kind: call.kind,
        call: call.call,
        seq,
        begun,
        record: &call.record(),
    };
    transaction.append(&event).map(drop)
}

fn seqs(rows: &[Row]) -> Outcome<HashMap<String, i64>> {
    let rows = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    rows.collect()
}

fn ended(rows: &[Row]) -> Outcome<Option<(i64, Option<i64>)>> {
    let row = rows.first().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    row.transpose()
}

/// Adds the rows of calls, and marks their conversations as used. A row that is there already stays as it is.
const INSERT: &str = concat!(
    "WITH recorded AS (INSERT INTO audit (host, chain_n, ",
    begin_columns!(),
    ")
     SELECT $1::text, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::text[], $17::text[],
        $18::text[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::text[],
        $27::text[], $28::bigint[], $29::bigint[], $30::boolean[])
     ON CONFLICT (call_id) DO NOTHING RETURNING seq, call_id, conversation_id, begun_at_ms),
     used AS (INSERT INTO conversations AS c (id, started_at_ms, last_used_ms, n_calls)
         SELECT conversation_id, min(begun_at_ms), max(begun_at_ms), count(*) FROM recorded
         GROUP BY conversation_id ORDER BY conversation_id
         ON CONFLICT (id) DO UPDATE
         SET last_used_ms = greatest(c.last_used_ms, excluded.last_used_ms), n_calls = c.n_calls + excluded.n_calls)
     SELECT call_id, seq FROM recorded"
);

/// Completes the row of a call. One row a statement: over many at once, the server may plan to read the whole table.
const UPDATE: &str = concat!(
    "UPDATE audit SET (",
    end_columns!(),
    ") = ($2::bigint, $3, $4, $5::bigint, $6, $7, $8, $9::boolean, $10, $11::bigint, $12, $13, $14::bigint,
            $15::bigint, $16::bigint, $17)
     WHERE call_id = $1 AND finished_at_ms IS NULL
     RETURNING seq, chain_n"
);

/// The values of all begins, column by column.
struct BeginColumns {
    chain_ns: Vec<Option<i64>>,
    columns: [Vec<Value<'static>>; N_BEGIN],
}

impl BeginColumns {
    /// `first`: the number of the first event of all that is pending.
    fn of(pending: &[PendingCall], first: Option<i64>) -> Self {
        let mut begins = Self {
            chain_ns: Vec::new(),
            columns: [const { Vec::new() }; N_BEGIN],
        };
        for (n, call) in (0..).zip(pending) {
            if !call.is_begin() {
                continue;
            }
            begins.chain_ns.push(first.map(|first| first + n));
            for (column, value) in begins.columns.iter_mut().zip(&call.values) {
                column.push(value.clone());
            }
        }
        begins
    }

    fn is_empty(&self) -> bool {
        self.chain_ns.is_empty()
    }

    fn row<'a>(&'a self, host: &'a &'a str) -> Vec<&'a (dyn ToSql + Sync)> {
        let mut row: Vec<&(dyn ToSql + Sync)> = vec![host, &self.chain_ns];
        row.extend(
            self.columns
                .iter()
                .map(|column| column as &(dyn ToSql + Sync)),
        );
        row
    }
}

/// The values of an end, after its call.
fn end_row(call: &PendingCall) -> Vec<&(dyn ToSql + Sync)> {
    let mut row: Vec<&(dyn ToSql + Sync)> = vec![&call.id];
    row.extend(call.values.iter().map(|value| value as &(dyn ToSql + Sync)));
    row
}

/// A value as it will be read back: tags are made over what is kept.
fn stored(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Null => Value::Null,
        Value::Integer(number) => Value::Integer(number),
        Value::Flag(flag) => Value::Flag(flag),
        Value::Text(text) => match text.contains('\0') {
            true => storable(&text).into_owned().into(),
            false => text.into_owned().into(),
        },
    }
}
