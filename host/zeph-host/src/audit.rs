//! The record of every call: in the store's table and, when configured, as JSON lines in a file.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use zeph_config::AuditConfig;
use zeph_core::call::{CallFrame, ToolRequest, TurnContext};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::ExecutionFacts;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::CallId;
use zeph_core::output::{Outcome, ToolOutput};
use zeph_core::policy::{Decision, TraceStep, Verdict};
use zeph_core::redact::Redactor;
use zeph_core::tool::{Backend, Tool, ToolKind};
use zeph_plugins::set::{InForce, PluginOrigin};
use zeph_store::{
    AuditFile, AuditKeys, AuditResult, BeginFacts, BeginRecord, CallBegin, ClaimSource, Ending,
    Failed, Finish, GrantRecord, HostProcess, SingleUseRights, Store, StoreError, StoredApproval,
};

use crate::clock::now_ms;
use crate::process;
use crate::session::Session;

pub(crate) mod checkpoints;
mod passed;
mod programs;

pub(crate) use self::passed::{PassedEnding, PassedRequest};
pub(crate) use self::programs::{AsideSubject, ProgramEnding};

/// Most characters of one argument in the record. A file's content is not kept a second time.
const VALUE_CHARS_MAX: usize = 500;

/// Most characters of all arguments in the record.
const COMMAND_CHARS_MAX: usize = 4_000;

/// Most characters of how a call was decided: rules may be long.
const POLICY_MATCH_CHARS_MAX: usize = 1_000;

/// Where calls are recorded.
#[derive(Debug)]
pub(crate) struct Audit {
    is_enabled: bool,
    /// Writes to the audit file too.
    store: Store,
    directory: Option<PathBuf>,
    process: HostProcess,
    /// What is the same for every call of this host.
    facts: BeginFacts,
    /// Whether a call is answered only when its end is kept.
    awaits_ends: bool,
}

/// What a host records beside its calls.
#[derive(Debug)]
pub(crate) struct AuditPlace {
    /// Where relative paths of calls start.
    pub(crate) directory: Option<PathBuf>,
    /// The user the calls run as.
    pub(crate) user: Option<String>,
    /// What confines them, in the words of the configuration.
    pub(crate) scope: Option<String>,
    /// Whether a call is answered only when its end is kept: a replica may be killed at any time, and its callers go on with others.
    pub(crate) awaits_ends: bool,
}

/// A call that has begun and not ended yet.
#[derive(Debug)]
pub(crate) struct OpenRecord<'a> {
    audit: &'a Audit,
    call_id: CallId,
    /// The grants for one call it holds.
    held: Vec<GrantRecord>,
    /// The approvals for one call that its begin used up.
    approvals: Vec<StoredApproval>,
}

/// What became of the begin of a record.
#[derive(Debug)]
pub(crate) enum RecordBegin<'a> {
    /// The call has begun.
    Open(OpenRecord<'a>),
    /// One of its rights is gone: it has to be decided again.
    RightGone,
    /// Its conversation has asked for as many calls as it may: it has to be decided with that.
    QuotaUsed,
}

impl Audit {
    /// Opens the audit, with the keys that vouch for its records.
    ///
    /// Errors: [`StoreError`] when the file cannot be written: a host that cannot keep its record does not start.
    pub(crate) fn open(
        config: &AuditConfig,
        (store, keys): (Store, Option<&AuditKeys>),
        place: AuditPlace,
    ) -> Result<Self, StoreError> {
        let store = match (&config.file, keys) {
            (Some(path), Some(keys)) if config.enabled => {
                let file = AuditFile::open(path, config.file_max_bytes)?;
                store.with_audit_file(file.chained(keys.clone()))
            }
            _ => store,
        };
        Ok(Self {
            is_enabled: config.enabled,
            store,
            directory: place.directory,
            process: process::own(),
            facts: BeginFacts {
                user: place.user,
                scope: place.scope,
                ..BeginFacts::default()
            },
            awaits_ends: place.awaits_ends,
        })
    }

    /// The store that it writes to, with the audit file.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// An audit that records nothing, for a host that makes no call.
    pub(crate) fn off(store: Store) -> Self {
        Self {
            is_enabled: false,
            store,
            directory: None,
            process: process::own(),
            facts: BeginFacts::default(),
            awaits_ends: false,
        }
    }

