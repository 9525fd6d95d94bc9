//! Calls that outlive their request. The clock is that of the server.

use std::time::Duration;

use tokio_postgres::Row;
use uuid::Uuid;

use super::clock::{now, now_ms};
use super::conversation::touch;
use super::transaction::Transaction;
use super::value::{count as counted, get, parsed, unreadable};
use crate::audit::record::HostProcess;
use crate::caller::Owner;
use crate::long_tasks::{
    LapsedTask, LongTask, LongTaskAsker, LongTaskBounds, LongTaskClaim, LongTaskEnd, LongTaskHold,
    LongTaskNews, LongTaskOwner, LongTaskState, NewLongTask, milliseconds, task_columns,
};
use crate::operations::Outcome;

/// Which task, of whom.
macro_rules! asked {
    () => {
        "id = $1 AND caller = $2 AND ($3::text IS NULL OR conversation_id = $3)"
    };
}

/// Begins a task.
pub(super) fn put(
    transaction: &Transaction,
    task: &NewLongTask,
    bounds: LongTaskBounds,
    lease: Duration,
) -> Outcome<Option<LongTask>> {
    const SQL: &str = concat!(
        "INSERT INTO long_tasks (id, caller, conversation_id, workspace, call, state, message, is_cancelled, fence,
            created_at_ms, changed_at_ms, lifetime_ms, held_until_ms, gone_at_ms, host_pid, host_start)
        SELECT $1::text, $2::text, $3::text, $4::text, $5::text, 'working', $6::text, FALSE, 1,
            moment, moment, $7::bigint, moment + $8::bigint, moment + 2 * $7::bigint, $9::bigint, $10::text
        FROM (SELECT ",
        now!(),
        " AS moment) AS clock RETURNING ",
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
    // Others wait: the bounds hold for all hosts together.
    transaction.lock("long tasks")?;
    sweep(transaction, u32::MAX)?;
    let (of_caller, in_all) = count(transaction, owner)?;
    if of_caller >= bounds.of_caller || in_all >= bounds.in_all {
        return Ok(None);
    }
    forget_ended(transaction, owner, bounds)?;
    touch(transaction, owner.conversation, now_ms(transaction)?, 0)?;
    let row = transaction.query_one(
        SQL,
        &[
            &id.to_string(),
            &owner.caller.word(),
            &owner.conversation.to_string(),
            workspace,
            call,
            message,
            &milliseconds(*lifetime),
            &milliseconds(lease),
            &i64::from(host.pid),
            &host.start,
        ],
    )?;
    self::task(&row).map(Some)
}

/// The tasks of an owner that work, and all that do. What belongs to nobody is counted by conversation.
pub(super) fn count(transaction: &Transaction, of: &LongTaskOwner) -> Outcome<(u32, u32)> {
    const SQL: &str = "
        SELECT (SELECT count(*) FROM long_tasks
                WHERE state = 'working' AND caller = $1 AND ($1 <> '' OR conversation_id = $2)),
            (SELECT count(*) FROM long_tasks WHERE state = 'working')";
    let row = transaction.query_one(SQL, &[&of.caller.word(), &of.conversation.to_string()])?;
    let n = |column| -> Outcome<u32> {
        let n: i64 = get(&row, column)?;
        Ok(u32::try_from(n).unwrap_or(u32::MAX))
    };
    Ok((n(0)?, n(1)?))
}

/// Forgets the oldest of the tasks that have ended, where there are too many of an owner or in all.
fn forget_ended(
    transaction: &Transaction,
    of: &LongTaskOwner,
    bounds: LongTaskBounds,
) -> Outcome<()> {
    const OF_ONE: &str = "
        DELETE FROM long_tasks WHERE id IN (SELECT id FROM long_tasks
            WHERE state <> 'working' AND caller = $1 AND ($1 <> '' OR conversation_id = $2)
            ORDER BY changed_at_ms DESC, id OFFSET $3)";
    // Each caller keeps its newest, as many as the others do.
    const IN_ALL: &str = "
        DELETE FROM long_tasks WHERE id IN (SELECT id FROM (SELECT id, changed_at_ms,
                row_number() OVER (PARTITION BY caller ORDER BY changed_at_ms DESC, id) AS nth
                FROM long_tasks WHERE state <> 'working') AS ranked
            ORDER BY nth, changed_at_ms DESC, id OFFSET $1)
        AND (SELECT count(*) FROM long_tasks WHERE state <> 'working') > $1";
    transaction.execute(
        OF_ONE,
        &[
            &of.caller.word(),
            &of.conversation.to_string(),
            &i64::from(bounds.of_caller),
        ],
    )?;
    transaction
        .execute(IN_ALL, &[&i64::from(bounds.in_all)])
        .map(drop)
}

/// A task of who asks.
pub(super) fn one(
    transaction: &Transaction,
    id: Uuid,
    asker: &LongTaskAsker,
) -> Outcome<Option<LongTask>> {
    const SQL: &str = concat!(
        "SELECT ",
        task_columns!(now!()),
        " FROM long_tasks WHERE ",
        asked!()
    );
    const QUESTIONS: &str = "
        SELECT key, question FROM long_task_questions WHERE task_id = $1 AND answer IS NULL
        ORDER BY key COLLATE \"C\"";
    let (id, caller, conversation) = asked(id, asker);
    let row = transaction.query_opt(SQL, &[&id, &caller, &conversation])?;
    let Some(row) = row else { return Ok(None) };
    let found = task(&row)?;
    let questions = match found.state {
        LongTaskState::Working => transaction.query(QUESTIONS, &[&id])?,
        _ => Vec::new(),
    };
    let questions = questions.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    Ok(Some(LongTask {
        questions: questions.collect::<Outcome<_>>()?,
        ..found
    }))
}

/// Marks a task of who asks as to be ended; false when there is none.
pub(super) fn cancel(transaction: &Transaction, id: Uuid, asker: &LongTaskAsker) -> Outcome<bool> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET is_cancelled = is_cancelled OR state = 'working',
            changed_at_ms = CASE WHEN state = 'working' THEN ",
        now!(),
        " ELSE changed_at_ms END WHERE ",
        asked!()
    );
    let (id, caller, conversation) = asked(id, asker);
    Ok(transaction.execute(SQL, &[&id, &caller, &conversation])? > 0)
}

