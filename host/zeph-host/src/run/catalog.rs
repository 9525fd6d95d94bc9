//! The catalog as text: one line for each tool, or one tool with its parameters. Pure.

use serde_json::Value;
use zeph_core::catalog::Catalog;
use zeph_core::failure::one_line;
use zeph_core::tool::{Backend, Tool};

use super::render::{BOLD, DIM, escape, push_styled};
use super::table;

/// Every tool on a line. `width` is that of the terminal.
pub(crate) fn list(catalog: &Catalog, width: Option<usize>) -> String {
    let rows: Vec<[String; 5]> = catalog
        .tools()
        .map(|tool| {
            [
                tool.name.to_string(),
                kind(tool),
                effect(tool).to_owned(),
                owner(tool).to_owned(),
                first_sentence(&tool.description),
            ]
        })
        .collect();
    table::render(["NAME", "KIND", "EFFECT", "OWNER", "WHAT"], &rows, width)
}

/// One tool: what it does and what it takes; with its JSON Schema when asked for.
pub(crate) fn show(tool: &Tool, width: Option<usize>, with_schema: bool) -> String {
    let mut shown = String::new();
    push_styled(&mut shown, BOLD, tool.name.as_str());
    push_styled(
        &mut shown,
        DIM,
        &format!(" · {} · {}{}", kind(tool), effect(tool), of_owner(tool)),
    );
    shown.push_str("\n\n");
    shown.push_str(&escape(tool.description.trim()));
    shown.push_str("\n\n");
    let rows = parameters(tool.parameters.schema());
    if rows.is_empty() {
        shown.push_str("It takes no parameters.\n");
    } else {
        shown.push_str(&table::render(
            ["PARAMETER", "TYPE", "", "WHAT"],
            &rows,
            width,
        ));
    }
    if with_schema {
        let schema = serde_json::to_string_pretty(tool.parameters.schema()).unwrap_or_default();
        push_styled(&mut shown, BOLD, "\nSCHEMA\n");
        shown.push_str(&escape(&schema));
        shown.push('\n');
    }
    shown
}

/// What a call does to the world, in a word.
pub(crate) fn effect(tool: &Tool) -> &'static str {
    let promises = tool.annotations;
    match (
        promises.read_only,
        promises.destructive,
        promises.open_world,
    ) {
        (true, _, false) => "reads",
        (true, _, true) => "reads outside",
        (false, true, _) => "destroys",
        (false, false, _) => "changes",
    }
}

/// The plugin or the server it belongs to; a dash when it is a tool of the host itself.
fn owner(tool: &Tool) -> &str {
    match &tool.backend {
        Backend::Wasm(plugin) => &plugin.0,
        Backend::Mcp(tool) => tool.server.as_str(),
        Backend::Builtin | Backend::Shell => "-",
    }
}

fn of_owner(tool: &Tool) -> String {
    match &tool.backend {
        Backend::Wasm(plugin) => format!(" · plugin {plugin}"),
        Backend::Mcp(tool) => format!(" · MCP server {}", tool.server),
        Backend::Builtin | Backend::Shell => String::new(),
    }
}

fn kind(tool: &Tool) -> String {
    match serde_json::to_value(tool.kind) {
        Ok(Value::String(label)) => label,
        _ => String::new(),
    }
}

/// Required parameters first.
fn parameters(schema: &Value) -> Vec<[String; 4]> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut rows: Vec<[String; 4]> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let need = if required.contains(&name.as_str()) {
                "required"
            } else {
                ""
            };
            let what = property.get("description").and_then(Value::as_str);
            let what = what.unwrap_or_default().to_owned();
            [name.clone(), type_of(property), need.to_owned(), what]
        })
        .collect();
    rows.sort_by_key(|row| row[2].is_empty());
    rows
}

fn type_of(property: &Value) -> String {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return one_line(&values.join("|"), 60);
    }
    match property.get("type") {
        Some(Value::String(name)) if name == "array" => {
            let items = property.get("items").map(type_of);
            format!("[{}]", items.unwrap_or_else(|| "any".to_owned()))
        }
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join("|")
        }
        _ => "any".to_owned(),
    }
}

/// Up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> String {
    let line = one_line(text, 400);
    match line.split_once(". ") {
        Some((first, _)) => first.to_owned(),
        None => line.trim_end_matches('.').to_owned(),
    }
}
