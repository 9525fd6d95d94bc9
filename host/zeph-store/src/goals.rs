//! What the user of a conversation works towards: a goal, and the tasks that lead to it, as a graph.
//!
//! A conversation has one active goal at most. A goal is active until it is completed or cancelled, and stays so then; it is completed when
//! all of its tasks have ended well. It goes with its conversation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeph_core::id::ConversationId;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// Most tasks of a goal.
pub const GOAL_TASKS_MAX: usize = 100;

/// Characters of a task's title at most.
pub const TASK_TITLE_CHARS_MAX: usize = 300;

/// A goal with its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Goal {
    /// What turns, guests, commands and the audit call it.
    pub id: Uuid,
    /// Whose it is.
    pub conversation: ConversationId,
    /// In the user's words.
    pub text: String,
    /// Where it came from.
    pub source: GoalSource,
    /// How far it is.
    pub state: GoalState,
    /// What leads to it.
    pub tasks: TaskGraph,
    /// When it was set, in Unix milliseconds.
    pub created_at_ms: i64,
    /// When it was changed last, in Unix milliseconds.
    pub changed_at_ms: i64,
}

/// Where a goal came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalSource {
    /// The user said `/plan`.
    Plan,
    /// It is the configuration's (`agent.goal_text`).
    Configuration,
}

/// How far a goal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalState {
    /// It is worked towards.
    Active,
    /// It is reached.
    Completed,
    /// It was given up, or another one took its place.
    Cancelled,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It is yet to be done.
    #[default]
    Pending,
    /// It is being done.
    Running,
    /// It is done.
    Completed,
    /// It was tried and did not work.
    Failed,
    /// It is not needed any more.
    Skipped,
}

/// A step towards a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalTask {
    /// Its name within the graph, such as `1`.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// How far it is.
    #[serde(default)]
    pub state: TaskState,
    /// The names of the tasks that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// The tasks of a goal, in the order they were written. Names differ, what a task comes after is there, and nothing comes after itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct TaskGraph(Vec<GoalTask>);

/// A goal to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGoal {
    /// Whose it is.
    pub conversation: ConversationId,
    /// In the user's words.
    pub text: String,
    /// Where it comes from.
    pub source: GoalSource,
}

impl TaskGraph {
    /// A graph of `tasks`.
    ///
    /// Errors: what is wrong with it, in a sentence.
    pub fn new(tasks: Vec<GoalTask>) -> Result<Self, String> {
        if tasks.len() > GOAL_TASKS_MAX {
            let n_tasks = tasks.len();
            return Err(format!(
                "{n_tasks} tasks are more than {GOAL_TASKS_MAX}; put some together"
            ));
        }
        let mut names = BTreeSet::new();
        for task in &tasks {
            check(task)?;
            if !names.insert(task.id.as_str()) {
                return Err(format!("two tasks are called `{}`", task.id));
            }
        }
        let missing = |task: &GoalTask| {
            let mut after = task.after.iter();
            let missing = after.find(|name| !names.contains(name.as_str()))?;
            Some(format!(
                "`{}` comes after `{missing}`, which is no task",
                task.id
            ))
        };
        if let Some(problem) = tasks.iter().find_map(missing) {
            return Err(problem);
        }
        match in_a_circle(&tasks) {
            Some(id) => Err(format!("`{id}` comes after itself")),
            None => Ok(Self(tasks)),
        }
    }

    /// The tasks.
    pub fn tasks(&self) -> &[GoalTask] {
        &self.0
    }

    /// Whether nothing is left to do: there are tasks, and each is done or not needed.
    pub fn is_completed(&self) -> bool {
        let has_ended =
            |task: &GoalTask| matches!(task.state, TaskState::Completed | TaskState::Skipped);
        !self.0.is_empty() && self.0.iter().all(has_ended)
    }

    /// The tasks that can be done now: pending ones of which all that comes before is done or not needed.
    pub fn ready(&self) -> impl Iterator<Item = &GoalTask> {
        let ended: BTreeSet<&str> = self
            .0
            .iter()
            .filter(|task| matches!(task.state, TaskState::Completed | TaskState::Skipped))
            .map(|task| task.id.as_str())
            .collect();
        self.0.iter().filter(move |task| {
            task.state == TaskState::Pending
                && task.after.iter().all(|name| ended.contains(name.as_str()))
        })
    }
}

impl TaskState {
    /// As in JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl GoalState {
    /// As in JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }
}

fn check(task: &GoalTask) -> Result<(), String> {
    let is_name = |name: &str| !name.trim().is_empty() && name.chars().count() <= 64;
    if !is_name(&task.id) {
        return Err("the name of a task has 1 to 64 characters".to_owned());
    }
    let n_chars = task.title.chars().count();
    if task.title.trim().is_empty() || n_chars > TASK_TITLE_CHARS_MAX {
        return Err(format!(
            "the title of `{}` has to have 1 to {TASK_TITLE_CHARS_MAX} characters",
            task.id
        ));
    }
    Ok(())
}

