//! Requests and approvals.

use zeph_core::id::{ApprovalId, ConversationId, Digest, ToolName};
use zeph_core::lifetime::Lifetime;

use super::conversation::touch;
use super::transaction::Transaction;
use super::value::{get, parsed};
use crate::approvals::{
    Agreement, ApprovalRequest, ONCE_MS_MAX, REQUEST_MS_MAX, REQUESTS_MAX,
    REQUESTS_PER_CONVERSATION_MAX, StoredApproval, agreed,
};
use crate::caller::Owner;
use crate::operations::Outcome;
use crate::sqlite::label;

mod row;

/// Adds a request, or makes the one for the same call new; says under which id it waits.
pub(super) fn put_request(
    transaction: &Transaction,
    request: &ApprovalRequest,
    caller: &Owner,
) -> Outcome<ApprovalId> {
    // There are bounds on how many there are.
    transaction.lock("approval requests")?;
    touch(transaction, request.conversation, request.at_ms, 0)?;
    let id = insert_request(transaction, request, caller)?;
    forget_old_requests(transaction, request.conversation, request.at_ms)?;
    Ok(id)
}

fn insert_request(
    transaction: &Transaction,
    request: &ApprovalRequest,
    caller: &Owner,
) -> Outcome<ApprovalId> {
    const SQL: &str = "
        INSERT INTO approval_requests AS known
            (id, tool, digest, directory, arguments, arguments_bytes, conversation_id, reason, rules, at_ms,
             call_digest, objects, caller)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (conversation_id, tool, digest) DO UPDATE
        SET at_ms = greatest(known.at_ms, excluded.at_ms), reason = excluded.reason, rules = excluded.rules
        RETURNING id";
    let call = &request.call;
    let objects = call.objects.as_ref();
    let row = transaction.query_one(
        SQL,
        &[
            &request.id.to_string(),
            &call.tool.as_str(),
            &call.digest.to_string(),
            &call.directory,
            &call.arguments,
            &row::bytes_column(call.arguments_bytes),
            &request.conversation.to_string(),
            &request.reason,
            &serde_json::json!(request.rules).to_string(),
            &request.at_ms,
            &objects.map(|objects| objects.call_digest.to_string()),
            &objects.map(row::paths),
            &caller.word(),
        ],
    )?;
    parsed(&row, 0)
}

fn forget_old_requests(
    transaction: &Transaction,
    conversation: ConversationId,
    at_ms: i64,
) -> Outcome<()> {
    const TOO_OLD: &str = "DELETE FROM approval_requests WHERE at_ms < $1";
    // Each caller keeps its newest, as many as the others do.
    const TOO_MANY: &str = "
        DELETE FROM approval_requests WHERE seq IN
        (SELECT seq FROM (SELECT seq, at_ms,
            row_number() OVER (PARTITION BY caller ORDER BY at_ms DESC, seq DESC) AS nth FROM approval_requests) AS ranked
         ORDER BY nth, at_ms DESC, seq DESC OFFSET $1)
        AND (SELECT count(*) FROM approval_requests) > $1";
    const TOO_MANY_OF_ONE: &str = "
        DELETE FROM approval_requests WHERE id IN
        (SELECT id FROM approval_requests WHERE conversation_id = $1
         ORDER BY at_ms DESC, seq DESC OFFSET $2)";
    transaction.execute(TOO_OLD, &[&at_ms.saturating_sub(REQUEST_MS_MAX)])?;
    transaction.execute(
        TOO_MANY_OF_ONE,
        &[
            &conversation.to_string(),
            &i64::from(REQUESTS_PER_CONVERSATION_MAX),
        ],
    )?;
    transaction
        .execute(TOO_MANY, &[&i64::from(REQUESTS_MAX)])
        .map(drop)
}

/// The request of this id when it still waits.
pub(super) fn waiting(
    transaction: &Transaction,
    id: ApprovalId,
    now_ms: i64,
) -> Outcome<Option<ApprovalRequest>> {
    const SQL: &str = row::requests!("WHERE id = $1 AND at_ms >= $2");
    let since_ms = now_ms.saturating_sub(REQUEST_MS_MAX);
    let rows = transaction.query(SQL, &[&id.to_string(), &since_ms])?;
    Ok(row::waiting(&rows).pop())
}

/// The approval for a call, the one that holds longest first.
pub(super) fn in_force(
    transaction: &Transaction,
    tool: &ToolName,
    digest: Digest,
    conversation: ConversationId,
    now_ms: i64,
) -> Outcome<Option<StoredApproval>> {
    const SQL: &str = row::approvals!(
        "tool = $1 AND digest = $2
        AND (lifetime = 'always' OR conversation_id = $3)
        AND (lifetime <> 'once' OR approved_at_ms >= $4)
        ORDER BY CASE lifetime WHEN 'always' THEN 0 WHEN 'session' THEN 1 ELSE 2 END, approved_at_ms, id"
    );
    let rows = transaction.query(
        SQL,
        &[
            &tool.as_str(),
            &digest.to_string(),
            &conversation.to_string(),
            &now_ms.saturating_sub(ONCE_MS_MAX),
        ],
    )?;
    Ok(row::given(&rows).into_iter().next())
}

