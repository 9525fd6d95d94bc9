//! The plan of a session as an editor shows it: the tasks of its goal. Pure.

use zeph_acp::update::PlanEntry;
use zeph_store::{Goal, TaskState};

/// What the client is told when it was told `before`. Without a goal the plan is empty; one that has just been completed stays, done.
pub(super) fn next(
    goal: Option<&Goal>,
    before: &[PlanEntry],
    is_completed: bool,
) -> Vec<PlanEntry> {
    match goal {
        Some(goal) => entries(goal),
        None if is_completed => before.iter().map(done).collect(),
        None => Vec::new(),
    }
}

/// The tasks that are not skipped, in their order.
fn entries(goal: &Goal) -> Vec<PlanEntry> {
    let tasks = goal.tasks.tasks().iter();
    let tasks = tasks.filter(|task| task.state != TaskState::Skipped);
    let entries = tasks.map(|task| PlanEntry {
        content: match task.state {
            TaskState::Failed => format!("{} (failed)", task.title),
            _ => task.title.clone(),
        },
        priority: "medium",
        status: status(task.state),
    });
    entries.collect()
}

/// The protocol knows no failure: a task that failed is over.
fn status(state: TaskState) -> &'static str {
    match state {
        TaskState::Pending => "pending",
        TaskState::Running => "in_progress",
        TaskState::Completed | TaskState::Failed | TaskState::Skipped => "completed",
    }
}

fn done(entry: &PlanEntry) -> PlanEntry {
    PlanEntry {
        status: "completed",
        ..entry.clone()
    }
}
