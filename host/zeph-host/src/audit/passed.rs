//! The record of what is no call of a tool and is passed on to a native server: resources that are read, prompts that are filled in.

use std::time::Duration;

use serde_json::Value;
use zeph_core::call::{CallFrame, ToolRequest};
use zeph_core::execution::HostUse;
use zeph_core::failure::one_line;
use zeph_core::id::ServerName;
use zeph_core::redact::Redactor;
use zeph_store::{AuditResult, BeginRecord, ClaimSource, Ending, Finish, StoreError};

use super::{Audit, COMMAND_CHARS_MAX, OpenRecord};
use crate::clock::now_ms;

/// A request that is passed on.
#[derive(Debug)]
pub(crate) struct PassedRequest {
    /// Its place among the calls of the conversation.
    pub(crate) frame: CallFrame,
    /// Such as `resources/read`.
    pub(crate) method: &'static str,
    /// What it asks for.
    pub(crate) arguments: Value,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct PassedEnding {
    /// Why there is no answer.
    pub(crate) problem: Option<String>,
    /// The hosts that the server reached meanwhile.
    pub(crate) hosts: Vec<HostUse>,
    /// How long it took.
    pub(crate) duration: Duration,
}

impl Audit {
    /// Records the begin of what is no call of a tool.
    pub(super) async fn begin_entry(
        &self,
        begin: BeginRecord,
    ) -> Result<OpenRecord<'_>, StoreError> {
        let entry = OpenRecord {
            audit: self,
            call_id: begin.call_id,
            held: Vec::new(),
            approvals: Vec::new(),
        };
        if self.is_enabled {
            self.store.audit_begin(begin).await?;
        }
        Ok(entry)
    }

    /// Records that `request` is about to be passed on to `server`.
    ///
    /// Errors: why it must not be, in a sentence.
    pub(crate) async fn passes(
        &self,
        request: PassedRequest,
        server: &ServerName,
        redactor: &Redactor,
    ) -> Result<OpenRecord<'_>, String> {
        let asked = ToolRequest {
            tool: request.method.to_owned(),
            arguments: request.arguments,
            answers: None,
        };
        let mut begin = self.draft(&request.frame, &asked, redactor);
        begin.mcp_server_id = Some(server.to_string());
        begin.claim_source = Some(ClaimSource::Mcp);
        begin.policy_match = Some("passed on: no call of a tool".to_owned());
        self.begin_entry(begin).await.map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a request was not passed on: it cannot be recorded"
            );
            "the request was not made: the host cannot record it in its audit".to_owned()
        })
    }
}

impl OpenRecord<'_> {
    /// Records how a request that was passed on ended.
    pub(crate) async fn passed(self, end: PassedEnding) {
        let problem = end
            .problem
            .map(|problem| one_line(&problem, COMMAND_CHARS_MAX));
        let result = match problem {
            None => AuditResult::Success,
            Some(message) => AuditResult::Error { message },
        };
        self.end_entry(Ending {
            result,
            duration_ms: u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
            failed: None,
            truncated: false,
            overflow_id: None,
            exit_code: None,
            execution_env: None,
            hosts: end.hosts,
            attempts: None,
            cache_age_ms: None,
            cache_bytes: None,
            labels: Vec::new(),
        })
        .await;
    }

    /// Records the end of what is no call of a tool.
    pub(super) async fn end_entry(self, ending: Ending) {
        if !self.audit.is_enabled {
            return;
        }
        let finish = Finish {
            call_id: self.call_id,
            at_ms: now_ms(),
            ending,
        };
        let store = &self.audit.store;
        if let Err(error) = store.finish_call_soon(Some(finish), Vec::new()).await {
            tracing::error!(error = &error as &dyn std::error::Error, call = %self.call_id, "the end of an entry cannot be recorded");
        }
    }
}
