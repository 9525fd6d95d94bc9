//! Calls that outlive their request in SQL. The clock is that of the database.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::audit::{parsed, unreadable};
use super::clock::{now, now_ms};
use super::conversation::touch;
use crate::audit::record::HostProcess;
use crate::caller::Owner;
use crate::long_tasks::{
    LapsedTask, LongTask, LongTaskAsker, LongTaskBounds, LongTaskClaim, LongTaskEnd, LongTaskHold,
    LongTaskNews, LongTaskOwner, LongTaskState, NewLongTask, milliseconds, task_columns,
};

/// Begins a task.
pub(super) fn put(
    connection: &Connection,
    task: &NewLongTask,
    bounds: LongTaskBounds,
    lease: Duration,
) -> rusqlite::Result<Option<LongTask>> {
    const SQL: &str = concat!(
        "INSERT INTO long_tasks (id, caller, conversation_id, workspace, call, state, message, is_cancelled, fence,
            created_at_ms, changed_at_ms, lifetime_ms, held_until_ms, gone_at_ms, host_pid, host_start)
        SELECT ?1, ?2, ?3, ?4, ?5, 'working', ?6, 0, 1, now, now, ?7, now + ?8, now + 2 * ?7, ?9, ?10
        FROM (SELECT ",
        now!(),
        " AS now) RETURNING ",
        task_columns!(now!())
    );
    let NewLongTask {
        id,
        owner,
        host,
        workspace,
        call,
        message,
        lifetime,
    } = task;
    sweep(connection, u32::MAX)?;
    let (of_caller, in_all) = count(connection, owner)?;
    if of_caller >= bounds.of_caller || in_all >= bounds.in_all {
        return Ok(None);
    }
    forget_ended(connection, owner, bounds)?;
    touch(connection, owner.conversation, now_ms(connection)?, 0)?;
    let row = params![
        id.to_string(),
        owner.caller.word(),
        owner.conversation.to_string(),
        workspace,
        call,
        message,
        milliseconds(*lifetime),
        milliseconds(lease),
        host.pid,
        host.start,
    ];
    let mut statement = connection.prepare_cached(SQL)?;
    statement.query_row(row, self::task).map(Some)
}