/// Keeps answers to questions; false when there is no such task of who asks.
pub(super) fn answer(
    transaction: &Transaction,
    id: Uuid,
    asker: &LongTaskAsker,
    answers: &[(String, String)],
) -> Outcome<bool> {
    const TASK: &str = concat!(
        "UPDATE long_tasks SET changed_at_ms = ",
        now!(),
        " WHERE ",
        asked!()
    );
    const ANSWER: &str = "
        UPDATE long_task_questions SET answer = $3 WHERE task_id = $1 AND key = $2 AND answer IS NULL";
    let (id, caller, conversation) = asked(id, asker);
    if transaction.execute(TASK, &[&id, &caller, &conversation])? == 0 {
        return Ok(false);
    }
    for (key, answer) in answers {
        transaction.execute(ANSWER, &[&id, key, answer])?;
    }
    Ok(true)
}

/// Holds tasks from now on, all in one statement; says what has come for those that are held.
pub(super) fn keep(
    transaction: &Transaction,
    holds: &[LongTaskHold],
    lease: Duration,
) -> Outcome<Vec<LongTaskNews>> {
    const SQL: &str = concat!(
        "UPDATE long_tasks AS task SET held_until_ms = $3::bigint + ",
        now!(),
        " FROM unnest($1::text[], $2::bigint[]) AS hold (id, fence)
        WHERE task.id = hold.id AND task.fence = hold.fence AND task.state = 'working'
        RETURNING task.id, task.is_cancelled"
    );
    let ids: Vec<String> = holds.iter().map(|hold| hold.task.to_string()).collect();
    let fences: Vec<i64> = holds.iter().map(|hold| hold.fence).collect();
    let rows = transaction.query(SQL, &[&ids, &fences, &milliseconds(lease)])?;
    let news = rows.iter().map(|row| {
        Ok(LongTaskNews {
            task: parsed(row, 0)?,
            is_cancelled: get(row, 1)?,
            answers: Vec::new(),
        })
    });
    let mut news: Vec<LongTaskNews> = news.collect::<Outcome<_>>()?;
    add_answers(transaction, &ids, &mut news)?;
    Ok(news)
}

