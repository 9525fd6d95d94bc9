//! Stored sessions, page by page.

use std::path::Path;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use zeph_acp::agent::{ListSessionsRequest, ListSessionsResponse, SessionInfo};
use zeph_acp::rpc::RpcError;
use zeph_store::{SessionRecord, Store};

/// Sessions on a page.
const PAGE: usize = 50;

/// Sessions that are looked at.
const SESSIONS_MAX: u32 = 10_000;

/// A page of the sessions, those used last first.
///
/// Errors: a cursor that is none, a store that cannot be read.
pub(super) async fn list(
    store: &Store,
    request: ListSessionsRequest,
) -> Result<ListSessionsResponse, RpcError> {
    let directory = request.cwd.map(|cwd| {
        let real = Path::new(&cwd).canonicalize();
        real.map_or(cwd, |real| real.to_string_lossy().into_owned())
    });
    let listed = store.list_sessions(directory, SESSIONS_MAX).await;
    let listed = listed.map_err(|error| RpcError::internal(error.to_string()))?;
    let start = match &request.cursor {
        None => 0,
        Some(cursor) => after(cursor, &listed)?,
    };
    let page = &listed[start..listed.len().min(start + PAGE)];
    let is_last = start + page.len() == listed.len();
    Ok(ListSessionsResponse {
        sessions: page.iter().map(info).collect(),
        next_cursor: page.last().filter(|_| !is_last).map(cursor),
    })
}

/// What names the place behind a session.
fn cursor(session: &SessionRecord) -> String {
    format!("{}:{}", session.last_used_at_ms, session.conversation)
}

/// The index of the first session behind a cursor: sessions may have been used or deleted since.
fn after(cursor: &str, listed: &[SessionRecord]) -> Result<usize, RpcError> {
    let wrong = || RpcError::params("`cursor` is not one of an earlier answer");
    let (at_ms, id) = cursor.split_once(':').ok_or_else(wrong)?;
    let at_ms: i64 = at_ms.parse().map_err(|_| wrong())?;
    let same = listed.iter().position(|session| {
        session.conversation.to_string() == id && session.last_used_at_ms == at_ms
    });
    Ok(match same {
        Some(index) => index + 1,
        None => listed.partition_point(|session| session.last_used_at_ms >= at_ms),
    })
}

fn info(session: &SessionRecord) -> SessionInfo {
    let at =
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(session.last_used_at_ms) * 1_000_000);
    SessionInfo {
        session_id: session.conversation.to_string(),
        cwd: session.directory.clone(),
        title: Some(session.title.clone()).filter(|title| !title.is_empty()),
        updated_at: at.ok().and_then(|at| at.format(&Rfc3339).ok()),
    }
}