    /// What is known of a call before it is decided, without any secret.
    pub(crate) fn draft(
        &self,
        frame: &CallFrame,
        request: &ToolRequest,
        redactor: &Redactor,
    ) -> BeginRecord {
        BeginRecord {
            call_id: frame.id,
            at_ms: frame.started_ms,
            tool: one_line(&redactor.text(&request.tool), 128),
            plugin: None,
            plugin_digest: None,
            mcp_server_id: None,
            command: command(&request.arguments, redactor),
            conversation_id: frame.conversation,
            claim_source: None,
            caller_id: frame.principal.caller_id().map(str::to_owned),
            turn_id: frame.turn.as_ref().map(|turn| turn.turn_id.clone()),
            goal_id: frame.turn.as_ref().and_then(|turn| turn.goal_id.clone()),
            skill_name: frame.turn.as_ref().and_then(|turn| turn.skill_name.clone()),
            policy_match: None,
            agreement: None,
            adversarial_verdict: None,
            correlation_id: None,
            resolved_cwd: self
                .directory
                .as_ref()
                .map(|path| path.display().to_string()),
            host: Some(self.process.clone()),
            facts: self.facts.clone(),
        }
    }

    /// Puts what was called in the place of what the caller named.
    pub(crate) fn identify(begin: &mut BeginRecord, tool: &Tool, provider: Option<&InForce>) {
        begin.tool = match provider.map(|provider| provider.origin) {
            Some(PluginOrigin::Folder) => tool.qualified_name(),
            // Their names are the host's, and no plugin's.
            Some(PluginOrigin::Program) => tool.name.to_string(),
            None => match &tool.backend {
                Backend::Mcp(_) => tool.qualified_name(),
                _ => tool.name.to_string(),
            },
        };
        if let Backend::Mcp(tool) = &tool.backend {
            begin.mcp_server_id = Some(tool.server.to_string());
        }
        begin.plugin = provider.map(|provider| provider.plugin().id().to_string());
        begin.plugin_digest = provider.map(|provider| provider.plugin().digest().to_string());
    }

    /// Records that a call is about to be made, before anything happens, and takes `rights` for it when it may run.
    ///
    /// Errors: `server_error`; the call must not be made then.
    pub(crate) async fn begin<W>(
        &self,
        mut begin: BeginRecord,
        decision: &Result<Decision<W>, ToolFailure>,
        rights: SingleUseRights,
    ) -> Result<RecordBegin<'_>, ToolFailure> {
        begin.policy_match = decision.as_ref().ok().map(policy_match);
        let rights = match decision {
            Ok(Decision::Allow(call)) => {
                begin.claim_source = claim_source(call.tool());
                rights
            }
            Ok(Decision::Ask(_) | Decision::Deny(_)) | Err(_) => SingleUseRights {
                trust_version: rights.trust_version,
                quota: rights.quota,
                ..SingleUseRights::default()
            },
        };
        let entry = OpenRecord {
            audit: self,
            call_id: begin.call_id,
            held: rights.grants.clone(),
            approvals: Vec::new(),
        };
        let written = self.write_begin(begin, rights).await;
        let begun = written.map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a call was not made: it cannot be recorded"
            );
            ToolFailure::new(
                ErrorCategory::ServerError,
                ErrorPhase::Setup,
                "the call was not made: the host cannot record it in its audit",
            )
        })?;
        match begun {
            CallBegin::Recorded => Ok(RecordBegin::Open(entry)),
            CallBegin::RightGone => Ok(RecordBegin::RightGone),
            CallBegin::QuotaUsed => Ok(RecordBegin::QuotaUsed),
            CallBegin::HoldLost => Err(ToolFailure::new(
                ErrorCategory::Cancelled,
                ErrorPhase::Setup,
                "the call was not made: another host has taken over what it was made for",
            )),
        }
    }

    async fn write_begin(
        &self,
        begin: BeginRecord,
        rights: SingleUseRights,
    ) -> Result<CallBegin, StoreError> {
        if !self.is_enabled && rights.is_empty() {
            return self.unrecorded(rights.trust_version).await;
        }
        let at_ms = begin.at_ms;
        let begin = self.is_enabled.then_some(begin);
        self.store.begin_call(begin, rights, at_ms).await
    }

    /// Lets the approvals for once of a call that did not start hold for it again.
    async fn return_approvals(&self, approvals: Vec<StoredApproval>) {
        for approval in approvals {
            if let Err(error) = self.store.return_approval(approval).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "an approval that was not used is lost");
            }
        }
    }

    /// The begin of a call that leaves nothing in the store: only whether trust is still what it was.
    async fn unrecorded(&self, trust_version: Option<i64>) -> Result<CallBegin, StoreError> {
        let is_same = match trust_version {
            Some(known) => self.store.trust_version().await? == known,
            None => true,
        };
        Ok(match is_same {
            true => CallBegin::Recorded,
            false => CallBegin::RightGone,
        })
    }

    /// Records that a command ended in the background, as an entry of its own: its call ended when it had been started.
    pub(crate) async fn completed(
        &self,
        session: &Session,
        (run_id, turn): (&str, Option<TurnContext>),
        facts: &ExecutionFacts,
        output: &ToolOutput,
        duration: Duration,
    ) {
        let begin = BeginRecord {
            call_id: CallId::new(),
            at_ms: now_ms(),
            tool: "bash".to_owned(),
            plugin: None,
            plugin_digest: None,
            mcp_server_id: None,
            command: serde_json::json!({ "run_id": run_id }).to_string(),
            conversation_id: session.conversation,
            claim_source: Some(ClaimSource::Shell),
            caller_id: session.principal().caller_id().map(str::to_owned),
            turn_id: turn.as_ref().map(|turn| turn.turn_id.clone()),
            goal_id: turn.as_ref().and_then(|turn| turn.goal_id.clone()),
            skill_name: turn.as_ref().and_then(|turn| turn.skill_name.clone()),
            policy_match: Some("the end of a background run".to_owned()),
            agreement: None,
            adversarial_verdict: None,
            correlation_id: Some(run_id.to_owned()),
            resolved_cwd: None,
            host: Some(self.process.clone()),
            facts: self.facts.clone(),
        };
        match self.begin_entry(begin).await {
            Ok(entry) => entry.finish(output, facts, duration).await,
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                run_id,
                "the end of a background run cannot be recorded"
            ),
        }
    }
}

