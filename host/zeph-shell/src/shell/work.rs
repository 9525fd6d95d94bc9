//! What a call of the shell asks for: its arguments, read once. The command line itself is the one that was analysed and decided about.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zeph_core::failure::ToolFailure;
use zeph_core::tool::Tool;

use super::failure;
use crate::tools::{BASH, BashArguments, KILL_RUN, KillRunArguments, LIST_RUNS, ListRunsArguments};

/// Most bytes of a command. The kernel takes no argument longer than 128 KiB.
const COMMAND_BYTES_MAX: usize = 120 * 1024;

/// What one call of the shell asks for.
#[derive(Debug, Clone)]
pub struct ShellWork(pub(super) ShellRequest);

/// The tools, with their arguments.
#[derive(Debug, Clone)]
pub(super) enum ShellRequest {
    Bash(BashOptions),
    ListRuns,
    KillRun(KillRunArguments),
}

/// How a command is to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct BashOptions {
    pub(super) background: bool,
    /// Seconds.
    pub(super) timeout: Option<u64>,
}

impl ShellWork {
    /// Reads the arguments of a call of `tool`. Returns with them the command line, when it is one of `bash`: it has to be analysed, and
    /// only its analysis is run.
    ///
    /// Errors: `invalid_parameters`, also for a command that no system can run; `tool_not_found`.
    pub fn read(
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> Result<(Self, Option<String>), ToolFailure> {
        match tool.name.as_str() {
            BASH => {
                let arguments: BashArguments = typed(arguments)?;
                check(&arguments.command)?;
                let options = BashOptions {
                    background: arguments.background,
                    timeout: arguments.timeout,
                };
                Ok((Self(ShellRequest::Bash(options)), Some(arguments.command)))
            }
            LIST_RUNS => {
                typed::<ListRunsArguments>(arguments)?;
                Ok((Self(ShellRequest::ListRuns), None))
            }
            KILL_RUN => Ok((Self(ShellRequest::KillRun(typed(arguments)?)), None)),
            other => Err(failure::no_such_tool(other)),
        }
    }

    /// Whether it is a command that its caller waits for.
    pub fn is_foreground_command(&self) -> bool {
        matches!(&self.0, ShellRequest::Bash(options) if !options.background)
    }

    /// Whether it is a command that goes on in the background.
    pub fn is_background_command(&self) -> bool {
        matches!(&self.0, ShellRequest::Bash(options) if options.background)
    }
}

fn typed<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, ToolFailure> {
    let arguments = Value::Object(arguments.clone());
    serde_json::from_value(arguments).map_err(|error| failure::invalid(error.to_string()))
}

fn check(command: &str) -> Result<(), ToolFailure> {
    let n_bytes = command.len();
    if command.trim().is_empty() {
        return Err(failure::invalid("`command` is empty"));
    }
    if command.contains('\0') {
        return Err(failure::invalid(
            "`command` holds a NUL, which no command line can",
        ));
    }
    if n_bytes > COMMAND_BYTES_MAX {
        return Err(failure::invalid(format!(
            "`command` has {n_bytes} bytes; more than {COMMAND_BYTES_MAX} cannot be run: put it into a file with `write` first"
        )));
    }
    Ok(())
}
