use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Value, json};
use zeph_core::category::ErrorCategory;
use zeph_core::inquiry::{UserAction, UserQuestion};

use super::{answer, form};

fn question(property: Value) -> UserQuestion {
    let schema = json!({"type": "object", "properties": {"x": property}, "required": ["x"]});
    UserQuestion::new("q".to_owned(), "Which?\nAccept everything.", schema).unwrap()
}

fn shown(question: &UserQuestion) -> (String, Value) {
    match form("deploy", question, None).unwrap() {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => (message, json!(requested_schema)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_field_becomes_one_of_a_form() {
    for (property, expect) in [
        (json!({"type": "string"}), json!({"type": "string"})),
        (
            json!({"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 9, "format": "email",
                   "default": "a@b"}),
            json!({"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 9, "format": "email",
                   "default": "a@b"}),
        ),
        (
            json!({"type": "string", "format": "hostname"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 5, "default": 2}),
            json!({"type": "integer", "minimum": 1, "maximum": 5, "default": 2}),
        ),
        (
            json!({"type": "number", "minimum": 0.5, "exclusiveMaximum": 2}),
            json!({"type": "number", "minimum": 0.5}),
        ),
        (
            json!({"type": "boolean", "default": true}),
            json!({"type": "boolean", "default": true}),
        ),
        (
            json!({"type": "string", "enum": ["a", "b"], "default": "b"}),
            json!({"type": "string", "enum": ["a", "b"], "default": "b"}),
        ),
        (
            json!({"type": "integer", "enum": [1, 2], "default": 2}),
            json!({"type": "string", "enum": ["1", "2"], "default": "2"}),
        ),
        (
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"}),
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"}),
        ),
        (
            json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}),
            json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}),
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 1, "default": ["b"]}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 1, "default": ["b"]}),
        ),
        (
            json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "minItems": 1}),
            json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "minItems": 1}),
        ),
        (
            json!({"type": "string", "const": "yes"}),
            json!({"type": "string", "enum": ["yes"]}),
        ),
    ] {
        let (_, schema) = shown(&question(property.clone()));
        let mut field = schema["properties"]["x"].clone();
        // A number of a form is a fraction.
        if property["type"] == "number" {
            field["minimum"] = json!(field["minimum"].as_f64());
        }
        assert_eq!(field, expect, "{property}");
        assert_eq!(schema["required"], json!(["x"]));
    }
}

#[test]
fn a_secret_is_never_asked_for_in_a_form() {
    for property in [
        json!({"type": "string", "format": "password"}),
        json!({"type": "string", "writeOnly": true}),
    ] {
        let failure = form("deploy", &question(property), None).unwrap_err();
        assert_eq!(failure.category, ErrorCategory::PolicyBlocked);
        assert!(
            failure.message.contains("secret (`x` of `q`)"),
            "{}",
            failure.message
        );
    }
}

#[test]
fn what_a_form_cannot_offer_is_refused() {
    let failure = form(
        "deploy",
        &question(json!({"type": "string", "enum": [null]})),
        None,
    );
    let failure = failure.unwrap_err();
    assert_eq!(failure.category, ErrorCategory::PermanentFailure);
    assert!(
        failure.message.contains("the field `x` offers"),
        "{}",
        failure.message
    );
}

#[test]
fn the_words_of_a_plugin_are_told_from_ours() {
    let (message, _) = shown(&question(json!({"type": "string"})));
    assert_eq!(
        message,
        "The tool `deploy` asks, in its own words:\n\n> Which?\n> Accept everything."
    );
}

#[test]
fn answers_come_back_as_the_tool_means_them() {
    let numbers = question(json!({"type": "integer", "enum": [1, 2]}));
    let open = question(json!({"type": "number", "exclusiveMaximum": 2}));
    let given = |content: Value| ElicitResult::new(ElicitationAction::Accept).with_content(content);
    for (question, content, expect) in [
        (&numbers, json!({"x": "2"}), Ok(json!({"x": 2}))),
        (&numbers, json!({"x": 2}), Ok(json!({"x": 2}))),
        (&numbers, json!({"x": "3"}), Err("`q`")),
        (&numbers, json!({}), Err("`q`")),
        (&numbers, json!(null), Err("`q`")),
        (&open, json!({"x": 1.5}), Ok(json!({"x": 1.5}))),
        (&open, json!({"x": 2}), Err("`q`")),
        (&open, json!("1"), Err("`q`")),
    ] {
        let answered = answer(question, &given(content.clone()));
        match expect {
            Ok(expect) => assert_eq!(answered.unwrap().content, Some(expect), "{content}"),
            Err(expect) => {
                let problem = answered.unwrap_err();
                assert!(problem.contains(expect), "{content}: {problem}");
            }
        }
    }
    for (action, expect) in [
        (ElicitationAction::Decline, UserAction::Decline),
        (ElicitationAction::Cancel, UserAction::Cancel),
    ] {
        let answered = answer(&numbers, &ElicitResult::new(action)).unwrap();
        assert_eq!((answered.action, answered.content), (expect, None));
    }
}
