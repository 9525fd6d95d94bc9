//! Schedules as people and programs read them.

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use zeph_core::output::RawOutput;
use zeph_store::Schedule;

use super::SchedulerRoom;
use super::task::Task;
use super::times::{self, Times};
use crate::admission::Tokens;
use crate::run::table;

const HEAD: [&str; 6] = ["NAME", "MODE", "KIND", "CRON", "NEXT RUN", "LAST RUN"];

/// The tasks as a table and as data.
pub(super) fn listed(schedules: &[Schedule], room: &SchedulerRoom, tokens: &Tokens) -> RawOutput {
    let rows: Vec<Value> = schedules
        .iter()
        .map(|schedule| as_json(schedule, &room.time_zone, tokens))
        .collect();
    let text = match schedules.is_empty() {
        true => "No active scheduled tasks.".to_owned(),
        false => format!(
            "Scheduled tasks ({}):\n{}",
            schedules.len(),
            table::plain(HEAD, &rows_of(schedules, &room.time_zone, tokens))
        ),
    };
    RawOutput {
        structured: Some(json!({ "tasks": rows })),
        ..RawOutput::text(text)
    }
}

/// One task as data.
pub(crate) fn as_json(schedule: &Schedule, zone: &TimeZone, tokens: &Tokens) -> Value {
    let shown = |at_ms: i64| times::shown(at_ms, zone);
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let last = schedule.last.as_ref().map(|run| {
        json!({
            "run": run.id,
            "due": shown(run.due_ms),
            "begun": shown(run.begun_at_ms),
            "ended": run.ended_at_ms.map(shown),
            "state": run.state,
            "note": run.note,
        })
    });
    json!({
        "name": schedule.what.name,
        "caller": schedule.what.owner.caller.id,
        "token_gone": is_revoked(schedule, tokens),
        "directory": schedule.what.owner.directory,
        "conversation": schedule.what.conversation.to_string(),
        "task": parsed(&schedule.what.work),
        "times": parsed(&schedule.what.times),
        "next_run": schedule.what.next_ms.map(shown),
        "running": schedule.held.is_some(),
        "lost": is_lost(schedule),
        "last_run": last,
    })
}

/// Whether a run goes on whose host no longer says so; hosts that work in its directory settle it.
fn is_lost(schedule: &Schedule) -> bool {
    schedule.held.as_ref().is_some_and(|held| held.is_over)
}

/// Whether the token is gone that its caller came with: then it runs no more.
fn is_revoked(schedule: &Schedule, tokens: &Tokens) -> bool {
    tokens.admit(&schedule.what.owner.caller).is_none()
}

/// The tasks as lines under a head, styled for a terminal.
pub(crate) fn as_table(schedules: &[Schedule], zone: &TimeZone, tokens: &Tokens) -> String {
    table::render(HEAD, &rows_of(schedules, zone, tokens), None)
}

fn rows_of(schedules: &[Schedule], zone: &TimeZone, tokens: &Tokens) -> Vec<[String; 6]> {
    schedules.iter().map(|one| row(one, zone, tokens)).collect()
}

fn row(schedule: &Schedule, zone: &TimeZone, tokens: &Tokens) -> [String; 6] {
    let times: Option<Times> = serde_json::from_str(&schedule.what.times).ok();
    let task: Option<Task> = serde_json::from_str(&schedule.what.work).ok();
    let mode = match &times {
        Some(Times::Once { .. }) => "deferred",
        Some(Times::Periodic { .. }) => "periodic",
        None => "unreadable",
    };
    let next = match is_revoked(schedule, tokens) {
        true => Some("never: its token is gone".to_owned()),
        false => schedule.what.next_ms.map(|at_ms| times::shown(at_ms, zone)),
    };
    let last = schedule.last.as_ref().map(|run| {
        let state = serde_json::to_value(run.state).unwrap_or_default();
        let state = match is_lost(schedule) {
            true => "lost",
            false => state.as_str().unwrap_or_default(),
        };
        format!("{} {state}", times::shown(run.begun_at_ms, zone))
    });
    [
        schedule.what.name.clone(),
        mode.to_owned(),
        task.map(|task| task.shown()).unwrap_or_default(),
        times.map(|times| times.shown()).unwrap_or_default(),
        next.unwrap_or_else(|| "none".to_owned()),
        last.unwrap_or_else(|| "never".to_owned()),
    ]
}
