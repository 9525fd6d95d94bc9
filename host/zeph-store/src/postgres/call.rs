//! The begin and the end of calls.
//!
//! What a call uses up is locked first, row by row in one order, and is looked at then: of two hosts that want the same, one finds it gone.

use zeph_core::id::ApprovalId;

use super::transaction::Transaction;
use super::{approvals, audit, grants, long_tasks, quota, schedules};
use crate::audit::record::{BeginRecord, Finish};
use crate::audit::seal::SealedAudit as _;
use crate::call::{CallBegin, SingleUseRights};
use crate::grants::GrantRecord;
use crate::hold::WorkHold;
use crate::operations::{Operations as _, Outcome};

/// Takes the rights and adds the row; `None` when there is one already.
pub(super) fn begin(
    transaction: &Transaction,
    begin: Option<&BeginRecord>,
    rights: &SingleUseRights,
    at_ms: i64,
) -> Outcome<Option<CallBegin>> {
    if let Some(begin) = begin.filter(|_| rights.is_empty()) {
        return begin_without_rights(transaction, begin, rights.trust_version);
    }
    let approvals: Vec<ApprovalId> = rights
        .approval
        .iter()
        .chain(&rights.objects)
        .copied()
        .collect();
    if begin.is_some() {
        // First, for it reads the state of trust, too.
        transaction.next_event()?;
    }
    if !are_there(transaction, rights, &approvals)? {
        return Ok(Some(CallBegin::RightGone));
    }
    if !is_held(transaction, rights.hold)? {
        return Ok(Some(CallBegin::HoldLost));
    }
    if let Some(use_of) = &rights.quota
        && !quota::count(transaction, use_of, at_ms)?
    {
        return Ok(Some(CallBegin::QuotaUsed));
    }
    if let Some(begin) = begin
        && !audit::insert_begin(transaction, begin, None)?
    {
        return Ok(None);
    }
    approvals::take(transaction, &approvals)?;
    grants::hold(transaction, &rights.grants, at_ms)?;
    Ok(Some(CallBegin::Recorded))
}

/// Adds the row of a call that takes nothing, as almost every call: whether trust is still in the same state is asked with it.
fn begin_without_rights(
    transaction: &Transaction,
    begin: &BeginRecord,
    trust_version: Option<i64>,
) -> Outcome<Option<CallBegin>> {
    if audit::insert_begin(transaction, begin, trust_version)? {
        return Ok(Some(CallBegin::Recorded));
    }
    let is_gone = match trust_version {
        Some(known) => known != transaction.trust_version()?,
        None => false,
    };
    Ok(is_gone.then_some(CallBegin::RightGone))
}

/// Releases grants and completes the row; says whether there was one to complete.
pub(super) fn finish(
    transaction: &Transaction,
    finish: Option<&Finish>,
    unused: &[GrantRecord],
) -> Outcome<bool> {
    if !unused.is_empty() {
        grants::release(transaction, unused)?;
    }
    match finish {
        Some(finish) => audit::update_finish(transaction, finish),
        None => Ok(true),
    }
}

/// Whether this host may go on with what a call is made for.
fn is_held(transaction: &Transaction, hold: Option<WorkHold>) -> Outcome<bool> {
    match hold {
        Some(WorkHold::Run(fence)) => schedules::is_held(transaction, fence),
        Some(WorkHold::Task(hold)) => long_tasks::is_held(transaction, hold),
        None => Ok(true),
    }
}

/// Whether all of `rights` can still be taken; nobody else takes them then.
fn are_there(
    transaction: &Transaction,
    rights: &SingleUseRights,
    approvals: &[ApprovalId],
) -> Outcome<bool> {
    if let Some(known) = rights.trust_version
        && known != transaction.trust_version()?
    {
        return Ok(false);
    }
    Ok(approvals::are_unused(transaction, approvals)?
        && grants::are_free(transaction, &rights.grants)?)
}
