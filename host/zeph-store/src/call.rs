//! The begin and the end of a call: its row and line in the audit and the rights it holds for itself alone, in one transaction each.
//!
//! A call is decided on what was read before. Its begin is where that is checked again: of two calls that were decided on the same
//! approval or grant for one call, one begins.

use std::sync::Arc;

use tokio::sync::oneshot;
use zeph_core::id::{ApprovalId, CallId};

use crate::audit::record::{AuditEvent, BeginRecord, Finish};
use crate::error::StoreError;
use crate::grants::GrantRecord;
use crate::hold::WorkHold;
use crate::operations::Operations;
use crate::quota::QuotaUse;
use crate::store::{Access, AuditLine, ResultLog, Store, StoreReply, Task};

/// What a call holds for itself alone. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SingleUseRights {
    /// The approval for once without which it would not run. Beginning uses it up.
    pub approval: Option<ApprovalId>,
    /// Approvals for once of single objects it may change. Beginning uses them up.
    pub objects: Vec<ApprovalId>,
    /// `Once` grants. They are held from the begin on, and count again after the end when the call has not used them.
    pub grants: Vec<GrantRecord>,
    /// The state of trust that it was decided with; none when it does not matter. Another state at its begin is a right that is gone.
    pub trust_version: Option<i64>,
    /// The quota it counts towards; none where there is none.
    pub quota: Option<QuotaUse>,
    /// What it is made for, if another host may take that over.
    pub hold: Option<WorkHold>,
}

impl SingleUseRights {
    /// Whether nothing is taken, which is so for almost every call.
    pub fn is_empty(&self) -> bool {
        let takes_right =
            self.approval.is_some() || !self.objects.is_empty() || !self.grants.is_empty();
        !takes_right && self.quota.is_none() && self.hold.is_none()
    }
}

/// What became of the begin of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallBegin {
    /// It is recorded, and holds what it asked for.
    Recorded,
    /// An approval or a grant was used, revoked or replaced meanwhile, or trust has changed. Nothing was recorded or taken: the call has to be decided
    /// again.
    RightGone,
    /// Its conversation has asked for as many calls as it may. Nothing was recorded or taken.
    QuotaUsed,
    /// What it is made for is another host's now. Nothing was recorded or taken: it must not be made.
    HoldLost,
}

const BEGIN: &str = "record the begin of a call";

const FINISH: &str = "record the end of a call";

impl Store {
    /// Takes `rights` for a call that may run and records its begin (`None`: the audit is off); resolves when that is committed.
    ///
    /// All of it happens or nothing, the line in the audit file included. A host that dies before the end of the call leaves the grants
    /// held; they are swept after a day.
    /// Errors: [`StoreError::AuditOrder`] when the call has a row already, [`StoreError::AuditFile`].
    pub async fn begin_call(
        &self,
        begin: Option<BeginRecord>,
        rights: SingleUseRights,
        at_ms: i64,
    ) -> Result<CallBegin, StoreError> {
        let call = begin.as_ref().map(|begin| begin.call_id);
        let line = match &begin {
            Some(begin) => self.line(&AuditEvent::Begin(begin), true)?,
            None => None,
        };
        let has_to_last = !rights.is_empty();
        let (reply, answer) = oneshot::channel();
        let work = move |operations: &dyn Operations| {
            operations.begin_call(begin.as_ref(), &rights, at_ms)
        };
        self.queue_task(Task {
            line,
            has_to_last,
            has_line: |begun| *begun == Some(CallBegin::Recorded),
            ..Task::new(
                BEGIN,
                Access::WriteBriefly,
                work,
                StoreReply::Waiting(reply),
            )
        })
        .await?;
        match (Self::answered(answer, BEGIN).await?, call) {
            (None, Some(call)) => Err(StoreError::AuditOrder {
                call,
                problem: "is there already",
            }),
            (begun, _) => Ok(begun.unwrap_or(CallBegin::Recorded)),
        }
    }

