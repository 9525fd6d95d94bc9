//! Trust in tools while the host runs, and what their failures do to it.
//!
//! What is kept of trust is read once and held in memory; the begin of every call says with which state it was decided, and the store says
//! whether that is still the state ([`zeph_store::SingleUseRights`]). So a block or a reset holds from the next call on in every running
//! host, and no call asks the database for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeph_config::{Config, TrustLevel as ServerTrust};
use zeph_core::anomaly::{AnomalySettings, ToolOutcome};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::Execution;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::ServerName;
use zeph_core::policy::{CallTrust, TrustBlock, TrustLevel, TrustSubject};
use zeph_core::principal::Principal;
use zeph_core::tool::{Backend, Tool};
use zeph_plugins::event::{PluginEvent, Tell};
use zeph_plugins::refusal::quoted;
use zeph_plugins::set::PluginOrigin;
use zeph_store::{OutcomeNote, Store, StoreError, TrustAlert, TrustRecord, TrustState};

use crate::clock::now_ms;
use crate::session::Session;

/// Characters of a caller's name in the store. A longer one is cut: callers whose names begin alike share a window then.
const CALLER_CHARS_MAX: usize = 128;

/// Where trust is looked up, and failures are counted.
pub(crate) struct TrustRoom {
    store: Store,
    /// None when nothing is counted.
    settings: Option<AnomalySettings>,
    /// How far the configuration believes each MCP server.
    servers: BTreeMap<ServerName, ServerTrust>,
    /// How this program is called here, for the commands that messages name.
    program: String,
    tell: Option<Tell>,
    /// What was read last; none before the first call. Protects the exchange of the whole.
    known: Mutex<Option<Arc<TrustState>>>,
}

/// A tool whose execution is counted.
#[derive(Debug, Clone)]
pub(crate) struct WatchedTool {
    subject: TrustSubject,
    caller: String,
    /// Whether it is part of the program.
    is_own: bool,
    /// The state of trust that its call was decided with.
    known: Arc<TrustState>,
}

impl TrustRoom {
    pub(crate) fn new(config: &Config, store: &Store, program: &str, tell: Option<&Tell>) -> Self {
        let servers = config.mcp_servers.iter();
        Self {
            store: store.clone(),
            settings: config.anomaly,
            servers: servers
                .map(|(name, server)| (name.clone(), server.trust))
                .collect(),
            program: program.to_owned(),
            tell: tell.cloned(),
            known: Mutex::default(),
        }
    }

    /// What is known of trust: what was read last, or now if nothing was.
    ///
    /// Errors: `server_error` when it cannot be read: then nothing runs.
    pub(crate) async fn known(&self) -> Result<Arc<TrustState>, ToolFailure> {
        let known = self.lock().clone();
        match known {
            Some(known) => Ok(known),
            None => self.refreshed().await,
        }
    }

    /// Reads it anew.
    ///
    /// Errors: `server_error` when it cannot be read.
    pub(crate) async fn refreshed(&self) -> Result<Arc<TrustState>, ToolFailure> {
        let read = self.store.trust().await;
        let known = Arc::new(read.map_err(|error| unreadable(&error))?);
        *self.lock() = Some(Arc::clone(&known));
        Ok(known)
    }

    /// Forgets what was read: something has changed.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<TrustState>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a call of `tool` is trusted. `origin`: that of its plugin, if it is of one.
    pub(crate) fn of_call(
        &self,
        known: &TrustState,
        session: &Session,
        tool: &Tool,
        origin: Option<PluginOrigin>,
    ) -> CallTrust {
        let subject = TrustSubject::of_tool(tool);
        let (caller, whole) = (caller_key(session.principal()), subject.whole());
        let base = self.level(tool, origin);
        let set = |subject: &TrustSubject| {
            let mut records = known.records.iter();
            let set = records.find(|record| record.subject == *subject && record.caller.is_none());
            set.map(|record| record.level)
        };
        let of_owner = whole.as_ref().and_then(set);
        let provider = match (set(&subject), of_owner) {
            (Some(of_tool), Some(of_owner)) => of_tool.max(of_owner),
            (of_tool, of_owner) => of_tool.or(of_owner).unwrap_or(base),
        };
        let mut records = known.records.iter();
        let blocking = records.find(|record| {
            let is_meant = record.subject == subject || Some(&record.subject) == whole.as_ref();
            let is_callers = record.caller.as_ref().is_none_or(|own| *own == caller);
            record.level == TrustLevel::Blocked && is_meant && is_callers
        });
        CallTrust {
            caller: caller_level(session),
            provider,
            block: blocking.map(|record| self.block(record)),
        }
    }

    /// How far a tool is trusted by what it is.
    fn level(&self, tool: &Tool, origin: Option<PluginOrigin>) -> TrustLevel {
        match (&tool.backend, origin) {
            (Backend::Builtin | Backend::Shell, _) => TrustLevel::Trusted,
            (Backend::Wasm(_), Some(PluginOrigin::Program)) => TrustLevel::Trusted,
            (Backend::Wasm(_), Some(PluginOrigin::Folder) | None) => TrustLevel::Verified,
            (Backend::Mcp(tool), _) => match self.servers.get(&tool.server) {
                Some(ServerTrust::Trusted) => TrustLevel::Trusted,
                Some(ServerTrust::Untrusted | ServerTrust::Sandboxed) | None => {
                    TrustLevel::Quarantined
                }
            },
        }
    }

