//! The calls of one door: what a door gives with a call and gets from it, how many run at once, who is told of each end, and how they
//! are cancelled. Every door schedules its calls here.
//!
//! A call that runs is never dropped: it is cancelled and its end awaited, so that its audit row is completed.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use uuid::Uuid;
use zeph_agent::budget::CallMeter;
use zeph_core::call::ToolRequest;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::CallId;
use zeph_core::output::{Outcome, ToolOutput};
use zeph_core::server::ServerTool;
use zeph_engine::{Cancel, Listener};
use zeph_plugins::refusal::GrantRequest;
use zeph_shell::run::OutputListener;
use zeph_shell::tools::BASH;
use zeph_store::WorkHold;

use crate::approval::ApprovalPrompt;
use crate::executor::PendingReport;
use crate::host::Host;
use crate::questions::SealedInquiry;
use crate::serve::acp::files::EditorFiles;
use crate::serve::acp::terminal::EditorTerminal;
use crate::session::Session;
use crate::telemetry::RemoteRequest;

/// A door's hold on a running call.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallControl {
    /// Ends the call at once.
    pub(crate) cancel: Cancel,
    /// Hears how it is getting on.
    pub(crate) listener: Option<Listener>,
    /// Hears what a command prints while it runs.
    pub(crate) on_output: Option<OutputListener>,
    /// Reaches a person who can agree to it; without one a call that asks is refused.
    pub(crate) ask: Option<ApprovalPrompt>,
    /// Characters of text that it would take at once, if that is more than the configured threshold.
    pub(crate) result_chars: Option<usize>,
    /// The batch it belongs to, which counts as one call; a call without one counts itself.
    pub(crate) batch: Option<Uuid>,
    /// What it is made for, if another host may take that over.
    pub(crate) hold: Option<WorkHold>,
    /// Why its door does not let it run: it is recorded, and ends with this.
    pub(crate) refused: Option<ToolFailure>,
    /// What earlier outputs of its turn held, as JSON; the line says so.
    pub(crate) turn_state: Option<Arc<[u8]>>,
    /// The request of a client of MCP that it is made for.
    pub(crate) remote: Option<RemoteRequest>,
    /// What the host may ask models for it, where the session has a budget.
    pub(crate) meter: Option<CallMeter>,
    /// What an editor has for it.
    pub(crate) editor: EditorParts,
    /// The tool of a server that it has to be a call of, whatever its name stands for by now.
    pub(crate) only: Option<ServerTool>,
}

/// What the editor behind a call offers.
#[derive(Debug, Clone, Default)]
pub(crate) struct EditorParts {
    /// A terminal that shows a command while it runs.
    pub(crate) terminal: Option<Arc<EditorTerminal>>,
    /// Its files.
    pub(crate) files: Option<Arc<EditorFiles>>,
}

/// What became of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallReport {
    /// The call's identity, as in the audit.
    pub id: CallId,
    /// What ended in the background since it was last told: messages for the model, to be given to it before this output.
    pub messages: Vec<String>,
    /// What the caller gets.
    pub output: ToolOutput,
    /// From request to output.
    pub duration: Duration,
    /// What a person could grant so that the call would get further.
    pub request: Option<GrantRequest>,
    /// What its tool asked the user, when that is why it ended: the same call can be made again with the answers.
    pub asked: Option<SealedInquiry>,
}

impl CallReport {
    /// Of a call that succeeded with `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(ToolOutput {
            outcome: Outcome::Done,
            text: text.into(),
            structured: None,
            attachments: Vec::new(),
            locations: Vec::new(),
            notes: Vec::new(),
            is_cut: false,
            overflow: None,
        })
    }

    /// Of a call in which the host itself failed.
    pub(crate) fn crashed(failure: ToolFailure) -> Self {
        Self::failed(failure)
    }

    /// Of a call that failed.
    pub fn failed(failure: ToolFailure) -> Self {
        Self::of(ToolOutput::failed(failure))
    }

    /// Of a call that gave `output`, and of which nothing else is known.
    pub fn of(output: ToolOutput) -> Self {
        Self {
            id: CallId::new(),
            messages: Vec::new(),
            output,
            duration: Duration::ZERO,
            request: None,
            asked: None,
        }
    }

    /// Why the call did not succeed; `None` when it did.
    pub fn failure(&self) -> Option<&ToolFailure> {
        match &self.output.outcome {
            Outcome::Done => None,
            Outcome::Failed(failure) => Some(failure),
        }
    }

    /// The run that a call of `tool` began in the background.
    pub(crate) fn begun_run(&self, tool: &str) -> Option<Uuid> {
        let is_begin = tool == BASH && self.output.outcome == Outcome::Done;
        let structured = self.output.structured.as_ref().filter(|_| is_begin)?;
        structured.get("run_id")?.as_str()?.parse().ok()
    }

    /// All that a model is to read of it: what ended in the background meanwhile, then the result.
    pub fn for_model(&self) -> String {
        let texts = self.messages.iter().chain([&self.output.text]);
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        texts.join("\n\n")
    }
}

/// The calls of a door that run. `K` is what the door knows of each.
#[derive(Debug)]
pub(crate) struct RunningCalls<K> {
    host: Host,
    jobs: NonZeroUsize,
    tasks: JoinSet<TaskEnd>,
    running: HashMap<Id, CallHandle<K>>,
}

