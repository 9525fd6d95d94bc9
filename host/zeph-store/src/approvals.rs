//! Approvals: which calls wait for a person's agreement, and which ones have it.
//!
//! An approval holds for one exact call ([`BoundCall`]), or for the calls of one tool that fit rules a person was shown, and, unless it
//! is for always, for one conversation; for once it is used up by the call that takes it. Whether a call needs one is decided elsewhere. No tool leads here: only doors where a person sits,
//! and the command line, write approvals.

use serde::{Deserialize, Serialize};
use zeph_core::id::{ApprovalId, ConversationId, Digest, ToolName};
use zeph_core::lifetime::Lifetime;

use self::call::BoundCall;
use crate::caller::Owner;
use crate::error::StoreError;
use crate::store::{Access, Store};

pub(crate) mod call;

/// How long a request waits: a week, as the stored outputs do that a person may want to read before the answer.
pub(crate) const REQUEST_MS_MAX: i64 = 7 * DAY_MS;

/// How long an approval for once waits for its call: a day. A call that comes later is not the one that was meant.
pub(crate) const ONCE_MS_MAX: i64 = DAY_MS;

const DAY_MS: i64 = 86_400_000;

/// Most requests that wait; beyond it the oldest of the caller who has most go. Nobody reads more, and they stay below 64 MiB.
pub(crate) const REQUESTS_MAX: u32 = 1_000;

/// Most requests of one conversation, so that one that asks without end does not push out the others.
pub(crate) const REQUESTS_PER_CONVERSATION_MAX: u32 = 100;

/// Who agreed to a call, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// How.
    pub how: AgreedBy,
    /// The user at the terminal, or the one a client acts for; none when nobody is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The client that asked, with its version, as it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// How a person was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgreedBy {
    /// By a client, of the Model Context Protocol or of the Agent Client Protocol.
    Elicitation,
    /// At the terminal of the host.
    Prompt,
    /// With `zeph-host approve`.
    CommandLine,
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
    /// When it is about single objects that programs obey, which the call may change and was refused: what it is without them.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub objects: Option<RefusedObjects>,
    /// When it is about all calls that fit these rules: the call is the one that was shown.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub rules: Option<AgreedRules>,
}

/// Rules that a person agreed to in place of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgreedRules {
    /// The tool, its provider and the directory they hold for ([`rule_scope`](call::rule_scope)).
    #[serde(rename = "rule_scope")]
    pub scope: Digest,
    /// As for `--allow`.
    #[serde(rename = "kept_rules")]
    pub texts: Vec<String>,
}

/// What the guard of files refused to a call that had been allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedObjects {
    /// What the call itself is known by.
    pub call_digest: Digest,
    /// The real paths, sorted. Text of strangers.
    #[serde(rename = "objects")]
    pub paths: Vec<String>,
}

impl ShownCall {
    /// Whether all arguments can be shown.
    pub fn is_whole(&self) -> bool {
        self.arguments.len() as u64 == self.arguments_bytes
    }
}

/// Why a call asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalReason {
    /// In a sentence, for a person.
    pub reason: String,
    /// The rules for `--allow` that would let such calls run, all of them needed; empty when there are none.
    pub rules: Vec<String>,
}

/// Who asks for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAsker {
    /// The conversation of the call.
    pub conversation: ConversationId,
    /// Whose it is: what one caller asks for does not push out what others do.
    pub caller: Owner,
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
pub struct StoredApproval {
    /// What a person names it by: the id of the request, when there was one.
    pub id: ApprovalId,
    /// The call.
    #[serde(flatten)]
    pub call: ShownCall,
    /// For how long.
    pub lifetime: Lifetime,
    /// Whose calls; `None` for everybody's, which is so for always.
    pub conversation: Option<ConversationId>,
    /// When, in Unix milliseconds.
    pub approved_at_ms: i64,
    /// By whom; none in rows of older programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

impl Store {
    /// Keeps `call` of `asker` as a question for a person; the same call that waits already keeps its id.
    ///
    /// A conversation the store does not know is begun.
    /// Limits: 100 requests of a conversation and 1,000 in all, for 7 days; beyond it the oldest of the conversation, and of the caller who
    /// has most, are forgotten.
    /// Errors: what the database says.
    pub async fn record_request(
        &self,
        call: BoundCall,
        why: ApprovalReason,
        asker: ApprovalAsker,
        at_ms: i64,
    ) -> Result<ApprovalRequest, StoreError> {
        const OPERATION: &str = "record a request for approval";
        let request = ApprovalRequest {
            id: ApprovalId::new(),
            call: call.shown().clone(),
            conversation: asker.conversation,
            reason: why.reason,
            rules: why.rules,
            at_ms,
        };
        let put = request.clone();
        let id = self
            .run(OPERATION, Access::Write, move |operations| {
                operations.put_request(&put, &asker.caller)
            })
            .await?;
        Ok(ApprovalRequest { id, ..request })
    }

