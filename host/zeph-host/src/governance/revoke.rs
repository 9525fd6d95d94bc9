//! A person marks the result of a call as unacceptable, or forgives what was learned.

use serde_json::{Map, Value};
use zeph_core::failure::one_line;
use zeph_core::id::{CallId, CallPrefix, ConversationId};
use zeph_core::policy::{CallWords, tool_key};
use zeph_shell::analysis::analyse;
use zeph_store::{AuditFilter, AuditRecord, Store, StoreError};

use super::is_specific;
use crate::clock::now_ms;

/// A sequence that is blocked from now on.
#[derive(Debug)]
pub(crate) struct RevokedSequence {
    /// What forgives it.
    pub(crate) id: i64,
    pub(crate) call: CallId,
    pub(crate) words: Vec<String>,
}

/// Why a call cannot be revoked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RevokeError {
    #[error("there is no record of call `{0}`")]
    Unknown(String),
    #[error("several calls have an ID that begins with `{0}`; write more of it")]
    Several(CallPrefix),
    #[error("no call of this conversation is recorded")]
    NoCall,
    #[error(
        "call {0} was not learned: the sequence `{1}` names no more than a tool or program, and would block every call of it; to deny that, use a rule (`tools.scoped.denied_tools`, `tools.permissions`)"
    )]
    BlocksAll(CallId, String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Learns the sequence of one call, or of the newest of `conversation`. `call` is its ID, or enough of its beginning.
///
/// Errors: [`RevokeError`]; nothing is learned then.
pub(crate) async fn revoke(
    store: &Store,
    call: Option<&str>,
    conversation: Option<ConversationId>,
) -> Result<RevokedSequence, RevokeError> {
    let record = match call {
        Some(call) => recorded(store, call).await?,
        None => newest(store, conversation).await?,
    };
    let call = record.begin.call_id;
    let words = pattern(&record.begin.tool, &record.begin.command);
    if !is_specific(&words) {
        return Err(RevokeError::BlocksAll(call, words.join(" ")));
    }
    let id = store.revoke_sequence(words.clone(), call, now_ms()).await?;
    Ok(RevokedSequence { id, call, words })
}

/// Forgives a learned sequence; says whether there was one of this number.
///
/// Errors: [`StoreError`] when it cannot be recorded.
pub(crate) async fn forget(store: &Store, id: i64) -> Result<bool, StoreError> {
    store.forgive_sequence(id, now_ms()).await
}

async fn recorded(store: &Store, call: &str) -> Result<AuditRecord, RevokeError> {
    let unknown = || RevokeError::Unknown(one_line(call, 60));
    let prefix: CallPrefix = call.parse().map_err(|_| unknown())?;
    let filter = AuditFilter {
        call: Some(prefix.clone()),
        ..AuditFilter::newest(2)
    };
    let mut records = store.audit_query(filter).await?;
    let record = records.pop().ok_or_else(unknown)?;
    match records.is_empty() {
        true => Ok(record),
        false => Err(RevokeError::Several(prefix)),
    }
}

async fn newest(
    store: &Store,
    conversation: Option<ConversationId>,
) -> Result<AuditRecord, RevokeError> {
    let filter = AuditFilter {
        conversation,
        ..AuditFilter::newest(1)
    };
    let mut records = store.audit_query(filter).await?;
    records.pop().ok_or(RevokeError::NoCall)
}

/// The words of a recorded call. What the record cut has no words beyond the cut.
fn pattern(tool: &str, command: &str) -> Vec<String> {
    let arguments: Map<String, Value> = serde_json::from_str(command).unwrap_or_default();
    let name = tool_key(tool);
    let text = arguments.get("command").and_then(Value::as_str);
    let line = text.filter(|_| name == "bash").map(analyse);
    CallWords::of(&[name], &arguments, line.as_ref(), None).pattern()
}

#[cfg(test)]
mod tests {
    use super::{is_specific, pattern};

    #[test]
    fn a_recorded_call_has_the_words_of_the_call() {
        let words = pattern("bash", r#"{"command":"cd x && rm -fr build"}"#);
        assert_eq!(words, ["bash", "cd", "x", "rm", "-f", "-fr", "-r", "build"]);
        assert_eq!(pattern("turn_state", "{}"), ["turn_state"]);
        assert_eq!(pattern("read", "not json"), ["read"]);
        for (tool, command, expect) in [
            ("turn_state", "{}", false),
            ("bash", r#"{"command":"make"}"#, false),
            ("bash", r#"{"command":"make all"}"#, true),
            ("read", r#"{"path":"a"}"#, true),
        ] {
            assert_eq!(is_specific(&pattern(tool, command)), expect, "{command}");
        }
    }
}