/// A task that comes after itself: what is left when all tasks are taken away that nothing is before.
fn in_a_circle(tasks: &[GoalTask]) -> Option<&str> {
    let mut left: BTreeMap<&str, &GoalTask> =
        tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    loop {
        let is_free = |task: &GoalTask| {
            let mut after = task.after.iter();
            !after.any(|name| left.contains_key(name.as_str()))
        };
        let free: Vec<&str> = left
            .values()
            .filter(|task| is_free(task))
            .map(|task| task.id.as_str())
            .collect();
        if free.is_empty() {
            return left.keys().next().copied();
        }
        for id in free {
            left.remove(id);
        }
    }
}

impl Store {
    /// Sets the goal of a conversation, which is begun when there is none. The one it had is cancelled.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then nothing has changed.
    pub async fn begin_goal(&self, goal: NewGoal, at_ms: i64) -> Result<Goal, StoreError> {
        let NewGoal {
            conversation,
            text,
            source,
        } = goal;
        let goal = Goal {
            id: Uuid::now_v7(),
            conversation,
            text,
            source,
            state: GoalState::Active,
            tasks: TaskGraph::default(),
            created_at_ms: at_ms,
            changed_at_ms: at_ms,
        };
        self.run("set a goal", Access::Write, move |operations| {
            operations.begin_goal(&goal)?;
            Ok(goal.clone())
        })
        .await
    }

    /// The active goal of a conversation.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn active_goal(
        &self,
        conversation: ConversationId,
    ) -> Result<Option<Goal>, StoreError> {
        self.run("find a goal", Access::Read, move |operations| {
            operations.active_goal(conversation)
        })
        .await
    }

    /// A goal of this conversation.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn goal(
        &self,
        conversation: ConversationId,
        id: Uuid,
    ) -> Result<Option<Goal>, StoreError> {
        self.run("find a goal", Access::Read, move |operations| {
            operations.goal(conversation, id)
        })
        .await
    }

    /// The goals of a conversation, newest first, at most `limit`.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn goals(
        &self,
        conversation: ConversationId,
        limit: u32,
    ) -> Result<Vec<Goal>, StoreError> {
        self.run("list the goals", Access::Read, move |operations| {
            operations.goals(conversation, limit)
        })
        .await
    }

    /// Ends an active goal; false when it is none of this conversation, or has ended.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn end_goal(
        &self,
        conversation: ConversationId,
        id: Uuid,
        state: GoalState,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        self.run("end a goal", Access::Write, move |operations| {
            operations.end_goal(conversation, id, state, at_ms)
        })
        .await
    }

    /// Puts `tasks` in the place of those of an active goal, and completes it when nothing is left to do. The goal as it is then; `None` when it
    /// is none of this conversation, or has ended.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then nothing has changed.
    pub async fn set_tasks(
        &self,
        conversation: ConversationId,
        id: Uuid,
        tasks: TaskGraph,
        at_ms: i64,
    ) -> Result<Option<Goal>, StoreError> {
        self.run("change a plan", Access::Write, move |operations| {
            if !operations.set_tasks(conversation, id, &tasks, at_ms)? {
                return Ok(None);
            }
            if tasks.is_completed() {
                operations.end_goal(conversation, id, GoalState::Completed, at_ms)?;
            }
            operations.goal(conversation, id)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::{GoalTask, TaskGraph, TaskState};

    fn task(id: &str, after: &[&str], state: TaskState) -> GoalTask {
        GoalTask {
            id: id.to_owned(),
            title: format!("do {id}"),
            state,
            after: after.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_graph_has_no_circle_and_no_loose_end() {
        let pending = TaskState::Pending;
        let problem = |tasks| TaskGraph::new(tasks).unwrap_err();
        let circle = vec![task("a", &["b"], pending), task("b", &["a"], pending)];
        assert_eq!(problem(circle), "`a` comes after itself");
        let alone = vec![task("a", &["a"], pending)];
        assert_eq!(problem(alone), "`a` comes after itself");
        let loose = vec![task("a", &["z"], pending)];
        assert_eq!(problem(loose), "`a` comes after `z`, which is no task");
        let twice = vec![task("a", &[], pending), task("a", &[], pending)];
        assert_eq!(problem(twice), "two tasks are called `a`");
        let many = (0..101).map(|n| task(&n.to_string(), &[], pending));
        assert!(problem(many.collect()).contains("more than 100"));
    }

    #[test]
    fn what_comes_next_is_known() {
        let graph = TaskGraph::new(vec![
            task("a", &[], TaskState::Completed),
            task("b", &["a"], TaskState::Pending),
            task("c", &["b"], TaskState::Pending),
        ]);
        let graph = graph.unwrap();
        let ready: Vec<&str> = graph.ready().map(|task| task.id.as_str()).collect();
        assert_eq!(ready, ["b"]);
        assert!(!graph.is_completed());
        assert!(!TaskGraph::default().is_completed());
        let done = TaskGraph::new(vec![task("a", &[], TaskState::Skipped)]);
        assert!(done.unwrap().is_completed());
    }
}
