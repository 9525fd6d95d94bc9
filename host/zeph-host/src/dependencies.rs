//! Which tools come before which (`tools.dependencies`): what a call still needs, in its conversation.
//!
//! A call is held to the rules at whichever door it comes in. Calls that were asked for before it and still run are awaited when one of
//! them may be what it needs, so that two calls made at once are decided in the order in which they were made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use zeph_config::DependencySettings;
use zeph_core::catalog::Catalog;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::ConversationId;
use zeph_core::policy::{Refusal, TraceStep, Verdict, tool_key};
use zeph_core::tool::Tool;
use zeph_engine::Cancel;
use zeph_store::{AuditFilter, AuditRecord, AuditResult, Store};

/// The shell as the audit names it.
const SHELL: &str = "bash";

/// The check in traces.
const CHECK: &str = "dependencies";

/// Calls of a conversation that are looked at for what has succeeded in it.
const RECORDS_MAX: u32 = 10_000;

/// The rules.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    /// By the key of the tool that needs something. Empty when nothing does.
    rules: BTreeMap<String, Needs>,
    boost_per_dep: f64,
    max_total_boost: f64,
}

#[derive(Debug, Clone)]
struct Needs {
    /// The tool as the operator wrote it.
    written: String,
    requires: Vec<String>,
    prefers: Vec<String>,
}

/// How far a conversation has got: the tools that have succeeded in it, and the calls that run. Clones are handles to one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<ProgressRoom>);

#[derive(Debug, Default)]
struct ProgressRoom {
    /// Held for moments only.
    state: Mutex<ProgressState>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// Keys of the tools that have succeeded.
    done: BTreeSet<String>,
    /// Keys of the tools that began something in the background.
    begun: BTreeSet<String>,
    /// The calls that run, in the order in which they were asked for, with the names they were asked for by.
    running: BTreeMap<u64, String>,
    n_asked: u64,
    /// Whether earlier processes may have made calls in this conversation that were not looked up yet.
    has_past: bool,
}

/// A call that was asked for and has not ended; it has when this is dropped.
#[derive(Debug)]
pub(crate) struct AskedCall {
    progress: Progress,
    number: u64,
}

impl Progress {
    /// Of a conversation that may have begun before.
    pub(crate) fn of(is_old: bool) -> Self {
        let progress = Self::default();
        progress.lock().has_past = is_old;
        progress
    }

    /// Has what other processes did looked up once more.
    pub(crate) fn look_back(&self) {
        self.lock().has_past = true;
    }

    /// Notes that a call of the tool called `name` is asked for. The order of these calls is that of the caller.
    pub(crate) fn ask(&self, name: &str) -> AskedCall {
        let mut state = self.lock();
        state.n_asked += 1;
        let number = state.n_asked;
        state.running.insert(number, name.to_owned());
        AskedCall {
            progress: self.clone(),
            number,
        }
    }

    /// Notes that what a call began in the background has ended well.
    pub(crate) fn ended_well(&self) {
        let mut state = self.lock();
        let begun = state.begun.clone();
        state.done.extend(begun);
    }

    /// Forgets what has succeeded.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        state.done.clear();
        state.begun.clear();
        state.has_past = false;
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.0.changed.send_modify(|version| *version += 1);
    }
}

impl AskedCall {
    /// Notes that the call succeeded, as one of `tool`.
    pub(crate) fn succeeded(self, tool: &Tool) {
        self.progress.lock().done.extend(keys_of(tool));
    }

    /// Notes that the call, one of `tool`, began something in the background: whether that succeeds is not known yet.
    pub(crate) fn began(self, tool: &Tool) {
        self.progress.lock().begun.extend(keys_of(tool));
    }
}

impl Drop for AskedCall {
    fn drop(&mut self) {
        self.progress.lock().running.remove(&self.number);
        self.progress.tell();
    }
}

impl Dependencies {
    pub(crate) fn new(settings: Option<&DependencySettings>) -> Self {
        let Some(settings) = settings else {
            return Self::default();
        };
        let rules = settings.rules.iter().map(|(tool, rule)| {
            let needs = Needs {
                written: tool.clone(),
                requires: rule.requires.clone(),
                prefers: rule.prefers.clone(),
            };
            (tool_key(tool), needs)
        });
        Self {
            rules: rules.collect(),
            boost_per_dep: settings.boost_per_dep,
            max_total_boost: settings.max_total_boost,
        }
    }

    /// Whether any tool needs anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The tools that have to succeed before `tool` may be called, by the names they are offered by.
    pub(crate) fn unmet(&self, progress: &Progress, tool: &Tool, catalog: &Catalog) -> Vec<String> {
        self.missing(&progress.lock(), tool, catalog)
    }

    /// What the similarity of `tool` is raised by.
    pub(crate) fn boost(&self, progress: &Progress, tool: &Tool, catalog: &Catalog) -> f64 {
        let state = progress.lock();
        let preferred = self.of(tool).flat_map(|needs| &needs.prefers);
        let met = preferred.filter(|name| is_done(&state, &keys(catalog, name)));
        let boost: f64 = met.map(|_| self.boost_per_dep).sum();
        boost.min(self.max_total_boost)
    }

