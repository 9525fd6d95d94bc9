//! The event of an agent, as far as it concerns us. Pure.

use serde_json::Value;
use zeph_core::failure::one_line;

use crate::cli::error::CliError;

/// Whose hook it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agent {
    Claude,
    Codex,
}

/// A call of the shell tool, before or after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookEvent {
    pub(super) command: String,
    pub(super) kind: EventKind,
}

/// Which of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventKind {
    /// Before the command runs.
    Before {
        /// Whether the agent would run it without asking its user.
        is_unasked: bool,
    },
    /// After it ended.
    After {
        output: String,
        /// `None` when it did not end by itself.
        exit_code: Option<i32>,
    },
}

impl Agent {
    /// The agent of this name.
    ///
    /// Errors: an unknown name.
    pub(super) fn named(name: &str) -> Result<Self, CliError> {
        match name.to_ascii_lowercase().as_str() {
            "claude" | "claude-code" => Ok(Self::Claude),
            "codex" => Ok(Self::Codex),
            _ => Err(CliError::user(format!(
                "there are hooks for claude and codex, none for `{}`",
                one_line(name, 100)
            ))),
        }
    }
}

impl HookEvent {
    /// Reads an event; `name` is the one of the command line. `None` for what is none of ours: another tool, an event without an
    /// output, an agent that cannot take one.
    ///
    /// Errors: an unknown event.
    pub(super) fn read(
        agent: Agent,
        name: Option<&str>,
        input: &Value,
    ) -> Result<Option<Self>, CliError> {
        let name = name.or_else(|| input["hook_event_name"].as_str());
        let name = name.unwrap_or_default();
        let plain: String = name
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric())
            .collect();
        let is_shell = matches!(
            input["tool_name"].as_str(),
            Some("Bash" | "bash" | "shell" | "exec_command")
        );
        let command = input["tool_input"]["command"].as_str();
        let kind = match (plain.to_ascii_lowercase().as_str(), agent) {
            ("pretooluse", _) => Some(EventKind::Before {
                is_unasked: input["permission_mode"] == "bypassPermissions",
            }),
            ("posttooluse", Agent::Claude) => after(&input["tool_response"]),
            // Its outputs cannot be replaced by a hook.
            ("posttooluse", Agent::Codex) => None,
            _ => {
                return Err(CliError::user(format!(
                    "there are hooks for pre-tool-use and post-tool-use, none for `{}`",
                    one_line(name, 100)
                )));
            }
        };
        let event = command.filter(|_| is_shell).zip(kind);
        Ok(event.map(|(command, kind)| Self {
            command: command.to_owned(),
            kind,
        }))
    }
}

/// What the tool gave back. The event comes after a success unless the response says otherwise.
fn after(response: &Value) -> Option<EventKind> {
    if response["isImage"] == true {
        return None;
    }
    let text = |name: &str| response[name].as_str().unwrap_or_default();
    let output = match response {
        Value::String(text) => text.clone(),
        Value::Object(_) => joined(text("stdout"), text("stderr")),
        _ => return None,
    };
    let told = ["exit_code", "exitCode"]
        .iter()
        .find_map(|name| response[*name].as_i64());
    let exit_code = match told {
        _ if response["interrupted"] == true => None,
        Some(code) => i32::try_from(code).ok(),
        // A code that is no failure of this program, such as that of grep(1) without a match.
        None if !response["returnCodeInterpretation"].is_null() => None,
        None => Some(0),
    };
    Some(EventKind::After { output, exit_code })
}

fn joined(stdout: &str, stderr: &str) -> String {
    let needs_end = !stdout.is_empty() && !stderr.is_empty() && !stdout.ends_with('\n');
    let end = if needs_end { "\n" } else { "" };
    format!("{stdout}{end}{stderr}")
}
