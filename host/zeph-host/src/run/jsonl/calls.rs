//! The calls of a JSON-lines door: those that wait for a free job, in the order of their lines, and the answers that are not written yet.

use std::collections::VecDeque;

use zeph_core::call::ToolRequest;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;

use super::JsonLinesOptions;
use super::answer::{self, RequestOrigin, Status};
use super::input::InputItem;
use super::request::{CallRequest, LineRequest, RequestId, StreamDefaults, TurnOf};
use crate::calls::{self, CallsEvent};
use crate::calls::{CallControl, CallReport};
use crate::host::Host;
use crate::session::Session;

/// Most requests that are read and wait for a free job. Some have to be read ahead: a cancel may stand behind them.
const WAITING_MAX: usize = 64;

/// Most answers kept for a slow consumer before no further call is ended or read. Each may be as long as a result.
const ANSWERS_MAX: usize = 8;

/// How many requests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) cancelled: u64,
    pub(crate) invalid: u64,
}

/// The state of the door.
#[derive(Debug)]
pub(super) struct JsonLinesCalls {
    session: Session,
    options: JsonLinesOptions,
    waiting: VecDeque<QueuedLine>,
    waiting_bytes: usize,
    running: calls::RunningCalls<RunningLine>,
    answers: VecDeque<String>,
    is_abandoned: bool,
    /// Whether what runs in the background was ended.
    has_ended_runs: bool,
    /// The turn that was named last.
    turn: Option<TurnOf>,
    /// Who makes the calls of lines that name nobody.
    caller_id: Option<String>,
    pub(super) tally: Tally,
}

#[derive(Debug)]
struct QueuedLine {
    work: QueuedWork,
    line: u64,
    n_bytes: usize,
}

/// What waits for its turn, in the order of the lines.
#[derive(Debug)]
enum QueuedWork {
    Call(CallRequest),
    Begin(StreamDefaults),
}

#[derive(Debug)]
struct RunningLine {
    origin: RequestOrigin,
    notes: Vec<String>,
}

impl JsonLinesCalls {
    pub(super) fn new(host: &Host, session: &Session, options: JsonLinesOptions) -> Self {
        session.expects_user();
        Self {
            running: calls::RunningCalls::new(host, options.jobs),
            session: session.clone(),
            options,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            answers: VecDeque::new(),
            is_abandoned: false,
            has_ended_runs: false,
            turn: None,
            caller_id: None,
            tally: Tally::default(),
        }
    }

