//! The audit table: begin, finish, query.

use std::str::FromStr;

use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql, params};
use zeph_core::category::ErrorCategory;
use zeph_core::id::{CallId, ConversationId};

use crate::audit::label;
use crate::audit::record::{Begin, Ending, Failed, Finish, HostProcess, Record};
use crate::call::SingleUseRights;
use crate::conversation::touch;
use crate::error::{Source, StoreError};
use crate::store::Store;
use crate::writer::Access;

/// Which rows to read. Every condition that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this plugin.
    pub plugin: Option<String>,
    /// Failed with this category.
    pub category: Option<ErrorCategory>,
    /// Of this conversation.
    pub conversation: Option<ConversationId>,
    /// Begun at this moment or later, in Unix milliseconds.
    pub since_ms: Option<i64>,
    /// Begun before this moment, in Unix milliseconds.
    pub until_ms: Option<i64>,
    /// Only calls without an end.
    pub unfinished_only: bool,
    /// From the newest to the oldest, else the other way round.
    pub newest_first: bool,
    /// At most so many rows.
    pub limit: u32,
}

impl AuditFilter {
    /// The newest `limit` rows of everything.
    pub fn newest(limit: u32) -> Self {
        Self {
            tool: None,
            plugin: None,
            category: None,
            conversation: None,
            since_ms: None,
            until_ms: None,
            unfinished_only: false,
            newest_first: true,
            limit,
        }
    }
}

impl Store {
    /// Records that a call is about to be made that holds nothing for itself alone; as [`Store::begin_call`].
    ///
    /// Errors: [`StoreError::AuditOrder`] when the call has a row already.
    pub async fn audit_begin(&self, begin: Begin) -> Result<(), StoreError> {
        let at_ms = begin.at_ms;
        let begun = self.begin_call(Some(begin), SingleUseRights::default(), at_ms);
        begun.await.map(drop)
    }

    /// Records how a call ended that held nothing for itself alone; as [`Store::finish_call`].
    ///
    /// Errors: [`StoreError::AuditOrder`] when the call has not begun or has ended already.
    pub async fn audit_finish(&self, finish: Finish) -> Result<(), StoreError> {
        self.finish_call(Some(finish), Vec::new()).await
    }

    /// The rows that pass `filter`, in the order of their begin.
    ///
    /// Limits: the times use an index; the other conditions are checked row by row until `limit` rows are found.
    pub async fn audit_query(&self, filter: AuditFilter) -> Result<Vec<Record>, StoreError> {
        let work = move |connection: &Connection| select(connection, &filter);
        self.run("query the audit table", Access::Read, work).await
    }

    /// The row of one call.
    pub async fn audit_record(&self, call: CallId) -> Result<Option<Record>, StoreError> {
        let work = move |connection: &Connection| {
            let sql = format!("SELECT {COLUMNS} FROM audit WHERE call_id = ?1");
            let mut statement = connection.prepare_cached(&sql)?;
            statement
                .query_map([call.to_string()], record)?
                .next()
                .transpose()
        };
        self.run("read an audit row", Access::Read, work).await
    }
}

/// In the order in which [`record`] reads them.
const COLUMNS: &str = "call_id, begun_at_ms, tool, command, conversation_id, claim_source, caller_id, policy_match, \
                       correlation_id, resolved_cwd, finished_at_ms, result, result_detail, duration_ms, \
                       error_category, error_phase, truncated, overflow_id, exit_code, execution_env, plugin, \
                       plugin_digest, host_pid, host_start, turn_id, goal_id, skill_name";

/// Adds the row of a call; 0 when it is there already.
pub(crate) fn insert_begin(connection: &Connection, begin: &Begin) -> rusqlite::Result<usize> {
    const SQL: &str = "
        INSERT INTO audit (call_id, begun_at_ms, tool, command, conversation_id, claim_source, caller_id,
                           policy_match, correlation_id, resolved_cwd, plugin, plugin_digest, host_pid,
                           host_start, turn_id, goal_id, skill_name)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
        ON CONFLICT (call_id) DO NOTHING";
    let Begin {
        call_id,
        at_ms,
        tool,
        plugin,
        plugin_digest,
        command,
        conversation_id,
        claim_source,
        caller_id,
        turn_id,
        goal_id,
        skill_name,
        policy_match,
        correlation_id,
        resolved_cwd,
        host,
    } = begin;
    let host = host.as_ref();
    let n_rows = connection.prepare_cached(SQL)?.execute(params![
        call_id.to_string(),
        at_ms,
        tool,
        command,
        conversation_id.to_string(),
        claim_source.map(label::source_label),
        caller_id,
        policy_match,
        correlation_id,
        resolved_cwd,
        plugin,
        plugin_digest,
        host.map(|host| host.pid),
        host.map(|host| host.start.as_str()),
        turn_id,
        goal_id,
        skill_name,
    ])?;
    if n_rows > 0 {
        touch(connection, *conversation_id, *at_ms, 1)?;
    }
    Ok(n_rows)
}