    /// Reads what succeeded in `conversation` before this process.
    pub(crate) async fn recall(
        &self,
        progress: &Progress,
        (store, conversation): (&Store, ConversationId),
        catalog: &Catalog,
    ) {
        if self.is_empty() || !progress.lock().has_past {
            return;
        }
        let filter = AuditFilter {
            conversation: Some(conversation),
            ..AuditFilter::newest(RECORDS_MAX)
        };
        // What cannot be read has not succeeded: the calls are made once more.
        let records = store.audit_query(filter).await.unwrap_or_default();
        let ended = records.into_iter().filter(has_succeeded);
        let done: BTreeSet<String> = ended
            .flat_map(|record| keys(catalog, &record.begin.tool))
            .collect();
        let mut state = progress.lock();
        if std::mem::take(&mut state.has_past) {
            state.done.extend(done);
        }
    }

    /// Why a call of `tool` may not run now, if it may not. Earlier calls that may be what it needs are awaited.
    pub(crate) async fn refusal(
        &self,
        asked: &AskedCall,
        tool: &Tool,
        catalog: &Catalog,
        cancel: &Cancel,
    ) -> Option<Refusal> {
        let progress = &asked.progress;
        let mut changed = progress.0.changed.subscribe();
        let unmet = loop {
            changed.mark_unchanged();
            let (unmet, is_awaited) = {
                let state = progress.lock();
                let unmet = self.missing(&state, tool, catalog);
                let is_awaited = may_come(&state, asked.number, &unmet, catalog);
                (unmet, is_awaited)
            };
            if !is_awaited || cancel.is_cancelled() {
                break unmet;
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = cancel.cancelled() => {}
            }
        };
        self.refused(tool, &unmet, catalog)
    }

    /// The refusal of a call that needs `unmet` first; none when it needs nothing.
    pub(crate) fn refused(
        &self,
        tool: &Tool,
        unmet: &[String],
        catalog: &Catalog,
    ) -> Option<Refusal> {
        if unmet.is_empty() {
            return None;
        }
        let needs = self.of(tool).next()?;
        let rule = format!("tools.dependencies.rules.{}", needs.written);
        let named: Vec<String> = unmet.iter().map(|name| format!("`{name}`")).collect();
        let named = named.join(" and ");
        let reason = format!(
            "`{}` needs a successful call of {named} before it in this conversation (`{rule}.requires`)",
            tool.name
        );
        let unknown = unmet.iter().find(|name| catalog.resolve(name).is_err());
        let advice = match unknown {
            Some(name) => format!(
                "there is no tool `{name}`, so only the operator can change this, in the configuration"
            ),
            None => format!("call {named} first, then make this call again"),
        };
        let step = TraceStep {
            rule: Some(rule.clone()),
            ..TraceStep::new(CHECK, Verdict::Deny, reason.clone())
        };
        Some(Refusal {
            failure: ToolFailure::new(
                ErrorCategory::PolicyBlocked,
                ErrorPhase::Setup,
                format!("{reason}; {advice}"),
            ),
            rule,
            reason,
            allow: Vec::new(),
            can_be_approved: false,
            trace: vec![step],
        })
    }

    fn missing(&self, state: &ProgressState, tool: &Tool, catalog: &Catalog) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        for name in self.of(tool).flat_map(|needs| &needs.requires) {
            if is_done(state, &keys(catalog, name)) {
                continue;
            }
            let offered = catalog.resolve(name).map(|tool| tool.name.to_string());
            let offered = offered.unwrap_or_else(|_| name.clone());
            if !missing.contains(&offered) {
                missing.push(offered);
            }
        }
        missing
    }

    /// The rules of a tool: under the name it is offered by, and under its full one.
    fn of(&self, tool: &Tool) -> impl Iterator<Item = &Needs> {
        keys_of(tool)
            .into_iter()
            .filter_map(|key| self.rules.get(&key))
    }
}

/// Whether a call that was asked for before the one with this number may still meet one of `unmet`.
fn may_come(state: &ProgressState, number: u64, unmet: &[String], catalog: &Catalog) -> bool {
    let wanted: BTreeSet<String> = unmet.iter().flat_map(|name| keys(catalog, name)).collect();
    let mut earlier = state.running.range(..number);
    earlier.any(|(_, name)| keys(catalog, name).iter().any(|key| wanted.contains(key)))
}

/// Whether a call ended well with all that it began. A command in the background ends in a record of its own, which says what stood around it.
fn has_succeeded(record: &AuditRecord) -> bool {
    let Some(ending) = &record.ending else {
        return false;
    };
    let is_begun_only = record.begin.tool == SHELL && ending.execution_env.is_none();
    ending.result == AuditResult::Success && !is_begun_only
}

fn is_done(state: &ProgressState, keys: &[String]) -> bool {
    keys.iter().any(|key| state.done.contains(key))
}

/// The keys of the tool that is called `name`, or of the name alone when there is no such tool.
fn keys(catalog: &Catalog, name: &str) -> Vec<String> {
    match catalog.resolve(name) {
        Ok(tool) => keys_of(tool),
        Err(_) => vec![tool_key(name)],
    }
}

/// The keys that rules know a tool by, each once.
pub(crate) fn keys_of(tool: &Tool) -> Vec<String> {
    let mut keys = vec![
        tool_key(tool.name.as_str()),
        tool_key(&tool.qualified_name()),
    ];
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests;