    /// The approval under which `call` of `conversation` may run at `now_ms`, if there is one. Changes nothing.
    ///
    /// What holds longer is preferred to an approval for once, which is there until a call takes it with [`Store::begin_call`].
    /// Errors: what the database says.
    pub async fn find_approval(
        &self,
        call: &BoundCall,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Result<Option<StoredApproval>, StoreError> {
        let (tool, digest) = (call.shown().tool.clone(), call.digest());
        self.run(
            "look for an approval",
            Access::ReadRights,
            move |operations| operations.approval(&tool, digest, conversation, now_ms),
        )
        .await
    }

    /// What of single objects `tool` of `conversation` may change at `now_ms` in calls that were approved for that, whatever the call.
    ///
    /// Errors: what the database says.
    pub async fn object_approvals(
        &self,
        tool: &ToolName,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        let tool = tool.clone();
        self.run(
            "look for an approval",
            Access::ReadRights,
            move |operations| operations.object_approvals(&tool, conversation, now_ms),
        )
        .await
    }

    /// The approvals of rules for calls of `tool` in `conversation`, whatever their scope. None of them is for once.
    ///
    /// Errors: what the database says.
    pub async fn rule_approvals(
        &self,
        tool: &ToolName,
        conversation: ConversationId,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        let tool = tool.clone();
        self.run(
            "look for an approval",
            Access::ReadRights,
            move |operations| operations.rule_approvals(&tool, conversation),
        )
        .await
    }

    /// Agrees to the request `id`, which waits no longer; `None` when it does not wait.
    ///
    /// Errors: what the database says.
    pub async fn approve(
        &self,
        id: ApprovalId,
        lifetime: Lifetime,
        agreement: Agreement,
        at_ms: i64,
    ) -> Result<Option<StoredApproval>, StoreError> {
        self.run("approve a call", Access::Write, move |operations| {
            operations.approve(id, lifetime, &agreement, at_ms)
        })
        .await
    }

    /// Agrees to `call` of `conversation` without a request: for a person who was asked at once.
    ///
    /// A request for the same call waits no longer. A conversation the store does not know is begun.
    /// Errors: what the database says.
    pub async fn approve_call(
        &self,
        call: BoundCall,
        lifetime: Lifetime,
        agreement: Agreement,
        conversation: ConversationId,
        at_ms: i64,
    ) -> Result<StoredApproval, StoreError> {
        let shown = call.shown().clone();
        let approval = StoredApproval {
            agreement: Some(agreement),
            ..agreed(ApprovalId::new(), shown, lifetime, conversation, at_ms)
        };
        let put = approval.clone();
        self.run("approve a call", Access::Write, move |operations| {
            operations.put_approval(&put, conversation)
        })
        .await?;
        Ok(approval)
    }

    /// Lets an approval hold again that the begin of a call used up, because that call did not start.
    ///
    /// It is what it was: its time runs from when it was given.
    /// Errors: what the database says.
    pub async fn return_approval(&self, approval: StoredApproval) -> Result<(), StoreError> {
        self.run("return an approval", Access::Write, move |operations| {
            match approval.conversation {
                Some(conversation) => operations.put_approval(&approval, conversation),
                // For always: no call uses it up.
                None => Ok(()),
            }
        })
        .await
    }

    /// The request `id`; `None` when it does not wait at `now_ms`.
    ///
    /// Errors: what the database says.
    pub async fn approval_request(
        &self,
        id: ApprovalId,
        now_ms: i64,
    ) -> Result<Option<ApprovalRequest>, StoreError> {
        const OPERATION: &str = "read a request for approval";
        self.run(OPERATION, Access::Read, move |operations| {
            operations.request(id, now_ms)
        })
        .await
    }

    /// The requests that wait at `now_ms`, of one conversation or of all, newest first.
    ///
    /// Errors: what the database says.
    pub async fn list_requests(
        &self,
        conversation: Option<ConversationId>,
        now_ms: i64,
    ) -> Result<Vec<ApprovalRequest>, StoreError> {
        const OPERATION: &str = "list the requests for approval";
        self.run(OPERATION, Access::Read, move |operations| {
            operations.requests(conversation, now_ms)
        })
        .await
    }

    /// The approvals that hold at `now_ms`, newest first.
    ///
    /// Errors: what the database says.
    pub async fn list_approvals(&self, now_ms: i64) -> Result<Vec<StoredApproval>, StoreError> {
        self.run("list the approvals", Access::Read, move |operations| {
            operations.approvals(now_ms)
        })
        .await
    }

    /// Answers the request `id` with no: it waits no longer. Says whether it did. A later call asks again.
    ///
    /// Errors: what the database says.
    pub async fn deny_request(&self, id: ApprovalId) -> Result<bool, StoreError> {
        const OPERATION: &str = "deny a request for approval";
        self.run(OPERATION, Access::Write, move |operations| {
            operations.delete_request(id)
        })
        .await
    }

    /// Takes the approval `id` back; says whether there was one. A call that runs goes on.
    ///
    /// Errors: what the database says.
    pub async fn revoke_approval(&self, id: ApprovalId) -> Result<bool, StoreError> {
        self.run("revoke an approval", Access::Write, move |operations| {
            operations.delete_approval(id)
        })
        .await
    }

    /// Forgets what waits for `conversation` and what was approved for it; says how many rows that were. Approvals for always
    /// stay.
    ///
    /// Errors: what the database says.
    pub async fn forget_approvals(
        &self,
        conversation: ConversationId,
    ) -> Result<usize, StoreError> {
        self.run("forget approvals", Access::Write, move |operations| {
            operations.forget_approvals(conversation)
        })
        .await
    }
}

impl AgreedBy {
    /// In the words of listings.
    pub fn label(self) -> &'static str {
        match self {
            Self::Elicitation => "client",
            Self::Prompt => "prompt",
            Self::CommandLine => "command line",
        }
    }
}

impl StoredApproval {
    /// Whether the call that uses it uses it up.
    pub fn is_once(&self) -> bool {
        self.lifetime == Lifetime::Once
    }
}

/// An approval of `call`, given for `conversation` unless it is for always.
pub(crate) fn agreed(
    id: ApprovalId,
    call: ShownCall,
    lifetime: Lifetime,
    conversation: ConversationId,
    at_ms: i64,
) -> StoredApproval {
    StoredApproval {
        id,
        call,
        lifetime,
        conversation: (lifetime != Lifetime::Always).then_some(conversation),
        approved_at_ms: at_ms,
        agreement: None,
    }
}
