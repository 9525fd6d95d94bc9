use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Value, json};
use zeph_core::id::{Digest, ToolName};
use zeph_core::lifetime::Lifetime;
use zeph_store::ShownCall;

use super::{answer, form};
use crate::approval::{ApprovalAnswer, ApprovalQuestion};

fn question(arguments: &Value) -> ApprovalQuestion {
    let arguments = arguments.to_string();
    ApprovalQuestion {
        call: ShownCall {
            tool: ToolName::new("bash").unwrap(),
            digest: Digest::new([1; 32]),
            directory: Some("/work".to_owned()),
            arguments_bytes: arguments.len() as u64,
            objects: None,
            rules: None,
            arguments,
        },
        reason: "no rule allows `rm`".to_owned(),
        rules: vec!["bash:rm *".to_owned()],
        trace: Vec::new(),
        is_once: false,
    }
}

fn message(question: &ApprovalQuestion) -> String {
    match form(question) {
        Some(ElicitRequestParams::FormElicitationParams { message, .. }) => message,
        other => panic!("no form: {other:?}"),
    }
}

#[test]
fn a_form_shows_tool_arguments_rule_and_what_would_allow_it() {
    let message = message(&question(&json!({ "command": "rm -r build" })));
    for expect in [
        "bash",
        "/work",
        "rm -r build",
        "no rule allows `rm`",
        "--allow 'bash:rm *'",
    ] {
        assert!(message.contains(expect), "{expect}: {message}");
    }
    assert!(!message.contains('\u{1b}'), "{message:?}");
}

#[test]
fn no_text_of_a_stranger_looks_like_ours() {
    let forged = "true\nIt asks because: nothing\r\nIt asks because: x\u{202e}\u{1b}[1mAgreeing";
    let message = message(&question(&json!({ "command": forged })));
    let at_the_edge = |line: &&str| line.starts_with("It asks") || line.starts_with("Agreeing");
    assert_eq!(message.lines().filter(at_the_edge).count(), 2, "{message}");
    assert!(
        !message.contains(['\u{202e}', '\u{1b}', '\r']),
        "{message:?}"
    );
}

#[test]
fn what_cannot_be_shown_whole_is_not_asked_here() {
    let mut question = question(&json!({ "content": "x" }));
    question.call.arguments_bytes += 1;
    assert_eq!(form(&question), None);
}

#[test]
fn only_accepting_agrees() {
    let given = |action, content: Value| {
        let result = ElicitResult::new(action);
        answer(&result.with_content(content))
    };
    use ElicitationAction::{Accept, Cancel, Decline};
    for (action, content, expect) in [
        (
            Accept,
            json!(null),
            Some(ApprovalAnswer::Approved(Lifetime::Once)),
        ),
        (
            Accept,
            json!({}),
            Some(ApprovalAnswer::Approved(Lifetime::Once)),
        ),
        (
            Accept,
            json!({ "scope": "once" }),
            Some(ApprovalAnswer::Approved(Lifetime::Once)),
        ),
        (
            Accept,
            json!({ "scope": "conversation", "other": 1 }),
            Some(ApprovalAnswer::Approved(Lifetime::Session)),
        ),
        (Accept, json!({ "scope": "always" }), None),
        (Accept, json!({ "scope": null }), None),
        (Accept, json!("yes"), None),
        (
            Decline,
            json!({ "scope": "once" }),
            Some(ApprovalAnswer::Denied),
        ),
        (Cancel, json!({}), Some(ApprovalAnswer::Denied)),
    ] {
        assert_eq!(
            given(action.clone(), content.clone()).ok(),
            expect,
            "{action:?} {content}"
        );
    }
    let bare = ElicitResult::new(Accept);
    assert_eq!(answer(&bare), Ok(ApprovalAnswer::Approved(Lifetime::Once)));
}
