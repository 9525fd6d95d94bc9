//! Approvals: which calls wait for a person's agreement, and which ones have it.
//!
//! An approval holds for one exact call ([`BoundCall`]) and, unless it is for always, for one conversation; for once it is used
//! up by the call that takes it. Whether a call needs one is decided elsewhere. No tool leads here: only doors where a person sits,
//! and the command line, write approvals.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use zeph_core::id::{ApprovalId, ConversationId, Digest, ToolName};

use self::call::BoundCall;
use crate::conversation::touch;
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Access;

pub(crate) mod call;
mod row;
mod sql;

/// How long a request waits: a week, as the stored outputs do that a person may want to read before the answer.
const REQUEST_MS_MAX: i64 = 7 * DAY_MS;

/// How long an approval for once waits for its call: a day. A call that comes later is not the one that was meant.
const ONCE_MS_MAX: i64 = DAY_MS;

const DAY_MS: i64 = 86_400_000;

/// Most requests that wait; the oldest go first. Nobody reads more, and they stay below 64 MiB.
const REQUESTS_MAX: u32 = 1_000;

/// Most requests of one conversation, so that one that asks without end does not push out the others.
const REQUESTS_PER_CONVERSATION_MAX: u32 = 100;

/// For how long a person agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalLifetime {
    /// To the next such call of the conversation, within a day.
    Once,
    /// To every such call of the conversation.
    Session,
    /// To every such call, until it is revoked.
    Always,
}

/// A call as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownCall {
    /// The tool.
    pub tool: ToolName,
    /// What the call is known by.
    pub digest: Digest,
    /// Where its relative paths start; with replacement characters where it is not Unicode.
    pub directory: Option<String>,
    /// The arguments as canonical JSON, or the first 64 KiB of it. Text of strangers.
    pub arguments: String,
    /// Bytes of the whole of it.
    pub arguments_bytes: u64,
}

impl ShownCall {
    /// Whether all arguments can be shown.
    pub fn is_whole(&self) -> bool {
        self.arguments.len() as u64 == self.arguments_bytes
    }
}

/// Why a call asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// In a sentence, for a person.
    pub reason: String,
    /// The rules for `--allow` that would let such calls run, all of them needed; empty when there are none.
    pub rules: Vec<String>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalRequest {
    /// What a person names it by.
    pub id: ApprovalId,
    /// The call.
    #[serde(flatten)]
    pub call: ShownCall,
    /// Who made it.
    pub conversation: ConversationId,
    /// Why it asks.
    pub reason: String,
    /// The rules for `--allow` that would let such calls run, all of them needed; empty when there are none.
    pub rules: Vec<String>,
    /// When it was made last, in Unix milliseconds.
    pub at_ms: i64,
}

/// A call a person agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// What a person names it by: the id of the request, when there was one.
    pub id: ApprovalId,
    /// The call.
    #[serde(flatten)]
    pub call: ShownCall,
    /// For how long.
    pub lifetime: ApprovalLifetime,
    /// Whose calls; `None` for everybody's, which is so for always.
    pub conversation: Option<ConversationId>,
    /// When, in Unix milliseconds.
    pub approved_at_ms: i64,
}

impl Store {
    /// Keeps `call` of `conversation` as a question for a person; the same call that waits already keeps its id.
    ///
    /// A conversation the store does not know is begun.
    /// Limits: 1,000 requests, 100 of a conversation, for 7 days; beyond it the oldest are forgotten.
    pub async fn record_request(
        &self,
        call: BoundCall,
        asking: Asking,
        conversation: ConversationId,
        at_ms: i64,
    ) -> Result<ApprovalRequest, StoreError> {
        let id = ApprovalId::new();
        let work = move |connection: &Connection| {
            touch(connection, conversation, at_ms, 0)?;
            let request = ApprovalRequest {
                id,
                call: call.shown().clone(),
                conversation,
                reason: asking.reason.clone(),
                rules: asking.rules.clone(),
                at_ms,
            };
            let id = sql::put_request(connection, &request)?;
            sql::forget_old_requests(connection, conversation, at_ms)?;
            Ok(ApprovalRequest { id, ..request })
        };
        self.run("record a request for approval", Access::Write, work)
            .await
    }