/// The approvals of single objects for calls of `tool`.
pub(super) fn of_objects(
    transaction: &Transaction,
    tool: &ToolName,
    conversation: ConversationId,
    now_ms: i64,
) -> Outcome<Vec<StoredApproval>> {
    const SQL: &str = row::approvals!(
        "tool = $1 AND call_digest IS NOT NULL
        AND (lifetime = 'always' OR conversation_id = $2)
        AND (lifetime <> 'once' OR approved_at_ms >= $3)
        ORDER BY approved_at_ms, id"
    );
    let since_ms = now_ms.saturating_sub(ONCE_MS_MAX);
    let conversation = conversation.to_string();
    let rows = transaction.query(SQL, &[&tool.as_str(), &conversation, &since_ms])?;
    Ok(row::given(&rows))
}

/// The approvals of rules for calls of `tool`. None is for once.
pub(super) fn of_rules(
    transaction: &Transaction,
    tool: &ToolName,
    conversation: ConversationId,
) -> Outcome<Vec<StoredApproval>> {
    const SQL: &str = row::approvals!(
        "tool = $1 AND rule_scope IS NOT NULL AND lifetime <> 'once'
        AND (lifetime = 'always' OR conversation_id = $2)
        ORDER BY approved_at_ms, id"
    );
    let rows = transaction.query(SQL, &[&tool.as_str(), &conversation.to_string()])?;
    Ok(row::given(&rows))
}

/// Adds an approval in place of those it makes pointless.
fn replace_approval(transaction: &Transaction, approval: &StoredApproval) -> Outcome<()> {
    const SHORTER: &str = "
        DELETE FROM approvals WHERE tool = $1 AND digest = $2 AND ($3::text IS NULL OR conversation_id = $3)";
    let (tool, digest) = (
        approval.call.tool.as_str(),
        approval.call.digest.to_string(),
    );
    transaction.lock(&format!("approvals of {tool} {digest}"))?;
    if approval.lifetime != Lifetime::Once {
        let conversation = approval.conversation.map(|id| id.to_string());
        transaction.execute(SHORTER, &[&tool, &digest, &conversation])?;
    }
    put_approval(transaction, approval)
}

fn put_approval(transaction: &Transaction, approval: &StoredApproval) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO approvals
            (id, tool, digest, directory, arguments, arguments_bytes, conversation_id, lifetime, approved_at_ms,
             agreement, call_digest, objects, rule_scope, kept_rules)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    let call = &approval.call;
    let (objects, rules) = (call.objects.as_ref(), call.rules.as_ref());
    let put = transaction.execute(
        SQL,
        &[
            &approval.id.to_string(),
            &call.tool.as_str(),
            &call.digest.to_string(),
            &call.directory,
            &call.arguments,
            &row::bytes_column(call.arguments_bytes),
            &approval.conversation.map(|id| id.to_string()),
            &approval.lifetime.label(),
            &approval.approved_at_ms,
            &approval.agreement.as_ref().map(label::json),
            &objects.map(|objects| objects.call_digest.to_string()),
            &objects.map(row::paths),
            &rules.map(|rules| rules.scope.to_string()),
            &rules.map(row::rule_texts),
        ],
    );
    put.map(drop)
}

/// Deletes a request; says whether there was one.
pub(super) fn delete_request(transaction: &Transaction, id: ApprovalId) -> Outcome<bool> {
    const SQL: &str = "DELETE FROM approval_requests WHERE id = $1";
    Ok(transaction.execute(SQL, &[&id.to_string()])? > 0)
}

/// Deletes an approval; says whether there was one.
pub(super) fn delete(transaction: &Transaction, id: ApprovalId) -> Outcome<bool> {
    const SQL: &str = "DELETE FROM approvals WHERE id = $1";
    Ok(transaction.execute(SQL, &[&id.to_string()])? > 0)
}

/// Turns a request that waits into an approval: of several that try, one does.
pub(super) fn approve(
    transaction: &Transaction,
    id: ApprovalId,
    lifetime: Lifetime,
    agreement: &Agreement,
    at_ms: i64,
) -> Outcome<Option<StoredApproval>> {
    // One that cannot be read stays, as a person may want to know of it.
    let Some(request) = waiting(transaction, id, at_ms)? else {
        return Ok(None);
    };
    if !delete_request(transaction, id)? {
        return Ok(None);
    }
    let approval = StoredApproval {
        agreement: Some(agreement.clone()),
        ..agreed(id, request.call, lifetime, request.conversation, at_ms)
    };
    replace_approval(transaction, &approval)?;
    Ok(Some(approval))
}

