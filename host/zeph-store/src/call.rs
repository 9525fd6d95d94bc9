//! The begin and the end of a call: its row in the audit and the rights it holds for itself alone, in one transaction each.
//!
//! A call is decided on what was read before. Its begin is where that is checked again: of two calls that were decided on the same
//! approval or grant for one call, one begins.

use rusqlite::Connection;
use zeph_core::id::ApprovalId;

use crate::audit::record::{Begin, Finish};
use crate::audit::table;
use crate::error::StoreError;
use crate::grants::GrantRecord;
use crate::store::Store;
use crate::writer::Access;
use crate::{approvals, grants};

/// What a call holds for itself alone. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SingleUseRights {
    /// The approval for once without which it would not run. Beginning uses it up.
    pub approval: Option<ApprovalId>,
    /// `Once` grants. They are held from the begin on, and count again after the end when the call has not used them.
    pub grants: Vec<GrantRecord>,
}

impl SingleUseRights {
    /// Whether there are none, which is so for almost every call.
    pub fn is_empty(&self) -> bool {
        self.approval.is_none() && self.grants.is_empty()
    }
}

/// What became of the begin of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallBegin {
    /// It is recorded, and holds what it asked for.
    Recorded,
    /// An approval or a grant was used, revoked or replaced meanwhile. Nothing was recorded or taken: the call has to be decided
    /// again.
    RightGone,
}

impl Store {
    /// Takes `rights` for a call that may run and records its begin (`None`: the audit is off); resolves when that is committed.
    ///
    /// All of it happens or nothing. A host that dies before the end of the call leaves the grants held; they are swept after a day.
    /// Errors: [`StoreError::AuditOrder`] when the call has a row already.
    pub async fn begin_call(
        &self,
        begin: Option<Begin>,
        rights: SingleUseRights,
        at_ms: i64,
    ) -> Result<CallBegin, StoreError> {
        let call = begin.as_ref().map(|begin| begin.call_id);
        let work = move |connection: &Connection| {
            if !are_there(connection, &rights)? {
                return Ok(Some(CallBegin::RightGone));
            }
            if let Some(begin) = &begin
                && table::insert_begin(connection, begin)? == 0
            {
                return Ok(None);
            }
            take(connection, &rights, at_ms)?;
            Ok(Some(CallBegin::Recorded))
        };
        let begun = self.run("record the begin of a call", Access::Write, work);
        match (begun.await?, call) {
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
    pub async fn finish_call(
        &self,
        finish: Option<Finish>,
        unused: Vec<GrantRecord>,
    ) -> Result<(), StoreError> {
        let call = finish.as_ref().map(|finish| finish.call_id);
        let work = move |connection: &Connection| {
            for grant in &unused {
                grants::release(connection, grant.id)?;
            }
            match &finish {
                Some(finish) => table::update_finish(connection, finish),
                None => Ok(1),
            }
        };
        let ended = self.run("record the end of a call", Access::Write, work);
        match (ended.await?, call) {
            (0, Some(call)) => Err(StoreError::AuditOrder {
                call,
                problem: "is missing or has an end already",
            }),
            _ => Ok(()),
        }
    }
}

/// Whether all of `rights` can still be taken.
fn are_there(connection: &Connection, rights: &SingleUseRights) -> rusqlite::Result<bool> {
    if let Some(id) = rights.approval
        && !approvals::is_unused(connection, id)?
    {
        return Ok(false);
    }
    for grant in &rights.grants {
        if !grants::is_free(connection, grant)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn take(connection: &Connection, rights: &SingleUseRights, at_ms: i64) -> rusqlite::Result<()> {
    if let Some(id) = rights.approval {
        approvals::use_up(connection, id)?;
    }
    for grant in &rights.grants {
        grants::hold(connection, grant.id, at_ms)?;
    }
    Ok(())
}
