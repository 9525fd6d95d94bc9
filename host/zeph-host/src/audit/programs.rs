//! The record of what a call has the host do beside it, such as each program it runs: an entry of its own, which names the call.

use std::time::Duration;

use serde_json::Value;
use zeph_core::call::{CallFrame, ToolRequest};
use zeph_core::failure::one_line;
use zeph_core::id::CallId;
use zeph_core::redact::Redactor;
use zeph_core::tool::Tool;
use zeph_plugins::set::InForce;
use zeph_store::{AuditResult, ClaimSource, Ending};

use super::{Audit, COMMAND_CHARS_MAX, OpenRecord, POLICY_MATCH_CHARS_MAX};
use crate::clock::now_ms;

/// What is done beside a call.
#[derive(Debug)]
pub(crate) struct AsideSubject<'a> {
    /// The tool that has it done.
    pub(crate) tool: &'a Tool,
    /// Its plugin.
    pub(crate) provider: &'a InForce,
    /// The capability that grants it.
    pub(crate) granted: &'a str,
    /// The verdict of the judge, where there is one.
    pub(crate) verdict: Option<String>,
    /// Whether it is a program that runs.
    pub(crate) runs_program: bool,
}

impl Audit {
    /// Records what a call is about to have done, as an entry of its own that names the call (`correlation_id`), before it begins.
    ///
    /// Errors: why it may not begin, in a sentence.
    pub(crate) async fn aside_begins(
        &self,
        call: &CallFrame,
        subject: AsideSubject<'_>,
        (said, redactor): (Value, &Redactor),
    ) -> Result<OpenRecord<'_>, String> {
        let AsideSubject {
            tool,
            provider,
            granted,
            verdict,
            runs_program,
        } = subject;
        let request = ToolRequest {
            tool: tool.name.to_string(),
            arguments: said,
            answers: None,
        };
        let mut begin = self.draft(call, &request, redactor);
        Self::identify(&mut begin, tool, Some(provider));
        begin.call_id = CallId::new();
        begin.at_ms = now_ms();
        if runs_program {
            begin.claim_source = Some(ClaimSource::Shell);
        }
        let granted = format!("granted to the plugin: {granted}");
        begin.policy_match = Some(one_line(&granted, POLICY_MATCH_CHARS_MAX));
        begin.correlation_id = Some(call.id.to_string());
        begin.adversarial_verdict = verdict;
        self.begin_entry(begin).await.map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "what a plugin wanted was not done: it cannot be recorded"
            );
            "it was not done: the host cannot record it in its audit".to_owned()
        })
    }
}

/// How a program of a call ended.
#[derive(Debug)]
pub(crate) struct ProgramEnding {
    /// Why it did not end by itself, or not run.
    pub(crate) problem: Option<String>,
    /// None when a signal ended it.
    pub(crate) exit_code: Option<i32>,
    /// Whether output was omitted.
    pub(crate) truncated: bool,
    /// How much of the jail stood around it; none when it did not run.
    pub(crate) environment: Option<&'static str>,
    /// How long it took.
    pub(crate) duration: Duration,
}

impl ProgramEnding {
    /// Of one that did not run.
    pub(crate) fn not_run(problem: String) -> Self {
        Self::of(Some(problem))
    }

    /// Of what is no program; with a problem when it failed.
    pub(crate) fn of(problem: Option<String>) -> Self {
        Self {
            problem,
            exit_code: None,
            truncated: false,
            environment: None,
            duration: Duration::ZERO,
        }
    }
}

impl OpenRecord<'_> {
    /// Records how a program of a call ended.
    pub(crate) async fn program_ends(self, end: ProgramEnding) {
        let message = end
            .problem
            .map(|problem| one_line(&problem, COMMAND_CHARS_MAX));
        self.end_entry(Ending {
            result: message.map_or(AuditResult::Success, |message| AuditResult::Error {
                message,
            }),
            duration_ms: u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
            failed: None,
            truncated: end.truncated,
            overflow_id: None,
            exit_code: end.exit_code,
            execution_env: end.environment.map(str::to_owned),
            hosts: Vec::new(),
            attempts: None,
            cache_age_ms: None,
            cache_bytes: None,
            labels: Vec::new(),
        })
        .await;
    }
}
