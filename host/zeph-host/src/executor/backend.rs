//! Executors as backends of a host: their tools are the host's, and their calls take the whole line. An executor runs what was
//! authorised, and nothing else of the call is its own to decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::Execution;
use zeph_core::failure::ToolFailure;
use zeph_core::output::{Content, Outcome, RawOutput, ToolOutput};
use zeph_core::policy::{AuthorizedCall, tool_key};
use zeph_core::tool::Tool;
use zeph_engine::{Cancel, Listener};

use super::{
    BadDefinition, CallEvent, CallOptions, DynExecutor, EventSink, ToolCall, ToolExecutor,
};
use crate::calls::{self, CallControl, CallReport};

/// How long an executor has to end a call that was cancelled or ran out of time; then the call is dropped.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// The executors of a host and their tools, which are those of the moment at which it was built.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backends {
    tools: Vec<Tool>,
    /// By the name of the tool.
    owners: Arc<BTreeMap<String, DynExecutor>>,
}

impl Backends {
    /// Takes the tools of every executor.
    ///
    /// Errors: [`BadDefinition`] for a tool that cannot be offered, or that two executors have.
    pub(crate) fn new(executors: Vec<DynExecutor>) -> Result<Self, BadDefinition> {
        let (mut tools, mut owners) = (Vec::new(), BTreeMap::new());
        for executor in executors {
            for definition in executor.definitions() {
                tools.push(definition.to_tool()?);
                if let Some(problem) = taken_by_form(&definition.name) {
                    return Err(bad(&definition.name, problem));
                }
                let owner = owners.insert(definition.name.clone(), executor.clone());
                if owner.is_some() {
                    return Err(bad(&definition.name, "two backends have it"));
                }
            }
        }
        let owners = Arc::new(owners);
        Ok(Self { tools, owners })
    }

    /// Compares their names with those of the tools of the host, as rules read names.
    ///
    /// Errors: [`BadDefinition`] for the first that is taken.
    pub(crate) fn beside<'a>(
        &self,
        own: impl Iterator<Item = &'a Tool>,
    ) -> Result<(), BadDefinition> {
        let mut taken: BTreeSet<String> = own.map(|tool| tool_key(tool.name.as_str())).collect();
        for tool in &self.tools {
            if !taken.insert(tool_key(tool.name.as_str())) {
                return Err(bad(tool.name.as_str(), "the host has a tool of this name"));
            }
        }
        Ok(())
    }

    /// Their tools.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// What a call of `tool` is made with; `None` when it is a tool of the host itself.
    pub(crate) fn work(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> Option<DelegatedWork> {
        let executor = self.owners.get(tool.name.as_str())?;
        Some(DelegatedWork {
            executor: executor.clone(),
            arguments: arguments.clone(),
            can_change: !tool.annotations.read_only,
        })
    }
}

fn bad(tool: &str, problem: &str) -> BadDefinition {
    BadDefinition {
        tool: tool.to_owned(),
        problem: problem.to_owned(),
    }
}

/// Why no tool of the program may have a name that looks like this.
fn taken_by_form(name: &str) -> Option<&'static str> {
    if name.contains("__") {
        return Some("names with `__` are those of plugins");
    }
    let is_servers = tool_key(name).starts_with("mcp_");
    is_servers.then_some("names that begin with `mcp_` are those of MCP servers")
}

/// What one call of an executor's tool is made with.
#[derive(Debug, Clone)]
pub(crate) struct DelegatedWork {
    executor: DynExecutor,
    /// As they were checked.
    arguments: Map<String, Value>,
    /// Whether it can change files of the host.
    pub(crate) can_change: bool,
}

/// Makes a call. Whatever the executor does, the call ends within `time` and [`END_PATIENCE`].
pub(crate) async fn call(
    call: AuthorizedCall<DelegatedWork>,
    time: Duration,
    control: CallControl,
) -> Execution {
    let work = call.work();
    let cancel = Cancel::new();
    let options = CallOptions {
        cancel: cancel.clone(),
        events: control.listener.map(sink),
        ask: None,
        result_chars: None,
    };
    let asked = ToolCall {
        caller_id: call.frame().principal.caller_id().map(str::to_owned),
        ..ToolCall::new(call.tool().name.as_str(), work.arguments.clone().into())
    };
    // In a task of its own: a panic of the executor is the end of this call alone.
    let mut task = JoinSet::new();
    let executor = work.executor.clone();
    task.spawn(async move { executor.call(asked, options).await });
    let why = tokio::select! {
        biased;
        ended = task.join_next() => return execution(ended),
        () = control.cancel.cancelled() => cancelled(),
        () = sleep(time) => out_of_time(time),
    };
    cancel.cancel();
    let ended = timeout(END_PATIENCE, task.join_next()).await;
    let partial = ended.ok().map(execution).and_then(|ended| {
        let given = ended.result.ok();
        given.or(ended.partial)
    });
    Execution {
        partial,
        ..Execution::failed(why)
    }
}

/// What came of the task of a call.
fn execution(ended: Option<Result<CallReport, tokio::task::JoinError>>) -> Execution {
    match ended {
        Some(Ok(report)) => of_report(report),
        Some(Err(error)) => Execution::failed(calls::crash(&error)),
        None => Execution::failed(ToolFailure::new(
            ErrorCategory::ServerError,
            ErrorPhase::Execution,
            "the host lost the call",
        )),
    }
}

fn of_report(report: CallReport) -> Execution {
    let CallReport {
        messages, output, ..
    } = report;
    let notes: Vec<String> = messages.into_iter().chain(output.notes.clone()).collect();
    let execution = match output.outcome.clone() {
        Outcome::Done => Execution::ended(Ok(raw(output))),
        Outcome::Failed(failure) if output.produced().is_empty() => Execution::failed(failure),
        Outcome::Failed(failure) => Execution::ended(Ok(raw(output))).failed_by(failure),
    };
    execution.with_notes(notes)
}

/// What an executor gave, as a tool would have given it.
fn raw(output: ToolOutput) -> RawOutput {
    let text = output.produced().to_owned();
    let text = (!text.is_empty()).then_some(Content::Text(text));
    RawOutput {
        content: text.into_iter().chain(output.attachments).collect(),
        structured: output.structured,
        locations: output.locations,
    }
}

/// Passes on what a listener can hear. What a backend prints is in its result.
fn sink(listener: Listener) -> EventSink {
    EventSink::new(move |event| {
        if let CallEvent::Progress(progress) = event {
            listener.report(progress.message, (progress.completed, progress.total));
        }
    })
}

fn cancelled() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Cancelled,
        ErrorPhase::Execution,
        "the call was cancelled",
    )
}

fn out_of_time(time: Duration) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Timeout,
        ErrorPhase::Execution,
        format!(
            "the call took longer than {} s (`limits.wall_clock_secs`)",
            time.as_secs_f64()
        ),
    )
}