/// Adds an approval in place of the request for the same call.
pub(super) fn put(
    transaction: &Transaction,
    approval: &StoredApproval,
    conversation: ConversationId,
) -> Outcome<()> {
    const ANSWERED: &str =
        "DELETE FROM approval_requests WHERE conversation_id = $1 AND tool = $2 AND digest = $3";
    touch(transaction, conversation, approval.approved_at_ms, 0)?;
    transaction.execute(
        ANSWERED,
        &[
            &conversation.to_string(),
            &approval.call.tool.as_str(),
            &approval.call.digest.to_string(),
        ],
    )?;
    replace_approval(transaction, approval)
}

/// The requests that wait, newest first.
pub(super) fn requests(
    transaction: &Transaction,
    conversation: Option<ConversationId>,
    now_ms: i64,
) -> Outcome<Vec<ApprovalRequest>> {
    const SQL: &str = row::requests!(
        "WHERE at_ms >= $1 AND ($2::text IS NULL OR conversation_id = $2) ORDER BY at_ms DESC, id"
    );
    let conversation = conversation.map(|id| id.to_string());
    let since_ms = now_ms.saturating_sub(REQUEST_MS_MAX);
    let rows = transaction.query(SQL, &[&since_ms, &conversation])?;
    Ok(row::waiting(&rows))
}

/// The approvals that hold, newest first.
pub(super) fn listed(transaction: &Transaction, now_ms: i64) -> Outcome<Vec<StoredApproval>> {
    const SQL: &str = row::approvals!(
        "(lifetime <> 'once' OR approved_at_ms >= $1) ORDER BY approved_at_ms DESC, id"
    );
    let since_ms = now_ms.saturating_sub(ONCE_MS_MAX);
    Ok(row::given(&transaction.query(SQL, &[&since_ms])?))
}

/// Whether approvals for once are all there. They stay until the transaction ends, whatever others do.
pub(super) fn are_unused(transaction: &Transaction, ids: &[ApprovalId]) -> Outcome<bool> {
    const SQL: &str = "
        SELECT id FROM approvals WHERE id = ANY($1::text[]) AND lifetime = 'once' ORDER BY id FOR UPDATE";
    if ids.is_empty() {
        return Ok(true);
    }
    let wanted = texts(ids);
    let rows = transaction.query(SQL, &[&wanted])?;
    let found = rows.iter().map(|row| get(row, 0));
    let found = found.collect::<Outcome<Vec<String>>>()?;
    Ok(wanted.iter().all(|id| found.contains(id)))
}

/// Uses approvals up.
pub(super) fn take(transaction: &Transaction, ids: &[ApprovalId]) -> Outcome<()> {
    const SQL: &str = "DELETE FROM approvals WHERE id = ANY($1::text[])";
    if ids.is_empty() {
        return Ok(());
    }
    transaction.execute(SQL, &[&texts(ids)]).map(drop)
}

fn texts(ids: &[ApprovalId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// Deletes what a conversation asks for and was approved; says how many rows.
pub(super) fn forget(transaction: &Transaction, conversation: ConversationId) -> Outcome<usize> {
    const REQUESTS: &str = "DELETE FROM approval_requests WHERE conversation_id = $1";
    const APPROVALS: &str = "DELETE FROM approvals WHERE conversation_id = $1";
    let id = conversation.to_string();
    let n_rows = transaction.execute(REQUESTS, &[&id])? + transaction.execute(APPROVALS, &[&id])?;
    Ok(usize::try_from(n_rows).unwrap_or(usize::MAX))
}

/// Deletes requests that waited too long and approvals for once that no call used; says how many.
pub(super) fn sweep(transaction: &Transaction, at_ms: i64, n_max: u32) -> Outcome<usize> {
    const REQUESTS: &str = "
        DELETE FROM approval_requests WHERE id IN
        (SELECT id FROM approval_requests WHERE at_ms < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)";
    const APPROVALS: &str = "
        DELETE FROM approvals WHERE id IN
        (SELECT id FROM approvals WHERE lifetime = 'once' AND approved_at_ms < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let (request_ms, once_ms) = (
        at_ms.saturating_sub(REQUEST_MS_MAX),
        at_ms.saturating_sub(ONCE_MS_MAX),
    );
    let n_max = i64::from(n_max);
    let n_rows = transaction.execute(REQUESTS, &[&request_ms, &n_max])?
        + transaction.execute(APPROVALS, &[&once_ms, &n_max])?;
    Ok(usize::try_from(n_rows).unwrap_or(usize::MAX))
}
