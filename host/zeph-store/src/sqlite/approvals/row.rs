//! Rows of `approval_requests` and `approvals`, read.
//!
//! Reading never fails because of what a row holds: such a row approves nothing, and is omitted with a word in the log.

use rusqlite::{Connection, Row, ToSql};
use zeph_core::id::{ConversationId, ToolName};
use zeph_core::lifetime::Lifetime;

use crate::approvals::{AgreedRules, ApprovalRequest, RefusedObjects, ShownCall, StoredApproval};
use crate::sqlite::audit::{parsed, unreadable};
use crate::sqlite::label;

const REQUEST: &str = "id, tool, digest, directory, arguments, arguments_bytes, conversation_id, reason, rules, at_ms, \
                       call_digest, objects";

const APPROVAL: &str = "id, tool, digest, directory, arguments, arguments_bytes, conversation_id, lifetime, approved_at_ms, \
                        agreement, call_digest, objects, rule_scope, kept_rules";

/// The requests for which `condition` holds.
///
/// Shape: `condition` may go on with `ORDER BY` and `LIMIT`.
pub(super) fn requests(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<Vec<ApprovalRequest>> {
    let sql = format!("SELECT {REQUEST} FROM approval_requests WHERE {condition}");
    read(connection, &sql, values, request)
}

/// The approvals for which `condition` holds.
pub(super) fn approvals(
    connection: &Connection,
    condition: &str,
    values: &[&dyn ToSql],
) -> rusqlite::Result<Vec<StoredApproval>> {
    let sql = format!("SELECT {APPROVAL} FROM approvals WHERE {condition}");
    read(connection, &sql, values, approval)
}

fn read<T>(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    of_row: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match of_row(row) {
            Ok(item) => found.push(item),
            Err(error) => {
                tracing::warn!(%error, "an approval or a request for one cannot be read: it approves nothing");
            }
        }
    }
    Ok(found)
}

fn request(row: &Row<'_>) -> rusqlite::Result<ApprovalRequest> {
    Ok(ApprovalRequest {
        id: parsed(row, 0)?,
        call: call(row, 10)?,
        conversation: parsed(row, 6)?,
        reason: row.get(7)?,
        rules: serde_json::from_str(row.get_ref(8)?.as_str()?)
            .map_err(|error| unreadable(8, error))?,
        at_ms: row.get(9)?,
    })
}

fn approval(row: &Row<'_>) -> rusqlite::Result<StoredApproval> {
    let label: String = row.get(7)?;
    let conversation: Option<ConversationId> = match row.get_ref(6)?.as_str_or_null()? {
        Some(_) => Some(parsed(row, 6)?),
        None => None,
    };
    let lifetime = match (label.as_str(), conversation) {
        ("once", Some(_)) => Lifetime::Once,
        ("session", Some(_)) => Lifetime::Session,
        ("always", None) => Lifetime::Always,
        _ => {
            return Err(unreadable(
                7,
                format!("the lifetime `{label}` makes no sense"),
            ));
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
        approved_at_ms: row.get(8)?,
        agreement: label::from_json(row, 9)?,
    })
}

/// The paths as they are stored.
pub(super) fn paths(objects: &RefusedObjects) -> String {
    serde_json::json!(objects.paths).to_string()
}

/// What is approved of single objects, which stands in the columns from `at` on.
fn objects(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<RefusedObjects>> {
    if row.get_ref(at)?.as_str_or_null()?.is_none() {
        return Ok(None);
    }
    let paths = serde_json::from_str(row.get_ref(at + 1)?.as_str()?);
    Ok(Some(RefusedObjects {
        call_digest: parsed(row, at)?,
        paths: paths.map_err(|error| unreadable(at + 1, error))?,
    }))
}

/// The rules as they are stored.
pub(super) fn rule_texts(rules: &AgreedRules) -> String {
    serde_json::json!(rules.texts).to_string()
}

/// The rules that are approved in place of the call, which stand in the columns from `at` on.
fn rules(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<AgreedRules>> {
    if row.get_ref(at)?.as_str_or_null()?.is_none() {
        return Ok(None);
    }
    let texts = serde_json::from_str(row.get_ref(at + 1)?.as_str()?);
    Ok(Some(AgreedRules {
        scope: parsed(row, at)?,
        texts: texts.map_err(|error| unreadable(at + 1, error))?,
    }))
}

/// The columns both tables have in common.
fn call(row: &Row<'_>, objects_at: usize) -> rusqlite::Result<ShownCall> {
    let tool: String = row.get(1)?;
    Ok(ShownCall {
        tool: ToolName::new(tool).map_err(|error| unreadable(1, error))?,
        digest: parsed(row, 2)?,
        directory: row.get(3)?,
        arguments: row.get(4)?,
        arguments_bytes: row.get(5)?,
        objects: objects(row, objects_at)?,
        rules: None,
    })
}
