//! Requests and approvals in SQL.

use rusqlite::{Connection, ToSql, params};
use zeph_core::id::{ApprovalId, ConversationId, Digest, ToolName};
use zeph_core::lifetime::Lifetime;

use super::audit::parsed;
use super::conversation::touch;
use super::label;
use crate::approvals::{
    Agreement, ApprovalRequest, ONCE_MS_MAX, REQUEST_MS_MAX, REQUESTS_MAX,
    REQUESTS_PER_CONVERSATION_MAX, StoredApproval, agreed,
};
use crate::caller::Owner;

mod row;

/// Adds a request, or makes the one for the same call new; says under which id it waits.
pub(super) fn put_request(
    connection: &Connection,
    request: &ApprovalRequest,
    caller: &Owner,
) -> rusqlite::Result<ApprovalId> {
    touch(connection, request.conversation, request.at_ms, 0)?;
    let id = insert_request(connection, request, caller)?;
    forget_old_requests(connection, request.conversation, request.at_ms)?;
    Ok(id)
}

/// Adds a request, or makes the one for the same call new; says under which id it waits.
fn insert_request(
    connection: &Connection,
    request: &ApprovalRequest,
    caller: &Owner,
) -> rusqlite::Result<ApprovalId> {
    const SQL: &str = "
        INSERT INTO approval_requests
            (id, tool, digest, directory, arguments, arguments_bytes, conversation_id, reason, rules, at_ms,
             call_digest, objects, caller)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
        ON CONFLICT (conversation_id, tool, digest) DO UPDATE
        SET at_ms = max(at_ms, excluded.at_ms), reason = excluded.reason, rules = excluded.rules
        RETURNING id";
    let call = &request.call;
    let row = params![
        request.id.to_string(),
        call.tool.as_str(),
        call.digest.to_string(),
        call.directory,
        call.arguments,
        call.arguments_bytes,
        request.conversation.to_string(),
        request.reason,
        serde_json::json!(request.rules).to_string(),
        request.at_ms,
        call.objects
            .as_ref()
            .map(|objects| objects.call_digest.to_string()),
        call.objects.as_ref().map(row::paths),
        caller.word(),
    ];
    let mut statement = connection.prepare_cached(SQL)?;
    statement.query_row(row, |row| parsed(row, 0))
}

fn forget_old_requests(
    connection: &Connection,
    conversation: ConversationId,
    at_ms: i64,
) -> rusqlite::Result<()> {
    const TOO_OLD: &str = "DELETE FROM approval_requests WHERE at_ms < ?1";
    // Each caller keeps its newest, as many as the others do.
    const TOO_MANY: &str = "
        DELETE FROM approval_requests WHERE rowid IN
        (SELECT n FROM (SELECT rowid AS n, at_ms,
            row_number() OVER (PARTITION BY caller ORDER BY at_ms DESC, rowid DESC) AS nth FROM approval_requests)
         ORDER BY nth, at_ms DESC, n DESC LIMIT -1 OFFSET ?1)
        AND (SELECT count(*) FROM approval_requests) > ?1";
    const TOO_MANY_OF_ONE: &str = "
        DELETE FROM approval_requests WHERE id IN
        (SELECT id FROM approval_requests WHERE conversation_id = ?1
         ORDER BY at_ms DESC, rowid DESC LIMIT -1 OFFSET ?2)";
    connection
        .prepare_cached(TOO_OLD)?
        .execute([at_ms.saturating_sub(REQUEST_MS_MAX)])?;
    connection
        .prepare_cached(TOO_MANY_OF_ONE)?
        .execute(params![
            conversation.to_string(),
            REQUESTS_PER_CONVERSATION_MAX
        ])?;
    connection
        .prepare_cached(TOO_MANY)?
        .execute([REQUESTS_MAX])
        .map(drop)
}

/// The request of this id when it still waits.
pub(super) fn waiting(
    connection: &Connection,
    id: ApprovalId,
    now_ms: i64,
) -> rusqlite::Result<Option<ApprovalRequest>> {
    let since_ms = now_ms.saturating_sub(REQUEST_MS_MAX);
    let values: [&dyn ToSql; 2] = [&id.to_string(), &since_ms];
    Ok(row::requests(connection, "id = ?1 AND at_ms >= ?2", &values)?.pop())
}

