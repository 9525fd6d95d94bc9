//! The tools of a plugin as its guest defines them, checked before anything else of the host sees them.
//!
//! A definition is hostile text that a model will read. It is refused with one sentence when it breaks the contract, would be
//! fetched from elsewhere, or could take the host too long; what cannot be seen is taken out of the words for people and models, and
//! refused everywhere else. Runs on a guest's thread: a large list takes its time.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::Value;
use zeph_core::argument::Parameters;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::text::{is_deceptive, plain_line, plain_text};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use crate::bindings::zeph::plugin::types as wit;
use crate::json;

/// Most tools of one plugin. More than a model can choose from; bounds what a hostile list costs.
const TOOLS_MAX: usize = 256;

/// Most bytes of all definitions of one plugin together. No model reads more; in memory a schema may take a hundred times its
/// text.
const DEFINITIONS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Most characters of a tool's name (`tool-definition.name` of the contract).
const NAME_CHARS_MAX: usize = 48;

/// Most characters of a title: it stands in a list.
const TITLE_CHARS_MAX: usize = 100;

/// Most bytes of a tool's description.
const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// Most bytes of a tool's schema.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// How long the schemas of one plugin may take to compile. A schema in use takes well under a millisecond.
const SCHEMAS_TIME_MAX: Duration = Duration::from_secs(5);

/// Words for people and models, wherever they stand in a schema.
const WORDS: [&str; 3] = ["title", "description", "$comment"];

/// The tools of a plugin, whose schemas are compiled once, so that a bad one is not found by the first call.
///
/// Errors: one sentence naming the tool and what its author has to mend.
pub(crate) fn tools(
    plugin: &PluginId,
    definitions: Vec<wit::ToolDefinition>,
) -> Result<Vec<Tool>, String> {
    let tools = uncompiled(plugin, definitions)?;
    let started = Instant::now();
    for tool in &tools {
        compile(tool)?;
        if started.elapsed() > SCHEMAS_TIME_MAX {
            let seconds = SCHEMAS_TIME_MAX.as_secs();
            return Err(format!(
                "its schemas take longer than {seconds} s to compile"
            ));
        }
    }
    Ok(tools)
}

fn compile(tool: &Tool) -> Result<(), String> {
    let output = tool
        .output
        .as_deref()
        .cloned()
        .map(Parameters::new)
        .transpose();
    let compiled = [
        ("schema", tool.parameters.check()),
        (
            "output schema",
            output.and_then(|output| output.map_or(Ok(()), |output| output.check())),
        ),
    ];
    for (what, compiled) in compiled {
        compiled.map_err(|error| format!("`{}`: its {what} cannot be used: {error}", tool.name))?;
    }
    Ok(())
}

/// The tools, whose schemas may not compile.
///
/// Errors: those of [`tools`] otherwise.
fn uncompiled(
    plugin: &PluginId,
    definitions: Vec<wit::ToolDefinition>,
) -> Result<Vec<Tool>, String> {
    if definitions.is_empty() {
        return Err("it lists no tools".to_owned());
    }
    if definitions.len() > TOOLS_MAX {
        let n_tools = definitions.len();
        return Err(format!(
            "it lists {n_tools} tools; the limit is {TOOLS_MAX}"
        ));
    }
    let n_bytes: usize = definitions.iter().map(definition_bytes).sum();
    if n_bytes > DEFINITIONS_BYTES_MAX {
        return Err(format!(
            "its definitions of tools have {n_bytes} bytes; the limit is {DEFINITIONS_BYTES_MAX}"
        ));
    }
    let mut names: HashSet<ToolName> = HashSet::new();
    let mut tools = Vec::with_capacity(definitions.len());
    for definition in definitions {
        let tool = tool(plugin, definition)?;
        if !names.insert(tool.name.clone()) {
            return Err(format!("it lists `{}` twice", tool.name));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn tool(plugin: &PluginId, definition: wit::ToolDefinition) -> Result<Tool, String> {
    let wit::ToolDefinition {
        name,
        title,
        description,
        parameters,
        output,
        kind,
        annotations,
    } = definition;
    let shown = plain_line(&name, 80);
    let name = tool_name(name).ok_or_else(|| {
        format!("`{shown}` is not a valid tool name: 1 to {NAME_CHARS_MAX} of `a-z 0-9 _ -`")
    })?;
    if description.len() > DESCRIPTION_BYTES_MAX {
        return Err(format!(
            "`{shown}`: its description is longer than {DESCRIPTION_BYTES_MAX} bytes"
        ));
    }
    let schema = |what: &str, text: &str| {
        schema(text).map_err(|problem| format!("`{shown}`: its {what} {problem}"))
    };
    let title = title.map(|title| plain_line(&title, TITLE_CHARS_MAX));
    Ok(Tool {
        title: title.filter(|title| !title.is_empty()),
        description: plain_text(&description),
        parameters: schema("schema", &parameters)?,
        output: match output {
            Some(text) => Some(schema("output schema", &text)?.schema().clone().into()),
            None => None,
        },
        name,
        kind: tool_kind(kind),
        annotations: Annotations {
            read_only: annotations.read_only,
            destructive: annotations.destructive,
            idempotent: annotations.idempotent,
            open_world: annotations.open_world,
        },
        backend: Backend::Wasm(plugin.clone()),
    })
}

/// The bytes of a definition's texts.
fn definition_bytes(definition: &wit::ToolDefinition) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let wit::ToolDefinition {
        name,
        title,
        description,
        parameters,
        output,
        kind: _,
        annotations: _,
    } = definition;
    name.len() + optional(title) + description.len() + parameters.len() + optional(output)
}

/// A name in the shape of the contract. It is narrower than [`ToolName`], so that the host can put a plugin's name before it.
fn tool_name(name: String) -> Option<ToolName> {
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    if name.len() > NAME_CHARS_MAX || !is_lower {
        return None;
    }
    ToolName::new(name).ok()
}

/// Reads a schema.
fn schema(text: &str) -> Result<Parameters, String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("is longer than {SCHEMA_BYTES_MAX} bytes"));
    }
    let mut schema = json::read(text).map_err(|error| format!("is not valid JSON: {error}"))?;
    clean(&mut schema)?;
    Parameters::new(schema).map_err(|error| format!("cannot be used: {error}"))
}

/// Removes invisible characters from the descriptions of a schema. Elsewhere they may have a meaning that cannot be checked.
fn clean(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                check_visible(key)?;
                match value {
                    Value::String(words) if WORDS.contains(&key.as_str()) => {
                        *words = plain_text(words);
                    }
                    value => clean(value)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(clean),
        Value::String(text) => check_visible(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn check_visible(text: &str) -> Result<(), String> {
    let hides =
        |character: char| is_deceptive(character) && !matches!(character, '\n' | '\r' | '\t');
    match text.chars().any(hides) {
        true => Err(format!(
            "holds a character nobody sees, in `{}`",
            plain_line(text, 60)
        )),
        false => Ok(()),
    }
}

fn tool_kind(kind: wit::ToolKind) -> ToolKind {
    match kind {
        wit::ToolKind::Read => ToolKind::Read,
        wit::ToolKind::Edit => ToolKind::Edit,
        wit::ToolKind::Delete => ToolKind::Delete,
        wit::ToolKind::Move => ToolKind::Move,
        wit::ToolKind::Search => ToolKind::Search,
        wit::ToolKind::Execute => ToolKind::Execute,
        wit::ToolKind::Fetch => ToolKind::Fetch,
        wit::ToolKind::Think => ToolKind::Think,
        wit::ToolKind::Other => ToolKind::Other,
    }
}

#[cfg(test)]
mod tests;
