//! Runs whatever program it is told to.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use zeph_plugin::process::{End, Program};
use zeph_plugin::{Output, ToolError};

/// A program to run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Run {
    /// Its name and its arguments.
    line: Vec<String>,
    /// Where.
    directory: Option<String>,
    /// Its input.
    #[serde(default)]
    input: String,
    /// For how many milliseconds.
    timeout_ms: Option<u64>,
}

/// Says all that is known of its end.
pub(crate) fn run(run: Run) -> Result<Output, ToolError> {
    let (name, arguments) = run
        .line
        .split_first()
        .ok_or_else(|| ToolError::invalid_parameters("there is no program"))?;
    let mut program = Program::new(name).args(arguments).input(run.input);
    if let Some(directory) = run.directory {
        program = program.directory(directory);
    }
    if let Some(ms) = run.timeout_ms {
        program = program.timeout(Duration::from_millis(ms));
    }
    let completed = program.run()?;
    let end = match completed.end {
        End::Exited(code) => format!("exited {code}"),
        End::Killed(signal) => format!("killed {signal}"),
        End::TimedOut => "timed out".to_owned(),
        End::Flooded => "flooded".to_owned(),
    };
    Ok(Output::text(end.clone()).structured(&json!({
        "end": end,
        "stdout": completed.stdout.text,
        "stderr": completed.stderr.text,
        "omitted": [completed.stdout.omitted, completed.stderr.omitted],
    })))
}
