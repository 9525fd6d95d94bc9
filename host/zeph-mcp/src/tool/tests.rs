use serde_json::{Value, json};
use zeph_core::argument::{Disagreement, Parameters};
use zeph_core::id::{ServerName, ToolName};
use zeph_core::server::ServerTool;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::{OutputSchema, described};

/// A tool of the host without arguments.
pub(crate) fn a_tool(name: &str) -> Tool {
    Tool {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: "Does something.".to_owned(),
        parameters: Parameters::new(json!({"type": "object"})).unwrap(),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Builtin,
    }
}

fn with_output(schema: Value) -> Option<OutputSchema> {
    OutputSchema::of(&Tool {
        output: Some(schema.into()),
        ..a_tool("t")
    })
}

#[test]
fn a_tool_is_described_in_full() {
    let tool = Tool {
        title: Some("Read a file".to_owned()),
        parameters: Parameters::new(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "path": { "$ref": "#/$defs/path" } },
            "$defs": { "path": { "type": "string" } },
            "required": ["path"],
        }))
        .unwrap(),
        annotations: Annotations {
            read_only: true,
            destructive: true,
            idempotent: true,
            open_world: false,
        },
        ..a_tool("read")
    };
    let described = serde_json::to_value(described(&tool, "read", None)).unwrap();
    assert_eq!(
        described,
        json!({
            "name": "read",
            "title": "Read a file",
            "description": "Does something.",
            "inputSchema": tool.parameters.schema(),
            "annotations": {
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    );
}

#[test]
fn a_tool_without_arguments_has_the_recommended_schema() {
    let of = |schema: Value| {
        let tool = Tool {
            parameters: Parameters::new(schema).unwrap(),
            ..a_tool("t")
        };
        serde_json::to_value(described(&tool, "t", None)).unwrap()["inputSchema"].clone()
    };
    let nothing = json!({"type": "object", "title": "Nothing", "additionalProperties": false});
    let empty = json!({"type": "object", "additionalProperties": false});
    assert_eq!(of(nothing), empty);
    // Some clients demand `properties`.
    let listed = json!({"type": "object", "properties": {}, "required": []});
    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(of(listed), empty);
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {}}}),
        json!({"type": "object", "additionalProperties": true}),
        json!({"type": "object", "patternProperties": {"^x": {}}}),
    ] {
        assert_eq!(of(schema.clone()), schema);
    }
}

/// One without properties takes any arguments.
#[test]
fn a_schema_of_a_server_is_left_as_it_is() {
    let server: ServerName = "free".parse().unwrap();
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}, "title": "Free"}),
        json!({"type": "object", "additionalProperties": false, "required": []}),
    ] {
        let tool = Tool {
            parameters: Parameters::new(schema.clone()).unwrap(),
            backend: Backend::Mcp(ServerTool::new(server.clone(), "t")),
            ..a_tool("t")
        };
        let described = serde_json::to_value(described(&tool, "t", None)).unwrap();
        assert_eq!(described["inputSchema"], schema);
    }
}

#[test]
fn successes_and_failures_agree_with_the_output_schema() {
    let failure = json!({"error": {"category": "timeout"}});
    let good = json!({"n": 1});
    for schema in [
        json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"], "$defs": {"n": {"type": "integer"}}}),
    ] {
        let output = with_output(schema.clone()).unwrap();
        assert_eq!(output.agrees_now(&good), Ok(()), "{schema}");
        assert_eq!(output.agrees_now(&failure), Ok(()), "{schema}");
        assert_eq!(
            output.agrees_now(&json!({"n": "one"})),
            Err(Disagreement::Mismatch),
            "{schema}"
        );
    }
}

#[test]
fn a_schema_that_says_more_is_left_as_it_is() {
    let schema = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let output = with_output(schema.clone()).unwrap();
    assert_eq!(Value::Object(output.schema().clone()), schema);
    let failure = json!({"error": {"category": "timeout"}});
    assert_eq!(output.agrees_now(&failure), Err(Disagreement::Mismatch));
}

#[test]
fn only_schemas_of_objects_are_shown() {
    assert!(with_output(json!({"type": "string"})).is_none());
    assert!(with_output(json!(true)).is_none());
    assert!(OutputSchema::of(&a_tool("t")).is_none());
}

#[tokio::test]
async fn a_check_of_a_large_result_holds_up_nothing() {
    let mut values = vec![json!(1); 10_000];
    values.push(json!("x"));
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"enum": values}}}});
    let output = with_output(schema).unwrap();
    let agrees = async |n: usize, item: Value| {
        let mut structured = json!({"a": vec![item; n]});
        output.agrees(&mut structured).await
    };
    assert_eq!(agrees(1_000, json!(1)).await, Ok(()));
    assert_eq!(agrees(1_000, json!(2)).await, Err(Disagreement::Mismatch));
    assert_eq!(
        agrees(1_000_000, json!(2)).await,
        Err(Disagreement::TooLong)
    );
}
