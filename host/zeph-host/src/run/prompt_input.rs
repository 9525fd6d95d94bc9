//! What a person types: `tool {json}`, `tool key=value key2="two words"`, or `/command`.
//!
//! Pure. The schema decides what a bare value means: `limit=5` is a number where a number is wanted and the text `5`
//! where text is wanted. Unlike the argument layer, which forgives models, an unknown key is an error here: a person is
//! there to correct it.

use serde_json::{Map, Value, json};
use zeph_core::argument::Parameters;
use zeph_core::catalog::Catalog;
use zeph_core::failure::one_line;
use zeph_core::nearest::nearest;
use zeph_shell::tools::{KILL_RUN, LIST_RUNS};

mod words;

use words::{Words, WrittenValue};

/// What a line asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptInput {
    /// Nothing: the line is blank.
    Nothing,
    /// Make a call.
    Call {
        /// The tool's name.
        tool: String,
        /// Its arguments.
        arguments: Value,
    },
    /// List the tools.
    Tools,
    /// Describe one tool.
    Tool(String),
    /// Let a call of a program run: the one named by its id or its tool, else the newest that waits.
    Approve(Option<String>),
    /// List what waits for approval and what was approved.
    Approvals,
    /// Mark the result of a call as unacceptable: the one with this id, else the newest.
    Revoke(Option<String>),
    /// Undo so many of the last commands.
    Undo(u32),
    /// Take the last of those back.
    Redo,
    /// Show the goal, set another one, or end it.
    Plan(Option<String>),
    /// Begin anew: a fresh turn, nothing counted, nothing approved for the session.
    Clear,
    /// Explain the editor.
    Help,
    /// Leave.
    Quit,
}

/// The commands, for completion and suggestions.
pub(crate) const COMMANDS: [&str; 13] = [
    "/approvals",
    "/approve",
    "/clear",
    "/help",
    "/kill",
    "/plan",
    "/quit",
    "/redo",
    "/revoke",
    "/runs",
    "/tool",
    "/tools",
    "/undo",
];

/// Most commands that `/undo` takes back at once. Far more than any host keeps.
const UNDO_MAX: u32 = 1_000;

/// Characters of the person's text that a message shows.
const SHOWN_CHARS_MAX: usize = 60;

/// Reads one line (or several, when JSON spans them).
///
/// Errors: one line that says what is wrong and how to write it.
pub(crate) fn read(line: &str, catalog: &Catalog) -> Result<PromptInput, String> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(PromptInput::Nothing);
    }
    if line.starts_with('/') {
        return command(line);
    }
    let (name, rest) =
        match line.split_once(|character: char| character.is_whitespace() || character == '{') {
            Some((name, _)) => (name, line[name.len()..].trim_start()),
            None => (line, ""),
        };
    let Ok(tool) = catalog.resolve(name) else {
        return Err(not_a_tool(name, catalog));
    };
    let arguments = if rest.starts_with('{') {
        serde_json::from_str(rest)
            .map_err(|error| format!("the arguments are not JSON: {error}"))?
    } else {
        assignments(rest, &tool.parameters)
            .map(Value::Object)
            .map_err(|problem| format!("{problem}; `{name}` takes {}", tool.parameters.compact()))?
    };
    Ok(PromptInput::Call {
        tool: name.to_owned(),
        arguments,
    })
}

/// Reads one `key=value` of a command line, whose quotes a shell has taken off already.
///
/// Errors: one line that says what is wrong.
pub(crate) fn argument(given: &str, parameters: &Parameters) -> Result<(String, Value), String> {
    let Some((key, text)) = given.split_once('=').filter(|(key, _)| is_key(key)) else {
        return Err(format!(
            "`{}` is not `key=value`",
            one_line(given, SHOWN_CHARS_MAX)
        ));
    };
    let value = known(key, parameters).map(|property| bare(text, property))?;
    Ok((key.to_owned(), value))
}