impl OpenRecord<'_> {
    /// The record of a call whose begin used up `approvals`.
    pub(crate) fn holding(self, approvals: Vec<StoredApproval>) -> Self {
        Self { approvals, ..self }
    }

    /// Records how the call ended, and lets the grants it held count again unless it used them, and its approvals unless it started. A
    /// record that cannot be completed is reported in the log: the call has happened.
    pub(crate) async fn finish(
        self,
        output: &ToolOutput,
        facts: &ExecutionFacts,
        duration: Duration,
    ) {
        let audit = self.audit;
        if has_not_started(output) {
            audit.return_approvals(self.approvals).await;
        }
        let unused = match facts.used_grants {
            true => Vec::new(),
            false => self.held,
        };
        if !audit.is_enabled && unused.is_empty() {
            return;
        }
        let finish = audit.is_enabled.then(|| Finish {
            call_id: self.call_id,
            at_ms: now_ms(),
            ending: ending(output, facts, duration),
        });
        let kept = match audit.awaits_ends {
            true => audit.store.finish_call(finish, unused).await,
            false => audit.store.finish_call_soon(finish, unused).await,
        };
        if let Err(error) = kept {
            tracing::error!(error = &error as &dyn std::error::Error, call = %self.call_id, "the end of a call is not recorded");
        }
    }
}

/// Whether the call ended before its tool ran.
fn has_not_started(output: &ToolOutput) -> bool {
    let failure = match &output.outcome {
        Outcome::Done => None,
        Outcome::Failed(failure) => Some(failure),
    };
    failure.is_some_and(|failure| failure.phase == ErrorPhase::Setup)
}

fn ending(output: &ToolOutput, facts: &ExecutionFacts, duration: Duration) -> Ending {
    let command = facts.command;
    let failure = match &output.outcome {
        Outcome::Done => None,
        Outcome::Failed(failure) => Some(failure),
    };
    Ending {
        result: failure.map_or(AuditResult::Success, result),
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        failed: failure.map(|failure| Failed {
            category: failure.category,
            phase: failure.phase,
        }),
        truncated: output.is_cut || command.is_some_and(|command| command.truncated),
        overflow_id: output.overflow,
        exit_code: command.and_then(|command| command.exit_code),
        execution_env: command.map(|command| command.environment.to_owned()),
        hosts: facts.hosts.clone(),
        attempts: facts.attempts,
        cache_age_ms: facts.cached.map(|cached| cached.age_ms),
        cache_bytes: facts.cached.map(|cached| cached.bytes),
        labels: facts.labels.clone(),
    }
}

