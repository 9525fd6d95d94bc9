//! Goals and their tasks in SQL.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use zeph_core::id::ConversationId;

use super::audit::parsed;
use super::conversation::touch;
use crate::goals::{Goal, GoalState, GoalTask, TaskGraph};

const COLUMNS: &str = "id, conversation_id, goal, source, state, created_at_ms, changed_at_ms";

/// Sets the goal of a conversation; the one it had is cancelled.
pub(super) fn begin(connection: &Connection, goal: &Goal) -> rusqlite::Result<()> {
    const CANCEL: &str = "
        UPDATE goals SET state = 'cancelled', changed_at_ms = ?2 WHERE conversation_id = ?1 AND state = 'active'";
    const INSERT: &str = "
        INSERT INTO goals (id, conversation_id, goal, source, state, created_at_ms, changed_at_ms)
        VALUES (?1, ?2, ?3, ?4, 'active', ?5, ?5)";
    let conversation = goal.conversation.to_string();
    touch(connection, goal.conversation, goal.created_at_ms, 0)?;
    connection
        .prepare_cached(CANCEL)?
        .execute(params![conversation, goal.created_at_ms])?;
    let row = params![
        goal.id.to_string(),
        conversation,
        goal.text,
        label(&goal.source),
        goal.created_at_ms
    ];
    connection.prepare_cached(INSERT)?.execute(row).map(drop)
}

/// The active goal of a conversation.
pub(super) fn active(
    connection: &Connection,
    conversation: ConversationId,
) -> rusqlite::Result<Option<Goal>> {
    let sql =
        format!("SELECT {COLUMNS} FROM goals WHERE conversation_id = ?1 AND state = 'active'");
    let found = connection
        .prepare_cached(&sql)?
        .query_row([conversation.to_string()], goal)
        .optional()?;
    found.map(|goal| with_tasks(connection, goal)).transpose()
}

/// A goal of this conversation.
pub(super) fn one(
    connection: &Connection,
    conversation: ConversationId,
    id: Uuid,
) -> rusqlite::Result<Option<Goal>> {
    let sql = format!("SELECT {COLUMNS} FROM goals WHERE id = ?1 AND conversation_id = ?2");
    let found = connection
        .prepare_cached(&sql)?
        .query_row([id.to_string(), conversation.to_string()], goal)
        .optional()?;
    found.map(|goal| with_tasks(connection, goal)).transpose()
}

/// The goals of a conversation, newest first.
pub(super) fn listed(
    connection: &Connection,
    conversation: ConversationId,
    limit: u32,
) -> rusqlite::Result<Vec<Goal>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM goals WHERE conversation_id = ?1 ORDER BY created_at_ms DESC, id DESC LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![conversation.to_string(), limit], goal)?;
    let goals: Vec<Goal> = rows.collect::<rusqlite::Result<_>>()?;
    goals
        .into_iter()
        .map(|goal| with_tasks(connection, goal))
        .collect()
}

/// Ends an active goal; false when there is none.
pub(super) fn end(
    connection: &Connection,
    conversation: ConversationId,
    id: Uuid,
    state: GoalState,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    const SQL: &str = "
        UPDATE goals SET state = ?3, changed_at_ms = ?4
        WHERE id = ?1 AND conversation_id = ?2 AND state = 'active'";
    let row = params![
        id.to_string(),
        conversation.to_string(),
        label(&state),
        at_ms
    ];
    let n_rows = connection.prepare_cached(SQL)?.execute(row)?;
    Ok(n_rows > 0)
}

/// Puts tasks in the place of those of an active goal; false when there is none.
pub(super) fn set_tasks(
    connection: &Connection,
    conversation: ConversationId,
    id: Uuid,
    tasks: &TaskGraph,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    const INSERT: &str = "
        INSERT INTO goal_tasks (goal_id, position, task, title, state, comes_after) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    if !end(connection, conversation, id, GoalState::Active, at_ms)? {
        return Ok(false);
    }
    let goal = id.to_string();
    connection
        .prepare_cached("DELETE FROM goal_tasks WHERE goal_id = ?1")?
        .execute([&goal])?;
    let mut statement = connection.prepare_cached(INSERT)?;
    for (task, position) in tasks.tasks().iter().zip(0_i64..) {
        let after = super::label::json(&task.after);
        statement.execute(params![
            goal,
            position,
            task.id,
            task.title,
            label(&task.state),
            after
        ])?;
    }
    Ok(true)
}

fn with_tasks(connection: &Connection, goal: Goal) -> rusqlite::Result<Goal> {
    const SQL: &str = "SELECT task, title, state, comes_after FROM goal_tasks WHERE goal_id = ?1 ORDER BY position";
    let mut statement = connection.prepare_cached(SQL)?;
    let tasks = statement.query_map([goal.id.to_string()], |row| {
        Ok(GoalTask {
            id: row.get(0)?,
            title: row.get(1)?,
            state: labelled(row, 2)?,
            after: super::label::from_json(row, 3)?.unwrap_or_default(),
        })
    })?;
    let tasks = tasks.collect::<rusqlite::Result<_>>()?;
    Ok(Goal {
        // What another program wrote is no reason to fail: the goal counts without it.
        tasks: TaskGraph::new(tasks).unwrap_or_default(),
        ..goal
    })
}

fn goal(row: &Row<'_>) -> rusqlite::Result<Goal> {
    Ok(Goal {
        id: parsed(row, 0)?,
        conversation: parsed(row, 1)?,
        text: row.get(2)?,
        source: labelled(row, 3)?,
        state: labelled(row, 4)?,
        tasks: TaskGraph::default(),
        created_at_ms: row.get(5)?,
        changed_at_ms: row.get(6)?,
    })
}

/// The word for a value, as in JSON.
fn label<T: Serialize>(value: &T) -> String {
    super::label::json(value).trim_matches('"').to_owned()
}

fn labelled<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_value(serde_json::Value::String(text)).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}