    /// The approval under which `call` of `conversation` may run at `now_ms`, if there is one. Changes nothing.
    ///
    /// What holds longer is preferred to an approval for once, which is there until a call takes it with [`Store::begin_call`].
    pub async fn find_approval(
        &self,
        call: &BoundCall,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Result<Option<Approval>, StoreError> {
        let (tool, digest) = (call.shown().tool.clone(), call.digest());
        let work = move |connection: &Connection| {
            sql::in_force(connection, &tool, digest, conversation, now_ms)
        };
        self.run("look for an approval", Access::Read, work).await
    }

    /// Agrees to the request `id`, which waits no longer; `None` when it does not wait.
    pub async fn approve(
        &self,
        id: ApprovalId,
        lifetime: ApprovalLifetime,
        at_ms: i64,
    ) -> Result<Option<Approval>, StoreError> {
        let work = move |connection: &Connection| {
            let Some(request) = sql::waiting(connection, id, at_ms)? else {
                return Ok(None);
            };
            sql::delete(connection, "approval_requests", id)?;
            let approval = agreed(id, request.call, lifetime, request.conversation, at_ms);
            sql::replace_approval(connection, &approval)?;
            Ok(Some(approval))
        };
        self.run("approve a call", Access::Write, work).await
    }

    /// Agrees to `call` of `conversation` without a request: for a person who was asked at once.
    ///
    /// A request for the same call waits no longer. A conversation the store does not know is begun.
    pub async fn approve_call(
        &self,
        call: BoundCall,
        lifetime: ApprovalLifetime,
        conversation: ConversationId,
        at_ms: i64,
    ) -> Result<Approval, StoreError> {
        const ANSWERED: &str = "
            DELETE FROM approval_requests WHERE conversation_id = ?1 AND tool = ?2 AND digest = ?3";
        let id = ApprovalId::new();
        let work = move |connection: &Connection| {
            touch(connection, conversation, at_ms, 0)?;
            let shown = call.shown().clone();
            connection.prepare_cached(ANSWERED)?.execute(params![
                conversation.to_string(),
                shown.tool.as_str(),
                shown.digest.to_string(),
            ])?;
            let approval = agreed(id, shown, lifetime, conversation, at_ms);
            sql::replace_approval(connection, &approval)?;
            Ok(approval)
        };
        self.run("approve a call", Access::Write, work).await
    }

    /// The request `id`; `None` when it does not wait at `now_ms`.
    pub async fn approval_request(
        &self,
        id: ApprovalId,
        now_ms: i64,
    ) -> Result<Option<ApprovalRequest>, StoreError> {
        let work = move |connection: &Connection| sql::waiting(connection, id, now_ms);
        self.run("read a request for approval", Access::Read, work)
            .await
    }

    /// The requests that wait at `now_ms`, of one conversation or of all, newest first.
    pub async fn list_requests(
        &self,
        conversation: Option<ConversationId>,
        now_ms: i64,
    ) -> Result<Vec<ApprovalRequest>, StoreError> {
        const CONDITION: &str =
            "at_ms >= ?1 AND (?2 IS NULL OR conversation_id = ?2) ORDER BY at_ms DESC, id";
        let conversation = conversation.map(|id| id.to_string());
        let work = move |connection: &Connection| {
            let since_ms = now_ms.saturating_sub(REQUEST_MS_MAX);
            row::requests(connection, CONDITION, &[&since_ms, &conversation])
        };
        self.run("list the requests for approval", Access::Read, work)
            .await
    }

    /// The approvals that hold at `now_ms`, newest first.
    pub async fn list_approvals(&self, now_ms: i64) -> Result<Vec<Approval>, StoreError> {
        const CONDITION: &str =
            "(lifetime <> 'once' OR approved_at_ms >= ?1) ORDER BY approved_at_ms DESC, id";
        let work = move |connection: &Connection| {
            let since_ms = now_ms.saturating_sub(ONCE_MS_MAX);
            row::approvals(connection, CONDITION, &[&since_ms])
        };
        self.run("list the approvals", Access::Read, work).await
    }

    /// Answers the request `id` with no: it waits no longer. Says whether it did. A later call asks again.
    pub async fn deny_request(&self, id: ApprovalId) -> Result<bool, StoreError> {
        let work = move |connection: &Connection| sql::delete(connection, "approval_requests", id);
        self.run("deny a request for approval", Access::Write, work)
            .await
    }

    /// Takes the approval `id` back; says whether there was one. A call that runs goes on.
    pub async fn revoke_approval(&self, id: ApprovalId) -> Result<bool, StoreError> {
        let work = move |connection: &Connection| sql::delete(connection, "approvals", id);
        self.run("revoke an approval", Access::Write, work).await
    }

    /// Forgets what waits for `conversation` and what was approved for it; says how many rows that were. Approvals for always
    /// stay.
    pub async fn forget_approvals(
        &self,
        conversation: ConversationId,
    ) -> Result<usize, StoreError> {
        let work = move |connection: &Connection| {
            let id = conversation.to_string();
            let mut n_rows = 0;
            for table in ["approval_requests", "approvals"] {
                let sql = format!("DELETE FROM {table} WHERE conversation_id = ?1");
                n_rows += connection.prepare_cached(&sql)?.execute([&id])?;
            }
            Ok(n_rows)
        };
        self.run("forget approvals", Access::Write, work).await
    }

    /// Deletes the requests that waited too long and the approvals for once that no call used; says how many.
    pub(crate) async fn sweep_approvals(&self, at_ms: i64) -> Result<usize, StoreError> {
        const REQUESTS: &str = "DELETE FROM approval_requests WHERE at_ms < ?1";
        const APPROVALS: &str =
            "DELETE FROM approvals WHERE lifetime = 'once' AND approved_at_ms < ?1";
        let work = move |connection: &Connection| {
            let requests = [at_ms.saturating_sub(REQUEST_MS_MAX)];
            let approvals = [at_ms.saturating_sub(ONCE_MS_MAX)];
            let n_requests = connection.prepare_cached(REQUESTS)?.execute(requests)?;
            let n_approvals = connection.prepare_cached(APPROVALS)?.execute(approvals)?;
            Ok(n_requests + n_approvals)
        };
        self.run("sweep old approvals", Access::Write, work).await
    }
}

impl ApprovalLifetime {
    /// Its word in the table, in JSON and on the command line.
    pub fn label(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

impl From<ApprovalLifetime> for zeph_core::policy::Approval {
    fn from(lifetime: ApprovalLifetime) -> Self {
        match lifetime {
            ApprovalLifetime::Once => Self::Once,
            ApprovalLifetime::Session => Self::Session,
            ApprovalLifetime::Always => Self::Always,
        }
    }
}

impl Approval {
    /// Whether the call that uses it uses it up.
    pub fn is_once(&self) -> bool {
        self.lifetime == ApprovalLifetime::Once
    }
}

/// Whether an approval for once is there.
pub(crate) fn is_unused(connection: &Connection, id: ApprovalId) -> rusqlite::Result<bool> {
    const SQL: &str = "SELECT EXISTS (SELECT 1 FROM approvals WHERE id = ?1 AND lifetime = 'once')";
    connection
        .prepare_cached(SQL)?
        .query_row([id.to_string()], |row| row.get(0))
}

/// Uses up an approval for once.
pub(crate) fn use_up(connection: &Connection, id: ApprovalId) -> rusqlite::Result<()> {
    sql::delete(connection, "approvals", id).map(drop)
}

fn agreed(
    id: ApprovalId,
    call: ShownCall,
    lifetime: ApprovalLifetime,
    conversation: ConversationId,
    at_ms: i64,
) -> Approval {
    Approval {
        id,
        call,
        lifetime,
        conversation: (lifetime != ApprovalLifetime::Always).then_some(conversation),
        approved_at_ms: at_ms,
    }
}
