//! The audit table in SQL.

use std::str::FromStr;

use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params, params_from_iter};
use zeph_core::category::ErrorCategory;
use zeph_core::id::CallId;

use super::chain::{self, ChainedConnection};
use super::conversation::touch;
use crate::audit::chain::EventKind;
use crate::audit::columns::{
    BadColumn, FIRST_OF_END, N_BEGIN, N_END, RowValues, begin_columns, begin_values, end_columns,
    end_values,
};
use crate::audit::filter::AuditFilter;
use crate::audit::record::{AuditRecord, BeginRecord, Finish};
use crate::audit::retention::{ChainSweep, running_ms};
use crate::audit::seal::{NewEvent, SealedAudit as _};
use crate::audit::value::{Value, record_bytes};
use crate::error::ErrorSource;
use crate::operations::Outcome;
use crate::sweep::Past;

/// In the order in which [`record`] reads them.
const COLUMNS: &str = concat!(begin_columns!(), ", ", end_columns!());

/// Adds the row of a call and its event; 0 when it is there already.
pub(super) fn insert_begin(connection: &ChainedConnection, begin: &BeginRecord) -> Outcome<usize> {
    const SQL: &str = concat!(
        "INSERT INTO audit (",
        begin_columns!(),
        ", chain_n)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)
        ON CONFLICT (call_id) DO NOTHING"
    );
    let chain_n = connection.next_event()?;
    let values = begin_values(begin);
    let chained = Value::from(chain_n);
    let row = params_from_iter(values.iter().chain([&chained]));
    let n_rows = connection.prepare_cached(SQL)?.execute(row)?;
    if n_rows == 0 {
        return Ok(0);
    }
    if chain_n.is_some() {
        connection.append(&NewEvent {
            kind: EventKind::Begin,
            call: begin.call_id,
            seq: connection.last_insert_rowid(),
            begun: None,
            record: &record_bytes(0, &values),
        })?;
    }
    touch(connection, begin.conversation_id, begin.at_ms, 1)?;
    Ok(n_rows)
}

/// Completes the row of a call and adds its event; false when there is none without an end.
pub(super) fn update_finish(connection: &ChainedConnection, finish: &Finish) -> Outcome<bool> {
    // Two statements: one with `RETURNING` opens a table of its own for what it returns, which takes longer than both.
    const OPEN: &str =
        "SELECT seq, chain_n FROM audit WHERE call_id = ?1 AND finished_at_ms IS NULL";
    const SQL: &str = concat!(
        "UPDATE audit SET (",
        end_columns!(),
        ") = (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
        WHERE seq = ?1"
    );
    let call = finish.call_id.to_string();
    let open = connection
        .prepare_cached(OPEN)?
        .query_row([&call], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((seq, begun)) = open.optional()? else {
        return Ok(false);
    };
    let values = end_values(finish);
    let row = Value::Integer(seq);
    let row = params_from_iter([&row].into_iter().chain(&values));
    connection.prepare_cached(SQL)?.execute(row)?;
    if connection.seal().is_set() {
        connection.append(&NewEvent {
            kind: EventKind::Finish,
            call: finish.call_id,
            seq,
            begun,
            record: &record_bytes(FIRST_OF_END, &values),
        })?;
    }
    Ok(true)
}

/// The rows that pass a filter.
pub(super) fn select(
    connection: &Connection,
    filter: &AuditFilter,
) -> rusqlite::Result<Vec<AuditRecord>> {
    let category = filter.category.map(ErrorCategory::label);
    let conversation = filter.conversation.map(|id| id.to_string());
    // A prefix is of digits and hyphens, which patterns know nothing about.
    let call = filter.call.as_ref().map(|prefix| format!("{prefix}*"));
    let conditions: [(&str, Option<&dyn ToSql>); 7] = [
        (
            "call_id GLOB",
            call.as_ref().map(|pattern| pattern as &dyn ToSql),
        ),
        (
            "begun_at_ms >=",
            filter.since_ms.as_ref().map(|ms| ms as &dyn ToSql),
        ),
        (
            "begun_at_ms <",
            filter.until_ms.as_ref().map(|ms| ms as &dyn ToSql),
        ),
        (
            "tool =",
            filter.tool.as_ref().map(|tool| tool as &dyn ToSql),
        ),
        (
            "plugin =",
            filter.plugin.as_ref().map(|plugin| plugin as &dyn ToSql),
        ),
        (
            "error_category =",
            category.as_ref().map(|category| category as &dyn ToSql),
        ),
        (
            "conversation_id =",
            conversation.as_ref().map(|id| id as &dyn ToSql),
        ),
    ];
    let mut sql = format!("SELECT {COLUMNS} FROM audit WHERE 1");
    let mut values = Vec::new();
    for (condition, value) in conditions {
        let Some(value) = value else { continue };
        values.push(value);
        sql.push_str(&format!(" AND {condition} ?{}", values.len()));
    }
    if filter.unfinished_only {
        sql.push_str(" AND finished_at_ms IS NULL");
    }
    let direction = if filter.newest_first { "DESC" } else { "ASC" };
    let limit = filter.limit;
    sql.push_str(&format!(
        " ORDER BY begun_at_ms {direction}, seq {direction} LIMIT {limit}"
    ));
    connection
        .prepare_cached(&sql)?
        .query_map(values.as_slice(), record)?
        .collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    let values = (0..N_BEGIN + N_END).map(|column| value(row, column));
    let values = RowValues::new(values.collect::<rusqlite::Result<_>>()?);
    let bad = |BadColumn { column, problem }| unreadable(column, problem);
    values.record().map_err(bad)
}

fn value(row: &Row<'_>, column: usize) -> rusqlite::Result<Value<'static>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        text => text.as_str()?.to_owned().into(),
    })
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Self::Flag(flag) => ToSqlOutput::Borrowed(ValueRef::Integer(i64::from(*flag))),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// The row of one call.
pub(super) fn of_call(
    connection: &Connection,
    call: CallId,
) -> rusqlite::Result<Option<AuditRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM audit WHERE call_id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map([call.to_string()], record)?
        .next()
        .transpose()
}

