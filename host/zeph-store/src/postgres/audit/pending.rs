//! Begins and ends of calls that one transaction records: written together at its end, or before its next statement, with one statement for
//! all of them and one journey for that and for the lock of the chain, where it is not held yet.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use zeph_core::id::CallId;

use crate::audit::chain::EventKind;
use crate::audit::columns::{
    FIRST_OF_END, N_BEGIN, N_END, begin_columns, begin_values, end_columns, end_values,
};
use crate::audit::record::{BeginRecord, Finish};
use crate::audit::seal::{NewEvent, NewestEvent, SealedAudit as _};
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
    let lock: Statement<'_> = (LOCK, &[&object]);
    let is_chained = transaction.seal.is_set();
    // A chain that others removed goes on with an event of its own: then the numbers of these are not those after the newest.
    let knows_newest = transaction.seal.has_looked();
    let has_to_lock = is_chained && knows_newest && !transaction.ahead.borrow().holds_chain;
    let next = match has_to_lock {
        true => None,
        false => transaction.next_event()?,
    };
    let begins = BeginColumns::of(&pending, is_chained);
    let ends = EndColumns::of(&pending);
    let (sql, row) = statement(&host, &next, &begins, &ends);
    let statements = has_to_lock.then_some(lock).into_iter();
    let statements: Vec<Statement<'_>> = statements.chain([(sql, row.as_slice())]).collect();
    let mut answers = transaction.query_all(&statements)?;
    let written = Written::of(&answers.pop().unwrap_or_default())?;
    if has_to_lock {
        let mut ahead = transaction.ahead.borrow_mut();
        (ahead.holds_chain, ahead.newest) = (true, Some(written.newest));
    }
    append_all(transaction, &pending, written)
}

/// What writes these begins and ends, with its values.
fn statement<'a>(
    host: &'a &'a str,
    next: &'a Option<i64>,
    begins: &'a BeginColumns,
    ends: &'a EndColumns<'_>,
) -> (&'static str, Vec<&'a (dyn ToSql + Sync)>) {
    match (begins.is_empty(), ends.is_empty()) {
        (false, true) => (BEGINS, begins.row(host, next)),
        (true, _) => (ENDS, [vec![host as _], ends.row()].concat()),
        (false, false) => (BOTH, [begins.row(host, next), ends.row()].concat()),
    }
}

/// The rows that were written, by call, and what was the newest event before.
struct Written {
    begun: HashMap<String, RowOfCall>,
    ended: HashMap<String, RowOfCall>,
    newest: NewestEvent,
}

impl Written {
    /// Of what [`BEGINS`], [`ENDS`] or [`BOTH`] give.
    fn of(rows: &[Row]) -> Outcome<Self> {
        let mut written = Self {
            begun: HashMap::new(),
            ended: HashMap::new(),
            newest: NewestEvent::NONE,
        };
        for row in rows {
            let (n, chain_n) = (get(row, 2)?, get(row, 3)?);
            match get(row, 0)? {
                IS_BEGUN => written.begun.insert(get(row, 1)?, (n, chain_n)),
                IS_ENDED => written.ended.insert(get(row, 1)?, (n, chain_n)),
                _ => {
                    let code = chain::code_of(row, 4)?;
                    written.newest = NewestEvent { n, code };
                    None
                }
            };
        }
        Ok(written)
    }
}

/// Adds the events of what was written; none, and false, when the row of a call was not.
fn append_all(
    transaction: &Transaction,
    pending: &[PendingCall],
    mut written: Written,
) -> Outcome<bool> {
    let mut rows = Vec::with_capacity(pending.len());
    for call in pending {
        // A row answers for one of them.
        let row = match call.is_begin() {
            true => written.begun.remove(&call.id),
            false => written.ended.remove(&call.id),
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

/// What a row of an answer says: the number of the row of a call that was begun or ended and of the event of its begin, or the newest event
/// there was. Tells them apart by their first column.
const IS_BEGUN: i64 = 0;
const IS_ENDED: i64 = 1;

macro_rules! newest {
    () => {
        "newest AS (SELECT n, code FROM audit_chain WHERE host = $1 ORDER BY n DESC LIMIT 1)"
    };
}

macro_rules! answer_of_newest {
    () => {
        " SELECT 2::bigint, NULL, n, NULL, code FROM newest"
    };
}

/// Adds the rows of calls that are decided on the state of trust there is, and marks their conversations as used. A row that is there already
/// stays as it is. Where the number of the next event is not known (`$2`), it is that after the newest, or after the one that begins a chain.
macro_rules! begun {
    () => {
        concat!(
            "begun AS (INSERT INTO audit (host, chain_n, ",
            begin_columns!(),
            ")
     SELECT $1::text, coalesce($2::bigint, (SELECT n + 1 FROM newest), 2) + later, ",
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
         SELECT conversation_id, min(begun_at_ms), max(begun_at_ms), count(*) FROM begun
         GROUP BY conversation_id ORDER BY conversation_id
         ON CONFLICT (id) DO UPDATE SET n_calls = c.n_calls + excluded.n_calls, last_used_ms = ",
            last_used!(),
            ")"
        )
    };
}

macro_rules! answer_of_begun {
    () => {
        " SELECT 0::bigint, call_id, seq, chain_n, NULL::bytea FROM begun UNION ALL"
    };
}

/// Completes the rows of calls. The session of the writer plans it by the index of calls, see `WRITER_PLANS`.
macro_rules! ended {
    ($values:literal) => {
        concat!(
            "ended AS (UPDATE audit SET (",
            end_columns!(),
            ") = ROW(v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16)
     FROM unnest(",
            $values,
            ")
        AS new (id, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16)
     WHERE call_id = new.id AND finished_at_ms IS NULL
     RETURNING call_id, seq, chain_n)"
        )
    };
}

macro_rules! answer_of_ended {
    () => {
        " SELECT 1::bigint, call_id, seq, chain_n, NULL::bytea FROM ended UNION ALL"
    };
}

/// Writes begins, and reads the newest event.
const BEGINS: &str = concat!(
    "WITH ",
    newest!(),
    ", ",
    begun!(),
    answer_of_begun!(),
    answer_of_newest!()
);

/// Writes ends, and reads the newest event.
const ENDS: &str = concat!(
    "WITH ",
    newest!(),
    ", ",
    ended!(
        "$2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[],
        $10::boolean[], $11::text[], $12::bigint[], $13::text[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[],
        $18::text[]"
    ),
    answer_of_ended!(),
    answer_of_newest!()
);

/// Writes begins and ends, and reads the newest event. No call is among both: its end comes after its begin was committed.
const BOTH: &str = concat!(
    "WITH ",
    newest!(),
    ", ",
    begun!(),
    ", ",
    ended!(
        "$33::text[], $34::bigint[], $35::text[], $36::text[], $37::bigint[], $38::text[], $39::text[], $40::text[],
        $41::boolean[], $42::text[], $43::bigint[], $44::text[], $45::text[], $46::bigint[], $47::bigint[], $48::bigint[],
        $49::text[]"
    ),
    answer_of_begun!(),
    answer_of_ended!(),
    answer_of_newest!()
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

    /// The values of [`BEGINS`], the first of [`BOTH`]. `next`: the number of the next event, where it is known.
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

    /// The values of [`ENDS`] after the host, the last of [`BOTH`].
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
