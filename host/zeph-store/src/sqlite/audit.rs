//! The audit table in SQL.

use std::str::FromStr;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeph_core::category::ErrorCategory;
use zeph_core::id::CallId;

use super::chain::sweep::ChainSweep;
use super::chain::{self, ChainedConnection, FIRST_OF_END, NewEvent, record_bytes};
use super::conversation::touch;
use super::label;
use crate::audit::chain::EventKind;
use crate::audit::filter::AuditFilter;
use crate::audit::record::{
    AuditRecord, BeginFacts, BeginRecord, Ending, Failed, Finish, HostProcess, TokenUse,
};
use crate::error::ErrorSource;
use crate::operations::Outcome;
use crate::sweep::Past;

/// How long the row of a call without an end is kept at least, in milliseconds: longer than any call runs.
const UNFINISHED_MS: i64 = 86_400_000;

/// In the order in which [`record`] reads them.
const COLUMNS: &str = "call_id, begun_at_ms, tool, command, conversation_id, claim_source, caller_id, policy_match, \
                       correlation_id, resolved_cwd, finished_at_ms, result, result_detail, duration_ms, \
                       error_category, error_phase, truncated, overflow_id, exit_code, execution_env, plugin, \
                       plugin_digest, host_pid, host_start, turn_id, goal_id, skill_name, \
                       agreement, hosts, attempts, cache_age_ms, cache_bytes, mcp_server_id, adversarial_verdict, \
                       user, scope, trust, labels, observed, tokens_in, tokens_out, result_labels";

/// What is known of a call when it begins. New columns come last: the chain numbers them by their place.
macro_rules! begin_columns {
    () => {
        "call_id, begun_at_ms, tool, command, conversation_id, claim_source, caller_id, policy_match, \
         correlation_id, resolved_cwd, plugin, plugin_digest, host_pid, host_start, turn_id, goal_id, \
         skill_name, agreement, mcp_server_id, adversarial_verdict, user, scope, trust, labels, observed, \
         tokens_in, tokens_out"
    };
}

/// The columns that the chain vouches for when a call begins, and how many there are.
pub(super) const BEGIN_COLUMNS: &str = begin_columns!();
pub(super) const N_BEGIN: usize = 27;

/// The columns that the chain vouches for when a call ends, and how many there are. New columns come last.
pub(super) const END_COLUMNS: &str = "finished_at_ms, result, result_detail, duration_ms, error_category, error_domain, \
                                      error_phase, truncated, overflow_id, exit_code, execution_env, hosts, attempts, \
                                      cache_age_ms, cache_bytes, result_labels";
pub(super) const N_END: usize = 16;

/// Adds the row of a call and its event; 0 when it is there already.
pub(super) fn insert_begin(connection: &ChainedConnection, begin: &BeginRecord) -> Outcome<usize> {
    const SQL: &str = concat!(
        "INSERT INTO audit (",
        begin_columns!(),
        ", chain_n)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)
        ON CONFLICT (call_id) DO NOTHING"
    );
    let BeginRecord {
        call_id,
        at_ms,
        tool,
        plugin,
        plugin_digest,
        mcp_server_id,
        command,
        conversation_id,
        claim_source,
        caller_id,
        turn_id,
        goal_id,
        skill_name,
        policy_match,
        agreement,
        adversarial_verdict,
        correlation_id,
        resolved_cwd,
        host,
        facts,
    } = begin;
    let BeginFacts {
        user,
        scope,
        trust,
        labels,
        observed,
        tokens,
    } = facts;
    let host = host.as_ref();
    let chain_n = connection.next_event()?;
    let values: &[&dyn ToSql] = params![
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
        agreement.as_ref().map(label::json),
        mcp_server_id,
        adversarial_verdict,
        user,
        scope,
        trust,
        list_column(labels),
        observed,
        tokens.map(|tokens| tokens.input),
        tokens.map(|tokens| tokens.output),
        chain_n,
    ];
    let n_rows = connection.prepare_cached(SQL)?.execute(values)?;
    if n_rows == 0 {
        return Ok(0);
    }
    if chain_n.is_some() {
        connection.append(&NewEvent {
            kind: EventKind::Begin,
            call: *call_id,
            seq: connection.last_insert_rowid(),
            begun: None,
            record: &record_bytes(0, &values[..N_BEGIN])?,
        })?;
    }
    touch(connection, *conversation_id, *at_ms, 1)?;
    Ok(n_rows)
}