    fn block(&self, record: &TrustRecord) -> TrustBlock {
        let (rule, reason) = match record.is_automatic {
            true => ("tools.anomaly", record.reason.clone()),
            false => (
                "zeph-host trust set",
                "the operator has blocked it".to_owned(),
            ),
        };
        TrustBlock {
            rule: rule.to_owned(),
            subject: record.subject.to_string(),
            reason,
            reset: self.reset(&record.subject),
        }
    }

    /// The command that unblocks.
    fn reset(&self, subject: &TrustSubject) -> String {
        let subject = one_line(&subject.to_string(), 600);
        format!("{} trust reset {}", self.program, quoted(&subject))
    }

    /// The tool of a call that is about to run, if its executions are counted. The host's own tools are not: whatever they fail at is their
    /// answer.
    pub(crate) fn watched(
        &self,
        known: &Arc<TrustState>,
        session: &Session,
        tool: &Tool,
        origin: Option<PluginOrigin>,
    ) -> Option<WatchedTool> {
        let is_counted = matches!(tool.backend, Backend::Wasm(_) | Backend::Mcp(_));
        (is_counted && self.settings.is_some()).then(|| WatchedTool {
            subject: TrustSubject::of_tool(tool),
            caller: caller_key(session.principal()),
            is_own: origin == Some(PluginOrigin::Program),
            known: Arc::clone(known),
        })
    }

    /// Counts an execution; says what the caller should know of it. A success is noted only where something has failed before.
    pub(crate) async fn ended(&self, tool: WatchedTool, execution: &Execution) -> Vec<String> {
        let result = execution.result.as_ref().map(drop);
        let outcome = ToolOutcome::of(result, tool.is_own);
        let (Some(settings), Some(outcome)) = (self.settings, outcome) else {
            return Vec::new();
        };
        let is_cached = execution.facts.cached.is_some();
        let has_failed = outcome != ToolOutcome::Done;
        if is_cached || !(has_failed || tool.has_window()) {
            return Vec::new();
        }
        let note = OutcomeNote {
            subject: tool.subject,
            caller: tool.caller,
            outcome,
            settings,
            at_ms: now_ms(),
        };
        let noted = match has_failed {
            true => self.store.note_outcome(note).await,
            false => self
                .store
                .note_outcome_soon(note)
                .await
                .map(|()| Vec::new()),
        };
        let alerts = noted.unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the outcome of a call cannot be counted");
            Vec::new()
        });
        alerts.iter().map(|alert| self.alert(alert)).collect()
    }

    /// Tells of an alert, in the log and at the prompt; gives back what the caller is told.
    fn alert(&self, alert: &TrustAlert) -> String {
        let TrustAlert {
            subject,
            rate,
            is_blocked,
        } = alert;
        let shown = one_line(&subject.to_string(), 200);
        let (n_failed, n_last) = (rate.n_failed, rate.n_last);
        let percent = n_failed * 100 / n_last.max(1);
        tracing::warn!(
            tool = shown,
            severity = "critical",
            is_blocked,
            "error rate {percent}% ({n_failed}/{n_last}) exceeds critical threshold"
        );
        let told = match is_blocked {
            true => format!(
                "`{shown}` is blocked from now on (tools.anomaly), because {rate}; the operator can unblock it with `{}`",
                self.reset(subject)
            ),
            false => format!(
                "{rate} of `{shown}` (tools.anomaly); the operator can block it with `{} trust set {} blocked`",
                self.program,
                quoted(&one_line(&subject.to_string(), 600))
            ),
        };
        if let Some(tell) = &self.tell {
            let problem = told.clone();
            tell(&PluginEvent::Anomaly { problem });
        }
        told
    }
}

impl WatchedTool {
    /// Whether something has failed in its window or in that of its owner.
    fn has_window(&self) -> bool {
        let has = |subject: TrustSubject| {
            let key = (subject, self.caller.clone());
            self.known.windows.contains(&key)
        };
        has(self.subject.clone()) || self.subject.whole().is_some_and(has)
    }
}

impl std::fmt::Debug for TrustRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrustRoom")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// By which name windows and blocks know a caller.
fn caller_key(principal: &Principal) -> String {
    let kind = match principal {
        Principal::Operator(_) => "operator",
        Principal::Program { .. } => "program",
        Principal::Model { .. } => "model",
    };
    match principal.caller_id() {
        Some(id) => format!("{kind}:{}", one_line(id, CALLER_CHARS_MAX)),
        None => kind.to_owned(),
    }
}

fn caller_level(session: &Session) -> TrustLevel {
    match session.principal() {
        Principal::Operator(_) => TrustLevel::Trusted,
        Principal::Program { .. } | Principal::Model { .. } if session.is_anonymous() => {
            TrustLevel::Quarantined
        }
        Principal::Program { .. } | Principal::Model { .. } => TrustLevel::Verified,
    }
}

fn unreadable(error: &StoreError) -> ToolFailure {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "a call was not made: the trust in tools cannot be read"
    );
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Setup,
        "the call was not made: the host cannot read how far it trusts the tool",
    )
}