    /// Whether nothing waits, runs or is unwritten.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.running.is_idle() && self.answers.is_empty()
    }

    /// Ends what runs in the background once no call is left, and tells each end. For an input that has ended.
    pub(super) fn end_runs(&mut self) {
        let is_last = self.waiting.is_empty() && self.running.is_idle();
        if is_last && !self.has_ended_runs {
            self.has_ended_runs = true;
            self.running.end_runs(&self.session);
        }
    }

    /// Whether another line may be read.
    pub(super) fn can_take(&self) -> bool {
        self.waiting.len() < WAITING_MAX
            && self.waiting_bytes < self.options.request_bytes_max
            && self.answers.len() < ANSWERS_MAX
    }

    /// Whether a call runs whose answer there is room for.
    pub(super) fn can_end(&self) -> bool {
        !self.running.is_idle() && self.answers.len() < ANSWERS_MAX
    }

    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    pub(super) fn next_answer(&mut self) -> Option<String> {
        self.answers.pop_front()
    }

    /// Takes one line of input.
    pub(super) fn take(&mut self, item: InputItem) {
        match item.request {
            Ok(LineRequest::Call(call)) => {
                self.wait(QueuedWork::Call(call), item.line, item.n_bytes);
            }
            Ok(LineRequest::Begin(begun)) => {
                self.wait(QueuedWork::Begin(begun), item.line, item.n_bytes);
            }
            Ok(LineRequest::Cancel(id)) => self.cancel(&id),
            Err(invalid) => {
                let origin = RequestOrigin {
                    id: invalid.id,
                    line: Some(item.line),
                };
                let failure = ToolFailure::new(
                    ErrorCategory::InvalidParameters,
                    ErrorPhase::ParamHandling,
                    invalid.message,
                );
                self.answer_without_call(&origin, Status::Invalid, &failure);
            }
        }
    }

    fn wait(&mut self, work: QueuedWork, line: u64, n_bytes: usize) {
        self.waiting_bytes += n_bytes;
        self.waiting.push_back(QueuedLine {
            work,
            line,
            n_bytes,
        });
    }

    /// Starts what waits, as far as jobs are free.
    pub(super) fn start_waiting(&mut self) {
        while self.running.has_free_job() {
            let Some(waiting) = self.waiting.pop_front() else {
                return;
            };
            self.waiting_bytes -= waiting.n_bytes;
            match waiting.work {
                QueuedWork::Begin(begun) => self.begin(begun),
                QueuedWork::Call(call) => self.start(call, waiting.line),
            }
        }
    }

    /// Begins the turn a line names, unless it goes on already.
    fn begin_turn(&mut self, turn: TurnOf) {
        if self.turn.as_ref() != Some(&turn) {
            self.session
                .begin_turn(turn.goal_id.clone(), turn.skill_name.clone());
            self.turn = Some(turn);
        }
    }

    /// Does what a line without a call asks for.
    fn begin(&mut self, begun: StreamDefaults) {
        self.caller_id = begun.caller_id.or(self.caller_id.take());
        if let Some(text) = begun.user {
            self.session.hear_user(&text);
        }
        if let Some(turn) = begun.turn {
            self.tell_completed(turn);
        }
    }

    /// The session as the caller of a line sees it.
    fn session_of(&self, caller_id: Option<&str>) -> Session {
        match caller_id.or(self.caller_id.as_deref()) {
            Some(caller_id) => self.session.acting_for(caller_id),
            None => self.session.clone(),
        }
    }

    /// Begins a turn that no call begins: what ended in the background is told at once.
    fn tell_completed(&mut self, turn: TurnOf) {
        self.begin_turn(turn);
        self.running.ask_completed(&self.session);
    }

    fn start(&mut self, call: CallRequest, line: u64) {
        let origin = origin(&call, line);
        if let Some(turn) = call.turn {
            self.begin_turn(turn);
        }
        let request = ToolRequest {
            tool: call.tool,
            arguments: call.arguments,
            answers: call.answers,
        };
        let control = CallControl {
            ask: self.options.ask.clone(),
            ..CallControl::default()
        };
        let session = self.session_of(call.caller_id.as_deref());
        let notes = call.notes;
        let running = RunningLine { origin, notes };
        self.running.start(&session, request, control, running);
    }

    /// Waits for one running call to end and answers it. Dropping the future loses nothing.
    pub(super) async fn one_end(&mut self) {
        match self.running.one_end().await {
            None => {}
            Some(CallsEvent::Messages(messages)) => self.tell(&messages),
            Some(CallsEvent::Call {
                key,
                report: Ok(report),
            }) => self.answer(&key, &report),
            Some(CallsEvent::Call {
                key,
                report: Err(failure),
            }) => self.answer_without_call(&key.origin, Status::Failed, &failure),
        }
    }

    /// Cancels every call with this id, waiting or running.
    fn cancel(&mut self, id: &RequestId) {
        let is_meant =
            |other: &Option<RequestId>| other.as_ref().is_some_and(|other| other.is_same(id));
        let mut n_cancelled = self.running.cancel(|running| is_meant(&running.origin.id));
        let (meant, kept): (VecDeque<_>, _) =
            std::mem::take(&mut self.waiting).into_iter().partition(
                |waiting| matches!(&waiting.work, QueuedWork::Call(call) if is_meant(&call.id)),
            );
        self.waiting = kept;
        n_cancelled += meant.len();
        self.answer_cancelled(meant);
        if n_cancelled == 0 {
            // It may have ended a moment ago: an answer of its own would be a second one for that id.
            tracing::info!(id = id.raw().get(), "nothing runs with the id to cancel");
        }
    }

    /// Cancels everything. What runs is answered when it has ended.
    pub(super) fn cancel_all(&mut self) {
        self.running.cancel_all();
        let waiting = std::mem::take(&mut self.waiting);
        self.answer_cancelled(waiting);
    }

    /// Cancels everything and answers nothing any more.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
        self.cancel_all();
        self.answers.clear();
    }

    fn answer_cancelled(&mut self, waiting: VecDeque<QueuedLine>) {
        for waiting in waiting {
            self.waiting_bytes -= waiting.n_bytes;
            let failure = ToolFailure::new(
                ErrorCategory::Cancelled,
                ErrorPhase::Setup,
                "the call was cancelled before it began",
            );
            if let QueuedWork::Call(call) = &waiting.work {
                self.answer_without_call(&origin(call, waiting.line), Status::Cancelled, &failure);
            }
        }
    }

    fn tell(&mut self, messages: &[String]) {
        if !self.is_abandoned {
            let lines = messages.iter().map(|message| answer::of_message(message));
            self.answers.extend(lines);
        }
    }

    fn answer(&mut self, running: &RunningLine, report: &CallReport) {
        self.tell(&report.messages);
        let status = Status::of(&report.output.outcome);
        let line = answer::of_report(&running.origin, report, &running.notes);
        self.push(status, line);
    }

    fn answer_without_call(
        &mut self,
        origin: &RequestOrigin,
        status: Status,
        failure: &ToolFailure,
    ) {
        let line = answer::of_failure(origin, status, failure);
        self.push(status, line);
    }

    fn push(&mut self, status: Status, line: String) {
        self.tally.count(status);
        if !self.is_abandoned {
            self.answers.push_back(line);
        }
    }
}

/// A call without an id is known by its line.
fn origin(call: &CallRequest, line: u64) -> RequestOrigin {
    RequestOrigin {
        id: call.id.clone(),
        line: call.id.is_none().then_some(line),
    }
}

impl Tally {
    fn count(&mut self, status: Status) {
        let counter = match status {
            Status::Ok => &mut self.ok,
            Status::Failed => &mut self.failed,
            Status::Refused => &mut self.refused,
            Status::Cancelled => &mut self.cancelled,
            Status::Invalid => &mut self.invalid,
        };
        *counter += 1;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = [
            (self.ok, "ok"),
            (self.failed, "failed"),
            (self.refused, "refused"),
            (self.cancelled, "cancelled"),
            (self.invalid, "invalid"),
        ];
        let total: u64 = counts.iter().map(|(n, _)| n).sum();
        write!(
            f,
            "{total} {}",
            if total == 1 { "request" } else { "requests" }
        )?;
        let mut separator = ": ";
        for (n, label) in counts.into_iter().filter(|(n, _)| *n > 0) {
            write!(f, "{separator}{n} {label}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