/// Deletes rows that are too old, and the oldest of too many; says how many went and how many were vouched for anew.
///
/// Limits: each statement looks at the rows it deletes and at those of calls that still run, whatever the size of the table.
pub(super) fn sweep(
    connection: &ChainedConnection,
    past: &Past,
    n_max: u32,
) -> Outcome<ChainSweep> {
    // Rows from before the chain go alone: no event is of them.
    const OLD: &str = "
        DELETE FROM audit WHERE seq IN (SELECT seq FROM
        (SELECT seq, chain_n FROM audit WHERE begun_at_ms < ?1 AND (finished_at_ms IS NOT NULL OR begun_at_ms < ?2)
         ORDER BY begun_at_ms LIMIT ?3) WHERE chain_n IS NULL) RETURNING seq";
    // Rows go from the old end only, so the numbers tell how many there are at most.
    const MANY: &str = "
        DELETE FROM audit WHERE seq IN (SELECT seq FROM
        (SELECT seq, chain_n FROM audit WHERE seq <= (SELECT max(seq) FROM audit) - ?1
             AND (finished_at_ms IS NOT NULL OR begun_at_ms < ?2)
         ORDER BY seq LIMIT ?3) WHERE chain_n IS NULL) RETURNING seq";
    let running_ms = running_ms(past);
    let limits = [(OLD, past.audit_ms), (MANY, past.audit_rows_max)];
    let mut alone: Vec<i64> = Vec::new();
    for (sql, limit) in limits {
        let Some(limit) = limit else { continue };
        let row = params![limit, running_ms, n_max];
        let mut statement = connection.prepare_cached(sql)?;
        let removed = statement.query_map(row, |row| row.get(0))?;
        alone.extend(removed.collect::<rusqlite::Result<Vec<i64>>>()?);
    }
    let swept = chain::sweep::sweep(connection, past, n_max, &alone)?;
    Ok(ChainSweep {
        n_removed: swept.n_removed + alone.len(),
        ..swept
    })
}

/// Reads a column of text through `FromStr`.
pub(super) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|error| unreadable(column, error))
}

/// A column that holds what it should not.
pub(super) fn unreadable(column: usize, error: impl Into<ErrorSource>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
