//! The audit table.
//!
//! A row belongs to the host that recorded it, and to its chain. All hosts' rows are read together.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use zeph_core::category::ErrorCategory;
use zeph_core::id::{CallId, CallPrefix};

use self::pending::PendingCall;
use super::chain;
use super::transaction::Transaction;
use super::value::{get, unreadable};
use crate::audit::columns::{BadColumn, N_BEGIN, N_END, RowValues, begin_columns, end_columns};
use crate::audit::filter::AuditFilter;
use crate::audit::record::{AuditRecord, BeginRecord, Finish};
use crate::audit::retention::ChainSweep;
use crate::audit::value::Value;
use crate::operations::Outcome;
use crate::sweep::Past;

pub(super) mod pending;

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
                AND ($9::text IS NULL OR left(call_id, length($9)) = $9)
             ORDER BY begun_at_ms ",
            $direction,
            ", seq ",
            $direction,
            " LIMIT $8"
        )
    };
}

/// Adds the row of a call and its event, and marks its conversation as used; false when it is there already, or trust is in another state
/// than `trust_version`. With those of other calls, that is found when they are written: it fails for all of them then.
pub(super) fn insert_begin(
    transaction: &Transaction,
    begin: &BeginRecord,
    trust_version: Option<i64>,
) -> Outcome<bool> {
    record(transaction, PendingCall::begin(begin, trust_version))
}

/// Completes the row of a call and adds its event; false when there is none without an end. With those of other calls, as
/// [`insert_begin`].
pub(super) fn update_finish(transaction: &Transaction, finish: &Finish) -> Outcome<bool> {
    record(transaction, PendingCall::end(finish))
}

fn record(transaction: &Transaction, call: PendingCall) -> Outcome<bool> {
    transaction.pending.borrow_mut().push(call);
    match transaction.is_together() {
        true => Ok(true),
        false => pending::write(transaction),
    }
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
            &filter.call.as_ref().map(CallPrefix::as_str),
        ],
    )?;
    rows.iter().map(audit_record).collect()
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
    row.as_ref().map(audit_record).transpose()
}

/// Deletes rows of this host that are too old, and the oldest of too many of all hosts, as far as they are its own; then those of hosts that
/// are gone. Says how many went and how many were vouched for anew.
///
/// Limits: it looks at the oldest 4,096 rows of the host, whatever the size of the table.
pub(super) fn sweep(transaction: &Transaction, past: &Past, n_max: u32) -> Outcome<ChainSweep> {
    if past.audit_ms.is_none() && past.audit_rows_max.is_none() {
        return Ok(ChainSweep::default());
    }
    let limits = chain::sweep::limits(transaction, past)?;
    let swept = chain::sweep::sweep(transaction, &limits, n_max)?;
    if swept.n_removed + swept.n_carried > 0 {
        return Ok(swept);
    }
    Ok(ChainSweep {
        n_removed: chain::forget::forget(transaction, (&limits, past.now_ms), n_max)?,
        n_carried: 0,
    })
}

fn audit_record(row: &Row) -> Outcome<AuditRecord> {
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
