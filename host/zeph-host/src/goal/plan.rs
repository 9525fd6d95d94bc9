//! `/plan`, for every front end a person types at, and a plan as the model is shown it.

use std::fmt::Write as _;

use zeph_core::failure::one_line;
use zeph_store::{Goal, GoalState};

use crate::goal;
use crate::host::Host;
use crate::run::render::escape;
use crate::session::Session;

/// Characters of a goal at most, as `agent.goal_text`.
const GOAL_CHARS_MAX: usize = 10_000;

/// Goals that `/plan list` shows.
const LISTED_MAX: u32 = 20;

/// Carries out `/plan ARGUMENT`: what to print, safe for a terminal.
///
/// Without an argument it shows the goal; `done` and `cancel` end it, `list` shows those of the conversation; anything else is a new goal.
/// Errors: one line for the person.
pub(crate) async fn command(
    host: &Host,
    session: &Session,
    argument: Option<&str>,
) -> Result<String, String> {
    let argument = argument.map(str::trim).filter(|text| !text.is_empty());
    match argument {
        None => show(host, session).await,
        Some("done") => end(host, session, GoalState::Completed).await,
        Some("cancel") => end(host, session, GoalState::Cancelled).await,
        Some("list") => list(host, session).await,
        Some(text) => set(host, session, text).await,
    }
}

async fn set(host: &Host, session: &Session, text: &str) -> Result<String, String> {
    if text.chars().count() > GOAL_CHARS_MAX {
        return Err(format!(
            "a goal has at most {GOAL_CHARS_MAX} characters; put the rest into a file"
        ));
    }
    let text = host.redactor().text(text).into_owned();
    let set = goal::set(host.store(), session, &text).await;
    let goal = set.map_err(|error| error.to_string())?;
    Ok(format!(
        "goal {}: {}\n",
        goal.id(),
        escape(&one_line(&text, 200))
    ))
}

async fn end(host: &Host, session: &Session, state: GoalState) -> Result<String, String> {
    find(host, session).await?;
    let ended = goal::end(host.store(), session, state).await;
    match ended.map_err(|error| error.to_string())? {
        Some(goal) => Ok(format!(
            "{}: {}\n",
            state.label(),
            escape(&one_line(&goal.goal.text, 200))
        )),
        None => Err(NO_GOAL.to_owned()),
    }
}

const NO_GOAL: &str = "there is no goal; `/plan TEXT` sets one";

async fn show(host: &Host, session: &Session) -> Result<String, String> {
    find(host, session).await?;
    match session.goals().active() {
        Some(goal) => Ok(escape(&shown(&goal.goal))),
        None => Err(NO_GOAL.to_owned()),
    }
}

async fn list(host: &Host, session: &Session) -> Result<String, String> {
    let goals = host.store().goals(session.conversation, LISTED_MAX).await;
    let goals = goals.map_err(|error| error.to_string())?;
    let lines = goals.iter().map(|goal| {
        let text = one_line(&goal.text, 120);
        format!("{}  {:9}  {text}\n", goal.id, goal.state.label())
    });
    match goals.is_empty() {
        true => Err(NO_GOAL.to_owned()),
        false => Ok(escape(&lines.collect::<String>())),
    }
}

async fn find(host: &Host, session: &Session) -> Result<(), String> {
    let configured = host.config().agent.goal_text.as_deref();
    let found = goal::find(host.store(), session, configured).await;
    found.map_err(|error| error.to_string())
}

/// The goal, and its tasks one on a line.
fn shown(goal: &Goal) -> String {
    format!("{} ({})\n{}", goal.text, goal.id, tasks(goal))
}

/// The tasks, one on a line: `[state] ID: title (after ID, ID)`.
pub(crate) fn tasks(goal: &Goal) -> String {
    let mut text = String::new();
    for task in goal.tasks.tasks() {
        let after = match task.after.is_empty() {
            true => String::new(),
            false => format!(" (after {})", task.after.join(", ")),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "- [{}] {}: {}{after}",
            task.state.label(),
            one_line(&task.id, 64),
            one_line(&task.title, 300)
        );
    }
    text
}

/// What the model is told of the goal with every message of its user; none without one.
pub(crate) fn told(session: &Session) -> Option<String> {
    let goal = session.goals().active()?;
    let goal = &goal.goal;
    let tasks = match goal.tasks.tasks() {
        [] => "none yet; when the goal takes several steps, write them down with `update_plan`"
            .to_owned(),
        _ => format!("\n{}", tasks(goal).trim_end()),
    };
    Some(format!("{}\ntasks: {tasks}", goal.text))
}
