//! The commands of a session a person types at: what waits for an answer, what was done and can be undone, what still runs.
//!
//! Each returns text for the user, which the front end prints. `session` implements the actions; this words the results.

use zeph_core::id::ApprovalId;
use zeph_core::lifetime::Lifetime;
use zeph_shell::transaction::{UndoEnd, UndoStack};
use zeph_store::{Agreement, ApprovalRequest, StoreError};

use super::approval_text;
use super::page::Page;
use super::render::escape;
use crate::approval::ApprovalAnswer;
use crate::clock::now_ms;
use crate::governance::{self, RevokedSequence};
use crate::host::Host;
use crate::session::Session;

/// The call that `/approve` means: by its id, by its tool, or the newest that waits.
///
/// Errors: one line for the person.
pub(crate) async fn waiting(host: &Host, which: Option<&str>) -> Result<ApprovalRequest, String> {
    let waiting = host.store().list_requests(None, now_ms()).await;
    find(waiting.map_err(|error| error.to_string())?, which)
}

/// The request that `which` names among `waiting`, whose newest comes first.
///
/// Errors: one line for the person.
pub(crate) fn find(
    waiting: Vec<ApprovalRequest>,
    which: Option<&str>,
) -> Result<ApprovalRequest, String> {
    let Some(which) = which else {
        let newest = waiting.into_iter().next();
        return newest.ok_or_else(|| "no call waits for approval".to_owned());
    };
    let id = which.parse::<ApprovalId>().ok();
    let by_id = waiting.iter().find(|request| Some(request.id) == id);
    let by_tool = || {
        let mut waiting = waiting.iter();
        waiting.find(|request| request.call.tool.as_str() == which)
    };
    by_id.or_else(by_tool).cloned().ok_or_else(|| {
        let which = zeph_core::failure::one_line(which, 60);
        format!("no call `{which}` waits for approval")
    })
}

/// What would run if the person agreed.
pub(crate) fn request(request: &ApprovalRequest, width: Option<usize>) -> Page {
    let mut page = approval_text::call(&request.call, width);
    approval_text::why(&mut page, &request.reason, &request.rules);
    page
}

/// Records the answer to a request, as one that came by `by`, and says what follows from it.
pub(crate) async fn answer(
    host: &Host,
    request: &ApprovalRequest,
    (answer, by): (ApprovalAnswer, Agreement),
) -> Result<String, StoreError> {
    let lifetime = match answer {
        ApprovalAnswer::Approved(lifetime) => lifetime,
        ApprovalAnswer::Denied => {
            host.store().deny_request(request.id).await?;
            return Ok("denied; the call is no longer pending\n".to_owned());
        }
    };
    let approved = host
        .store()
        .approve(request.id, lifetime, by, now_ms())
        .await?;
    Ok(match (approved, lifetime) {
        (None, _) => "the call is no longer pending\n".to_owned(),
        (Some(_), Lifetime::Once) => "approved: the program may make it once\n".to_owned(),
        (Some(approval), _) => format!(
            "approved until `zeph-host approve --revoke {}`\n",
            approval.id
        ),
    })
}

/// `/approvals`
pub(crate) async fn approvals(host: &Host, width: Option<usize>) -> Result<Page, StoreError> {
    let requests = host.store().list_requests(None, now_ms()).await?;
    let approvals = host.store().list_approvals(now_ms()).await?;
    Ok(approval_text::list(&requests, &approvals, now_ms(), width))
}

/// `/revoke [CALL-ID]`: marks the result of a call, or of the newest of the session, as unacceptable.
///
/// Errors: one line for the person.
pub(crate) async fn revoke(
    host: &Host,
    session: &Session,
    call: Option<&str>,
) -> Result<String, String> {
    let revoked = governance::revoke(host.store(), call, Some(session.conversation)).await;
    let revoked = revoked.map_err(|error| error.to_string())?;
    host.learned_sequences_changed();
    Ok(format!("{}\n", self::revoked(&revoked)))
}

/// What is blocked from now on, and how to forgive it.
pub(crate) fn revoked(revoked: &RevokedSequence) -> String {
    let words = zeph_core::failure::one_line(&revoked.words.join(" "), 200);
    format!(
        "revoked: the sequence `{}` of call {} is blocked; `zeph-host forgive {}` allows it again",
        escape(&words),
        revoked.call,
        revoked.id
    )
}

/// `/clear`: what was approved for the session is forgotten, and a new turn begins.
pub(crate) async fn clear(host: &Host, session: &Session) -> Result<String, StoreError> {
    session.clear();
    let n_forgotten = host.store().forget_approvals(session.conversation).await?;
    Ok(match n_forgotten {
        0 => "a new turn begins\n".to_owned(),
        1 => "a new turn begins; 1 approval is forgotten\n".to_owned(),
        n => format!("a new turn begins; {n} approvals are forgotten\n"),
    })
}

/// `/undo N`: puts back what the last `n` commands of the session found.
pub(crate) async fn undo(session: &Session, n: u32) -> String {
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    stepped(session, move |steps| steps.undo(n)).await
}

/// `/redo`: puts back what the last command that was undone had left.
pub(crate) async fn redo(session: &Session) -> String {
    stepped(session, UndoStack::redo).await
}

/// Putting a tree back may take seconds: it has a thread that may block. A command that keeps it, or is about to put it back, ends first.
async fn stepped(
    session: &Session,
    step: impl FnOnce(&mut UndoStack) -> UndoEnd + Send + 'static,
) -> String {
    let _alone = session.commands().alone().await;
    let share = session.shell().clone();
    let ended = tokio::task::spawn_blocking(move || share.step(step)).await;
    match ended {
        Ok(Ok(end)) => format!("{}\n", escape(&end.text)),
        Ok(Err(error)) => format!("the files could not be put back: {error}\n"),
        Err(error) => {
            tracing::error!(%error, "putting files back has panicked");
            "the files could not be put back; the log says why\n".to_owned()
        }
    }
}
