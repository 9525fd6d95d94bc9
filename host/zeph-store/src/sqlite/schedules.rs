//! Schedules and their runs in SQL.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::audit::parsed;
use super::clock::now;
use crate::audit::record::HostProcess;
use crate::caller::Owner;
use crate::long_tasks::milliseconds;
use crate::schedules::{
    ENDED_KEPT_MS, NewSchedule, PutSchedule, RunBegin, RunFence, RunFinish, RunHold, RunState,
    SCHEDULE_RUNS_KEPT, Schedule, ScheduleBounds, ScheduleClaim, ScheduleOwner, ScheduleRun,
};

/// In the order in which [`schedule`] reads them.
const COLUMNS: &str = concat!(
    "id, revision, fence, directory, caller, name, conversation_id, is_model, work, times, next_ms, at_ms, \
     run_id, run_fence, host_pid, host_start, held_until_ms <= ",
    now!()
);

const RUN_COLUMNS: &str = "id, due_ms, begun_at_ms, ended_at_ms, state, note";

/// Puts a schedule there, in the place of one of the same owner and name; the run of that one goes on.
pub(super) fn put(
    connection: &Connection,
    schedule: &NewSchedule,
    bounds: ScheduleBounds,
    at_ms: i64,
) -> rusqlite::Result<PutSchedule> {
    const REPLACE: &str = "
        UPDATE schedules SET revision = revision + 1, fence = fence + 1, claimed_until_ms = NULL, conversation_id = ?4, is_model = ?5, work = ?6, times = ?7, next_ms = ?8, at_ms = ?9
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
    let (caller, conversation) = (owner.caller.word(), conversation.to_string());
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
        .query_row(params![owner.directory, owner.caller.word(), name], |row| {
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

/// Moves schedules to another directory; says how many.
pub(super) fn moved(connection: &Connection, from: &str, to: &str) -> rusqlite::Result<u64> {
    const SQL: &str = concat!(
        "UPDATE schedules SET directory = ?2, at_ms = max(at_ms, ",
        now!(),
        ") WHERE directory = ?1 AND NOT EXISTS
            (SELECT 1 FROM schedules AS own
             WHERE own.directory = ?2 AND own.caller = schedules.caller AND own.name = schedules.name)"
    );
    let n_rows = connection.prepare_cached(SQL)?.execute([from, to])?;
    Ok(n_rows as u64)
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
            params![owner.directory, owner.caller.word(), limit],
        ),
        None => select(
            connection,
            "true ORDER BY directory, caller, name LIMIT ?1",
            params![limit],
        ),
    }
}

/// When the next schedule of a directory comes that no host has claimed, and that does not wait for a run since before `waiting_ms`.
pub(super) fn next(
    connection: &Connection,
    (directory, of_anybody): (&str, bool),
    waiting_ms: Option<i64>,
) -> rusqlite::Result<Option<i64>> {
    const SQL: &str = concat!(
        "SELECT next_ms FROM schedules
        WHERE directory = ?1 AND next_ms IS NOT NULL AND (run_id IS NULL OR next_ms >= ?2) AND (?3 OR caller <> '?')
        AND (claimed_until_ms IS NULL OR claimed_until_ms <= ",
        now!(),
        ") ORDER BY next_ms LIMIT 1"
    );
    let mut statement = connection.prepare_cached(SQL)?;
    let waiting_ms = waiting_ms.unwrap_or(i64::MIN);
    statement
        .query_row(params![directory, waiting_ms, of_anybody], |row| row.get(0))
        .optional()
}

/// Claims schedules whose time has come.
pub(super) fn claim(
    connection: &Connection,
    claim: &ScheduleClaim,
) -> rusqlite::Result<Vec<Schedule>> {
    const CLAIM: &str = concat!(
        "UPDATE schedules SET fence = fence + 1, claimed_until_ms = ?3 + ",
        now!(),
        " WHERE id IN (SELECT id FROM schedules
            WHERE directory = ?1 AND next_ms IS NOT NULL AND next_ms <= ?2 AND (run_id IS NULL OR next_ms >= ?5)
            AND (?6 OR caller <> '?') AND caller NOT IN (SELECT value FROM json_each(?7)) AND (claimed_until_ms IS NULL OR claimed_until_ms <= ",
        now!(),
        ") ORDER BY next_ms LIMIT ?4) RETURNING "
    );
    let row = params![
        claim.directory,
        claim.now_ms,
        milliseconds(claim.lease),
        claim.limit,
        claim.waiting_ms.unwrap_or(i64::MIN),
        claim.of_anybody,
        super::label::json(&claim.busy_words())
    ];
    let mut claimed = found(connection, &format!("{CLAIM}{COLUMNS}"), row)?;
    claimed.sort_by_key(|schedule| schedule.what.next_ms);
    Ok(claimed)
}

/// The schedules of which a run goes on.
pub(super) fn held(connection: &Connection, directory: &str) -> rusqlite::Result<Vec<Schedule>> {
    let clause = "run_id IS NOT NULL AND directory = ?1";
    select(connection, clause, params![directory])
}

/// Begins a run and moves its schedule on, if that is as it was claimed.
pub(super) fn begin_run(connection: &Connection, begin: &RunBegin) -> rusqlite::Result<bool> {
    const RUN: &str = concat!(
        "UPDATE schedules SET next_ms = ?4, at_ms = max(at_ms, ?5), claimed_until_ms = NULL, run_id = ?6, run_fence = fence,
            host_pid = ?7, host_start = ?8, held_until_ms = ?9 + ",
        now!(),
        " WHERE id = ?1 AND fence = ?2 AND next_ms = ?3 AND run_id IS NULL"
    );
    const PASS: &str = "
        UPDATE schedules SET next_ms = ?4, at_ms = max(at_ms, ?5), claimed_until_ms = NULL
        WHERE id = ?1 AND fence = ?2 AND next_ms = ?3";
    let (schedule, run) = (begin.schedule.to_string(), begin.run.to_string());
    let moved = match &begin.hold {
        Some((host, lease)) => connection.prepare_cached(RUN)?.execute(params![
            schedule,
            begin.fence,
            begin.due_ms,
            begin.next_ms,
            begin.at_ms,
            run,
            host.pid,
            host.start,
            milliseconds(*lease)
        ])?,
        None => connection.prepare_cached(PASS)?.execute(params![
            schedule,
            begin.fence,
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

/// Holds runs from now on; says which are held.
pub(super) fn keep_runs(
    connection: &Connection,
    runs: &[RunFence],
    lease: Duration,
) -> rusqlite::Result<Vec<Uuid>> {
    const SQL: &str = concat!(
        "UPDATE schedules SET held_until_ms = ?3 + ",
        now!(),
        " WHERE run_id = ?1 AND run_fence = ?2"
    );
    let mut held = Vec::new();
    for RunFence { run, fence } in runs {
        let row = params![run.to_string(), fence, milliseconds(lease)];
        if connection.prepare_cached(SQL)?.execute(row)? > 0 {
            held.push(*run);
        }
    }
    Ok(held)
}

/// Whether this is who holds a run.
pub(super) fn is_held(connection: &Connection, fence: RunFence) -> rusqlite::Result<bool> {
    const SQL: &str = "SELECT 1 FROM schedules WHERE run_id = ?1 AND run_fence = ?2";
    let row = params![fence.run.to_string(), fence.fence];
    connection.prepare_cached(SQL)?.exists(row)
}

/// Ends a run that goes on.
pub(super) fn finish_run(connection: &Connection, finish: &RunFinish) -> rusqlite::Result<bool> {
    const SCHEDULE: &str = concat!(
        "UPDATE schedules SET run_id = NULL, run_fence = 0, host_pid = NULL, host_start = NULL, held_until_ms = NULL,
            next_ms = CASE WHEN fence = ?2 THEN coalesce(?3, next_ms) ELSE next_ms END
        WHERE run_id = ?1 AND run_fence = ?2 AND (NOT ?4 OR held_until_ms <= ",
        now!(),
        ")"
    );
    const RUN: &str = "
        UPDATE schedule_runs SET state = ?2, note = ?3, ended_at_ms = ?4 WHERE id = ?1 AND state = 'running'";
    let RunFence { run, fence } = finish.fence;
    let run = run.to_string();
    let row = params![run, fence, finish.next_ms, finish.only_over];
    if connection.prepare_cached(SCHEDULE)?.execute(row)? == 0 {
        return Ok(false);
    }
    let row = params![run, label(&finish.state), finish.note, finish.at_ms];
    Ok(connection.prepare_cached(RUN)?.execute(row)? > 0)
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
    found(connection, &sql, values)
}

fn found(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<Vec<Schedule>> {
    let mut statement = connection.prepare_cached(sql)?;
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
    let caller: String = row.get(4)?;
    let held: Option<String> = row.get(12)?;
    let held = match held {
        None => None,
        Some(_) => Some(RunHold {
            fence: RunFence {
                run: parsed(row, 12)?,
                fence: row.get(13)?,
            },
            host: HostProcess {
                pid: row.get(14)?,
                start: row.get(15)?,
            },
            is_over: row.get(16)?,
        }),
    };
    Ok(Schedule {
        id: parsed(row, 0)?,
        revision: row.get(1)?,
        fence: row.get(2)?,
        what: NewSchedule {
            owner: ScheduleOwner {
                directory: row.get(3)?,
                caller: Owner::of_word(&caller),
            },
            name: row.get(5)?,
            conversation: parsed(row, 6)?,
            is_model: row.get(7)?,
            work: row.get(8)?,
            times: row.get(9)?,
            next_ms: row.get(10)?,
        },
        at_ms: row.get(11)?,
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

/// The word for a value, as in JSON.
fn label<T: Serialize>(value: &T) -> String {
    super::label::json(value).trim_matches('"').to_owned()
}

fn labelled<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let value = serde_json::from_value(serde_json::Value::String(text));
    value.map_err(|error| super::audit::unreadable(column, error))
}