/// Completes the row of a call; 0 when there is none without an end.
pub(crate) fn update_finish(connection: &Connection, finish: &Finish) -> rusqlite::Result<usize> {
    const SQL: &str = "
        UPDATE audit SET finished_at_ms = ?2, result = ?3, result_detail = ?4, duration_ms = ?5, error_category = ?6,
                         error_domain = ?7, error_phase = ?8, truncated = ?9, overflow_id = ?10,
                         exit_code = ?11, execution_env = ?12
        WHERE call_id = ?1 AND finished_at_ms IS NULL";
    let Finish {
        call_id,
        at_ms,
        ending,
    } = finish;
    let Ending {
        result,
        duration_ms,
        failed,
        truncated,
        overflow_id,
        exit_code,
        execution_env,
    } = ending;
    let (result, detail) = label::result_columns(result);
    connection.prepare_cached(SQL)?.execute(params![
        call_id.to_string(),
        at_ms,
        result,
        detail,
        duration_ms,
        failed.map(|failed| failed.category.label()),
        failed.map(|failed| label::domain_label(failed.category.domain())),
        failed.map(|failed| label::phase_label(failed.phase)),
        truncated,
        overflow_id.map(|id| id.to_string()),
        exit_code,
        execution_env,
    ])
}

fn select(connection: &Connection, filter: &AuditFilter) -> rusqlite::Result<Vec<Record>> {
    let category = filter.category.map(ErrorCategory::label);
    let conversation = filter.conversation.map(|id| id.to_string());
    let conditions: [(&str, Option<&dyn ToSql>); 6] = [
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

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let begin = Begin {
        call_id: parsed(row, 0)?,
        at_ms: row.get(1)?,
        tool: row.get(2)?,
        command: row.get(3)?,
        conversation_id: parsed(row, 4)?,
        claim_source: labelled(row, 5, label::source_from)?,
        caller_id: row.get(6)?,
        policy_match: row.get(7)?,
        correlation_id: row.get(8)?,
        resolved_cwd: row.get(9)?,
        plugin: row.get(20)?,
        plugin_digest: row.get(21)?,
        host: host(row)?,
        turn_id: row.get("turn_id")?,
        goal_id: row.get("goal_id")?,
        skill_name: row.get("skill_name")?,
    };
    let finished_at_ms: Option<i64> = row.get(10)?;
    let ending = finished_at_ms.map(|_| ending(row)).transpose()?;
    Ok(Record {
        begin,
        finished_at_ms,
        ending,
    })
}

/// The process of a row; none when an older program wrote it.
fn host(row: &Row<'_>) -> rusqlite::Result<Option<HostProcess>> {
    let pid: Option<u32> = row.get("host_pid")?;
    let start: Option<String> = row.get("host_start")?;
    Ok(pid
        .zip(start)
        .map(|(pid, start)| HostProcess { pid, start }))
}

fn ending(row: &Row<'_>) -> rusqlite::Result<Ending> {
    let detail = row.get::<_, Option<String>>(12)?.unwrap_or_default();
    let result = labelled(row, 11, |text| label::result_from(text, detail.clone()))?;
    let category = labelled(row, 14, label::category_from)?;
    let phase = labelled(row, 15, label::phase_from)?;
    Ok(Ending {
        result: result.ok_or_else(|| unreadable(11, "an ended call has no result"))?,
        duration_ms: row.get(13)?,
        failed: category
            .zip(phase)
            .map(|(category, phase)| Failed { category, phase }),
        truncated: row.get(16)?,
        overflow_id: match row.get_ref(17)? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some(parsed(row, 17)?),
        },
        exit_code: row.get(18)?,
        execution_env: row.get(19)?,
    })
}

/// Reads a column of text through `FromStr`.
pub(crate) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|error| unreadable(column, error))
}

/// Reads a column that holds one of some labels, or null.
fn labelled<T>(
    row: &Row<'_>,
    column: usize,
    from_label: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let Some(label) = row.get_ref(column)?.as_str_or_null()? else {
        return Ok(None);
    };
    let value =
        from_label(label).ok_or_else(|| unreadable(column, format!("unknown label `{label}`")))?;
    Ok(Some(value))
}

/// A column that holds what it should not.
pub(crate) fn unreadable(column: usize, error: impl Into<Source>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
