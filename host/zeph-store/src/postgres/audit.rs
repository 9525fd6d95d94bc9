//! The audit table.
//!
//! A row belongs to the host that recorded it, and to its chain. All hosts' rows are read together.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use zeph_core::category::ErrorCategory;
use zeph_core::id::CallId;

use super::chain;
use super::transaction::Transaction;
use super::value::{get, storable, unreadable};
use crate::audit::chain::EventKind;
use crate::audit::columns::{
    BadColumn, FIRST_OF_END, N_BEGIN, N_END, RowValues, begin_columns, begin_values, end_columns,
    end_values,
};
use crate::audit::filter::AuditFilter;
use crate::audit::record::{AuditRecord, BeginRecord, Finish};
use crate::audit::retention::ChainSweep;
use crate::audit::seal::{NewEvent, SealedAudit as _};
use crate::audit::value::{Value, record_bytes};
use crate::operations::Outcome;
use crate::sweep::Past;

/// The rows that pass a filter, in one of two orders.
macro_rules! selected {
    ($direction:literal) => {
        concat!(
            "SELECT ",
            begin_columns!(),
            ", ",
            end_columns!(),
            " FROM audit WHERE begun_at_ms >= $1 AND begun_at_ms <= $2
                AND ($3::text IS NULL OR tool = $3) AND ($4::text IS NULL OR plugin = $4)
                AND ($5::text IS NULL OR error_category = $5) AND ($6::text IS NULL OR conversation_id = $6)
                AND ($7::boolean IS FALSE OR finished_at_ms IS NULL)
             ORDER BY begun_at_ms ",
            $direction,
            ", seq ",
            $direction,
            " LIMIT $8"
        )
    };
}

/// Adds the row of a call and its event, and marks its conversation as used; false when it is there already.
pub(super) fn insert_begin(transaction: &Transaction, begin: &BeginRecord) -> Outcome<bool> {
    const SQL: &str = concat!(
        "WITH recorded AS (INSERT INTO audit (host, chain_n, ",
        begin_columns!(),
        ")
         VALUES ($1, $2, $3, $4::bigint, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::bigint, $16, $17, $18, $19, $20, $21, $22,
                 $23, $24, $25, $26, $27, $28::bigint, $29::bigint, $30::boolean)
         ON CONFLICT (call_id) DO NOTHING RETURNING seq, conversation_id, begun_at_ms),
         used AS (INSERT INTO conversations AS c (id, started_at_ms, last_used_ms, n_calls)
             SELECT conversation_id, begun_at_ms, begun_at_ms, 1 FROM recorded
             ON CONFLICT (id) DO UPDATE
             SET last_used_ms = greatest(c.last_used_ms, excluded.last_used_ms), n_calls = c.n_calls + excluded.n_calls)
         SELECT seq FROM recorded"
    );
    let chain_n = transaction.next_event()?;
    let values = begin_values(begin).map(stored);
    let host = transaction.host();
    let mut row: Vec<&(dyn ToSql + Sync)> = vec![&host, &chain_n];
    row.extend(values.iter().map(|value| value as &(dyn ToSql + Sync)));
    let Some(inserted) = transaction.query_opt(SQL, &row)? else {
        return Ok(false);
    };
    if chain_n.is_some() {
        transaction.append(&NewEvent {
            kind: EventKind::Begin,
            call: begin.call_id,
            seq: get(&inserted, 0)?,
            begun: None,
            record: &record_bytes(0, &values),
        })?;
    }
    Ok(true)
}

/// Completes the row of a call and adds its event; false when there is none without an end.
pub(super) fn update_finish(transaction: &Transaction, finish: &Finish) -> Outcome<bool> {
    const SQL: &str = concat!(
        "UPDATE audit SET (",
        end_columns!(),
        ") = ($2::bigint, $3, $4, $5::bigint, $6, $7, $8, $9::boolean, $10, $11::bigint, $12, $13, $14::bigint,
                $15::bigint, $16::bigint, $17)
         WHERE call_id = $1 AND finished_at_ms IS NULL
         RETURNING seq, chain_n"
    );
    let values = end_values(finish).map(stored);
    let call = finish.call_id.to_string();
    let mut row: Vec<&(dyn ToSql + Sync)> = vec![&call];
    row.extend(values.iter().map(|value| value as &(dyn ToSql + Sync)));
    // Before the row is locked: whoever sweeps this chain holds it first, too.
    transaction.next_event()?;
    let Some(updated) = transaction.query_opt(SQL, &row)? else {
        return Ok(false);
    };
    if transaction.seal().is_set() {
        transaction.append(&NewEvent {
            kind: EventKind::Finish,
            call: finish.call_id,
            seq: get(&updated, 0)?,
            begun: get(&updated, 1)?,
            record: &record_bytes(FIRST_OF_END, &values),
        })?;
    }
    Ok(true)
}