/// The approval for a call, the one that holds longest first.
pub(super) fn in_force(
    connection: &Connection,
    tool: &ToolName,
    digest: Digest,
    conversation: ConversationId,
    now_ms: i64,
) -> rusqlite::Result<Option<StoredApproval>> {
    const CONDITION: &str = "
        tool = ?1 AND digest = ?2
        AND (lifetime = 'always' OR conversation_id = ?3)
        AND (lifetime <> 'once' OR approved_at_ms >= ?4)
        ORDER BY CASE lifetime WHEN 'always' THEN 0 WHEN 'session' THEN 1 ELSE 2 END, approved_at_ms, id";
    let since_ms = now_ms.saturating_sub(ONCE_MS_MAX);
    let values: [&dyn ToSql; 4] = [
        &tool.as_str(),
        &digest.to_string(),
        &conversation.to_string(),
        &since_ms,
    ];
    let found = row::approvals(connection, CONDITION, &values)?;
    Ok(found.into_iter().next())
}

/// The approvals of single objects for calls of `tool`.
pub(super) fn of_objects(
    connection: &Connection,
    tool: &ToolName,
    conversation: ConversationId,
    now_ms: i64,
) -> rusqlite::Result<Vec<StoredApproval>> {
    const CONDITION: &str = "
        tool = ?1 AND call_digest IS NOT NULL
        AND (lifetime = 'always' OR conversation_id = ?2)
        AND (lifetime <> 'once' OR approved_at_ms >= ?3)
        ORDER BY approved_at_ms, id";
    let since_ms = now_ms.saturating_sub(ONCE_MS_MAX);
    let values: [&dyn ToSql; 3] = [&tool.as_str(), &conversation.to_string(), &since_ms];
    row::approvals(connection, CONDITION, &values)
}

/// The approvals of rules for calls of `tool`. None is for once.
pub(super) fn of_rules(
    connection: &Connection,
    tool: &ToolName,
    conversation: ConversationId,
) -> rusqlite::Result<Vec<StoredApproval>> {
    const CONDITION: &str = "
        tool = ?1 AND rule_scope IS NOT NULL AND lifetime <> 'once'
        AND (lifetime = 'always' OR conversation_id = ?2)
        ORDER BY approved_at_ms, id";
    let values: [&dyn ToSql; 2] = [&tool.as_str(), &conversation.to_string()];
    row::approvals(connection, CONDITION, &values)
}

/// Adds an approval in place of those it makes pointless.
fn replace_approval(connection: &Connection, approval: &StoredApproval) -> rusqlite::Result<()> {
    const SHORTER: &str = "
        DELETE FROM approvals WHERE tool = ?1 AND digest = ?2 AND (?3 IS NULL OR conversation_id = ?3)";
    if approval.lifetime != Lifetime::Once {
        connection.prepare_cached(SHORTER)?.execute(params![
            approval.call.tool.as_str(),
            approval.call.digest.to_string(),
            approval.conversation.map(|id| id.to_string()),
        ])?;
    }
    put_approval(connection, approval)
}

fn put_approval(connection: &Connection, approval: &StoredApproval) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO approvals
            (id, tool, digest, directory, arguments, arguments_bytes, conversation_id, lifetime, approved_at_ms,
             agreement, call_digest, objects, rule_scope, kept_rules)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let call = &approval.call;
    connection
        .prepare_cached(SQL)?
        .execute(params![
            approval.id.to_string(),
            call.tool.as_str(),
            call.digest.to_string(),
            call.directory,
            call.arguments,
            call.arguments_bytes,
            approval.conversation.map(|id| id.to_string()),
            approval.lifetime.label(),
            approval.approved_at_ms,
            approval.agreement.as_ref().map(label::json),
            call.objects
                .as_ref()
                .map(|objects| objects.call_digest.to_string()),
            call.objects.as_ref().map(row::paths),
            call.rules.as_ref().map(|rules| rules.scope.to_string()),
            call.rules.as_ref().map(row::rule_texts),
        ])
        .map(drop)
}

/// Deletes the row of `table`; says whether there was one.
pub(super) fn delete(
    connection: &Connection,
    table: &str,
    id: ApprovalId,
) -> rusqlite::Result<bool> {
    let sql = format!("DELETE FROM {table} WHERE id = ?1");
    let n_rows = connection.prepare_cached(&sql)?.execute([id.to_string()])?;
    Ok(n_rows > 0)
}

