//! `zeph-host hook`: output filters for other agents, by their own hooks. Whatever goes wrong, it has no opinion: the exit code is
//! 0 and standard output is empty.
//!
//! Source of the formats: the hook references of both agents. An agent takes exit code 2 for a veto, so it is never used.

mod event;
mod rewrite;

use std::io::{self, Read as _};
use std::sync::Arc;

use serde_json::{Value, json};
use zeph_plugins::component::Component;
use zeph_shell::analysis::analyse;

use self::event::{Agent, EventKind, HookEvent};
use super::args::{Global, HookArgs};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::filter::ready::{Keep, Ready};
use super::out;
use crate::filtering::standalone::Printed;

/// Bytes of the longest event that is read: what an agent keeps of an output is far below.
const EVENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Runs the command.
pub(super) fn run(global: Global, components: Vec<Component>, options: &HookArgs) -> Exit {
    let answered = Context::new(global, components).and_then(|context| answer(&context, options));
    let printed = answered.and_then(|answer| match answer {
        Some(answer) => out::json_line(&answer),
        None => Ok(()),
    });
    if let Err(error) = printed {
        out::error(&error, true);
    }
    Exit::Success
}

/// What to tell the agent; `None` for no opinion.
fn answer(context: &Context, options: &HookArgs) -> Result<Option<Value>, CliError> {
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(EVENT_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| CliError::internal("the event cannot be read").because(error))?;
    let input: Value = serde_json::from_str(&text)
        .map_err(|error| CliError::user("the event is not valid JSON").because(error))?;
    let agent = Agent::named(&options.agent)?;
    let Some(event) = HookEvent::read(agent, options.event.as_deref(), &input)? else {
        return Ok(None);
    };
    let ready = Ready::new(context, context.config()?);
    match event.kind {
        EventKind::Before { is_unasked } => {
            let may = is_unasked || options.allow;
            let filters = ready.filtering.filters();
            let rewritten = rewrite::rewritten(filters, &event.command, &context.program())
                .filter(|_| may && ready.config.filters.enabled);
            Ok(rewritten.map(|command| before(&input, &command)))
        }
        EventKind::After { output, exit_code } => {
            let printed = Printed {
                line: analyse(&event.command),
                exit_code,
                raw: output.into_bytes(),
            };
            let shown = shorter(context, &ready, printed)?;
            Ok(shown.map(|text| after(&input, &text)))
        }
    }
}

/// The call with another command; both agents take it with a permission only.
fn before(input: &Value, command: &str) -> Value {
    let mut updated = input["tool_input"].clone();
    updated["command"] = json!(command);
    json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "the same command, with its output shortened",
            "updatedInput": updated,
        }
    })
}

/// The response with another text, in the form the tool gave it: another form is refused.
fn after(input: &Value, text: &str) -> Value {
    let response = &input["tool_response"];
    let updated = match response {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            // The agent would show the file of the whole output instead.
            fields.retain(|name, _| !name.starts_with("persistedOutput"));
            fields.insert("stdout".to_owned(), json!(text));
            fields.insert("stderr".to_owned(), json!(""));
            Value::Object(fields)
        }
        _ => json!(text),
    };
    json!({
        "hookSpecificOutput": {
            "hookEventName": "PostToolUse",
            "updatedToolOutput": updated,
        }
    })
}

/// The shorter text of an output; `None` when it stays as it is.
fn shorter(context: &Context, ready: &Ready, printed: Printed) -> Result<Option<String>, CliError> {
    let filters = ready.filtering.filters();
    if filters.why(&printed.line).acting.is_empty() {
        return Ok(None);
    }
    let printed = Arc::new(printed);
    context::block_on(async {
        let shown = ready.shown(context, &printed, Keep::Stored).await;
        context.notes(&shown.remarks);
        Ok(shown.text)
    })
}

#[cfg(test)]
mod tests;
