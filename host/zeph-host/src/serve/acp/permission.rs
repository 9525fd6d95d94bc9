//! The user of an editor is asked about one call, and the answer holds for exactly that call.

use std::sync::Arc;

use zeph_acp::client::{
    PermissionKind, PermissionOption, PermissionOutcome, PermissionRequest, PermissionResponse,
    REQUEST_PERMISSION,
};
use zeph_acp::connection::RequestError;
use zeph_acp::update::{ToolCallContent, ToolCallUpdate};
use zeph_core::lifetime::Lifetime;
use zeph_store::{AgreedBy, Agreement};

use super::session::AcpSession;
use crate::approval::{ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};
use crate::run::approval_text;

/// What can be answered.
const OPTIONS: [PermissionOption; 4] = [
    PermissionOption {
        option_id: "allow_once",
        name: "Allow once",
        kind: PermissionKind::AllowOnce,
    },
    PermissionOption {
        option_id: "allow_always",
        name: "Always allow exactly this call",
        kind: PermissionKind::AllowAlways,
    },
    PermissionOption {
        option_id: "reject_once",
        name: "Reject",
        kind: PermissionKind::RejectOnce,
    },
    PermissionOption {
        option_id: "reject_always",
        name: "Reject exactly this call in this session",
        kind: PermissionKind::RejectAlways,
    },
];

/// The user of the editor behind a session.
pub(super) fn agreement(session: &AcpSession) -> Agreement {
    Agreement {
        how: AgreedBy::Elicitation,
        who: None,
        client: session.client().name.clone(),
    }
}

/// What call `call_id` asks with.
pub(super) fn prompt(session: &Arc<AcpSession>, call_id: &str) -> ApprovalPrompt {
    let agreement = agreement(session);
    let (session, call_id) = (Arc::clone(session), call_id.to_owned());
    ApprovalPrompt::new(agreement, move |question| {
        let (session, call_id) = (Arc::clone(&session), call_id.clone());
        async move {
            let described = session.described(&call_id)?;
            ask(&session, described, &question).await
        }
    })
}

/// Asks, unless the user rejected this call for good; `None` when nobody answers.
///
/// What cannot be shown whole cannot be agreed to here: it waits for `zeph-host approve`.
pub(super) async fn ask(
    session: &AcpSession,
    described: ToolCallUpdate,
    question: &ApprovalQuestion,
) -> Option<ApprovalAnswer> {
    let rejected = format!("{} {}", question.call.digest, question.reason);
    if session.is_rejected(&rejected) {
        return Some(ApprovalAnswer::Denied);
    }
    if !question.call.is_whole() {
        return None;
    }
    let offered = options(question);
    let request = PermissionRequest {
        session_id: session.id().to_owned(),
        tool_call: ToolCallUpdate {
            content: Some(vec![ToolCallContent::text(text(question))]),
            ..described
        },
        options: offered.clone(),
    };
    let asked = session.connection();
    let asked = asked.request::<PermissionResponse>(REQUEST_PERMISSION, &request);
    match answer(asked.await, &offered)? {
        Answer::Once(answer) => Some(answer),
        Answer::NeverAgain => {
            session.reject(rejected);
            Some(ApprovalAnswer::Denied)
        }
    }
}

/// What is offered: to allow a call always only where that is kept.
fn options(question: &ApprovalQuestion) -> Vec<PermissionOption> {
    let is_always = |option: &PermissionOption| option.kind == PermissionKind::AllowAlways;
    let all = OPTIONS.into_iter();
    all.filter(|option| !(question.is_once && is_always(option)))
        .collect()
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Once(ApprovalAnswer),
    NeverAgain,
}

/// What an answer means. One that is no answer is none: the call waits.
fn answer(
    asked: Result<PermissionResponse, RequestError>,
    offered: &[PermissionOption],
) -> Option<Answer> {
    let chosen = match asked {
        Ok(PermissionResponse {
            outcome: PermissionOutcome::Selected { option_id },
        }) => option_id,
        Ok(_) => return None,
        Err(error) => {
            tracing::debug!(%error, "the client did not say whether a call may run");
            return None;
        }
    };
    let option = offered.iter().find(|option| option.option_id == chosen);
    let approved = |lifetime| Answer::Once(ApprovalAnswer::Approved(lifetime));
    Some(match option.map(|option| option.kind) {
        Some(PermissionKind::AllowOnce) => approved(Lifetime::Once),
        Some(PermissionKind::AllowAlways) => approved(Lifetime::Always),
        Some(PermissionKind::RejectAlways) => Answer::NeverAgain,
        // What was not offered allows nothing.
        Some(PermissionKind::RejectOnce) | None => Answer::Once(ApprovalAnswer::Denied),
    })
}

/// What would run and why it asks, each character of it visible.
fn text(question: &ApprovalQuestion) -> String {
    let mut page = approval_text::call(&question.call, None);
    approval_text::why(&mut page, &question.reason, &question.rules);
    let shown = anstream::adapter::strip_str(page.as_str()).to_string();
    format!("```\n{}\n```", shown.trim_end().replace("```", "` ` `"))
}

#[cfg(test)]
mod tests {
    use zeph_acp::client::{PermissionOutcome, PermissionResponse};
    use zeph_acp::connection::RequestError;
    use zeph_core::lifetime::Lifetime;

    use super::{Answer, OPTIONS, answer};
    use crate::approval::ApprovalAnswer;

    #[test]
    fn only_what_was_offered_allows_anything() {
        let chosen = |id: &str| {
            let option_id = id.to_owned();
            let outcome = PermissionOutcome::Selected { option_id };
            answer(Ok(PermissionResponse { outcome }), &OPTIONS)
        };
        let approved = |lifetime| Some(Answer::Once(ApprovalAnswer::Approved(lifetime)));
        assert_eq!(chosen("allow_once"), approved(Lifetime::Once));
        assert_eq!(chosen("allow_always"), approved(Lifetime::Always));
        assert_eq!(chosen("reject_always"), Some(Answer::NeverAgain));
        for denied in ["reject_once", "allow", "ALLOW_ONCE", ""] {
            assert_eq!(
                chosen(denied),
                Some(Answer::Once(ApprovalAnswer::Denied)),
                "{denied}"
            );
        }
        let outcome = PermissionOutcome::Cancelled;
        assert_eq!(answer(Ok(PermissionResponse { outcome }), &OPTIONS), None);
        assert_eq!(answer(Err(RequestError::Gone), &OPTIONS), None);
    }
}