/// The rows that pass a filter.
pub(super) fn select(transaction: &Transaction, filter: &AuditFilter) -> Outcome<Vec<AuditRecord>> {
    const NEWEST_FIRST: &str = selected!("DESC");
    const OLDEST_FIRST: &str = selected!("ASC");
    let sql = match filter.newest_first {
        true => NEWEST_FIRST,
        false => OLDEST_FIRST,
    };
    let rows = transaction.query(
        sql,
        &[
            &filter.since_ms.unwrap_or(i64::MIN),
            &filter.until_ms.map_or(i64::MAX, |ms| ms.saturating_sub(1)),
            &filter.tool,
            &filter.plugin,
            &filter.category.map(ErrorCategory::label),
            &filter.conversation.map(|id| id.to_string()),
            &filter.unfinished_only,
            &i64::from(filter.limit),
        ],
    )?;
    rows.iter().map(record).collect()
}

/// The row of one call.
pub(super) fn of_call(transaction: &Transaction, call: CallId) -> Outcome<Option<AuditRecord>> {
    const SQL: &str = concat!(
        "SELECT ",
        begin_columns!(),
        ", ",
        end_columns!(),
        " FROM audit WHERE call_id = $1"
    );
    let row = transaction.query_opt(SQL, &[&call.to_string()])?;
    row.as_ref().map(record).transpose()
}

/// Deletes rows of this host that are too old, and the oldest of too many of all hosts, as far as they are its own; then those of hosts that
/// are gone. Says how many went and how many were vouched for anew.
///
/// Limits: it looks at the oldest 4,096 rows of the host, whatever the size of the table.
pub(super) fn sweep(transaction: &Transaction, past: &Past, n_max: u32) -> Outcome<ChainSweep> {
    if past.audit_ms.is_none() && past.audit_rows_max.is_none() {
        return Ok(ChainSweep::default());
    }
    let swept = chain::sweep::sweep(transaction, past, n_max)?;
    if swept.n_removed + swept.n_carried > 0 {
        return Ok(swept);
    }
    Ok(ChainSweep {
        n_removed: chain::forget::forget(transaction, past, n_max)?,
        n_carried: 0,
    })
}

/// A value as it will be read back: tags are made over what is kept.
fn stored(value: Value<'_>) -> Value<'_> {
    match &value {
        Value::Text(text) if text.contains('\0') => storable(text).into_owned().into(),
        _ => value,
    }
}

fn record(row: &Row) -> Outcome<AuditRecord> {
    let bad = |BadColumn { column, problem }| unreadable(column, problem);
    RowValues::new(values(row, 0)?).record().map_err(bad)
}

/// The columns of a begin and of an end, which stand in a row from the column `from` on.
pub(super) fn values(row: &Row, from: usize) -> Outcome<Vec<Value<'static>>> {
    let columns = from..from + N_BEGIN + N_END;
    columns.map(|column| get(row, column)).collect()
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        of_column: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => number.to_sql_checked(of_column, out),
            Self::Flag(flag) => flag.to_sql_checked(of_column, out),
            Self::Text(text) => text.as_ref().to_sql_checked(of_column, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

impl<'a> FromSql<'a> for Value<'static> {
    fn from_sql(of_column: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        match *of_column {
            Type::INT8 => i64::from_sql(of_column, raw).map(Self::Integer),
            Type::BOOL => bool::from_sql(of_column, raw).map(Self::Flag),
            _ => String::from_sql(of_column, raw).map(Self::from),
        }
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(of_column: &Type) -> bool {
        matches!(*of_column, Type::INT8 | Type::BOOL | Type::TEXT)
    }
}
