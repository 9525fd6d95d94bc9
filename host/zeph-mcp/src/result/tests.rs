use serde_json::{Value, json};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::OverflowId;
use zeph_core::output::{Blob, Content, Outcome, ResourceBody, ToolOutput};
use zeph_core::tool::Tool;

use super::{of_failure, of_output};
use crate::tool::OutputSchema;
use crate::tool::tests::a_tool;

fn done(text: &str) -> ToolOutput {
    ToolOutput {
        outcome: Outcome::Done,
        text: text.to_owned(),
        structured: None,
        attachments: Vec::new(),
        locations: Vec::new(),
        notes: Vec::new(),
        is_cut: false,
        overflow: None,
    }
}

fn json_of(messages: &[String], output: &ToolOutput, schema: Option<&OutputSchema>) -> Value {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let result = runtime.block_on(of_output(messages.to_vec(), output.clone(), schema));
    serde_json::to_value(result).unwrap()
}

fn schema(schema: Value) -> OutputSchema {
    let tool = Tool {
        output: Some(schema.into()),
        ..a_tool("t")
    };
    OutputSchema::of(&tool).unwrap()
}

fn failure() -> ToolFailure {
    ToolFailure {
        retry_after_ms: Some(250),
        ..ToolFailure::new(
            ErrorCategory::RateLimited,
            ErrorPhase::Setup,
            "too many calls",
        )
    }
}

#[test]
fn every_kind_of_block_has_its_form() {
    let blob = |media_type: &str| Blob {
        media_type: media_type.to_owned(),
        data: vec![0, 1, 2],
    };
    let resource = |body| Content::Resource {
        uri: "test://x".to_owned(),
        media_type: Some("text/markdown".to_owned()),
        body,
    };
    for (content, expected) in [
        (
            Content::Image(blob("image/png")),
            json!({"type": "image", "data": "AAEC", "mimeType": "image/png"}),
        ),
        (
            Content::Audio(blob("audio/wav")),
            json!({"type": "audio", "data": "AAEC", "mimeType": "audio/wav"}),
        ),
        (
            resource(ResourceBody::Text("# x".to_owned())),
            json!({"type": "resource", "resource": {"uri": "test://x", "mimeType": "text/markdown", "text": "# x"}}),
        ),
        (
            resource(ResourceBody::Bytes(vec![255])),
            json!({"type": "resource", "resource": {"uri": "test://x", "mimeType": "text/markdown", "blob": "/w=="}}),
        ),
        (
            Content::Link {
                uri: "file:///a".to_owned(),
                name: "a".to_owned(),
                media_type: None,
                description: Some("A file".to_owned()),
            },
            json!({"type": "resource_link", "uri": "file:///a", "name": "a", "description": "A file"}),
        ),
    ] {
        let output = ToolOutput {
            attachments: vec![content],
            ..done("text")
        };
        let result = json_of(&[], &output, None);
        let text = json!({"type": "text", "text": "text"});
        assert_eq!(result["content"], json!([text, expected]));
        assert_eq!(result["isError"], false);
    }
}

#[test]
fn what_is_no_uri_becomes_one() {
    for (given, expected) in [
        ("file:///a b", "file:///a b"),
        ("note:1", "note:1"),
        ("/src/a b.rs", "file:///src/a%20b.rs"),
        ("src/main.rs", "resource:src%2Fmain.rs"),
        ("", "resource:unnamed"),
    ] {
        let link = Content::Link {
            uri: given.to_owned(),
            name: "a".to_owned(),
            media_type: Some(String::new()),
            description: None,
        };
        let resource = Content::Resource {
            uri: given.to_owned(),
            media_type: Some(String::new()),
            body: ResourceBody::Text("x".to_owned()),
        };
        let output = ToolOutput {
            attachments: vec![link, resource],
            ..done("text")
        };
        let result = json_of(&[], &output, None);
        let link = json!({"type": "resource_link", "uri": expected, "name": "a"});
        let resource = json!({"uri": expected, "mimeType": "text/plain", "text": "x"});
        let resource = json!({"type": "resource", "resource": resource});
        assert_eq!(result["content"][1], link);
        assert_eq!(result["content"][2], resource);
    }
}

