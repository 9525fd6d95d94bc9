//! `update_plan`: the model writes down the tasks that lead to the goal, and how far each is.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use zeph_core::argument::Parameters;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::ToolName;
use zeph_core::output::RawOutput;
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_store::{GoalState, GoalTask, Store, TaskGraph, TaskState};

use crate::clock::now_ms;
use crate::goal::{self, plan};
use crate::session::Session;

/// The tool's name.
pub(crate) const NAME: &str = "update_plan";

/// The arguments of one call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct UpdatePlanArguments {
    /// All tasks, in the order in which they are to be done.
    tasks: Vec<PlanTask>,
}

/// One task.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct PlanTask {
    /// A short name, such as `1`.
    id: String,
    /// What is to be done.
    title: String,
    /// How far it is. Without it, `pending`.
    #[serde(default)]
    state: PlanTaskState,
    /// The names of the tasks that have to be done before.
    #[serde(default)]
    after: Vec<String>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PlanTaskState {
    #[default]
    Pending,
    Running,
    Completed,
    Failed,
    Skipped,
}

/// The tool as a model sees it. It changes nothing but the plan of its own conversation, so it needs no approval.
pub(super) fn tool() -> Tool {
    Tool {
        name: ToolName::new(NAME).expect("bug: the name is a valid one"),
        title: Some("Update the plan".to_owned()),
        description: "Write down the tasks that lead to the goal of this conversation, replacing those there were. Call it \
            when the work takes several steps, and again when a task begins or ends. The goal is completed once every task is \
            `completed` or `skipped`."
            .to_owned(),
        parameters: Parameters::trusted(Schema::later(super::schema_of::<UpdatePlanArguments>)),
        output: None,
        kind: ToolKind::Think,
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        backend: Backend::Builtin,
    }
}

/// Runs it.
pub(super) async fn call(
    store: &Store,
    session: &Session,
    arguments: &UpdatePlanArguments,
) -> Result<RawOutput, ToolFailure> {
    let tasks = arguments.tasks.iter().map(task).collect();
    let graph = TaskGraph::new(tasks).map_err(|problem| {
        let category = ErrorCategory::InvalidParameters;
        ToolFailure::new(
            category,
            ErrorPhase::ParamHandling,
            format!("`tasks`: {problem}"),
        )
    })?;
    let active = session.goals().active().ok_or_else(no_goal)?;
    let changed = store.set_tasks(session.conversation, active.goal.id, graph, now_ms());
    let goal = changed.await.map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a plan cannot be changed"
        );
        let category = ErrorCategory::ServerError;
        ToolFailure::new(
            category,
            ErrorPhase::Execution,
            "the store cannot be written",
        )
    })?;
    let goal = goal.ok_or_else(no_goal)?;
    let ready: Vec<&str> = goal.tasks.ready().map(|task| task.id.as_str()).collect();
    let next = match (goal.state, ready.as_slice()) {
        (GoalState::Completed, _) => "The goal is completed.".to_owned(),
        (_, []) => "Nothing is ready to be begun.".to_owned(),
        (_, ready) => format!("Ready to be begun: {}", ready.join(", ")),
    };
    let output = RawOutput {
        structured: Some(json!({ "goal_id": goal.id, "state": goal.state, "ready": ready })),
        ..RawOutput::text(format!("{}{next}", plan::tasks(&goal)))
    };
    goal::update(session, goal);
    Ok(output)
}

fn no_goal() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::Execution,
        "this conversation has no goal; the user sets one with `/plan TEXT`",
    )
}

fn task(task: &PlanTask) -> GoalTask {
    GoalTask {
        id: task.id.clone(),
        title: task.title.clone(),
        state: match task.state {
            PlanTaskState::Pending => TaskState::Pending,
            PlanTaskState::Running => TaskState::Running,
            PlanTaskState::Completed => TaskState::Completed,
            PlanTaskState::Failed => TaskState::Failed,
            PlanTaskState::Skipped => TaskState::Skipped,
        },
        after: task.after.clone(),
    }
}
