//! `list_runs` and `kill_run`.

use serde_json::{Value, json};
use uuid::Uuid;
use zeph_core::failure::one_line;
use zeph_core::output::RawOutput;

use super::{ShellEnd, ShellSession, failure};
use crate::tools::KillRunArguments;

/// Most characters of a command in the list.
const COMMAND_CHARS_MAX: usize = 200;

pub(super) fn list(session: &ShellSession) -> ShellEnd {
    let runs = session.background.list();
    let lines: Vec<String> = runs
        .iter()
        .map(|run| {
            let command = one_line(&run.command, COMMAND_CHARS_MAX);
            let secs = run.running_for.as_secs();
            format!("run_id={} running for {secs} s: {command}", run.run_id)
        })
        .collect();
    let text = match lines.is_empty() {
        true => "Nothing runs in the background.".to_owned(),
        false => lines.join("\n"),
    };
    let runs: Vec<Value> = runs
        .iter()
        .map(|run| json!({ "run_id": run.run_id, "seconds": run.running_for.as_secs(), "command": run.command }))
        .collect();
    ShellEnd::plain(Ok(RawOutput {
        structured: Some(json!({ "runs": runs })),
        ..RawOutput::text(text)
    }))
}

pub(super) async fn kill(arguments: &KillRunArguments, session: &ShellSession) -> ShellEnd {
    let run_id = arguments.run_id.trim();
    let run_id = run_id.strip_prefix("run_id=").unwrap_or(run_id);
    let Ok(uuid) = Uuid::try_parse(run_id) else {
        return ShellEnd::failed(failure::no_run(run_id));
    };
    match session.background.kill(uuid).await {
        true => ShellEnd::plain(Ok(RawOutput::text(format!(
            "[background] ended run_id={uuid}"
        )))),
        false => ShellEnd::failed(failure::no_run(run_id)),
    }
}