fn result(failure: &ToolFailure) -> AuditResult {
    let message = one_line(&failure.message, COMMAND_CHARS_MAX);
    match failure.category {
        ErrorCategory::PolicyBlocked | ErrorCategory::ConfirmationRequired => {
            AuditResult::Blocked { reason: message }
        }
        ErrorCategory::Timeout => AuditResult::Timeout,
        ErrorCategory::Cancelled => AuditResult::Cancelled,
        ErrorCategory::ToolNotFound
        | ErrorCategory::InvalidParameters
        | ErrorCategory::TypeMismatch
        | ErrorCategory::PermanentFailure
        | ErrorCategory::RateLimited
        | ErrorCategory::ServerError
        | ErrorCategory::NetworkError => AuditResult::Error { message },
    }
}

/// The rule that decided, then every check that had something to say: `RULE [CHECK: VERDICT by RULE, …]`. Of a rule on trial: `observed VERDICT`.
fn policy_match<W>(decision: &Decision<W>) -> String {
    let spoke = |step: &&TraceStep| step.verdict != Verdict::Pass || step.would.is_some();
    let steps = decision.trace().iter().filter(spoke).map(|step| {
        let by = step.rule.as_ref().map(|rule| format!(" by {rule}"));
        let verdict = match step.would {
            Some(would) => format!("observed {}", would.label()),
            None => step.verdict.label().to_owned(),
        };
        format!("{}: {verdict}{}", step.check, by.unwrap_or_default())
    });
    let steps: Vec<String> = steps.collect();
    let text = format!("{} [{}]", decision.rule(), steps.join(", "));
    one_line(&text, POLICY_MATCH_CHARS_MAX)
}

/// Which kind of source a result claims to come from.
fn claim_source(tool: &Tool) -> Option<ClaimSource> {
    if matches!(tool.backend, Backend::Mcp(_)) {
        return Some(ClaimSource::Mcp);
    }
    match tool.kind {
        ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Search => {
            Some(ClaimSource::FileSystem)
        }
        ToolKind::Execute => Some(ClaimSource::Shell),
        ToolKind::Fetch => Some(ClaimSource::WebScrape),
        ToolKind::Think | ToolKind::Other => None,
    }
}

/// The arguments as compact JSON, long texts cut, without any secret.
fn command(arguments: &Value, redactor: &Redactor) -> String {
    let shortened = match arguments {
        Value::Object(values) => Value::Object(
            values
                .iter()
                .take(64)
                .map(|(key, value)| (one_line(&redactor.text(key), 64), shorten(value, redactor)))
                .collect::<Map<_, _>>(),
        ),
        other => shorten(other, redactor),
    };
    one_line(&shortened.to_string(), COMMAND_CHARS_MAX)
}

fn shorten(value: &Value, redactor: &Redactor) -> Value {
    let text = match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    };
    let n_chars = text.chars().count();
    if n_chars <= VALUE_CHARS_MAX {
        let mut value = value.clone();
        redactor.clean_json(&mut value);
        return value;
    }
    let head = redactor.head(&text, VALUE_CHARS_MAX);
    Value::String(format!("{head}… ({n_chars} characters)"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use zeph_core::execution::SecretValue;
    use zeph_core::redact::Redactor;

    fn command(arguments: &serde_json::Value) -> String {
        super::command(arguments, &Redactor::default())
    }

    #[test]
    fn long_arguments_are_cut() {
        assert_eq!(
            command(&json!({"path": "a", "n": 1})),
            r#"{"n":1,"path":"a"}"#
        );
        let long = command(&json!({"content": "é".repeat(100_000), "path": "a"}));
        assert!(long.contains("… (100000 characters)"), "{long}");
        assert!(long.chars().count() < 600, "{long}");
        assert!(command(&json!("x\ny")).lines().count() == 1);
        assert!(command(&json!(vec!["x"; 100_000])).chars().count() <= 4_001);
    }
    #[test]
    fn no_argument_tells_a_secret() {
        let value = "s3cr3t-value";
        let redactor = Redactor::new(&[SecretValue {
            name: "T".to_owned(),
            value: value.to_owned(),
        }]);
        for arguments in [
            json!({ "command": format!("curl -H 'Authorization: {value}'") }),
            json!({ value: [value, { "deep": value }] }),
            json!({ "long": format!("{}{value}{}", "x".repeat(495), "y".repeat(9_000)) }),
            json!({ "long": vec![value; 1_000] }),
        ] {
            let recorded = super::command(&arguments, &redactor);
            assert!(!recorded.contains("s3cr"), "{recorded}");
        }
    }
}