fn add_answers(
    transaction: &Transaction,
    ids: &[String],
    news: &mut [LongTaskNews],
) -> Outcome<()> {
    const SQL: &str = "
        SELECT task_id, key, answer FROM long_task_questions WHERE task_id = ANY($1) AND answer IS NOT NULL
        ORDER BY key COLLATE \"C\"";
    for row in &transaction.query(SQL, &[&ids])? {
        let id: Uuid = parsed(row, 0)?;
        if let Some(of_task) = news.iter_mut().find(|news| news.task == id) {
            of_task.answers.push((get(row, 1)?, get(row, 2)?));
        }
    }
    Ok(())
}

/// Puts a question of a task that is held.
pub(super) fn ask(
    transaction: &Transaction,
    hold: LongTaskHold,
    key: &str,
    question: &str,
) -> Outcome<bool> {
    const QUESTION: &str = "
        INSERT INTO long_task_questions (task_id, key, question) VALUES ($1, $2, $3)";
    if !change(transaction, hold)? {
        return Ok(false);
    }
    transaction.execute(QUESTION, &[&hold.task.to_string(), &key, &question])?;
    Ok(true)
}

/// Takes a question of a task back that is held.
pub(super) fn withdraw(transaction: &Transaction, hold: LongTaskHold, key: &str) -> Outcome<bool> {
    const SQL: &str = "DELETE FROM long_task_questions WHERE task_id = $1 AND key = $2";
    if !change(transaction, hold)? {
        return Ok(false);
    }
    transaction.execute(SQL, &[&hold.task.to_string(), &key])?;
    Ok(true)
}

/// Notes that a task changes that is held; false when it is not.
fn change(transaction: &Transaction, hold: LongTaskHold) -> Outcome<bool> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET changed_at_ms = ",
        now!(),
        " WHERE id = $1 AND fence = $2 AND state = 'working'"
    );
    Ok(transaction.execute(SQL, &[&hold.task.to_string(), &hold.fence])? > 0)
}

/// Ends a task that is held.
pub(super) fn end(
    transaction: &Transaction,
    hold: LongTaskHold,
    end: &LongTaskEnd,
) -> Outcome<bool> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET state = $3, message = $4, result = $5, call = NULL,
            changed_at_ms = ",
        now!(),
        ", gone_at_ms = lifetime_ms + ",
        now!(),
        " WHERE id = $1 AND fence = $2 AND state = 'working'"
    );
    let id = hold.task.to_string();
    let state = end.state.label();
    let n_rows =
        transaction.execute(SQL, &[&id, &hold.fence, &state, &end.message, &end.result])?;
    if n_rows > 0 {
        forget_questions(transaction, &[id])?;
    }
    Ok(n_rows > 0)
}

fn forget_questions(transaction: &Transaction, ids: &[String]) -> Outcome<()> {
    const SQL: &str = "DELETE FROM long_task_questions WHERE task_id = ANY($1)";
    transaction.execute(SQL, &[&ids]).map(drop)
}

/// Lets go of a task that is held.
pub(super) fn release(transaction: &Transaction, hold: LongTaskHold) -> Outcome<bool> {
    const SQL: &str = "
        UPDATE long_tasks SET held_until_ms = 0, host_pid = NULL, host_start = NULL
        WHERE id = $1 AND fence = $2 AND state = 'working'";
    Ok(transaction.execute(SQL, &[&hold.task.to_string(), &hold.fence])? > 0)
}

/// Whether this is who holds a task. Until the end of the transaction nobody takes it over.
pub(super) fn is_held(transaction: &Transaction, hold: LongTaskHold) -> Outcome<bool> {
    const SQL: &str = "
        SELECT 1 FROM long_tasks WHERE id = $1 AND fence = $2 AND state = 'working' FOR SHARE";
    let row = transaction.query_opt(SQL, &[&hold.task.to_string(), &hold.fence])?;
    Ok(row.is_some())
}

