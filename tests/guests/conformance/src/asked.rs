//! Questions to the user, and what comes of the answers.

use serde_json::{Value, json};
use zeph_plugin::{Answer, AnswerAction, Ask, Context, Outcome, Question, ToolError};

use crate::said;

/// What the tools with a state keep.
const STATE: &[u8] = b"state of the first round";

/// Asks for a name and an address, with the message of the arguments.
pub(crate) fn user(arguments: &Value, context: &Context) -> Result<Outcome, ToolError> {
    let message = arguments["message"].as_str().unwrap_or_default();
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    match context.answers.first() {
        None => ask("user", message, &schema, None),
        Some(answer) => said(format!("User response: {}", shown(answer))),
    }
}

/// Every type of a field with a default.
pub(crate) fn defaults(_: &Value, context: &Context) -> Result<Outcome, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    });
    completed(context, &schema)
}

/// Every way to offer values.
pub(crate) fn choices(_: &Value, context: &Context) -> Result<Outcome, ToolError> {
    let titled = |title: &str| {
        let choice = |(value, number): (&str, &str)| json!({"const": value, "title": format!("{number} {title}")});
        [
            ("value1", "First"),
            ("value2", "Second"),
            ("value3", "Third"),
        ]
        .map(choice)
    };
    let plain = ["option1", "option2", "option3"];
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        },
        "required": [],
    });
    completed(context, &schema)
}

/// Asks for a name and greets.
pub(crate) fn name(_: &Value, context: &Context) -> Result<Outcome, ToolError> {
    match context.answers.first().map(|answer| field(answer, "name")) {
        None => ask(
            "user_name",
            "What is your name?",
            &one("name", "string"),
            None,
        ),
        Some(name) => said(format!("Hello, {name}!")),
    }
}

/// Asks, and looks at what it kept.
pub(crate) fn state(_: &Value, context: &Context) -> Result<Outcome, ToolError> {
    match (context.answers.first(), context.state.as_deref()) {
        (None, _) => ask(
            "confirm",
            "Please confirm",
            &one("ok", "boolean"),
            Some(STATE),
        ),
        (Some(_), Some(STATE)) => said("state-ok"),
        (Some(_), _) => Err(ToolError::permanent("the state has changed")),
    }
}

/// Asks once for a name and once for a colour; the name is its state.
pub(crate) fn rounds(_: &Value, context: &Context) -> Result<Outcome, ToolError> {
    match (context.answers.first(), context.state.as_deref()) {
        (None, _) => {
            let message = "Step 1: What is your name?";
            ask("step1", message, &one("name", "string"), Some(b""))
        }
        (Some(answer), Some(b"")) => {
            let (name, message) = (
                field(answer, "name"),
                "Step 2: What is your favorite color?",
            );
            ask(
                "step2",
                message,
                &one("color", "string"),
                Some(name.as_bytes()),
            )
        }
        (Some(answer), name) => {
            let name = String::from_utf8_lossy(name.unwrap_or_default());
            said(format!("{name} likes {}", field(answer, "color")))
        }
    }
}

fn completed(context: &Context, schema: &Value) -> Result<Outcome, ToolError> {
    match context.answers.first() {
        None => ask("form", "Please fill in the form", schema, None),
        Some(answer) => said(format!("Elicitation completed: {}", shown(answer))),
    }
}

fn one(field: &str, kind: &str) -> Value {
    json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]})
}

fn ask(
    id: &str,
    message: &str,
    schema: &Value,
    state: Option<&[u8]>,
) -> Result<Outcome, ToolError> {
    let question = Question {
        id: id.to_owned(),
        message: message.to_owned(),
        schema: schema.to_string(),
    };
    Ok(Outcome::Ask(Ask {
        questions: vec![question],
        state: state.map(<[u8]>::to_vec),
    }))
}

fn field(answer: &Answer, name: &str) -> String {
    let content = answer.content.as_deref().unwrap_or("{}");
    let content: Value = serde_json::from_str(content).unwrap_or_default();
    content[name].as_str().unwrap_or("nobody").to_owned()
}

fn shown(answer: &Answer) -> String {
    let action = match answer.action {
        AnswerAction::Accept => "accept",
        AnswerAction::Decline => "decline",
        AnswerAction::Cancel => "cancel",
    };
    format!(
        "action={action}, content={}",
        answer.content.as_deref().unwrap_or("{}")
    )
}