#[derive(Debug)]
struct CallHandle<K> {
    key: K,
    cancel: Cancel,
}

/// What a task came to.
#[derive(Debug)]
enum TaskEnd {
    Called(Box<CallReport>),
    Told(Vec<String>),
}

/// Something that ended.
#[derive(Debug)]
pub(crate) enum CallsEvent<K> {
    /// A call, with its report; a failure when the host failed while it made the call.
    Call {
        key: K,
        report: Result<Box<CallReport>, ToolFailure>,
    },
    /// What ended in the background was asked for: messages for the model.
    Messages(Vec<String>),
}

impl<K> RunningCalls<K> {
    /// No call yet, and at most `jobs` at a time.
    pub(crate) fn new(host: &Host, jobs: NonZeroUsize) -> Self {
        Self {
            host: host.clone(),
            jobs,
            tasks: JoinSet::new(),
            running: HashMap::new(),
        }
    }

    /// Whether another call may be started.
    pub(crate) fn has_free_job(&self) -> bool {
        self.tasks.len() < self.jobs.get()
    }

    /// Whether nothing runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts a call. The door looks at [`has_free_job`](Self::has_free_job) first.
    pub(crate) fn start(
        &mut self,
        session: &Session,
        request: ToolRequest,
        control: CallControl,
        key: K,
    ) {
        let cancel = control.cancel.clone();
        // Of this moment: another turn may have begun when the task does.
        let asked = session.asks(request);
        let (host, session) = (self.host.clone(), session.clone());
        let task = self.tasks.spawn(async move {
            TaskEnd::Called(Box::new(host.call_of(&session, asked, control).await))
        });
        self.running.insert(task.id(), CallHandle { key, cancel });
    }

    /// Asks what ended in the background of `session`. It takes a job like a call.
    pub(crate) fn ask_completed(&mut self, session: &Session) {
        let (host, session) = (self.host.clone(), session.clone());
        self.tasks
            .spawn(async move { TaskEnd::Told(host.take_completed(&session).await) });
    }

    /// Ends what runs in the background of `session`. It takes a job like a call.
    pub(crate) fn end_runs(&mut self, session: &Session) {
        let (host, session) = (self.host.clone(), session.clone());
        self.tasks
            .spawn(async move { TaskEnd::Told(host.end_runs(&session).await) });
    }

    /// Cancels the running calls that `is_meant` picks. Returns how many that are.
    pub(crate) fn cancel(&self, is_meant: impl Fn(&K) -> bool) -> usize {
        let meant = self
            .running
            .values()
            .filter(|running| is_meant(&running.key));
        meant.map(|running| running.cancel.cancel()).count()
    }

    /// Cancels every running call. Each still ends, and is told.
    pub(crate) fn cancel_all(&self) {
        self.cancel(|_| true);
    }

    /// Waits for one to end; `None` when nothing runs. Dropping the future loses nothing.
    pub(crate) async fn one_end(&mut self) -> Option<CallsEvent<K>> {
        loop {
            let (id, report) = match self.tasks.join_next_with_id().await? {
                Ok((_, TaskEnd::Told(messages))) => return Some(CallsEvent::Messages(messages)),
                Ok((id, TaskEnd::Called(report))) => (id, Ok(report)),
                Err(error) => (error.id(), Err(crash(&error))),
            };
            if let Some(CallHandle { key, .. }) = self.running.remove(&id) {
                return Some(CallsEvent::Call { key, report });
            }
        }
    }
}

/// A call that is brought to its end whether or not it is waited for.
pub(crate) struct RunningCall {
    host: Host,
    /// Ends this call alone.
    cancel: Cancel,
    has_begun: bool,
    /// None once it is over.
    call: Option<PendingReport<'static>>,
}

impl RunningCall {
    /// `call` of `host`, which `cancel` ends.
    pub(crate) fn new(
        host: &Host,
        cancel: Cancel,
        call: impl Future<Output = CallReport> + Send + 'static,
    ) -> Self {
        Self {
            host: host.clone(),
            cancel,
            has_begun: false,
            call: Some(Box::pin(call)),
        }
    }
}

impl Future for RunningCall {
    type Output = CallReport;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallReport> {
        self.has_begun = true;
        let Some(call) = self.call.as_mut() else {
            return Poll::Ready(CallReport::failed(failed("the call is over")));
        };
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(report)) => {
                self.call = None;
                Poll::Ready(report)
            }
            Err(panic) => {
                self.call = None;
                Poll::Ready(crashed(panic.as_ref()))
            }
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(call) = self.call.take().filter(|_| self.has_begun) {
            self.cancel.cancel();
            self.host.finish_in_background(call);
        }
    }
}

impl fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunningCall")
    }
}

/// What a call fails with whose task ended without a report.
pub(crate) fn crash(error: &JoinError) -> ToolFailure {
    tracing::error!(%error, "a call panicked in the host");
    failed("the host failed while it made the call")
}

fn crashed(panic: &(dyn Any + Send)) -> CallReport {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text, "a call panicked in the host");
    CallReport::failed(failed("the host failed while it made the call"))
}

fn failed(message: &str) -> ToolFailure {
    ToolFailure::new(ErrorCategory::ServerError, ErrorPhase::Execution, message)
}
