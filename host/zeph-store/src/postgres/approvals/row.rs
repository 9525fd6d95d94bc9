//! Rows of `approval_requests` and `approvals`, read.
//!
//! Reading never fails because of what a row holds: such a row approves nothing, and is omitted with a word in the log.

use tokio_postgres::Row;
use zeph_core::id::{ConversationId, ToolName};
use zeph_core::lifetime::Lifetime;

use crate::approvals::{AgreedRules, ApprovalRequest, RefusedObjects, ShownCall, StoredApproval};
use crate::operations::Outcome;
use crate::postgres::value::{from_json, get, parsed, unreadable};

/// The statement that reads requests, with the rest of it, for [`waiting`].
macro_rules! requests {
    ($rest:literal) => {
        concat!(
            "SELECT id, tool, digest, directory, arguments, arguments_bytes, conversation_id, reason, rules, at_ms, \
             call_digest, objects FROM approval_requests ",
            $rest
        )
    };
}

/// The statement that reads the approvals for which a condition holds, for [`given`].
macro_rules! approvals {
    ($condition:literal) => {
        concat!(
            "SELECT id, tool, digest, directory, arguments, arguments_bytes, conversation_id, lifetime, approved_at_ms, \
             agreement, call_digest, objects, rule_scope, kept_rules FROM approvals WHERE ",
            $condition
        )
    };
}

pub(super) use {approvals, requests};

/// The requests in rows.
pub(super) fn waiting(rows: &[Row]) -> Vec<ApprovalRequest> {
    read(rows, request)
}

/// The approvals in rows.
pub(super) fn given(rows: &[Row]) -> Vec<StoredApproval> {
    read(rows, approval)
}

fn read<T>(rows: &[Row], of_row: fn(&Row) -> Outcome<T>) -> Vec<T> {
    let mut found = Vec::new();
    for row in rows {
        match of_row(row) {
            Ok(item) => found.push(item),
            Err(fault) => {
                tracing::warn!(
                    ?fault,
                    "an approval or a request for one cannot be read: it approves nothing"
                );
            }
        }
    }
    found
}

fn request(row: &Row) -> Outcome<ApprovalRequest> {
    Ok(ApprovalRequest {
        id: parsed(row, 0)?,
        call: call(row, 10)?,
        conversation: parsed(row, 6)?,
        reason: get(row, 7)?,
        rules: json(row, 8)?,
        at_ms: get(row, 9)?,
    })
}

fn approval(row: &Row) -> Outcome<StoredApproval> {
    let label: &str = get(row, 7)?;
    let conversation: Option<ConversationId> = match text(row, 6)? {
        Some(_) => Some(parsed(row, 6)?),
        None => None,
    };
    let lifetime = match (label, conversation) {
        ("once", Some(_)) => Lifetime::Once,
        ("session", Some(_)) => Lifetime::Session,
        ("always", None) => Lifetime::Always,
        _ => {
            let problem = format!("the lifetime `{label}` makes no sense");
            return Err(unreadable(7, problem));
        }
    };
    Ok(StoredApproval {
        id: parsed(row, 0)?,
        call: ShownCall {
            rules: rules(row, 12)?,
            ..call(row, 10)?
        },
        lifetime,
        conversation,
        approved_at_ms: get(row, 8)?,
        agreement: from_json(row, 9)?,
    })
}

/// A number of bytes as it is stored.
pub(super) fn bytes_column(n_bytes: u64) -> i64 {
    i64::try_from(n_bytes).unwrap_or(i64::MAX)
}

/// The paths as they are stored.
pub(super) fn paths(objects: &RefusedObjects) -> String {
    serde_json::json!(objects.paths).to_string()
}

/// The rules as they are stored.
pub(super) fn rule_texts(rules: &AgreedRules) -> String {
    serde_json::json!(rules.texts).to_string()
}

/// What is approved of single objects, which stands in the columns from `at` on.
fn objects(row: &Row, at: usize) -> Outcome<Option<RefusedObjects>> {
    if text(row, at)?.is_none() {
        return Ok(None);
    }
    Ok(Some(RefusedObjects {
        call_digest: parsed(row, at)?,
        paths: json(row, at + 1)?,
    }))
}

/// The rules that are approved in place of the call, which stand in the columns from `at` on.
fn rules(row: &Row, at: usize) -> Outcome<Option<AgreedRules>> {
    if text(row, at)?.is_none() {
        return Ok(None);
    }
    Ok(Some(AgreedRules {
        scope: parsed(row, at)?,
        texts: json(row, at + 1)?,
    }))
}

/// The columns both tables have in common.
fn call(row: &Row, objects_at: usize) -> Outcome<ShownCall> {
    let tool: String = get(row, 1)?;
    let n_bytes: i64 = get(row, 5)?;
    Ok(ShownCall {
        tool: ToolName::new(tool).map_err(|error| unreadable(1, error))?,
        digest: parsed(row, 2)?,
        directory: get(row, 3)?,
        arguments: get(row, 4)?,
        arguments_bytes: u64::try_from(n_bytes).map_err(|error| unreadable(5, error))?,
        objects: objects(row, objects_at)?,
        rules: None,
    })
}

fn text(row: &Row, column: usize) -> Outcome<Option<&str>> {
    get(row, column)
}

fn json(row: &Row, column: usize) -> Outcome<Vec<String>> {
    let text: &str = get(row, column)?;
    serde_json::from_str(text).map_err(|error| unreadable(column, error))
}