/// The tasks of an owner that work, and all that do. What belongs to nobody is counted by conversation.
pub(super) fn count(connection: &Connection, of: &LongTaskOwner) -> rusqlite::Result<(u32, u32)> {
    const SQL: &str = "
        SELECT (SELECT count(*) FROM long_tasks
                WHERE state = 'working' AND caller = ?1 AND (?1 <> '' OR conversation_id = ?2)),
            (SELECT count(*) FROM long_tasks WHERE state = 'working')";
    connection
        .prepare_cached(SQL)?
        .query_row([of.caller.word(), of.conversation.to_string()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
}

/// Forgets the oldest of the tasks that have ended, where there are too many of an owner or in all.
fn forget_ended(
    connection: &Connection,
    of: &LongTaskOwner,
    bounds: LongTaskBounds,
) -> rusqlite::Result<()> {
    const OF_ONE: &str = "
        DELETE FROM long_tasks WHERE id IN (SELECT id FROM long_tasks
            WHERE state <> 'working' AND caller = ?1 AND (?1 <> '' OR conversation_id = ?2)
            ORDER BY changed_at_ms DESC, id LIMIT -1 OFFSET ?3)";
    // Each caller keeps its newest, as many as the others do.
    const IN_ALL: &str = "
        DELETE FROM long_tasks WHERE id IN (SELECT id FROM (SELECT id, changed_at_ms,
                row_number() OVER (PARTITION BY caller ORDER BY changed_at_ms DESC, id) AS nth
                FROM long_tasks WHERE state <> 'working')
            ORDER BY nth, changed_at_ms DESC, id LIMIT -1 OFFSET ?1)
        AND (SELECT count(*) FROM long_tasks WHERE state <> 'working') > ?1";
    connection.prepare_cached(OF_ONE)?.execute(params![
        of.caller.word(),
        of.conversation.to_string(),
        bounds.of_caller
    ])?;
    connection
        .prepare_cached(IN_ALL)?
        .execute([bounds.in_all])
        .map(drop)
}

/// A task of who asks.
pub(super) fn one(
    connection: &Connection,
    id: Uuid,
    asker: &LongTaskAsker,
) -> rusqlite::Result<Option<LongTask>> {
    const SQL: &str = concat!(
        "SELECT ",
        task_columns!(now!()),
        " FROM long_tasks WHERE id = ?1 AND caller = ?2 AND (?3 IS NULL OR conversation_id = ?3)"
    );
    let found = connection
        .prepare_cached(SQL)?
        .query_row(asked(id, asker), task)
        .optional()?;
    let Some(found) = found else { return Ok(None) };
    let questions = match found.state {
        LongTaskState::Working => questions(connection, id)?,
        _ => Vec::new(),
    };
    Ok(Some(LongTask { questions, ..found }))
}

fn questions(connection: &Connection, id: Uuid) -> rusqlite::Result<Vec<(String, String)>> {
    const SQL: &str = "
        SELECT key, question FROM long_task_questions WHERE task_id = ?1 AND answer IS NULL ORDER BY key";
    let mut statement = connection.prepare_cached(SQL)?;
    let rows = statement.query_map([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Marks a task of who asks as to be ended; false when there is none.
pub(super) fn cancel(
    connection: &Connection,
    id: Uuid,
    asker: &LongTaskAsker,
) -> rusqlite::Result<bool> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET is_cancelled = is_cancelled OR state = 'working',
            changed_at_ms = CASE WHEN state = 'working' THEN ",
        now!(),
        " ELSE changed_at_ms END
        WHERE id = ?1 AND caller = ?2 AND (?3 IS NULL OR conversation_id = ?3)"
    );
    let n_rows = connection.prepare_cached(SQL)?.execute(asked(id, asker))?;
    Ok(n_rows > 0)
}

/// Keeps answers to questions; false when there is no such task of who asks.
pub(super) fn answer(
    connection: &Connection,
    id: Uuid,
    asker: &LongTaskAsker,
    answers: &[(String, String)],
) -> rusqlite::Result<bool> {
    const TASK: &str = concat!(
        "UPDATE long_tasks SET changed_at_ms = ",
        now!(),
        " WHERE id = ?1 AND caller = ?2 AND (?3 IS NULL OR conversation_id = ?3)"
    );
    const ANSWER: &str = "
        UPDATE long_task_questions SET answer = ?3 WHERE task_id = ?1 AND key = ?2 AND answer IS NULL";
    let n_rows = connection.prepare_cached(TASK)?.execute(asked(id, asker))?;
    if n_rows == 0 {
        return Ok(false);
    }
    let id = id.to_string();
    for (key, answer) in answers {
        connection
            .prepare_cached(ANSWER)?
            .execute([&id, key, answer])?;
    }
    Ok(true)
}

/// Holds tasks from now on; says what has come for those that are held.
pub(super) fn keep(
    connection: &Connection,
    holds: &[LongTaskHold],
    lease: Duration,
) -> rusqlite::Result<Vec<LongTaskNews>> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET held_until_ms = ?3 + ",
        now!(),
        " WHERE id = ?1 AND fence = ?2 AND state = 'working' RETURNING is_cancelled"
    );
    let mut news = Vec::new();
    for hold in holds {
        let row = params![hold.task.to_string(), hold.fence, milliseconds(lease)];
        let is_cancelled: Option<bool> = connection
            .prepare_cached(SQL)?
            .query_row(row, |row| row.get(0))
            .optional()?;
        if let Some(is_cancelled) = is_cancelled {
            news.push(LongTaskNews {
                task: hold.task,
                is_cancelled,
                answers: answers(connection, hold.task)?,
            });
        }
    }
    Ok(news)
}

fn answers(connection: &Connection, id: Uuid) -> rusqlite::Result<Vec<(String, String)>> {
    const SQL: &str = "
        SELECT key, answer FROM long_task_questions WHERE task_id = ?1 AND answer IS NOT NULL ORDER BY key";
    let mut statement = connection.prepare_cached(SQL)?;
    let rows = statement.query_map([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Puts a question of a task that is held.
pub(super) fn ask(
    connection: &Connection,
    hold: LongTaskHold,
    key: &str,
    question: &str,
) -> rusqlite::Result<bool> {
    const QUESTION: &str = "
        INSERT INTO long_task_questions (task_id, key, question) VALUES (?1, ?2, ?3)";
    if !change(connection, hold)? {
        return Ok(false);
    }
    connection
        .prepare_cached(QUESTION)?
        .execute([&hold.task.to_string(), key, question])?;
    Ok(true)
}

/// Takes a question of a task back that is held.
pub(super) fn withdraw(
    connection: &Connection,
    hold: LongTaskHold,
    key: &str,
) -> rusqlite::Result<bool> {
    const SQL: &str = "DELETE FROM long_task_questions WHERE task_id = ?1 AND key = ?2";
    if !change(connection, hold)? {
        return Ok(false);
    }
    connection
        .prepare_cached(SQL)?
        .execute([&hold.task.to_string(), key])?;
    Ok(true)
}

/// Notes that a task changes that is held; false when it is not.
fn change(connection: &Connection, hold: LongTaskHold) -> rusqlite::Result<bool> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET changed_at_ms = ",
        now!(),
        " WHERE id = ?1 AND fence = ?2 AND state = 'working'"
    );
    let row = params![hold.task.to_string(), hold.fence];
    Ok(connection.prepare_cached(SQL)?.execute(row)? > 0)
}

/// Ends a task that is held.
pub(super) fn end(
    connection: &Connection,
    hold: LongTaskHold,
    end: &LongTaskEnd,
) -> rusqlite::Result<bool> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET state = ?3, message = ?4, result = ?5, call = NULL,
            changed_at_ms = now.ms, gone_at_ms = now.ms + lifetime_ms
        FROM (SELECT ",
        now!(),
        " AS ms) AS now WHERE id = ?1 AND fence = ?2 AND state = 'working'"
    );
    let id = hold.task.to_string();
    let row = params![id, hold.fence, end.state.label(), end.message, end.result];
    let n_rows = connection.prepare_cached(SQL)?.execute(row)?;
    if n_rows > 0 {
        forget_questions(connection, &id)?;
    }
    Ok(n_rows > 0)
}

fn forget_questions(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM long_task_questions WHERE task_id = ?1")?
        .execute([id])
        .map(drop)
}

/// Lets go of a task that is held.
pub(super) fn release(connection: &Connection, hold: LongTaskHold) -> rusqlite::Result<bool> {
    const SQL: &str = "
        UPDATE long_tasks SET held_until_ms = 0, host_pid = NULL, host_start = NULL
        WHERE id = ?1 AND fence = ?2 AND state = 'working'";
    let row = params![hold.task.to_string(), hold.fence];
    Ok(connection.prepare_cached(SQL)?.execute(row)? > 0)
}

/// Whether this is who holds a task.
pub(super) fn is_held(connection: &Connection, hold: LongTaskHold) -> rusqlite::Result<bool> {
    const SQL: &str = "SELECT 1 FROM long_tasks WHERE id = ?1 AND fence = ?2 AND state = 'working'";
    let row = params![hold.task.to_string(), hold.fence];
    connection.prepare_cached(SQL)?.exists(row)
}

/// Takes over tasks that nobody holds.
pub(super) fn claim(
    connection: &Connection,
    claim: &LongTaskClaim,
) -> rusqlite::Result<Vec<LongTask>> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET fence = fence + 1, host_pid = ?2, host_start = ?3, held_until_ms = ?4 + ",
        now!(),
        " WHERE id = ?1 RETURNING ",
        task_columns!(now!())
    );
    sweep(connection, claim.limit)?;
    let mut claimed = Vec::new();
    for LapsedTask { id, .. } in claim.of(lapsed(connection, claim)?) {
        let lease = milliseconds(claim.lease);
        let row = params![id, claim.host.pid, claim.host.start, lease];
        claimed.push(connection.prepare_cached(SQL)?.query_row(row, task)?);
        forget_questions(connection, &id)?;
    }
    Ok(claimed)
}

