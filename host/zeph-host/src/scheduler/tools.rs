//! `schedule_periodic`, `schedule_deferred`, `cancel_task`, `list_tasks`.
//!
//! What is scheduled is looked at now as it will be when its time has come: what the rules forbid is refused, and what they would ask
//! about is told. Names belong to the caller; nobody sees the tasks of others.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeph_core::argument::Parameters;
use zeph_core::call::{CallFrame, ToolRequest};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::ToolName;
use zeph_core::output::RawOutput;
use zeph_core::policy::{AuthorizedCall, Decision};
use zeph_core::principal::Principal;
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_store::{NewSchedule, PutSchedule, ScheduleOwner, StoreError};

use super::listing::listed;
use super::task::Task;
use super::times::{self, Times};
use super::{BOUNDS, SchedulerRoom};
use crate::admission::Tokens;
use crate::builtin::{BuiltinWork, arguments_of, schema_of};
use crate::clock::now_ms;
use crate::host::Rooms;
use crate::pipeline;
use crate::session::Session;

/// The names.
pub(crate) const PERIODIC: &str = "schedule_periodic";
pub(crate) const DEFERRED: &str = "schedule_deferred";
pub(crate) const CANCEL: &str = "cancel_task";
pub(crate) const LIST: &str = "list_tasks";

pub(crate) const ALL: [&str; 4] = [PERIODIC, DEFERRED, CANCEL, LIST];

/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 128;

/// Bytes of arguments and prompts at most.
const TASK_BYTES_MAX: usize = 64 * 1024;

/// Most tasks that are listed.
const LISTED_MAX: u32 = 1_000;

/// One call of a scheduler tool.
#[derive(Debug, Clone)]
pub(crate) enum SchedulerWork {
    /// `schedule_periodic`
    Periodic(PeriodicArguments),
    /// `schedule_deferred`
    Deferred(DeferredArguments),
    /// `cancel_task`
    Cancel(CancelArguments),
    /// `list_tasks`
    List,
}

/// The arguments of `schedule_periodic`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct PeriodicArguments {
    /// A name of your choice. A task of this name is replaced.
    name: String,
    /// When: five fields (minute hour day month weekday), or six with seconds first.
    cron: String,
    /// The tool to call. Give this or `prompt`.
    #[serde(default)]
    tool: Option<String>,
    /// The arguments of the tool.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
    /// What the agent is told, in place of a call.
    #[serde(default)]
    prompt: Option<String>,
    /// The time zone of the pattern, such as `Europe/Berlin`.
    #[serde(default)]
    time_zone: Option<String>,
}

/// The arguments of `schedule_deferred`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct DeferredArguments {
    /// A name of your choice. A task of this name is replaced.
    name: String,
    /// When: ISO 8601, or `+1h30m`, `in 5 minutes`, `tomorrow 09:30`. Required.
    #[serde(default)]
    at: Option<String>,
    /// Another name of `at`.
    #[serde(default)]
    run_at: Option<String>,
    /// The tool to call. Give this or `prompt`.
    #[serde(default)]
    tool: Option<String>,
    /// The arguments of the tool.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
    /// What the agent is told, in place of a call.
    #[serde(default)]
    prompt: Option<String>,
}

/// The arguments of `cancel_task`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct CancelArguments {
    /// The name of the task.
    name: String,
}

/// The tools, as a model sees them.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool(
            (PERIODIC, "Schedule a periodic task"),
            "Call a tool, or give the agent a prompt, again and again, at times given as a pattern of cron. Each run is decided \
             anew by the rules that apply then; nobody can be asked.",
            schema_of::<PeriodicArguments>,
            false,
        ),
        tool(
            (DEFERRED, "Schedule a task"),
            "Call a tool, or give the agent a prompt, once, at a later time. The run is decided anew by the rules that apply \
             then; nobody can be asked.",
            schema_of::<DeferredArguments>,
            false,
        ),
        tool(
            (CANCEL, "Cancel a task"),
            "Cancel a scheduled task of yours by its name.",
            schema_of::<CancelArguments>,
            false,
        ),
        tool(
            (LIST, "List tasks"),
            "List your scheduled tasks: when each comes next, and how its last run ended.",
            || json!({ "type": "object", "properties": {} }),
            true,
        ),
    ]
}

