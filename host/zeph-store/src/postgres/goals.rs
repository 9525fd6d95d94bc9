//! Goals and their tasks.

use tokio_postgres::Row;
use uuid::Uuid;
use zeph_core::id::ConversationId;

use super::conversation::touch;
use super::transaction::Transaction;
use super::value::{from_json, get, label, labelled, parsed};
use crate::goals::{Goal, GoalState, GoalTask, TaskGraph};
use crate::operations::Outcome;

/// Sets the goal of a conversation; the one it had is cancelled.
pub(super) fn begin(transaction: &Transaction, goal: &Goal) -> Outcome<()> {
    const CANCEL: &str = "
        UPDATE goals SET state = 'cancelled', changed_at_ms = $2 WHERE conversation_id = $1 AND state = 'active'";
    const INSERT: &str = "
        INSERT INTO goals (id, conversation_id, goal, source, state, created_at_ms, changed_at_ms)
        VALUES ($1, $2, $3, $4, 'active', $5, $5)";
    let conversation = goal.conversation.to_string();
    // Holds the row of the conversation until the end: of two that set its goal, one comes after the other.
    touch(transaction, goal.conversation, goal.created_at_ms, 0)?;
    transaction.execute(CANCEL, &[&conversation, &goal.created_at_ms])?;
    let (id, source) = (goal.id.to_string(), label(&goal.source));
    let row = transaction.execute(
        INSERT,
        &[&id, &conversation, &goal.text, &source, &goal.created_at_ms],
    );
    row.map(drop)
}

/// The active goal of a conversation.
pub(super) fn active(
    transaction: &Transaction,
    conversation: ConversationId,
) -> Outcome<Option<Goal>> {
    const SQL: &str = "
        SELECT id, conversation_id, goal, source, state, created_at_ms, changed_at_ms
        FROM goals WHERE conversation_id = $1 AND state = 'active'";
    let found = transaction.query_opt(SQL, &[&conversation.to_string()])?;
    found.map(|row| goal(transaction, &row)).transpose()
}

/// A goal of this conversation.
pub(super) fn one(
    transaction: &Transaction,
    conversation: ConversationId,
    id: Uuid,
) -> Outcome<Option<Goal>> {
    const SQL: &str = "
        SELECT id, conversation_id, goal, source, state, created_at_ms, changed_at_ms
        FROM goals WHERE id = $1 AND conversation_id = $2";
    let found = transaction.query_opt(SQL, &[&id.to_string(), &conversation.to_string()])?;
    found.map(|row| goal(transaction, &row)).transpose()
}

/// The goals of a conversation, newest first.
pub(super) fn listed(
    transaction: &Transaction,
    conversation: ConversationId,
    limit: u32,
) -> Outcome<Vec<Goal>> {
    const SQL: &str = "
        SELECT id, conversation_id, goal, source, state, created_at_ms, changed_at_ms
        FROM goals WHERE conversation_id = $1 ORDER BY created_at_ms DESC, id DESC LIMIT $2";
    let rows = transaction.query(SQL, &[&conversation.to_string(), &i64::from(limit)])?;
    rows.iter().map(|row| goal(transaction, row)).collect()
}

/// Ends an active goal; false when there is none.
pub(super) fn end(
    transaction: &Transaction,
    conversation: ConversationId,
    id: Uuid,
    state: GoalState,
    at_ms: i64,
) -> Outcome<bool> {
    const SQL: &str = "
        UPDATE goals SET state = $3, changed_at_ms = $4
        WHERE id = $1 AND conversation_id = $2 AND state = 'active'";
    let (id, conversation) = (id.to_string(), conversation.to_string());
    let n_rows = transaction.execute(SQL, &[&id, &conversation, &label(&state), &at_ms])?;
    Ok(n_rows > 0)
}

/// Puts tasks in the place of those of an active goal; false when there is none.
pub(super) fn set_tasks(
    transaction: &Transaction,
    conversation: ConversationId,
    id: Uuid,
    tasks: &TaskGraph,
    at_ms: i64,
) -> Outcome<bool> {
    const INSERT: &str = "
        INSERT INTO goal_tasks (goal_id, position, task, title, state, comes_after) VALUES ($1, $2, $3, $4, $5, $6)";
    // Holds the row of the goal: whoever else sets its tasks comes after.
    if !end(transaction, conversation, id, GoalState::Active, at_ms)? {
        return Ok(false);
    }
    let goal = id.to_string();
    transaction.execute("DELETE FROM goal_tasks WHERE goal_id = $1", &[&goal])?;
    for (task, position) in tasks.tasks().iter().zip(0_i64..) {
        let after = serde_json::to_string(&task.after).unwrap_or_default();
        let state = label(&task.state);
        transaction.execute(
            INSERT,
            &[&goal, &position, &task.id, &task.title, &state, &after],
        )?;
    }
    Ok(true)
}

fn goal(transaction: &Transaction, row: &Row) -> Outcome<Goal> {
    Ok(Goal {
        id: parsed(row, 0)?,
        conversation: parsed(row, 1)?,
        text: get(row, 2)?,
        source: labelled(row, 3)?,
        state: labelled(row, 4)?,
        tasks: tasks(transaction, get(row, 0)?)?,
        created_at_ms: get(row, 5)?,
        changed_at_ms: get(row, 6)?,
    })
}

fn tasks(transaction: &Transaction, goal: &str) -> Outcome<TaskGraph> {
    const SQL: &str = "
        SELECT task, title, state, comes_after FROM goal_tasks WHERE goal_id = $1 ORDER BY position";
    let rows = transaction.query(SQL, &[&goal])?;
    let tasks: Outcome<Vec<GoalTask>> = rows
        .iter()
        .map(|row| {
            Ok(GoalTask {
                id: get(row, 0)?,
                title: get(row, 1)?,
                state: labelled(row, 2)?,
                after: from_json(row, 3)?.unwrap_or_default(),
            })
        })
        .collect();
    // What another program wrote is no reason to fail: the goal counts without it.
    Ok(TaskGraph::new(tasks?).unwrap_or_default())
}
