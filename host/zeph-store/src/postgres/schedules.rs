//! Schedules and their runs.

use std::time::Duration;

use tokio_postgres::Row;
use uuid::Uuid;

use super::clock::now;
use super::transaction::Transaction;
use super::value::{get, label, labelled, parsed};
use crate::audit::record::HostProcess;
use crate::caller::Owner;
use crate::long_tasks::milliseconds;
use crate::operations::Outcome;
use crate::schedules::{
    ENDED_KEPT_MS, NewSchedule, PutSchedule, RunBegin, RunFence, RunFinish, RunHold,
    SCHEDULE_RUNS_KEPT, Schedule, ScheduleBounds, ScheduleClaim, ScheduleOwner, ScheduleRun,
};

/// In the order in which [`schedule`] reads them.
macro_rules! columns {
    () => {
        concat!(
            "id, revision, fence, directory, caller, name, conversation_id, is_model, work, times, next_ms, at_ms, \
             run_id, run_fence, host_pid, host_start, coalesce(held_until_ms <= ",
            now!(),
            ", FALSE)"
        )
    };
}

/// In the order in which [`run`] reads them.
macro_rules! run_columns {
    () => {
        "id, due_ms, begun_at_ms, ended_at_ms, state, note"
    };
}

/// Puts a schedule there, in the place of one of the same owner and name; the run of that one goes on.
pub(super) fn put(
    transaction: &Transaction,
    schedule: &NewSchedule,
    bounds: ScheduleBounds,
    at_ms: i64,
) -> Outcome<PutSchedule> {
    // Others wait: the bounds hold for all hosts together.
    transaction.lock("schedules")?;
    if replace(transaction, schedule, at_ms)? {
        return Ok(PutSchedule::Replaced);
    }
    forget_ended(transaction, at_ms - ENDED_KEPT_MS)?;
    if let Some(refused) = refused(transaction, &schedule.owner, bounds)? {
        return Ok(refused);
    }
    insert(transaction, schedule, at_ms)?;
    Ok(PutSchedule::Created)
}

fn replace(transaction: &Transaction, new: &NewSchedule, at_ms: i64) -> Outcome<bool> {
    const SQL: &str = "
        UPDATE schedules SET revision = revision + 1, fence = fence + 1, claimed_until_ms = NULL, conversation_id = $4, is_model = $5,
            work = $6, times = $7, next_ms = $8, at_ms = $9
        WHERE directory = $1 AND caller = $2 AND name = $3";
    let n_rows = transaction.execute(
        SQL,
        &[
            &new.owner.directory,
            &new.owner.caller.word(),
            &new.name,
            &new.conversation.to_string(),
            &new.is_model,
            &new.work,
            &new.times,
            &new.next_ms,
            &at_ms,
        ],
    )?;
    Ok(n_rows > 0)
}

fn insert(transaction: &Transaction, new: &NewSchedule, at_ms: i64) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO schedules (directory, caller, name, conversation_id, is_model, work, times, next_ms, at_ms, id, revision)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)";
    transaction
        .execute(
            SQL,
            &[
                &new.owner.directory,
                &new.owner.caller.word(),
                &new.name,
                &new.conversation.to_string(),
                &new.is_model,
                &new.work,
                &new.times,
                &new.next_ms,
                &at_ms,
                &Uuid::now_v7().to_string(),
            ],
        )
        .map(drop)
}

/// Removes what has nothing to come since `before_ms`.
fn forget_ended(transaction: &Transaction, before_ms: i64) -> Outcome<()> {
    const SQL: &str = "
        WITH ended AS (
            DELETE FROM schedules WHERE next_ms IS NULL AND run_id IS NULL AND at_ms < $1 RETURNING id)
        DELETE FROM schedule_runs WHERE schedule_id IN (SELECT id FROM ended)";
    transaction.execute(SQL, &[&before_ms]).map(drop)
}

fn refused(
    transaction: &Transaction,
    owner: &ScheduleOwner,
    bounds: ScheduleBounds,
) -> Outcome<Option<PutSchedule>> {
    const SQL: &str = "
        SELECT (SELECT count(*) FROM schedules WHERE directory = $1 AND caller = $2), (SELECT count(*) FROM schedules)";
    let caller = owner.caller.word();
    let row = transaction.query_one(SQL, &[&owner.directory, &caller])?;
    let (own, all): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    let (of_caller, in_all) = (i64::from(bounds.of_caller), i64::from(bounds.in_all));
    Ok(match (own >= of_caller, all >= in_all) {
        (true, _) => Some(PutSchedule::TooMany),
        (false, true) => Some(PutSchedule::Full),
        (false, false) => None,
    })
}

