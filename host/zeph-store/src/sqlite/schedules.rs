//! Schedules and their runs in SQL.

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::audit::parsed;
use crate::audit::record::HostProcess;
use crate::schedules::{
    NewSchedule, PutSchedule, RunBegin, RunFinish, RunHold, RunState, SCHEDULE_RUNS_KEPT, Schedule,
    ScheduleBounds, ScheduleOwner, ScheduleRun,
};

const COLUMNS: &str = "id, revision, directory, caller, name, conversation_id, is_model, work, times, next_ms, at_ms, \
    run_id, host_pid, host_start, held_until_ms";

const RUN_COLUMNS: &str = "id, due_ms, begun_at_ms, ended_at_ms, state, note";

/// How long a schedule stays that has nothing to come, in milliseconds: its end can be read that long.
const ENDED_KEPT_MS: i64 = 7 * 86_400_000;

/// Puts a schedule there, in the place of one of the same owner and name; the run of that one goes on.
pub(super) fn put(
    connection: &Connection,
    schedule: &NewSchedule,
    bounds: ScheduleBounds,
    at_ms: i64,
) -> rusqlite::Result<PutSchedule> {
    const REPLACE: &str = "
        UPDATE schedules SET revision = revision + 1, conversation_id = ?4, is_model = ?5, work = ?6, times = ?7, next_ms = ?8, at_ms = ?9
        WHERE directory = ?1 AND caller = ?2 AND name = ?3";
    const INSERT: &str = "
        INSERT INTO schedules (directory, caller, name, conversation_id, is_model, work, times, next_ms, at_ms, id, revision)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1)";
    let NewSchedule {
        owner,
        name,
        conversation,
        is_model,
        work,
        times,
        next_ms,
    } = schedule;
    let (caller, conversation) = (caller(owner), conversation.to_string());
    let row: [&dyn ToSql; 9] = [
        &owner.directory,
        &caller,
        name,
        &conversation,
        is_model,
        work,
        times,
        next_ms,
        &at_ms,
    ];
    if connection.prepare_cached(REPLACE)?.execute(&row[..])? > 0 {
        return Ok(PutSchedule::Replaced);
    }
    forget_ended(connection, at_ms - ENDED_KEPT_MS)?;
    if let Some(refused) = refused(connection, (&owner.directory, &caller), bounds)? {
        return Ok(refused);
    }
    let id = Uuid::now_v7().to_string();
    let mut row = row.to_vec();
    row.push(&id);
    connection.prepare_cached(INSERT)?.execute(&row[..])?;
    Ok(PutSchedule::Created)
}

/// Removes what has nothing to come since `before_ms`.
fn forget_ended(connection: &Connection, before_ms: i64) -> rusqlite::Result<()> {
    const RUNS: &str = "
        DELETE FROM schedule_runs WHERE schedule_id IN
            (SELECT id FROM schedules WHERE next_ms IS NULL AND run_id IS NULL AND at_ms < ?1)";
    const SCHEDULES: &str =
        "DELETE FROM schedules WHERE next_ms IS NULL AND run_id IS NULL AND at_ms < ?1";
    connection.prepare_cached(RUNS)?.execute([before_ms])?;
    connection.prepare_cached(SCHEDULES)?.execute([before_ms])?;
    Ok(())
}

fn refused(
    connection: &Connection,
    (directory, caller): (&str, &str),
    bounds: ScheduleBounds,
) -> rusqlite::Result<Option<PutSchedule>> {
    const OWN: &str = "SELECT count(*) FROM schedules WHERE directory = ?1 AND caller = ?2";
    const ALL: &str = "SELECT count(*) FROM schedules";
    let own: u32 = connection
        .prepare_cached(OWN)?
        .query_row([directory, caller], |row| row.get(0))?;
    let all: u32 = connection
        .prepare_cached(ALL)?
        .query_row([], |row| row.get(0))?;
    Ok(match (own >= bounds.of_caller, all >= bounds.in_all) {
        (true, _) => Some(PutSchedule::TooMany),
        (false, true) => Some(PutSchedule::Full),
        (false, false) => None,
    })
}

