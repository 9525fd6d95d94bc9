//! The tools that the MCP conformance suite calls (`@modelcontextprotocol/conformance`, server scenarios).
//!
//! Names, texts and questions are the suite's. Schemas are written out, because the suite looks at keywords that the SDK does not
//! derive.

mod asked;
mod results;

use serde_json::{Value, json};
use zeph_plugin::{Annotations, Context, Kind, Outcome, Output, ToolDefinition, ToolError};

/// One tool: its name, its description, the schema of its arguments, and what runs it.
type Row = (&'static str, &'static str, fn() -> Value, Run);

type Run = fn(&Value, &Context) -> Result<Outcome, ToolError>;

const TOOLS: [Row; 19] = [
    (
        "test_simple_text",
        "Returns a text.",
        nothing,
        results::text,
    ),
    (
        "test_image_content",
        "Returns an image.",
        nothing,
        results::image,
    ),
    (
        "test_audio_content",
        "Returns a sound.",
        nothing,
        results::audio,
    ),
    (
        "test_embedded_resource",
        "Returns a resource.",
        nothing,
        results::resource,
    ),
    (
        "test_multiple_content_types",
        "Returns a text, an image and a resource.",
        nothing,
        results::mixed,
    ),
    (
        "test_tool_with_logging",
        "Writes to the log.",
        nothing,
        results::logs,
    ),
    ("test_error_handling", "Fails.", nothing, results::fails),
    (
        "test_logging_tool",
        "Writes to the log.",
        nothing,
        results::logs,
    ),
    (
        "test_streaming_elicitation",
        "Asks for a name.",
        nothing,
        asked::name,
    ),
    (
        "test_tool_with_progress",
        "Reports its progress.",
        nothing,
        results::progress,
    ),
    (
        "test_reconnection",
        "Takes a moment.",
        nothing,
        results::waits,
    ),
    (
        "json_schema_2020_12_tool",
        "Tool with JSON Schema 2020-12 features",
        schema_2020_12,
        results::text,
    ),
    (
        "test_elicitation",
        "Asks the user what it is told to ask.",
        message,
        asked::user,
    ),
    (
        "test_elicitation_sep1034_defaults",
        "Asks with default values.",
        nothing,
        asked::defaults,
    ),
    (
        "test_elicitation_sep1330_enums",
        "Asks for one of several values.",
        nothing,
        asked::choices,
    ),
    (
        "test_input_required_result_elicitation",
        "Asks for a name.",
        nothing,
        asked::name,
    ),
    (
        "test_input_required_result_request_state",
        "Asks, and keeps a state.",
        nothing,
        asked::state,
    ),
    (
        "test_input_required_result_tampered_state",
        "Asks, and keeps a state.",
        nothing,
        asked::state,
    ),
    (
        "test_input_required_result_multi_round",
        "Asks twice.",
        nothing,
        asked::rounds,
    ),
];

fn nothing() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

fn message() -> Value {
    json!({
        "type": "object",
        "properties": {"message": {"type": "string", "description": "The message to show the user"}},
        "required": ["message"],
        "additionalProperties": false,
    })
}

/// As the suite has it, without the `$anchor`: the host refuses a schema with a second way to refer into it.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Everything this plugin offers.
pub fn list() -> Vec<ToolDefinition> {
    let definition = |(name, description, parameters, _): &Row| ToolDefinition {
        name: (*name).to_owned(),
        title: None,
        description: (*description).to_owned(),
        parameters: parameters().to_string(),
        output: None,
        kind: Kind::Other,
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
    };
    TOOLS.iter().map(definition).collect()
}

/// Runs the tool of this name.
pub fn call(name: &str, arguments: &str, context: &Context) -> Result<Outcome, ToolError> {
    let arguments = serde_json::from_str(arguments)
        .map_err(|error| ToolError::invalid_parameters(error.to_string()))?;
    match TOOLS.iter().find(|row| row.0 == name) {
        Some((_, _, _, run)) => run(&arguments, context),
        None => Err(ToolError::permanent(format!("there is no tool `{name}`"))),
    }
}

fn said(text: impl Into<String>) -> Result<Outcome, ToolError> {
    Ok(Output::text(text).into())
}

#[cfg(target_family = "wasm")]
const _: () = {
    struct Component;

    impl zeph_plugin::bindings::exports::zeph::plugin::tools::Guest for Component {
        fn list_tools() -> Result<Vec<ToolDefinition>, String> {
            Ok(list())
        }

        fn call_tool(
            name: String,
            arguments: String,
            context: Context,
        ) -> Result<Outcome, ToolError> {
            call(&name, &arguments, &context)
        }
    }

    zeph_plugin::bindings::export_component!(Component with_types_in zeph_plugin::bindings);
};
zeph_plugin::about!();