/// Removes a schedule and what is known of its runs.
pub(super) fn cancel(
    transaction: &Transaction,
    owner: &ScheduleOwner,
    name: &str,
) -> Outcome<bool> {
    const SQL: &str =
        "DELETE FROM schedules WHERE directory = $1 AND caller = $2 AND name = $3 RETURNING id";
    let caller = owner.caller.word();
    let Some(row) = transaction.query_opt(SQL, &[&owner.directory, &caller, &name])? else {
        return Ok(false);
    };
    let id: &str = get(&row, 0)?;
    transaction.execute("DELETE FROM schedule_runs WHERE schedule_id = $1", &[&id])?;
    Ok(true)
}

/// Moves schedules to another directory; says how many.
pub(super) fn moved(transaction: &Transaction, from: &str, to: &str) -> Outcome<u64> {
    const SQL: &str = concat!(
        "UPDATE schedules SET directory = $2, at_ms = greatest(at_ms, ",
        now!(),
        ") WHERE directory = $1 AND NOT EXISTS
            (SELECT 1 FROM schedules AS own
             WHERE own.directory = $2 AND own.caller = schedules.caller AND own.name = schedules.name)"
    );
    // Others wait: none of that name comes meanwhile.
    transaction.lock("schedules")?;
    transaction.execute(SQL, &[&from, &to])
}

/// The schedules of one owner or of all, by name.
pub(super) fn listed(
    transaction: &Transaction,
    owner: Option<&ScheduleOwner>,
    limit: u32,
) -> Outcome<Vec<Schedule>> {
    // By bytes, as SQLite sorts.
    const OWN: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM schedules WHERE directory = $1 AND caller = $2 ORDER BY name COLLATE \"C\" LIMIT $3"
    );
    const ALL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM schedules ORDER BY directory COLLATE \"C\", caller COLLATE \"C\", name COLLATE \"C\" LIMIT $1"
    );
    let limit = i64::from(limit);
    let rows = match owner {
        Some(owner) => {
            let caller = owner.caller.word();
            transaction.query(OWN, &[&owner.directory, &caller, &limit])?
        }
        None => transaction.query(ALL, &[&limit])?,
    };
    with_last(transaction, &rows)
}

/// When the next schedule of a directory comes that no host has claimed, and that does not wait for a run since before `waiting_ms`.
pub(super) fn next(
    transaction: &Transaction,
    (directory, of_anybody): (&str, bool),
    waiting_ms: Option<i64>,
) -> Outcome<Option<i64>> {
    const SQL: &str = concat!(
        "SELECT next_ms FROM schedules
        WHERE directory = $1 AND next_ms IS NOT NULL AND (run_id IS NULL OR next_ms >= $2) AND ($3 OR caller <> '?')
        AND (claimed_until_ms IS NULL OR claimed_until_ms <= ",
        now!(),
        ") ORDER BY next_ms LIMIT 1"
    );
    let waiting_ms = waiting_ms.unwrap_or(i64::MIN);
    let row = transaction.query_opt(SQL, &[&directory, &waiting_ms, &of_anybody])?;
    row.map(|row| get(&row, 0)).transpose()
}

/// Claims schedules whose time has come, by the clock of the server too; those that another host claims at the moment are its own.
pub(super) fn claim(transaction: &Transaction, claim: &ScheduleClaim) -> Outcome<Vec<Schedule>> {
    const SQL: &str = concat!(
        "UPDATE schedules SET fence = fence + 1, claimed_until_ms = $3::bigint + ",
        now!(),
        " WHERE id = ANY (ARRAY(SELECT id FROM schedules
            WHERE directory = $1 AND next_ms IS NOT NULL AND next_ms <= least($2::bigint, ",
        now!(),
        ") AND (run_id IS NULL OR next_ms >= $5) AND ($6 OR caller <> '?') AND caller <> ALL ($7::text[]) AND (claimed_until_ms IS NULL OR claimed_until_ms <= ",
        now!(),
        ") ORDER BY next_ms LIMIT $4 FOR UPDATE SKIP LOCKED)) RETURNING ",
        columns!()
    );
    let rows = transaction.query(
        SQL,
        &[
            &claim.directory,
            &claim.now_ms,
            &milliseconds(claim.lease),
            &i64::from(claim.limit),
            &claim.waiting_ms.unwrap_or(i64::MIN),
            &claim.of_anybody,
            &claim.busy_words(),
        ],
    )?;
    let mut claimed = with_last(transaction, &rows)?;
    claimed.sort_by_key(|schedule| schedule.what.next_ms);
    Ok(claimed)
}

/// The schedules of which a run goes on.
pub(super) fn held(transaction: &Transaction, directory: &str) -> Outcome<Vec<Schedule>> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM schedules WHERE run_id IS NOT NULL AND directory = $1"
    );
    let rows = transaction.query(SQL, &[&directory])?;
    with_last(transaction, &rows)
}