/// Removes a schedule and what is known of its runs.
pub(super) fn cancel(
    connection: &Connection,
    owner: &ScheduleOwner,
    name: &str,
) -> rusqlite::Result<bool> {
    const SQL: &str =
        "DELETE FROM schedules WHERE directory = ?1 AND caller = ?2 AND name = ?3 RETURNING id";
    let removed: Option<String> = connection
        .prepare_cached(SQL)?
        .query_row(params![owner.directory, caller(owner), name], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(id) = &removed {
        connection
            .prepare_cached("DELETE FROM schedule_runs WHERE schedule_id = ?1")?
            .execute([id])?;
    }
    Ok(removed.is_some())
}

/// The schedules of one owner or of all, by name.
pub(super) fn listed(
    connection: &Connection,
    owner: Option<&ScheduleOwner>,
    limit: u32,
) -> rusqlite::Result<Vec<Schedule>> {
    match owner {
        Some(owner) => select(
            connection,
            "directory = ?1 AND caller = ?2 ORDER BY name LIMIT ?3",
            params![owner.directory, caller(owner), limit],
        ),
        None => select(
            connection,
            "true ORDER BY directory, caller, name LIMIT ?1",
            params![limit],
        ),
    }
}

/// When the next schedule of a directory comes.
pub(super) fn next(connection: &Connection, directory: &str) -> rusqlite::Result<Option<i64>> {
    const SQL: &str =
        "SELECT min(next_ms) FROM schedules WHERE directory = ?1 AND next_ms IS NOT NULL";
    let mut statement = connection.prepare_cached(SQL)?;
    statement.query_row([directory], |row| row.get(0))
}

/// The schedules whose time has come.
pub(super) fn due(
    connection: &Connection,
    directory: &str,
    now_ms: i64,
    limit: u32,
) -> rusqlite::Result<Vec<Schedule>> {
    let clause =
        "directory = ?1 AND next_ms IS NOT NULL AND next_ms <= ?2 ORDER BY next_ms LIMIT ?3";
    select(connection, clause, params![directory, now_ms, limit])
}

/// The schedules of which a run goes on.
pub(super) fn held(connection: &Connection, directory: &str) -> rusqlite::Result<Vec<Schedule>> {
    let clause = "run_id IS NOT NULL AND directory = ?1";
    select(connection, clause, params![directory])
}

/// Begins a run and moves its schedule on, if both are as they were read.
pub(super) fn begin_run(connection: &Connection, begin: &RunBegin) -> rusqlite::Result<bool> {
    const RUN: &str = "
        UPDATE schedules SET next_ms = ?4, at_ms = max(at_ms, ?5), run_id = ?6, host_pid = ?7, host_start = ?8, held_until_ms = ?9
        WHERE id = ?1 AND revision = ?2 AND next_ms = ?3 AND run_id IS NULL";
    const PASS: &str = "
        UPDATE schedules SET next_ms = ?4, at_ms = max(at_ms, ?5) WHERE id = ?1 AND revision = ?2 AND next_ms = ?3";
    let (schedule, run) = (begin.schedule.to_string(), begin.run.to_string());
    let moved = match &begin.hold {
        Some((host, until_ms)) => connection.prepare_cached(RUN)?.execute(params![
            schedule,
            begin.revision,
            begin.due_ms,
            begin.next_ms,
            begin.at_ms,
            run,
            host.pid,
            host.start,
            until_ms
        ])?,
        None => connection.prepare_cached(PASS)?.execute(params![
            schedule,
            begin.revision,
            begin.due_ms,
            begin.next_ms,
            begin.at_ms
        ])?,
    };
    if moved == 0 {
        return Ok(false);
    }
    insert_run(connection, begin)?;
    Ok(true)
}

fn insert_run(connection: &Connection, begin: &RunBegin) -> rusqlite::Result<()> {
    const INSERT: &str = "
        INSERT INTO schedule_runs (id, schedule_id, due_ms, begun_at_ms, ended_at_ms, state, note) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    const FORGET: &str = "
        DELETE FROM schedule_runs WHERE schedule_id = ?1 AND state <> 'running' AND id NOT IN
            (SELECT id FROM schedule_runs WHERE schedule_id = ?1 ORDER BY id DESC LIMIT ?2)";
    let schedule = begin.schedule.to_string();
    let ended_at_ms = begin.hold.is_none().then_some(begin.at_ms);
    connection.prepare_cached(INSERT)?.execute(params![
        begin.run.to_string(),
        schedule,
        begin.due_ms,
        begin.at_ms,
        ended_at_ms,
        label(&begin.state),
        begin.note
    ])?;
    connection
        .prepare_cached(FORGET)?
        .execute(params![schedule, SCHEDULE_RUNS_KEPT])
        .map(drop)
}

/// Says until when a process holds its runs.
pub(super) fn keep_runs(
    connection: &Connection,
    host: &HostProcess,
    until_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        UPDATE schedules SET held_until_ms = ?3 WHERE run_id IS NOT NULL AND host_pid = ?1 AND host_start = ?2";
    let row = params![host.pid, host.start, until_ms];
    connection.prepare_cached(SQL)?.execute(row).map(drop)
}

/// Ends a run that goes on.
pub(super) fn finish_run(connection: &Connection, finish: &RunFinish) -> rusqlite::Result<bool> {
    const RUN: &str = "
        UPDATE schedule_runs SET state = ?2, note = ?3, ended_at_ms = ?4 WHERE id = ?1 AND state = 'running'";
    const SCHEDULE: &str = "
        UPDATE schedules SET run_id = NULL, host_pid = NULL, host_start = NULL, held_until_ms = NULL, next_ms = coalesce(?2, next_ms)
        WHERE run_id = ?1";
    let run = finish.run.to_string();
    let state = label(&finish.state);
    let ended =
        connection
            .prepare_cached(RUN)?
            .execute(params![run, state, finish.note, finish.at_ms])?;
    connection
        .prepare_cached(SCHEDULE)?
        .execute(params![run, finish.next_ms])?;
    Ok(ended > 0)
}

/// The last runs of a schedule, newest first.
pub(super) fn runs(connection: &Connection, schedule: Uuid) -> rusqlite::Result<Vec<ScheduleRun>> {
    let sql = format!(
        "SELECT {RUN_COLUMNS} FROM schedule_runs WHERE schedule_id = ?1 ORDER BY id DESC LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![schedule.to_string(), SCHEDULE_RUNS_KEPT], run)?;
    rows.collect()
}

fn select(
    connection: &Connection,
    clause: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<Vec<Schedule>> {
    let sql = format!("SELECT {COLUMNS} FROM schedules WHERE {clause}");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map(values, schedule)?;
    let found: Vec<Schedule> = found.collect::<rusqlite::Result<_>>()?;
    found
        .into_iter()
        .map(|schedule| with_last(connection, schedule))
        .collect()
}

fn with_last(connection: &Connection, schedule: Schedule) -> rusqlite::Result<Schedule> {
    let sql = format!(
        "SELECT {RUN_COLUMNS} FROM schedule_runs WHERE schedule_id = ?1 ORDER BY id DESC LIMIT 1"
    );
    let last = connection
        .prepare_cached(&sql)?
        .query_row([schedule.id.to_string()], run)
        .optional()?;
    Ok(Schedule { last, ..schedule })
}

fn schedule(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    let caller: String = row.get(3)?;
    let held: Option<String> = row.get(11)?;
    let held = match held {
        None => None,
        Some(_) => Some(RunHold {
            run: parsed(row, 11)?,
            host: HostProcess {
                pid: row.get(12)?,
                start: row.get(13)?,
            },
            until_ms: row.get(14)?,
        }),
    };
    Ok(Schedule {
        id: parsed(row, 0)?,
        revision: row.get(1)?,
        what: NewSchedule {
            owner: ScheduleOwner {
                directory: row.get(2)?,
                caller: caller.strip_prefix('@').map(str::to_owned),
            },
            name: row.get(4)?,
            conversation: parsed(row, 5)?,
            is_model: row.get(6)?,
            work: row.get(7)?,
            times: row.get(8)?,
            next_ms: row.get(9)?,
        },
        at_ms: row.get(10)?,
        held,
        last: None,
    })
}

fn run(row: &Row<'_>) -> rusqlite::Result<ScheduleRun> {
    Ok(ScheduleRun {
        id: parsed(row, 0)?,
        due_ms: row.get(1)?,
        begun_at_ms: row.get(2)?,
        ended_at_ms: row.get(3)?,
        state: labelled::<RunState>(row, 4)?,
        note: row.get(5)?,
    })
}

/// A caller as a word that is never null: nobody and a caller without letters differ.
fn caller(owner: &ScheduleOwner) -> String {
    let caller = owner.caller.as_deref();
    caller.map_or_else(String::new, |caller| format!("@{caller}"))
}

/// The word for a value, as in JSON.
fn label<T: Serialize>(value: &T) -> String {
    super::label::json(value).trim_matches('"').to_owned()
}

fn labelled<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let value = serde_json::from_value(serde_json::Value::String(text));
    value.map_err(|error| super::audit::unreadable(column, error))
}