    /// Records how a call ended (`None`: the audit is off) and lets the grants it held and did not use count again; resolves when
    /// that is committed.
    ///
    /// A grant that was revoked meanwhile stays revoked, and one that was replaced meanwhile is not needed any more.
    /// Errors: [`StoreError::AuditOrder`] when the call has not begun or has ended already; the grants count again nevertheless.
    /// [`StoreError::ServerAway`]: an end without grants is recorded when the server is back, if this store is still open then.
    pub async fn finish_call(
        &self,
        finish: Option<Finish>,
        unused: Vec<GrantRecord>,
    ) -> Result<(), StoreError> {
        let call = finish.as_ref().map(|finish| finish.call_id);
        let (reply, answer) = oneshot::channel();
        let reply = StoreReply::Waiting(reply);
        self.queue_finish(finish, unused, Access::WriteBriefly, reply)
            .await?;
        is_finished(Self::answered(answer, FINISH).await?, call)
    }

    /// As [`Store::finish_call`], but resolves when it is queued: it is committed within some milliseconds, with the begin of the next
    /// call if that comes first. Whatever is asked of this store later sees it, unless the server was away. What goes wrong then is in the log.
    ///
    /// Errors: [`StoreError::Closed`]; [`StoreError::AuditFile`] when its line cannot be made.
    pub async fn finish_call_soon(
        &self,
        finish: Option<Finish>,
        unused: Vec<GrantRecord>,
    ) -> Result<(), StoreError> {
        let call = finish.as_ref().map(|finish| finish.call_id);
        let reply = StoreReply::Logged(end_log(call));
        // Who asks for rights does not wait for what may be written soon.
        let access = match unused.is_empty() {
            true => Access::WriteSoon,
            false => Access::WriteBriefly,
        };
        self.queue_finish(finish, unused, access, reply).await
    }

    /// Records that a call is about to be made that holds nothing for itself alone; as [`Store::begin_call`].
    ///
    /// Errors: [`StoreError::AuditOrder`] when the call has a row already.
    pub async fn audit_begin(&self, begin: BeginRecord) -> Result<(), StoreError> {
        let at_ms = begin.at_ms;
        let begun = self.begin_call(Some(begin), SingleUseRights::default(), at_ms);
        begun.await.map(drop)
    }

    /// Records how a call ended that held nothing for itself alone; as [`Store::finish_call`].
    ///
    /// Errors: [`StoreError::AuditOrder`] when the call has not begun or has ended already.
    pub async fn audit_finish(&self, finish: Finish) -> Result<(), StoreError> {
        self.finish_call(Some(finish), Vec::new()).await
    }

    async fn queue_finish(
        &self,
        finish: Option<Finish>,
        unused: Vec<GrantRecord>,
        access: Access,
        reply: StoreReply<bool>,
    ) -> Result<(), StoreError> {
        let line = match &finish {
            Some(finish) => self.line(&AuditEvent::Finish(finish), false)?,
            None => None,
        };
        let has_to_last = !unused.is_empty();
        // A grant that is free again may be held by another call by then.
        let call = finish.as_ref().map(|finish| finish.call_id);
        let later = unused.is_empty().then(|| end_log(call));
        let work =
            move |operations: &dyn Operations| operations.finish_call(finish.as_ref(), &unused);
        self.queue_task(Task {
            line,
            has_to_last,
            later,
            has_line: |was_there| *was_there,
            ..Task::new(FINISH, access, work, reply)
        })
        .await
    }

    /// The line of an event, when there is an audit file.
    fn line(
        &self,
        event: &AuditEvent<'_>,
        is_needed: bool,
    ) -> Result<Option<AuditLine>, StoreError> {
        let Some(file) = &self.audit_file else {
            return Ok(None);
        };
        Ok(Some(AuditLine {
            bytes: file.line_of(event)?,
            file: Arc::clone(file),
            is_needed,
            at_ms: event.at_ms(),
        }))
    }
}

/// Logs that the end of a call is not recorded.
fn end_log(call: Option<CallId>) -> ResultLog<bool> {
    Box::new(move |finished| {
        let finished = finished.and_then(|was_there| is_finished(was_there, call));
        if let Err(error) = finished {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the end of a call cannot be recorded"
            );
        }
    })
}

fn is_finished(was_there: bool, call: Option<CallId>) -> Result<(), StoreError> {
    match (was_there, call) {
        (false, Some(call)) => Err(StoreError::AuditOrder {
            call,
            problem: "is missing or has an end already",
        }),
        _ => Ok(()),
    }
}