/// Begins a run and moves its schedule on, if that is as it was claimed.
pub(super) fn begin_run(transaction: &Transaction, begin: &RunBegin) -> Outcome<bool> {
    const RUN: &str = concat!(
        "UPDATE schedules SET next_ms = $4, at_ms = greatest(at_ms, $5), claimed_until_ms = NULL, run_id = $6, run_fence = fence,
            host_pid = $7, host_start = $8, held_until_ms = $9::bigint + ",
        now!(),
        " WHERE id = $1 AND fence = $2 AND next_ms = $3 AND run_id IS NULL"
    );
    const PASS: &str = "
        UPDATE schedules SET next_ms = $4, at_ms = greatest(at_ms, $5), claimed_until_ms = NULL
        WHERE id = $1 AND fence = $2 AND next_ms = $3";
    let schedule = begin.schedule.to_string();
    let RunBegin {
        fence,
        due_ms,
        next_ms,
        at_ms,
        ..
    } = begin;
    let moved = match &begin.hold {
        Some((host, lease)) => transaction.execute(
            RUN,
            &[
                &schedule,
                fence,
                due_ms,
                next_ms,
                at_ms,
                &begin.run.to_string(),
                &i64::from(host.pid),
                &host.start,
                &milliseconds(*lease),
            ],
        )?,
        None => transaction.execute(PASS, &[&schedule, fence, due_ms, next_ms, at_ms])?,
    };
    if moved == 0 {
        return Ok(false);
    }
    insert_run(transaction, begin)?;
    Ok(true)
}

fn insert_run(transaction: &Transaction, begin: &RunBegin) -> Outcome<()> {
    const INSERT: &str = "
        INSERT INTO schedule_runs (id, schedule_id, due_ms, begun_at_ms, ended_at_ms, state, note) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    const FORGET: &str = "
        DELETE FROM schedule_runs WHERE schedule_id = $1 AND state <> 'running' AND id NOT IN
            (SELECT id FROM schedule_runs WHERE schedule_id = $1 ORDER BY id DESC LIMIT $2)";
    let schedule = begin.schedule.to_string();
    let ended_at_ms = begin.hold.is_none().then_some(begin.at_ms);
    transaction.execute(
        INSERT,
        &[
            &begin.run.to_string(),
            &schedule,
            &begin.due_ms,
            &begin.at_ms,
            &ended_at_ms,
            &label(&begin.state),
            &begin.note,
        ],
    )?;
    transaction
        .execute(FORGET, &[&schedule, &i64::from(SCHEDULE_RUNS_KEPT)])
        .map(drop)
}

/// Holds runs from now on; says which are held.
pub(super) fn keep_runs(
    transaction: &Transaction,
    runs: &[RunFence],
    lease: Duration,
) -> Outcome<Vec<Uuid>> {
    const SQL: &str = concat!(
        "UPDATE schedules AS s SET held_until_ms = $3::bigint + ",
        now!(),
        " FROM unnest($1::text[], $2::bigint[]) AS own (run, fence)
        WHERE s.run_id = own.run AND s.run_fence = own.fence RETURNING s.run_id"
    );
    let ids: Vec<String> = runs.iter().map(|run| run.run.to_string()).collect();
    let fences: Vec<i64> = runs.iter().map(|run| run.fence).collect();
    let rows = transaction.query(SQL, &[&ids, &fences, &milliseconds(lease)])?;
    rows.iter().map(|row| parsed(row, 0)).collect()
}

/// Whether this is who holds a run. Until the end of the transaction nobody takes it over.
pub(super) fn is_held(transaction: &Transaction, fence: RunFence) -> Outcome<bool> {
    const SQL: &str = "SELECT 1 FROM schedules WHERE run_id = $1 AND run_fence = $2 FOR SHARE";
    let row = transaction.query_opt(SQL, &[&fence.run.to_string(), &fence.fence])?;
    Ok(row.is_some())
}

