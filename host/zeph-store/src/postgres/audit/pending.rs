//! Begins and ends of calls that one transaction records: written together at its end, or before its next statement, with one journey to the
//! server for all of them and for the lock of the chain, where it is not held yet.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use zeph_core::id::CallId;

use crate::audit::chain::EventKind;
use crate::audit::columns::{
    FIRST_OF_END, N_BEGIN, N_END, begin_columns, begin_values, end_columns, end_values,
};
use crate::audit::record::{BeginRecord, Finish};
use crate::audit::seal::{NewEvent, SealedAudit as _};
use crate::audit::value::{Value, record_bytes};
use crate::operations::{OperationFault, Outcome};
use crate::postgres::chain;
use crate::postgres::conversation::last_used;
use crate::postgres::transaction::{LOCK, Statement, Transaction};
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
    /// The state of trust without which it does not begin; none when it does not matter.
    trust_version: Option<i64>,
}

impl PendingCall {
    pub(super) fn begin(begin: &BeginRecord, trust_version: Option<i64>) -> Self {
        Self {
            kind: EventKind::Begin,
            call: begin.call_id,
            id: begin.call_id.to_string(),
            values: begin_values(begin).map(stored).into(),
            trust_version,
        }
    }

    pub(super) fn end(finish: &Finish) -> Self {
        Self {
            kind: EventKind::Finish,
            call: finish.call_id,
            id: finish.call_id.to_string(),
            values: end_values(finish).map(stored).into(),
            trust_version: None,
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

/// Writes what is pending, with its events; false when the row of a begin is there already, or the state of trust is not that of the call, or
/// the row of an end is not there.
pub(in crate::postgres) fn write(transaction: &Transaction) -> Outcome<bool> {
    let pending = transaction.pending.take();
    if pending.is_empty() {
        return Ok(true);
    }
    let host = transaction.host();
    // First, before any row is locked: a sweep of this chain takes it first, too.
    let object = chain::object(host);
    let lock: [Statement<'_>; 2] = [(LOCK, &[&object]), (chain::NEWEST, &[&host])];
    let is_chained = transaction.seal.is_set();
    let n_lock = match is_chained && !transaction.ahead.borrow().holds_chain {
        true => lock.len(),
        false => 0,
    };
    let next = match n_lock {
        0 => transaction.next_event()?,
        _ => None,
    };
    let begins = BeginColumns::of(&pending, is_chained);
    let ends = EndColumns::of(&pending);
    let (begin_row, end_row) = (begins.row(&host, &next), ends.row());
    let inserts = (!begins.is_empty()).then_some((INSERT, begin_row.as_slice()));
    let updates = (!ends.is_empty()).then_some((UPDATE, end_row.as_slice()));
    let rows = inserts.into_iter().chain(updates);
    let statements: Vec<Statement<'_>> = lock.into_iter().take(n_lock).chain(rows).collect();
    let mut answers = transaction.query_all(&statements)?;
    let written = answers.split_off(n_lock);
    if let Some(newest) = answers.last() {
        let newest = chain::newest_of(newest.first())?;
        let mut ahead = transaction.ahead.borrow_mut();
        (ahead.holds_chain, ahead.newest) = (true, Some(newest));
    }
    append_all(transaction, &pending, written)
}

/// Adds the events of what was written; none, and false, when the row of a call was not. `written`: the answers to the begins and to the ends,
/// where there are any.
fn append_all(
    transaction: &Transaction,
    pending: &[PendingCall],
    written: Vec<Vec<Row>>,
) -> Outcome<bool> {
    let mut written = written.into_iter();
    let mut rows_of = |kind: EventKind| match pending.iter().any(|call| call.kind == kind) {
        true => rows_of_calls(&written.next().unwrap_or_default()),
        false => Ok(HashMap::new()),
    };
    let (mut begun, mut ended) = (rows_of(EventKind::Begin)?, rows_of(EventKind::Finish)?);
    let mut rows = Vec::with_capacity(pending.len());
    for call in pending {
        // A row answers for one of them.
        let row = match call.is_begin() {
            true => begun.remove(&call.id),
            false => ended.remove(&call.id),
        };
        let Some(row) = row else { return Ok(false) };
        rows.push((call, row));
    }
    for (call, row) in rows {
        append(transaction, call, row)?;
    }
    Ok(true)
}

/// Where the row of a call is: its number, and that of the event of its begin.
type RowOfCall = (i64, Option<i64>);

/// Adds the event of what was written: of its row, and for an end of the event of its begin.
///
/// Errors: the row of a begin has the number of another event, which happens only to a server that does not isolate transactions as it must.
fn append(transaction: &Transaction, call: &PendingCall, (seq, begun): RowOfCall) -> Outcome<()> {
    let event = NewEvent {
        kind: call.kind,
        call: call.call,
        seq,
        begun: begun.filter(|_| !call.is_begin()),
        record: &call.record(),
    };
    let n = transaction.append(&event)?;
    if call.is_begin() && n != begun {
        let text = "the audit chain was changed by a transaction that does not hold it";
        return Err(OperationFault::Database(text.into()));
    }
    Ok(())
}

fn rows_of_calls(rows: &[Row]) -> Outcome<HashMap<String, RowOfCall>> {
    let rows = rows
        .iter()
        .map(|row| Ok((get(row, 0)?, (get(row, 1)?, get(row, 2)?))));
    rows.collect()
}

/// Adds the rows of calls that are decided on the state of trust there is, and marks their conversations as used. A row that is there already
/// stays as it is. Where the number of the next event is not known (`$2`), it is that after the newest, or after the one that begins a chain.
const INSERT: &str = concat!(
    "WITH recorded AS (INSERT INTO audit (host, chain_n, ",
    begin_columns!(),
    ")
     SELECT $1::text,
        coalesce($2::bigint, (SELECT max(n) + 1 FROM audit_chain WHERE host = $1), 2) + later, ",
    begin_columns!(),
    " FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[],
        $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::bigint[], $18::text[],
        $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::text[], $27::text[],
        $28::text[], $29::text[], $30::bigint[], $31::bigint[], $32::boolean[]) AS new (later, trust_version, ",
    begin_columns!(),
    ")
     WHERE trust_version IS NULL OR trust_version = (SELECT version FROM trust_version)
     ON CONFLICT (call_id) DO NOTHING RETURNING seq, call_id, conversation_id, begun_at_ms, chain_n),
     used AS (INSERT INTO conversations AS c (id, started_at_ms, last_used_ms, n_calls)
         SELECT conversation_id, min(begun_at_ms), max(begun_at_ms), count(*) FROM recorded
         GROUP BY conversation_id ORDER BY conversation_id
         ON CONFLICT (id) DO UPDATE SET n_calls = c.n_calls + excluded.n_calls, last_used_ms = ",
    last_used!(),
    ")
     SELECT call_id, seq, chain_n FROM recorded"
);

/// Completes the rows of calls. The session of the writer plans it by the index of calls, see `WRITER_PLANS`.
const UPDATE: &str = concat!(
    "UPDATE audit SET (",
    end_columns!(),
    ") = ROW(v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16)
     FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
        $9::boolean[], $10::text[], $11::bigint[], $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[],
        $17::text[])
        AS ended (id, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16)
     WHERE call_id = ended.id AND finished_at_ms IS NULL
     RETURNING call_id, seq, chain_n"
);

/// The values of all begins, column by column.
struct BeginColumns {
    /// By how much the number of their event is greater than that of the next; none when calls are not chained.
    later: Vec<Option<i64>>,
    trust_versions: Vec<Option<i64>>,
    columns: [Vec<Value<'static>>; N_BEGIN],
}

impl BeginColumns {
    fn of(pending: &[PendingCall], is_chained: bool) -> Self {
        let mut begins = Self {
            later: Vec::new(),
            trust_versions: Vec::new(),
            columns: [const { Vec::new() }; N_BEGIN],
        };
        for (n, call) in (0..).zip(pending).filter(|(_, call)| call.is_begin()) {
            begins.later.push(is_chained.then_some(n));
            begins.trust_versions.push(call.trust_version);
            for (column, value) in begins.columns.iter_mut().zip(&call.values) {
                column.push(value.clone());
            }
        }
        begins
    }

    fn is_empty(&self) -> bool {
        self.later.is_empty()
    }

    /// The values of [`INSERT`]. `next`: the number of the next event, where it is known.
    fn row<'a>(&'a self, host: &'a &'a str, next: &'a Option<i64>) -> Vec<&'a (dyn ToSql + Sync)> {
        let mut row: Vec<&(dyn ToSql + Sync)> = vec![host, next, &self.later, &self.trust_versions];
        let columns = self.columns.iter();
        row.extend(columns.map(|column| column as &(dyn ToSql + Sync)));
        row
    }
}

/// The values of all ends, column by column.
struct EndColumns<'a> {
    calls: Vec<&'a str>,
    columns: [Vec<&'a Value<'static>>; N_END],
}

impl<'a> EndColumns<'a> {
    fn of(pending: &'a [PendingCall]) -> Self {
        let mut ends = Self {
            calls: Vec::new(),
            columns: [const { Vec::new() }; N_END],
        };
        for call in pending.iter().filter(|call| !call.is_begin()) {
            ends.calls.push(&call.id);
            for (column, value) in ends.columns.iter_mut().zip(&call.values) {
                column.push(value);
            }
        }
        ends
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The values of [`UPDATE`].
    fn row(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut row: Vec<&(dyn ToSql + Sync)> = vec![&self.calls];
        let columns = self.columns.iter();
        row.extend(columns.map(|column| column as &(dyn ToSql + Sync)));
        row
    }
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
