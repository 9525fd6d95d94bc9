//! The calls of one answer: calls that only read run side by side, all others in the order of the answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::{Agent, Stopped, Turn};
use crate::event::{AgentEvent, Journal, TurnStatus};
use crate::message::{Arguments, ToolCall};
use crate::repetition::SeenCall;
use crate::tool_host::{CallEnd, CallEndKind, ToolHost};
use crate::transcript::{ResultEntry, TranscriptEntry};

/// Calls that run side by side.
const PARALLEL_MAX: usize = 8;

/// A call that runs.
type Running<'a> = Pin<Box<dyn Future<Output = (usize, CallEnd, Duration)> + Send + 'a>>;

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// Records `answer` and makes its calls; each has a result afterwards, unless the turn was cancelled before it began.
    pub(super) async fn round(
        &mut self,
        answer: TranscriptEntry,
        calls: &[ToolCall],
        turn: &mut Turn<'_>,
    ) -> Result<(), Stopped> {
        // With the first calls that begin: to store them at once takes half the time.
        let mut unstored = vec![answer];
        let refused = self.host.begin_batch(calls.len()).err();
        self.host.meter(&self.limits.budget, &self.spent(turn));
        if refused.is_some() {
            let stored = self.record(std::mem::take(&mut unstored)).await;
            stored.map_err(TurnStatus::JournalFailed)?;
        }
        let mut outputs: Vec<String> = vec![String::new(); calls.len()];
        let mut next = 0;
        while next < calls.len() {
            let end = next + self.side_by_side(&calls[next..]);
            let ends = match &refused {
                Some(text) => vec![(next, CallEnd::of(CallEndKind::Denied, text), Duration::ZERO)],
                None => {
                    let started = (next..end).map(|index| TranscriptEntry::Started { index });
                    unstored.extend(started);
                    let stored = self.record(std::mem::take(&mut unstored)).await;
                    stored.map_err(TurnStatus::JournalFailed)?;
                    self.run(calls, next..end, turn).await
                }
            };
            next += ends.len();
            for (index, end, duration) in ends {
                outputs[index] = self
                    .ended(index, &calls[index], (end, duration), turn)
                    .await?;
            }
            if turn.cancel.is_cancelled() {
                return Err(TurnStatus::Interrupted);
            }
        }
        self.look_for_loop(calls, &outputs, turn)
    }

    /// How many calls from the first on run together.
    fn side_by_side(&self, calls: &[ToolCall]) -> usize {
        let reading = calls.iter().take(PARALLEL_MAX);
        let n_reading = reading
            .take_while(|call| self.host.is_read_only(call))
            .count();
        n_reading.max(1)
    }

    /// Runs some calls side by side and awaits the end of each; in the order of the answer.
    async fn run(
        &mut self,
        calls: &[ToolCall],
        range: std::ops::Range<usize>,
        turn: &Turn<'_>,
    ) -> Vec<(usize, CallEnd, Duration)> {
        self.spending.calls += range.len() as u64;
        let host = &self.host;
        let mut running: Vec<Running<'_>> = Vec::new();
        for index in range {
            let call = &calls[index];
            turn.observer.on(AgentEvent::CallStarted(call));
            running.push(Box::pin(async move {
                let started = Instant::now();
                let end = match &call.arguments {
                    Arguments::Object(_) => host.call(call, turn.cancel).await,
                    Arguments::Malformed { why, .. } => {
                        CallEnd::of(CallEndKind::Malformed, format!("[error] {why}"))
                    }
                };
                (index, end, started.elapsed())
            }));
        }
        let mut ends = Vec::new();
        while !running.is_empty() {
            let end = poll_fn(|context| next_end(&mut running, context)).await;
            for message in &end.1.messages {
                turn.observer.on(AgentEvent::Message(message));
            }
            turn.observer.on(AgentEvent::CallEnded {
                call: &calls[end.0],
                end: &end.1,
                duration: end.2,
            });
            ends.push(end);
        }
        ends.sort_by_key(|(index, ..)| *index);
        ends
    }

    /// Records the result of a call; gives back what the model is shown.
    async fn ended(
        &mut self,
        index: usize,
        call: &ToolCall,
        (end, _duration): (CallEnd, Duration),
        turn: &mut Turn<'_>,
    ) -> Result<String, Stopped> {
        turn.needs_approval |= end.kind == CallEndKind::NeedsApproval;
        self.spend(&end.spent);
        let mut spent = end.spent;
        let text = match self.summarized(call, &end, (turn, &mut spent)).await {
            Some(summary) => summary,
            None => correctable(call, &end, turn),
        };
        let result = ResultEntry {
            index,
            text: text.clone(),
            images: end.images,
            is_error: end.kind != CallEndKind::Done,
            handle: end.handle,
            task: end.task,
            ended_tasks: end.ended_tasks,
            spent,
        };
        self.append(TranscriptEntry::Result(Box::new(result)))
            .await?;
        Ok(text)
    }

    fn look_for_loop(
        &self,
        calls: &[ToolCall],
        outputs: &[String],
        turn: &mut Turn<'_>,
    ) -> Result<(), Stopped> {
        let arguments = calls.iter().map(|call| self.host.compared_arguments(call));
        let arguments: Vec<String> = arguments.collect();
        let outputs = outputs.iter().map(|text| self.host.compared_output(text));
        let outputs: Vec<String> = outputs.collect();
        let seen = calls.iter().zip(&arguments).zip(&outputs);
        let seen = seen.map(|((call, arguments), output)| SeenCall {
            tool: &call.name,
            arguments,
            output,
            is_read_only: self.host.is_read_only(call),
        });
        match turn.repetition.is_loop(seen) {
            true => Err(TurnStatus::DoomLoop),
            false => Ok(()),
        }
    }
}

/// What the model is shown of an end: a call that was wrong may be corrected once. Calls of one round are written together, so that none of
/// them corrects another.
fn correctable(call: &ToolCall, end: &CallEnd, turn: &mut Turn<'_>) -> String {
    if end.kind != CallEndKind::Malformed {
        turn.wrong.remove(&call.name);
        return end.text.clone();
    }
    let first = *turn.wrong.entry(call.name.clone()).or_insert(turn.rounds);
    let advice = match first == turn.rounds {
        true => "Correct the call so that it fits the tool's schema, and make it once more.",
        false => {
            "This was the second call of this tool that does not fit its schema: the failure is final. Go on without it, or tell the user."
        }
    };
    format!("{}\n{advice}", end.text.trim_end())
}

/// The first of some futures that is ready, which leaves them.
fn next_end(
    running: &mut Vec<Running<'_>>,
    context: &mut Context<'_>,
) -> Poll<(usize, CallEnd, Duration)> {
    for idx in 0..running.len() {
        if let Poll::Ready(end) = running[idx].as_mut().poll(context) {
            drop(running.remove(idx));
            return Poll::Ready(end);
        }
    }
    Poll::Pending
}