/// Ends a run that goes on.
pub(super) fn finish_run(transaction: &Transaction, finish: &RunFinish) -> Outcome<bool> {
    const SCHEDULE: &str = concat!(
        "UPDATE schedules SET run_id = NULL, run_fence = 0, host_pid = NULL, host_start = NULL, held_until_ms = NULL,
            next_ms = CASE WHEN fence = $2 THEN coalesce($3, next_ms) ELSE next_ms END
        WHERE run_id = $1 AND run_fence = $2 AND (NOT $4::boolean OR held_until_ms <= ",
        now!(),
        ")"
    );
    const RUN: &str = "
        UPDATE schedule_runs SET state = $2, note = $3, ended_at_ms = $4 WHERE id = $1 AND state = 'running'";
    let RunFence { run, fence } = finish.fence;
    let run = run.to_string();
    let ended = transaction.execute(
        SCHEDULE,
        &[&run, &fence, &finish.next_ms, &finish.only_over],
    )?;
    if ended == 0 {
        return Ok(false);
    }
    let state = label(&finish.state);
    let n_rows = transaction.execute(RUN, &[&run, &state, &finish.note, &finish.at_ms])?;
    Ok(n_rows > 0)
}

/// The last runs of a schedule, newest first.
pub(super) fn runs(transaction: &Transaction, schedule: Uuid) -> Outcome<Vec<ScheduleRun>> {
    const SQL: &str = concat!(
        "SELECT ",
        run_columns!(),
        " FROM schedule_runs WHERE schedule_id = $1 ORDER BY id DESC LIMIT $2"
    );
    let kept = i64::from(SCHEDULE_RUNS_KEPT);
    let rows = transaction.query(SQL, &[&schedule.to_string(), &kept])?;
    rows.iter().map(run).collect()
}

/// The schedules of some rows, each with its last run.
fn with_last(transaction: &Transaction, rows: &[Row]) -> Outcome<Vec<Schedule>> {
    const SQL: &str = concat!(
        "SELECT DISTINCT ON (schedule_id) ",
        run_columns!(),
        ", schedule_id FROM schedule_runs WHERE schedule_id = ANY($1) ORDER BY schedule_id, id DESC"
    );
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut schedules: Vec<Schedule> = rows.iter().map(schedule).collect::<Outcome<_>>()?;
    let ids: Vec<String> = schedules.iter().map(|one| one.id.to_string()).collect();
    let last = transaction.query(SQL, &[&ids])?;
    let last = last
        .iter()
        .map(|row| Ok((parsed::<Uuid>(row, 6)?, run(row)?)));
    let mut last: std::collections::HashMap<Uuid, ScheduleRun> = last.collect::<Outcome<_>>()?;
    for schedule in &mut schedules {
        schedule.last = last.remove(&schedule.id);
    }
    Ok(schedules)
}

fn schedule(row: &Row) -> Outcome<Schedule> {
    let is_running = get::<Option<&str>>(row, 12)?.is_some();
    Ok(Schedule {
        id: parsed(row, 0)?,
        revision: get(row, 1)?,
        fence: get(row, 2)?,
        what: NewSchedule {
            owner: ScheduleOwner {
                directory: get(row, 3)?,
                caller: Owner::of_word(get(row, 4)?),
            },
            name: get(row, 5)?,
            conversation: parsed(row, 6)?,
            is_model: get(row, 7)?,
            work: get(row, 8)?,
            times: get(row, 9)?,
            next_ms: get(row, 10)?,
        },
        at_ms: get(row, 11)?,
        held: is_running.then(|| held_by(row)).transpose()?,
        last: None,
    })
}

fn held_by(row: &Row) -> Outcome<RunHold> {
    Ok(RunHold {
        fence: RunFence {
            run: parsed(row, 12)?,
            fence: get(row, 13)?,
        },
        host: HostProcess {
            pid: u32::try_from(get::<i64>(row, 14)?).unwrap_or(0),
            start: get(row, 15)?,
        },
        is_over: get(row, 16)?,
    })
}

fn run(row: &Row) -> Outcome<ScheduleRun> {
    Ok(ScheduleRun {
        id: parsed(row, 0)?,
        due_ms: get(row, 1)?,
        begun_at_ms: get(row, 2)?,
        ended_at_ms: get(row, 3)?,
        state: labelled(row, 4)?,
        note: get(row, 5)?,
    })
}