/// Completes the row of a call and adds its event; false when there is none without an end.
pub(super) fn update_finish(connection: &ChainedConnection, finish: &Finish) -> Outcome<bool> {
    const SQL: &str = "
        UPDATE audit SET finished_at_ms = ?2, result = ?3, result_detail = ?4, duration_ms = ?5, error_category = ?6,
                         error_domain = ?7, error_phase = ?8, truncated = ?9, overflow_id = ?10,
                         exit_code = ?11, execution_env = ?12, hosts = ?13, attempts = ?14, cache_age_ms = ?15,
                         cache_bytes = ?16, result_labels = ?17
        WHERE call_id = ?1 AND finished_at_ms IS NULL
        RETURNING seq, chain_n";
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
        hosts,
        attempts,
        cache_age_ms,
        cache_bytes,
        labels,
    } = ending;
    let (result, detail) = label::result_columns(result);
    let values: &[&dyn ToSql] = params![
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
        list_column(hosts),
        attempts,
        cache_age_ms,
        cache_bytes,
        list_column(labels),
    ];
    let mut statement = connection.prepare_cached(SQL)?;
    let row = statement.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((seq, begun)) = row.optional()? else {
        return Ok(false);
    };
    if connection.is_chained() {
        connection.append(&NewEvent {
            kind: EventKind::Finish,
            call: *call_id,
            seq,
            begun,
            record: &record_bytes(FIRST_OF_END, &values[1..])?,
        })?;
    }
    Ok(true)
}

/// A list as a JSON array; null when it is empty.
fn list_column<T: Serialize>(list: &[T]) -> Option<String> {
    (!list.is_empty()).then(|| label::json(&list))
}

/// The rows that pass a filter.
pub(super) fn select(
    connection: &Connection,
    filter: &AuditFilter,
) -> rusqlite::Result<Vec<AuditRecord>> {
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

fn record(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    let begin = BeginRecord {
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
        mcp_server_id: row.get("mcp_server_id")?,
        host: host(row)?,
        turn_id: row.get("turn_id")?,
        goal_id: row.get("goal_id")?,
        skill_name: row.get("skill_name")?,
        agreement: label::from_json(row, 27)?,
        adversarial_verdict: row.get("adversarial_verdict")?,
        facts: facts(row)?,
    };
    let finished_at_ms: Option<i64> = row.get(10)?;
    let ending = finished_at_ms.map(|_| ending(row)).transpose()?;
    Ok(AuditRecord {
        begin,
        finished_at_ms,
        ending,
    })
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
         ORDER BY begun_at_ms LIMIT ?3) WHERE chain_n IS NULL)";
    // Rows go from the old end only, so the numbers tell how many there are at most.
    const MANY: &str = "
        DELETE FROM audit WHERE seq IN (SELECT seq FROM
        (SELECT seq, chain_n FROM audit WHERE seq <= (SELECT max(seq) FROM audit) - ?1
             AND (finished_at_ms IS NOT NULL OR begun_at_ms < ?2)
         ORDER BY seq LIMIT ?3) WHERE chain_n IS NULL)";
    let running_ms = past.at_ms.saturating_sub(UNFINISHED_MS);
    let limits = [(OLD, past.audit_ms), (MANY, past.audit_rows_max)];
    let mut n_alone = 0;
    for (sql, limit) in limits {
        let Some(limit) = limit else { continue };
        let row = params![limit, running_ms, n_max];
        n_alone += connection.prepare_cached(sql)?.execute(row)?;
    }
    let swept = chain::sweep::sweep(connection, past, running_ms, n_max)?;
    Ok(ChainSweep {
        n_removed: swept.n_removed + n_alone,
        ..swept
    })
}

fn facts(row: &Row<'_>) -> rusqlite::Result<BeginFacts> {
    let input: Option<u64> = row.get("tokens_in")?;
    let output: Option<u64> = row.get("tokens_out")?;
    Ok(BeginFacts {
        user: row.get("user")?,
        scope: row.get("scope")?,
        trust: row.get("trust")?,
        labels: list(row, "labels")?,
        observed: row.get("observed")?,
        tokens: input
            .zip(output)
            .map(|(input, output)| TokenUse { input, output }),
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
        hosts: list(row, "hosts")?,
        attempts: row.get("attempts")?,
        cache_age_ms: row.get("cache_age_ms")?,
        cache_bytes: row.get("cache_bytes")?,
        labels: list(row, "result_labels")?,
    })
}

/// A column with a JSON array; empty when it is null.
fn list<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<T>> {
    let column = row.as_ref().column_index(column)?;
    let Some(text) = row.get::<_, Option<String>>(column)? else {
        return Ok(Vec::new());
    };
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

/// Reads a column of text through `FromStr`.
pub(super) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
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
pub(super) fn unreadable(column: usize, error: impl Into<ErrorSource>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
