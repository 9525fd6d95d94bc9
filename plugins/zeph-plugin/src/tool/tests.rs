//! A table of tools lists and runs natively as it does in a component.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, call, list};
use crate::{Category, Content, Context, Kind, Outcome, Output, ToolError};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

fn greet(arguments: Greet, context: &Context) -> Result<Output, ToolError> {
    match arguments.name.as_str() {
        "" => Err(ToolError::invalid_parameters("`name` is empty")),
        name => Ok(Output::text(format!("hello {name} in {}", context.call_id))),
    }
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("greet", greet)
            .describe("Greets somebody.")
            .kind(Kind::Other)
            .read_only(),
    ]
}

fn context() -> Context {
    Context {
        call_id: "c1".to_owned(),
        conversation_id: "v1".to_owned(),
        turn_id: None,
        goal_id: None,
        caller_id: None,
        remaining_ms: 1_000,
        answers: Vec::new(),
        state: None,
    }
}

fn run(name: &str, arguments: &str) -> Result<String, ToolError> {
    match call(&tools(), name, arguments, &context())? {
        Outcome::Done(output) => match &output.content[..] {
            [Content::Text(text)] => Ok(text.clone()),
            other => panic!("not one text: {other:?}"),
        },
        Outcome::Ask(ask) => panic!("asked: {ask:?}"),
    }
}

#[test]
fn lists_what_it_has() {
    let definitions = list(&tools());
    assert_eq!(definitions[0].name, "greet");
    assert!(definitions[0].annotations.read_only);
    assert!(definitions[0].parameters.contains(r#""required":["name"]"#));
}

#[test]
fn runs_by_name() {
    assert_eq!(
        run("greet", r#"{"name":"you"}"#).unwrap(),
        "hello you in c1"
    );
}

#[test]
fn failures_have_their_category() {
    let of = |name, arguments| run(name, arguments).unwrap_err().category;
    assert_eq!(of("greet", r#"{"name":""}"#), Category::InvalidParameters);
    assert_eq!(of("greet", "{}"), Category::InvalidParameters);
    assert_eq!(of("leave", "{}"), Category::PermanentFailure);
}
