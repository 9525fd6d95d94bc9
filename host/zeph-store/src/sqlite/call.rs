//! The begin and the end of calls in SQL.

use rusqlite::Connection;

use super::chain::ChainedConnection;
use super::{approvals, audit, grants, long_tasks, quota, schedules, trust};
use crate::audit::record::{BeginRecord, Finish};
use crate::call::{CallBegin, SingleUseRights};
use crate::grants::GrantRecord;
use crate::hold::WorkHold;
use crate::operations::Outcome;

/// Takes the rights and adds the row; `None` when there is one already.
pub(super) fn begin(
    connection: &ChainedConnection,
    begin: Option<&BeginRecord>,
    rights: &SingleUseRights,
    at_ms: i64,
) -> Outcome<Option<CallBegin>> {
    if !are_there(connection, rights)? {
        return Ok(Some(CallBegin::RightGone));
    }
    if !is_held(connection, rights.hold)? {
        return Ok(Some(CallBegin::HoldLost));
    }
    if let Some(use_of) = &rights.quota
        && !quota::count(connection, use_of, at_ms)?
    {
        return Ok(Some(CallBegin::QuotaUsed));
    }
    if let Some(begin) = begin
        && audit::insert_begin(connection, begin)? == 0
    {
        return Ok(None);
    }
    take(connection, rights, at_ms)?;
    Ok(Some(CallBegin::Recorded))
}

/// Releases grants and completes the row; says whether there was one to complete.
pub(super) fn finish(
    connection: &ChainedConnection,
    finish: Option<&Finish>,
    unused: &[GrantRecord],
) -> Outcome<bool> {
    for grant in unused {
        grants::release(connection, grant.id)?;
    }
    match finish {
        Some(finish) => audit::update_finish(connection, finish),
        None => Ok(true),
    }
}

/// Whether all of `rights` can still be taken.
fn are_there(connection: &Connection, rights: &SingleUseRights) -> rusqlite::Result<bool> {
    if let Some(known) = rights.trust_version
        && known != trust::version(connection)?
    {
        return Ok(false);
    }
    for id in rights.approval.iter().chain(&rights.objects) {
        if !approvals::is_unused(connection, *id)? {
            return Ok(false);
        }
    }
    for grant in &rights.grants {
        if !grants::is_free(connection, grant)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether this host may go on with what a call is made for.
fn is_held(connection: &Connection, hold: Option<WorkHold>) -> rusqlite::Result<bool> {
    match hold {
        Some(WorkHold::Run(fence)) => schedules::is_held(connection, fence),
        Some(WorkHold::Task(hold)) => long_tasks::is_held(connection, hold),
        None => Ok(true),
    }
}

fn take(connection: &Connection, rights: &SingleUseRights, at_ms: i64) -> rusqlite::Result<()> {
    for id in rights.approval.iter().chain(&rights.objects) {
        approvals::delete(connection, "approvals", *id)?;
    }
    for grant in &rights.grants {
        grants::hold(connection, grant.id, at_ms)?;
    }
    Ok(())
}