/// Takes over tasks that nobody holds; those that another host takes at the moment are its own.
pub(super) fn claim(transaction: &Transaction, claim: &LongTaskClaim) -> Outcome<Vec<LongTask>> {
    const SQL: &str = concat!(
        "UPDATE long_tasks SET fence = fence + 1, host_pid = $3, host_start = $4, held_until_ms = $5::bigint + ",
        now!(),
        " WHERE id = ANY (ARRAY(SELECT task.id FROM long_tasks AS task
            JOIN unnest($1::text[], $2::bigint[]) AS lapsed (id, fence) ON task.id = lapsed.id AND task.fence = lapsed.fence
            WHERE task.state = 'working' AND task.held_until_ms <= ",
        now!(),
        " FOR UPDATE OF task SKIP LOCKED)) RETURNING ",
        task_columns!(now!())
    );
    sweep(transaction, claim.limit)?;
    let free = claim.of(lapsed(transaction, claim)?);
    if free.is_empty() {
        return Ok(Vec::new());
    }
    let fences: Vec<i64> = free.iter().map(|task| task.fence).collect();
    let ids: Vec<String> = free.into_iter().map(|task| task.id).collect();
    let pid = i64::from(claim.host.pid);
    let lease = milliseconds(claim.lease);
    let rows = transaction.query(SQL, &[&ids, &fences, &pid, &claim.host.start, &lease])?;
    let claimed: Vec<LongTask> = rows.iter().map(task).collect::<Outcome<_>>()?;
    let ids: Vec<String> = claimed.iter().map(|task| task.id.to_string()).collect();
    forget_questions(transaction, &ids)?;
    Ok(claimed)
}

/// The tasks whose lease is over that a host may take over, the longest over first.
fn lapsed(transaction: &Transaction, claim: &LongTaskClaim) -> Outcome<Vec<LapsedTask>> {
    const SQL: &str = concat!(
        "SELECT id, fence, host_pid, host_start FROM long_tasks WHERE state = 'working' AND held_until_ms <= ",
        now!(),
        " AND (call IS NULL OR workspace = $1 AND $2 OR held_until_ms <= ",
        now!(),
        " - $3::bigint) ORDER BY held_until_ms"
    );
    let elsewhere_after = milliseconds(claim.elsewhere_after);
    let rows = transaction.query(SQL, &[&claim.workspace, &claim.repeats, &elsewhere_after])?;
    let lapsed = rows.iter().map(|row| {
        let (pid, start): (Option<i64>, Option<String>) = (get(row, 2)?, get(row, 3)?);
        let host = pid.zip(start).map(|(pid, start)| HostProcess {
            // A number that cannot be is nobody's.
            pid: u32::try_from(pid).unwrap_or(0),
            start,
        });
        Ok(LapsedTask {
            id: get(row, 0)?,
            fence: get(row, 1)?,
            host,
        })
    });
    lapsed.collect()
}

/// Forgets tasks whose time is over and that nobody holds.
fn sweep(transaction: &Transaction, n_max: u32) -> Outcome<()> {
    const SQL: &str = concat!(
        "DELETE FROM long_tasks WHERE id = ANY (ARRAY(SELECT id FROM long_tasks WHERE gone_at_ms <= ",
        now!(),
        " AND (state <> 'working' OR held_until_ms <= ",
        now!(),
        ") LIMIT $1 FOR UPDATE SKIP LOCKED))"
    );
    transaction.execute(SQL, &[&i64::from(n_max)]).map(drop)
}

/// A task, and who asks about it.
fn asked(id: Uuid, asker: &LongTaskAsker) -> (String, String, Option<String>) {
    (
        id.to_string(),
        asker.caller.word(),
        asker.conversation.map(|id| id.to_string()),
    )
}

fn task(row: &Row) -> Outcome<LongTask> {
    let state: &str = get(row, 5)?;
    let unknown = || unreadable(5, format!("`{state}` is not known"));
    let span = |column| -> Outcome<Duration> { Ok(Duration::from_millis(counted(row, column)?)) };
    Ok(LongTask {
        id: parsed(row, 0)?,
        owner: LongTaskOwner {
            caller: Owner::of_word(get(row, 1)?),
            conversation: parsed(row, 2)?,
        },
        workspace: get(row, 3)?,
        call: get(row, 4)?,
        state: LongTaskState::of_label(state).ok_or_else(unknown)?,
        message: get(row, 6)?,
        questions: Vec::new(),
        result: get(row, 7)?,
        is_cancelled: get(row, 8)?,
        fence: get(row, 9)?,
        created_at_ms: get(row, 10)?,
        changed_at_ms: get(row, 11)?,
        lifetime: span(12)?,
        age: span(13)?,
    })
}