/// The tasks whose lease is over that a host may take over, the longest over first.
fn lapsed(connection: &Connection, claim: &LongTaskClaim) -> rusqlite::Result<Vec<LapsedTask>> {
    const SQL: &str = concat!(
        "SELECT id, fence, host_pid, host_start FROM long_tasks, (SELECT ",
        now!(),
        " AS ms) AS now
        WHERE state = 'working' AND held_until_ms <= now.ms
            AND (call IS NULL OR workspace = ?1 AND ?2 OR held_until_ms <= now.ms - ?3)
        ORDER BY held_until_ms"
    );
    let elsewhere_after = milliseconds(claim.elsewhere_after);
    let row = params![claim.workspace, claim.repeats, elsewhere_after];
    let mut statement = connection.prepare_cached(SQL)?;
    let lapsed = statement.query_map(row, |row| {
        let host = match (row.get(2)?, row.get(3)?) {
            (Some(pid), Some(start)) => Some(HostProcess { pid, start }),
            _ => None,
        };
        Ok(LapsedTask {
            id: row.get(0)?,
            fence: row.get(1)?,
            host,
        })
    })?;
    lapsed.collect()
}

/// Forgets tasks whose time is over and that nobody holds.
fn sweep(connection: &Connection, n_max: u32) -> rusqlite::Result<usize> {
    const SQL: &str = concat!(
        "DELETE FROM long_tasks WHERE id IN (SELECT id FROM long_tasks WHERE gone_at_ms <= ",
        now!(),
        " AND (state <> 'working' OR held_until_ms <= ",
        now!(),
        ") LIMIT ?1)"
    );
    connection.prepare_cached(SQL)?.execute([n_max])
}

/// A task, and who asks about it.
fn asked(id: Uuid, asker: &LongTaskAsker) -> (String, String, Option<String>) {
    (
        id.to_string(),
        asker.caller.word(),
        asker.conversation.map(|id| id.to_string()),
    )
}

fn task(row: &Row<'_>) -> rusqlite::Result<LongTask> {
    let caller: String = row.get(1)?;
    let state: String = row.get(5)?;
    let unknown = || unreadable(5, format!("`{state}` is not known"));
    let age_ms: i64 = row.get(13)?;
    Ok(LongTask {
        id: parsed(row, 0)?,
        owner: LongTaskOwner {
            caller: Owner::of_word(&caller),
            conversation: parsed(row, 2)?,
        },
        workspace: row.get(3)?,
        call: row.get(4)?,
        state: LongTaskState::of_label(&state).ok_or_else(unknown)?,
        message: row.get(6)?,
        questions: Vec::new(),
        result: row.get(7)?,
        is_cancelled: row.get(8)?,
        fence: row.get(9)?,
        created_at_ms: row.get(10)?,
        changed_at_ms: row.get(11)?,
        lifetime: Duration::from_millis(row.get::<_, i64>(12)?.unsigned_abs()),
        age: Duration::from_millis(age_ms.try_into().unwrap_or(0)),
    })
}
