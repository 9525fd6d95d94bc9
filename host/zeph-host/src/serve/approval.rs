//! An approval as a form of a client: what the person is shown, and what the answer means. Pure.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};

use crate::approval::{ApprovalAnswer, ApprovalQuestion};
use crate::run::approval_text;
use zeph_core::lifetime::Lifetime;

/// The name of the form among the requests for input.
pub(super) const KEY: &str = "approval";

/// The form; `None` when the arguments are too long to be shown whole (64 KiB). Nobody can agree here to what is not seen: a dialog of a
/// client has no place to say so that would be sure to be read, so that such a call is approved at the terminal.
pub(super) fn form(question: &ApprovalQuestion) -> Option<ElicitRequestParams> {
    question
        .call
        .is_whole()
        .then(|| ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message(question),
            requested_schema: schema(),
        })
}

/// What would run, why it asks, and what else would let it run. Every line of a stranger's text is indented, and each of its
/// characters is visible.
fn message(question: &ApprovalQuestion) -> String {
    let mut page = approval_text::call(&question.call, None);
    approval_text::why(&mut page, &question.reason, &question.rules);
    page.line(
        0,
        "Agreeing lets exactly this call run, once, or each time it is made in this conversation.",
    );
    let shown = anstream::adapter::strip_str(page.as_str()).to_string();
    format!("A tool call needs your approval:\n\n{shown}")
}

/// No field has to be filled in: a person agrees by accepting.
fn schema() -> ElicitationSchema {
    let schema = json!({
        "type": "object",
        "properties": {
            "scope": {
                "type": "string",
                "title": "For how long",
                "description": "`once`: this call. `conversation`: each time this very call is made in this conversation.",
                "enum": ["once", "conversation"],
                "default": "once",
            }
        }
    });
    serde_json::from_value(schema).expect("bug: the schema is one of a form")
}

/// What the person answered.
///
/// Errors: what is wrong with an answer that fits no form; nobody has agreed then.
pub(super) fn answer(given: &ElicitResult) -> Result<ApprovalAnswer, String> {
    if given.action != ElicitationAction::Accept {
        return Ok(ApprovalAnswer::Denied);
    }
    let scope = match &given.content {
        None | Some(Value::Null) => None,
        Some(Value::Object(fields)) => fields.get("scope"),
        Some(_) => return Err("the answer to `approval` is no object".to_owned()),
    };
    match scope.map(Value::as_str) {
        None | Some(Some("once")) => Ok(ApprovalAnswer::Approved(Lifetime::Once)),
        Some(Some("conversation")) => Ok(ApprovalAnswer::Approved(Lifetime::Session)),
        Some(_) => Err(
            "`scope` of the answer to `approval` is neither `once` nor `conversation`".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests;