#[test]
fn messages_come_first_and_the_link_to_the_whole_last() {
    let id = OverflowId::new();
    let output = ToolOutput {
        overflow: Some(id),
        is_cut: true,
        ..done("cut")
    };
    let result = json_of(&["a run ended".to_owned()], &output, None);
    assert_eq!(result["content"][0]["text"], "a run ended");
    assert_eq!(result["content"][1]["text"], "cut");
    assert_eq!(result["content"][2]["type"], "resource_link");
    assert_eq!(result["content"][2]["uri"], format!("overflow:{id}"));
}

#[test]
fn a_failure_is_a_result_with_its_block_and_its_data() {
    let result = serde_json::to_value(of_failure(failure(), None)).unwrap();
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], failure().feedback());
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["category"], "rate_limited");
    assert_eq!(error["retryable"], true);
    assert_eq!(error["retry_after_ms"], 250);
    assert_eq!(error["message"], "too many calls");
}

#[test]
fn the_structured_part_agrees_with_the_schema_or_is_absent() {
    let wants_n = schema(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": false,
    }));
    let with = |structured: Value| ToolOutput {
        structured: Some(structured),
        ..done("text")
    };
    let structured =
        |output: &ToolOutput| json_of(&[], output, Some(&wants_n))["structuredContent"].clone();
    assert_eq!(structured(&with(json!({"n": 1}))), json!({"n": 1}));
    assert_eq!(structured(&with(json!({"n": "one"}))), Value::Null);
    assert_eq!(structured(&with(json!([1]))), Value::Null);
    let failed = with(json!({"n": 1})).failed_by(failure());
    assert_eq!(structured(&failed)["error"]["category"], "rate_limited");
    assert_eq!(structured(&failed)["n"], 1);
    assert_eq!(
        structured(&ToolOutput::failed(failure()))["error"]["category"],
        "rate_limited"
    );

    let picky = schema(json!({"type": "object", "oneOf": [{"required": ["a"]}]}));
    let result = json_of(&[], &ToolOutput::failed(failure()), Some(&picky));
    assert_eq!(result["structuredContent"], Value::Null);
    assert_eq!(result["content"][0]["text"], failure().feedback());
}

#[test]
fn a_structured_result_without_text_is_also_shown_as_text() {
    let output = ToolOutput {
        structured: Some(json!({"n": 1})),
        ..done("")
    };
    let result = json_of(&[], &output, None);
    assert_eq!(
        result["content"],
        json!([{"type": "text", "text": "{\"n\":1}"}])
    );
    assert_eq!(result["structuredContent"], json!({"n": 1}));
    assert_eq!(json_of(&[], &done(""), None)["content"], json!([]));
}

/// Official clients throw away a success that lacks what the output schema promises.
#[test]
fn a_success_without_the_promised_structure_is_an_error_that_keeps_its_text() {
    let wants_n = schema(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }));
    for (given, text, says, shown) in [
        (
            None,
            "it is done",
            "there is no structured result",
            "it is done",
        ),
        (
            Some(json!({"n": "one"})),
            "it is done",
            "does not agree with the tool's own schema: `n`: \"one\" is not of type \"integer\"",
            "it is done",
        ),
        (
            Some(json!({"m": 1})),
            "it is done",
            "\"n\" is a required property",
            "it is done",
        ),
        (Some(json!([1])), "", "is not of type \"object\"", "[1]"),
    ] {
        let output = ToolOutput {
            structured: given,
            ..done(text)
        };
        let messages = ["a run ended".to_owned()];
        let result = json_of(&messages, &output, Some(&wants_n));
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"], Value::Null, "{result}");
        assert_eq!(result["content"][0]["text"], "a run ended");
        let said = result["content"][1]["text"].as_str().unwrap();
        assert!(
            said.starts_with("The call was made and succeeded"),
            "{said}"
        );
        assert!(said.contains(says), "{said}");
        assert_eq!(result["content"][2]["text"], shown);
        // Without a schema there is nothing to agree with.
        assert_eq!(json_of(&[], &output, None)["isError"], false);
    }
}

#[test]
fn a_large_success_that_disagrees_says_where() {
    let numbers = schema(json!({
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
        "required": ["a"],
    }));
    let mut values = vec![json!(1); 1_000];
    let of = |values: &[Value]| {
        let output = ToolOutput {
            structured: Some(json!({ "a": values })),
            ..done("text")
        };
        json_of(&[], &output, Some(&numbers))
    };
    assert_eq!(of(&values)["structuredContent"]["a"][999], 1);
    values[7] = json!("x");
    let result = of(&values);
    assert_eq!(result["isError"], true);
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("`a.7`: \"x\" is not of type"), "{said}");
}