/// Turns a request that waits into an approval.
pub(super) fn approve(
    connection: &Connection,
    id: ApprovalId,
    lifetime: Lifetime,
    agreement: &Agreement,
    at_ms: i64,
) -> rusqlite::Result<Option<StoredApproval>> {
    let Some(request) = waiting(connection, id, at_ms)? else {
        return Ok(None);
    };
    delete(connection, "approval_requests", id)?;
    let approval = StoredApproval {
        agreement: Some(agreement.clone()),
        ..agreed(id, request.call, lifetime, request.conversation, at_ms)
    };
    replace_approval(connection, &approval)?;
    Ok(Some(approval))
}

/// Adds an approval in place of the request for the same call.
pub(super) fn put(
    connection: &Connection,
    approval: &StoredApproval,
    conversation: ConversationId,
) -> rusqlite::Result<()> {
    const ANSWERED: &str =
        "DELETE FROM approval_requests WHERE conversation_id = ?1 AND tool = ?2 AND digest = ?3";
    touch(connection, conversation, approval.approved_at_ms, 0)?;
    connection.prepare_cached(ANSWERED)?.execute(params![
        conversation.to_string(),
        approval.call.tool.as_str(),
        approval.call.digest.to_string(),
    ])?;
    replace_approval(connection, approval)
}

/// The requests that wait, newest first.
pub(super) fn requests(
    connection: &Connection,
    conversation: Option<ConversationId>,
    now_ms: i64,
) -> rusqlite::Result<Vec<ApprovalRequest>> {
    const CONDITION: &str =
        "at_ms >= ?1 AND (?2 IS NULL OR conversation_id = ?2) ORDER BY at_ms DESC, id";
    let conversation = conversation.map(|id| id.to_string());
    let since_ms = now_ms.saturating_sub(REQUEST_MS_MAX);
    row::requests(connection, CONDITION, &[&since_ms, &conversation])
}

/// The approvals that hold, newest first.
pub(super) fn listed(
    connection: &Connection,
    now_ms: i64,
) -> rusqlite::Result<Vec<StoredApproval>> {
    const CONDITION: &str =
        "(lifetime <> 'once' OR approved_at_ms >= ?1) ORDER BY approved_at_ms DESC, id";
    let since_ms = now_ms.saturating_sub(ONCE_MS_MAX);
    row::approvals(connection, CONDITION, &[&since_ms])
}

/// Whether an approval for once is there.
pub(super) fn is_unused(connection: &Connection, id: ApprovalId) -> rusqlite::Result<bool> {
    const SQL: &str = "SELECT EXISTS (SELECT 1 FROM approvals WHERE id = ?1 AND lifetime = 'once')";
    connection
        .prepare_cached(SQL)?
        .query_row([id.to_string()], |row| row.get(0))
}

/// Deletes what a conversation asks for and was approved; says how many rows.
pub(super) fn forget(
    connection: &Connection,
    conversation: ConversationId,
) -> rusqlite::Result<usize> {
    const REQUESTS: &str = "DELETE FROM approval_requests WHERE conversation_id = ?1";
    const APPROVALS: &str = "DELETE FROM approvals WHERE conversation_id = ?1";
    let id = conversation.to_string();
    let n_requests = connection.prepare_cached(REQUESTS)?.execute([&id])?;
    let n_approvals = connection.prepare_cached(APPROVALS)?.execute([&id])?;
    Ok(n_requests + n_approvals)
}

/// Deletes requests that waited too long and approvals for once that no call used; says how many.
pub(super) fn sweep(connection: &Connection, at_ms: i64, n_max: u32) -> rusqlite::Result<usize> {
    const REQUESTS: &str = "
        DELETE FROM approval_requests WHERE id IN
        (SELECT id FROM approval_requests WHERE at_ms < ?1 LIMIT ?2)";
    const APPROVALS: &str = "
        DELETE FROM approvals WHERE id IN
        (SELECT id FROM approvals WHERE lifetime = 'once' AND approved_at_ms < ?1 LIMIT ?2)";
    let requests = params![at_ms.saturating_sub(REQUEST_MS_MAX), n_max];
    let approvals = params![at_ms.saturating_sub(ONCE_MS_MAX), n_max];
    let n_requests = connection.prepare_cached(REQUESTS)?.execute(requests)?;
    let n_approvals = connection.prepare_cached(APPROVALS)?.execute(approvals)?;
    Ok(n_requests + n_approvals)
}