fn tool(
    (name, title): (&str, &str),
    description: &str,
    schema: fn() -> Value,
    read_only: bool,
) -> Tool {
    Tool {
        name: ToolName::new(name).expect("bug: the name is a valid one"),
        title: Some(title.to_owned()),
        description: description.to_owned(),
        parameters: Parameters::trusted(Schema::later(schema)),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations {
            read_only,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        backend: Backend::Builtin,
    }
}

/// Reads the arguments of a call; none for another tool.
pub(crate) fn read(
    tool: &str,
    arguments: &Map<String, Value>,
) -> Option<Result<BuiltinWork, ToolFailure>> {
    let work = match tool {
        PERIODIC => arguments_of(arguments).map(SchedulerWork::Periodic),
        DEFERRED => arguments_of(arguments).map(SchedulerWork::Deferred),
        CANCEL => arguments_of(arguments).map(SchedulerWork::Cancel),
        LIST => Ok(SchedulerWork::List),
        _ => return None,
    };
    Some(work.map(BuiltinWork::Scheduler))
}

/// Makes a call of one of the tools.
pub(crate) async fn call(
    host: &Rooms,
    session: &Session,
    call: &AuthorizedCall<BuiltinWork>,
    work: &SchedulerWork,
) -> Result<RawOutput, ToolFailure> {
    let Some(room) = &host.scheduler else {
        return Err(failed(
            "nothing is scheduled here (`tools.scheduler.enabled`)",
        ));
    };
    let frame = call.frame();
    let owner = room.owner(session.owner());
    let now = now_ms();
    match work {
        SchedulerWork::Periodic(asked) => {
            let zone = asked.time_zone.as_deref();
            let times =
                Times::periodic(&asked.cron, zone, &room.time_zone, now).map_err(invalid)?;
            let task = task(&asked.tool, &asked.arguments, &asked.prompt)?;
            put(
                (host, session, room),
                (frame, owner),
                (&asked.name, task, times),
            )
            .await
        }
        SchedulerWork::Deferred(asked) => {
            let at = match (&asked.at, &asked.run_at) {
                (Some(at), Some(run_at)) if at != run_at => {
                    let message =
                        "`at` and `run_at` are two names of one argument and say different things";
                    return Err(invalid(message));
                }
                (Some(at), _) | (None, Some(at)) => at,
                (None, None) => return Err(invalid("missing required argument `at`")),
            };
            let times = Times::once(at, &room.time_zone, now).map_err(invalid)?;
            let task = task(&asked.tool, &asked.arguments, &asked.prompt)?;
            put(
                (host, session, room),
                (frame, owner),
                (&asked.name, task, times),
            )
            .await
        }
        SchedulerWork::Cancel(asked) => cancel(host, owner, &asked.name).await,
        SchedulerWork::List => {
            let found = host.store.schedules(Some(owner), LISTED_MAX).await;
            let found = found.map_err(|error| unwritten(&error))?;
            let tokens = Tokens::read(&host.store, &host.door).await;
            let tokens = tokens.map_err(|error| unwritten(&error))?;
            Ok(listed(&found, room, &tokens))
        }
    }
}

async fn cancel(host: &Rooms, owner: ScheduleOwner, name: &str) -> Result<RawOutput, ToolFailure> {
    let shown = one_line(name, NAME_CHARS_MAX);
    let cancelled = host.store.cancel_schedule(owner, name.trim().to_owned());
    match cancelled.await.map_err(|error| unwritten(&error))? {
        true => Ok(RawOutput::text(format!("Cancelled task '{shown}'"))),
        false => Err(invalid(format!("Task '{shown}' not found"))),
    }
}

/// What is to be done.
fn task(
    tool: &Option<String>,
    arguments: &Option<Map<String, Value>>,
    prompt: &Option<String>,
) -> Result<Task, ToolFailure> {
    let task = match (tool, prompt) {
        (Some(tool), None) => {
            let arguments = arguments.clone().unwrap_or_default();
            let tool = tool.trim().to_owned();
            Task::Call {
                tool,
                arguments,
                named: None,
            }
        }
        (None, Some(prompt)) if !prompt.trim().is_empty() && arguments.is_none() => Task::Prompt {
            prompt: prompt.clone(),
            labels: Vec::new(),
            named: None,
        },
        _ => return Err(invalid("give `tool`, with its `arguments`, or `prompt`")),
    };
    match &task {
        Task::Call { tool, .. } if ALL.contains(&tool.as_str()) => Err(invalid(format!(
            "`{tool}` cannot be scheduled: a task schedules no others"
        ))),
        task if json(task).len() > TASK_BYTES_MAX => Err(invalid(format!(
            "a task has at most {TASK_BYTES_MAX} bytes"
        ))),
        _ => Ok(task),
    }
}

/// Puts a task there, unless it could never run.
async fn put(
    (host, session, room): (&Rooms, &Session, &SchedulerRoom),
    (frame, owner): (&CallFrame, ScheduleOwner),
    (name, task, times): (&str, Task, Times),
) -> Result<RawOutput, ToolFailure> {
    let name = name.trim().to_owned();
    if name.is_empty()
        || name.chars().count() > NAME_CHARS_MAX
        || name.chars().any(char::is_control)
    {
        return Err(invalid(format!(
            "`name` has 1 to {NAME_CHARS_MAX} characters, and none that cannot be printed"
        )));
    }
    let doubt = foreseen(host, session, &task).await?;
    let heard = session.heard().filter(|_| !frame.principal.is_operator());
    let named = |value: &Value| heard.as_ref().map(|heard| heard.named_in(value));
    let task = match task {
        Task::Prompt { prompt, .. } => Task::Prompt {
            named: named(&Value::String(prompt.clone())),
            prompt,
            labels: host.authoriser.governance.carried(session, frame.id),
        },
        Task::Call {
            tool, arguments, ..
        } => {
            let named = named(&Value::Object(arguments.clone()));
            Task::Call {
                tool,
                arguments,
                named,
            }
        }
    };
    let is_model = matches!(frame.principal, Principal::Model { .. });
    let next_ms = times.next(now_ms());
    let schedule = NewSchedule {
        owner,
        name: name.clone(),
        conversation: frame.conversation,
        is_model,
        work: json(&task),
        times: json(&times),
        next_ms,
    };
    let put = host.store.put_schedule(schedule, BOUNDS, now_ms()).await;
    let word = match put.map_err(|error| unwritten(&error))? {
        PutSchedule::Created => "Created",
        PutSchedule::Replaced => "Updated",
        PutSchedule::TooMany => {
            return Err(failed(format!(
                "there are {} tasks of this caller already; cancel one",
                BOUNDS.of_caller
            )));
        }
        PutSchedule::Full => {
            let all = BOUNDS.in_all;
            return Err(failed(format!("there are {all} tasks already; cancel one")));
        }
    };
    room.news.notify_one();
    let next = next_ms.map(|at_ms| times::shown(at_ms, &room.time_zone));
    let kind = match times {
        Times::Periodic { .. } => "periodic",
        Times::Once { .. } => "deferred",
    };
    let when = next.as_deref().unwrap_or("no future occurrence");
    Ok(RawOutput {
        structured: Some(json!({ "name": name, "next_run": next, "needs_approval": doubt })),
        ..RawOutput::text(format!(
            "{word} {kind} task '{name}' ({}, next run: {when}){}",
            task.shown(),
            doubt.map(|doubt| format!("\n{doubt}")).unwrap_or_default()
        ))
    })
}

/// What would become of the task now: why a run would have to be approved, if it would.
///
/// Errors: it could not run at all.
async fn foreseen(
    host: &Rooms,
    session: &Session,
    task: &Task,
) -> Result<Option<String>, ToolFailure> {
    let Task::Call {
        tool, arguments, ..
    } = task
    else {
        return Ok(None);
    };
    let request = ToolRequest {
        tool: tool.clone(),
        arguments: Value::Object(arguments.clone()),
        answers: None,
    };
    let later = session.of_schedule("");
    match Box::pin(pipeline::explain(host, &later, request)).await? {
        Decision::Allow(_) => Ok(None),
        Decision::Ask(refusal) => Ok(Some(format!(
            "No rule allows this call yet: each run waits for an approval until one does. {}",
            one_line(&refusal.failure.message, 500)
        ))),
        Decision::Deny(refusal) => Err(refusal.failure),
    }
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn invalid(message: impl Into<String>) -> ToolFailure {
    let category = ErrorCategory::InvalidParameters;
    ToolFailure::new(category, ErrorPhase::ParamHandling, message)
}

fn failed(message: impl Into<String>) -> ToolFailure {
    let category = ErrorCategory::PermanentFailure;
    ToolFailure::new(category, ErrorPhase::Execution, message)
}

fn unwritten(error: &StoreError) -> ToolFailure {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "schedules cannot be read or written"
    );
    let category = ErrorCategory::ServerError;
    ToolFailure::new(category, ErrorPhase::Execution, "the store cannot be used")
}