fn command(line: &str) -> Result<PromptInput, String> {
    if let Some(rest) = line.strip_prefix("/plan")
        && (rest.is_empty() || rest.starts_with(char::is_whitespace))
    {
        let rest = rest.trim();
        return Ok(PromptInput::Plan(
            (!rest.is_empty()).then(|| rest.to_owned()),
        ));
    }
    let mut words = line.split_whitespace();
    let (name, argument) = (words.next().unwrap_or_default(), words.next());
    if let Some(more) = words.next().filter(|_| COMMANDS.contains(&name)) {
        let shown = one_line(more, SHOWN_CHARS_MAX);
        return Err(format!("`{shown}` is one word too many"));
    }
    match (name, argument) {
        ("/tools", None) => Ok(PromptInput::Tools),
        ("/tool", Some(tool)) => Ok(PromptInput::Tool(tool.to_owned())),
        ("/tool", None) => Err("write `/tool NAME`; `/tools` lists the names".to_owned()),
        ("/approve", which) => Ok(PromptInput::Approve(which.map(str::to_owned))),
        ("/revoke", call) => Ok(PromptInput::Revoke(call.map(str::to_owned))),
        ("/approvals", None) => Ok(PromptInput::Approvals),
        ("/undo", count) => undo(count),
        ("/redo", None) => Ok(PromptInput::Redo),
        // What runs in the background is looked at and ended by tools: a person calls the same ones.
        ("/runs", None) => Ok(call(LIST_RUNS, json!({}))),
        ("/kill", Some(run)) => Ok(call(KILL_RUN, json!({ "run_id": run }))),
        ("/kill", None) => Err("write `/kill ID`; `/runs` lists the ids".to_owned()),
        ("/clear", None) => Ok(PromptInput::Clear),
        ("/help" | "/?", _) => Ok(PromptInput::Help),
        ("/quit" | "/exit" | "/q", None) => Ok(PromptInput::Quit),
        _ => Err(match nearest(name, COMMANDS) {
            Some(near) if near != name => {
                let shown = one_line(name, SHOWN_CHARS_MAX);
                format!("there is no command `{shown}`; did you mean `{near}`?")
            }
            Some(near) => format!("`{near}` takes no argument"),
            None => format!(
                "there is no such command; there are: {}",
                COMMANDS.join(", ")
            ),
        }),
    }
}

fn call(tool: &str, arguments: Value) -> PromptInput {
    PromptInput::Call {
        tool: tool.to_owned(),
        arguments,
    }
}

fn undo(count: Option<&str>) -> Result<PromptInput, String> {
    let Some(count) = count else {
        return Ok(PromptInput::Undo(1));
    };
    match count.parse() {
        Ok(0) => Err("Undo count must be > 0.".to_owned()),
        Ok(count) if count <= UNDO_MAX => Ok(PromptInput::Undo(count)),
        _ => Err(format!(
            "write `/undo` or `/undo N`, N from 1 to {UNDO_MAX}"
        )),
    }
}

fn not_a_tool(name: &str, catalog: &Catalog) -> String {
    if matches!(name, "help" | "quit" | "exit" | "tools") {
        let command = if name == "exit" { "quit" } else { name };
        return format!("did you mean `/{command}`?");
    }
    match catalog.resolve(name) {
        Ok(_) => String::new(),
        Err(failure) => failure.message,
    }
}

/// Reads `key=value` words up to the end of `text`.
fn assignments(text: &str, parameters: &Parameters) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    let mut words = Words::new(text);
    while let Some(word) = words.next_assignment()? {
        let property = known(word.key, parameters)?;
        let value = match word.given {
            WrittenValue::Bare(text) => bare(text, property),
            WrittenValue::Quoted(text) => Value::String(text),
            WrittenValue::Json(text, value) if wants_text(property) => {
                drop(value);
                Value::String(text.to_owned())
            }
            WrittenValue::Json(_, value) => value,
        };
        if arguments.insert(word.key.to_owned(), value).is_some() {
            return Err(format!(
                "`{}` is given twice",
                one_line(word.key, SHOWN_CHARS_MAX)
            ));
        }
    }
    Ok(arguments)
}

/// The schema of a parameter; null for one that an open schema does not describe.
fn known<'a>(key: &str, parameters: &'a Parameters) -> Result<&'a Value, String> {
    const ANY: &Value = &Value::Null;
    let schema = parameters.schema();
    let properties = schema.get("properties").and_then(Value::as_object);
    let property = properties.and_then(|properties| properties.get(key));
    let is_open = properties.is_none()
        || schema
            .get("additionalProperties")
            .is_some_and(|rule| rule == &Value::Bool(true) || rule.is_object());
    if let Some(property) = property {
        return Ok(property);
    }
    if is_open {
        return Ok(ANY);
    }
    let names = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str);
    let shown = one_line(key, SHOWN_CHARS_MAX);
    Err(match nearest(&shown, names) {
        Some(near) => format!("there is no parameter `{shown}`; did you mean `{near}`?"),
        None => format!("there is no parameter `{shown}`"),
    })
}

/// A value without quotes: JSON where text is not wanted and it is a number, a boolean, an array or an object.
fn bare(text: &str, property: &Value) -> Value {
    if wants_text(property) {
        return Value::String(text.to_owned());
    }
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            value
        }
        _ => Value::String(text.to_owned()),
    }
}

fn wants_text(property: &Value) -> bool {
    match property.get("type") {
        Some(Value::String(name)) => name == "string",
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        _ => property
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|values| values.iter().all(Value::is_string)),
    }
}

fn is_key(text: &str) -> bool {
    let is_key_char = |character: char| character.is_alphanumeric() || "_-.$".contains(character);
    !text.is_empty() && text.chars().all(is_key_char)
}

#[cfg(test)]
mod tests;
