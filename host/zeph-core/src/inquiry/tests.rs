use serde_json::{Value, json};

use super::{
    GivenAnswer, Inquiry, QUESTIONS_MAX, STATE_BYTES_MAX, UserAction, UserQuestion, choices,
    is_list,
};
use crate::category::ErrorCategory;
use crate::id::ToolName;

fn form(properties: Value, required: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn asked(id: &str) -> UserQuestion {
    let schema = form(
        json!({"name": {"type": "string", "minLength": 2}}),
        json!(["name"]),
    );
    UserQuestion::new(id.to_owned(), "Which branch?", schema).unwrap()
}

#[test]
fn what_a_form_cannot_show_is_refused() {
    let word = json!({"word": {"type": "string"}});
    for (id, message, schema, expect) in [
        (
            "",
            "Why?",
            form(word.clone(), json!([])),
            "name of a question",
        ),
        (
            "a\u{202e}b",
            "Why?",
            form(word.clone(), json!([])),
            "name of a question",
        ),
        (
            "a",
            " \u{200b} ",
            form(word.clone(), json!([])),
            "1 to 1000",
        ),
        (
            "a",
            &"x".repeat(1_001),
            form(word.clone(), json!([])),
            "1 to 1000",
        ),
        ("a", "Why?", json!({"type": "string"}), "one of an object"),
        ("a", "Why?", json!({"type": "object"}), "one of an object"),
        ("a", "Why?", form(json!({}), json!([])), "1 to 16 fields"),
        (
            "a",
            "Why?",
            form(json!({"x": {"type": "array"}}), json!([])),
            "`items` must offer texts",
        ),
        (
            "a",
            "Why?",
            form(
                json!({"x": {"type": "array", "items": {"type": "integer", "enum": [1]}}}),
                json!([]),
            ),
            "`items` must offer texts",
        ),
        (
            "a",
            "Why?",
            form(
                json!({"x": {"type": "string", "oneOf": [{"const": "a"}]}}),
                json!([]),
            ),
            "a text as `const` and a `title`",
        ),
        (
            "a",
            "Why?",
            form(
                json!({"x": {"type": "string", "enum": ["a", "b"], "enumNames": ["A"]}}),
                json!([]),
            ),
            "one text for each value",
        ),
        (
            "a",
            "Why?",
            form(json!({"x": {"type": "object"}}), json!([])),
            "`x` must be of one of",
        ),
        (
            "a",
            "Why?",
            form(json!({"x": {"$ref": "#"}}), json!([])),
            "`x` must be of one of",
        ),
        (
            "a",
            "Why?",
            form(json!({"": {"type": "string"}}), json!([])),
            "field's name",
        ),
        (
            "a",
            "Why?",
            form(word.clone(), json!(["other"])),
            "no field",
        ),
        ("a", "Why?", form(word.clone(), json!([7])), "no field"),
    ] {
        let problem = UserQuestion::new(id.to_owned(), message, schema.clone()).unwrap_err();
        assert!(problem.contains(expect), "{schema}: {problem}");
    }
}

#[test]
fn a_schema_is_made_of_known_words_only() {
    let schema = form(
        json!({"n": {
            "type": "integer", "minimum": 1, "description": "how\u{202e} many", "pattern": "(a+)+$", "$ref": "http://x",
        }}),
        json!(["n"]),
    );
    let question = UserQuestion::new("a".to_owned(), "How\u{1b}[2J many?", schema).unwrap();
    assert_eq!(question.message(), "How[2J many?");
    assert_eq!(
        *question.schema().schema(),
        json!({
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 1, "description": "how many"}},
            "required": ["n"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn an_answer_has_to_fit_its_question() {
    let question = asked("branch");
    let answer = question.accept(json!({"name": "main"})).unwrap();
    assert_eq!(
        Value::Object(answer.content.unwrap()),
        json!({"name": "main"})
    );
    for content in [
        json!({}),
        json!({"name": "x"}),
        json!({"name": ["main"]}),
        json!(7),
    ] {
        let failure = question.accept(content.clone()).unwrap_err();
        assert!(
            failure.message.starts_with("the answer to `branch`"),
            "{failure:?}"
        );
    }
    assert_eq!(question.without(UserAction::Decline).content, None);
}

#[test]
fn an_inquiry_has_bounds() {
    let many = (0..=QUESTIONS_MAX).map(|n| asked(&n.to_string())).collect();
    for (questions, state, expect) in [
        (Vec::new(), None, "0 questions"),
        (many, None, "9 questions"),
        (
            vec![asked("a"), asked("a")],
            None,
            "two questions named `a`",
        ),
        (
            vec![asked("a")],
            Some(vec![0; STATE_BYTES_MAX + 1]),
            "65537 bytes",
        ),
    ] {
        let problem = Inquiry::new(questions, state).unwrap_err();
        assert!(problem.contains(expect), "{problem}");
    }
    let inquiry = Inquiry::new(vec![asked("a")], Some(vec![7])).unwrap();
    let failure = inquiry.unanswered(&ToolName::new("deploy").unwrap());
    assert_eq!(failure.category, ErrorCategory::ConfirmationRequired);
    assert!(
        failure
            .message
            .contains("`deploy` asks the user: Which branch?"),
        "{failure:?}"
    );
}

#[test]
fn every_question_is_answered_once() {
    let inquiry = Inquiry::new(vec![asked("a"), asked("b")], Some(vec![7])).unwrap();
    let given = |id: &str, action, content| GivenAnswer {
        id: id.to_owned(),
        action,
        content,
    };
    let main = || given("a", UserAction::Accept, Some(json!({"name": "main"})));
    let declined = || given("b", UserAction::Decline, Some(json!("not looked at")));
    for (answers, expect) in [
        (vec![], "`a` is not answered"),
        (vec![main()], "`b` is not answered"),
        (vec![main(), declined(), main()], "too many, to `a`"),
        (
            vec![declined(), main(), given("c", UserAction::Cancel, None)],
            "too many, to `c`",
        ),
        (
            vec![given("a", UserAction::Accept, None), declined()],
            "the answer to `a`",
        ),
    ] {
        let failure = inquiry.answered(answers).unwrap_err();
        assert!(failure.message.contains(expect), "{failure:?}");
    }
    let answered = inquiry.answered(vec![declined(), main()]).unwrap();
    assert_eq!(answered.state, Some(vec![7]));
    let ids: Vec<&str> = answered
        .answers
        .iter()
        .map(|answer| answer.id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(answered.answers[1].content, None);
}

#[test]
fn every_way_to_offer_values_is_kept_and_read() {
    let titled =
        json!([{"const": "a", "title": "First\u{202e}"}, {"const": "b", "title": "Second"}]);
    let plain = [("a", None), ("b", None)];
    let named = [("a", Some("First")), ("b", Some("Second"))];
    for (field, expect) in [
        (json!({"type": "string", "enum": ["a", "b"]}), plain),
        (json!({"type": "string", "oneOf": titled}), named),
        (
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]}),
            named,
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
            plain,
        ),
        (json!({"type": "array", "items": {"anyOf": titled}}), named),
    ] {
        let schema = form(json!({"x": field}), json!([]));
        let question = UserQuestion::new("q".to_owned(), "Which?", schema).unwrap();
        let kept = &question.schema().schema()["properties"]["x"];
        let offered: Vec<_> = choices(kept)
            .into_iter()
            .map(|choice| (choice.value, choice.title))
            .collect();
        let expect = expect.map(|(value, title)| (json!(value), title.map(str::to_owned)));
        assert_eq!(offered, expect, "{field}");
        let (right, wrong) = match is_list(kept) {
            true => (json!(["b", "a"]), json!(["b", "c"])),
            false => (json!("b"), json!("c")),
        };
        assert!(question.accept(json!({"x": right})).is_ok(), "{field}");
        assert!(question.accept(json!({"x": wrong})).is_err(), "{field}");
    }
}
