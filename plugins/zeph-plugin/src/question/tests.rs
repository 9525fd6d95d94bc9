use schemars::JsonSchema;
use serde::Deserialize;

use super::Reply;
use crate::{Answer, AnswerAction, Ask, Category, Context};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Branch {
    /// The branch.
    name: String,
}

fn answered(action: AnswerAction, content: Option<&str>) -> Context {
    Context {
        answers: vec![Answer {
            id: "branch".to_owned(),
            action,
            content: content.map(str::to_owned),
        }],
        ..Context::for_tests()
    }
}

#[test]
fn a_question_has_the_schema_of_its_answer() {
    let ask = Ask::about::<Branch>("branch", "Which?")
        .and::<Branch>("other", "And which?")
        .keeping(vec![7]);
    let ids: Vec<&str> = ask
        .questions
        .iter()
        .map(|question| question.id.as_str())
        .collect();
    assert_eq!(ids, ["branch", "other"]);
    assert_eq!(ask.state, Some(vec![7]));
    let schema: serde_json::Value = serde_json::from_str(&ask.questions[0].schema).unwrap();
    assert_eq!(schema["properties"]["name"]["type"], "string");
    assert_eq!(schema["required"][0], "name");
}

#[test]
fn a_reply_is_read_as_its_type() {
    let main = r#"{"name": "main"}"#;
    let branch = Branch {
        name: "main".to_owned(),
    };
    for (context, expect) in [
        (Context::for_tests(), None),
        (
            answered(AnswerAction::Accept, Some(main)),
            Some(Reply::Accepted(branch)),
        ),
        (answered(AnswerAction::Decline, None), Some(Reply::Refused)),
        (answered(AnswerAction::Cancel, None), Some(Reply::Refused)),
    ] {
        assert_eq!(context.reply("branch").unwrap(), expect);
    }
    let wrong = answered(AnswerAction::Accept, Some("{}"));
    let error = wrong.reply::<Branch>("branch").unwrap_err();
    assert_eq!(error.category, Category::PermanentFailure);
}
