//! One prompt without a person: the model's text on standard output and progress on standard error, or `--json` events.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use zeph_agent::event::{AgentEvent, Observer, TurnEnd, TurnStatus};
use zeph_agent::message::{Arguments, ToolCall};
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_agent::{Cost, ProviderErrorKind, Usage};

use super::approver::{Approver, PutQuestion};
use super::begin::{HostAgent, user_entry};
use super::card;
use super::events::{ApprovalCount, CallStatus, RunEvent, RunStatus, RunUsage, UserReply};
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::render::{DIM, YELLOW, escape};

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// Text and progress; without progress when notes are unwanted.
    Text {
        /// Whether progress is unwanted.
        is_quiet: bool,
    },
    /// Events.
    Json,
}

/// How the run ended.
#[derive(Debug)]
pub(crate) struct RunEnd {
    /// How.
    pub(crate) status: RunStatus,
    /// The signal that ended it.
    pub(crate) interruption: Option<Interruption>,
    /// Why standard output could not be written.
    pub(crate) output: Option<io::Error>,
    /// What the user should know, in a sentence.
    pub(crate) message: Option<String>,
}

/// Runs a prompt to its end.
pub(crate) async fn run(
    agent: &mut HostAgent,
    prompt: &str,
    (form, is_resumed): (OutputForm, bool),
    interrupts: &mut Interrupts,
) -> RunEnd {
    let cancel = CancellationToken::new();
    let approver = agent.host().approver().clone();
    let output = HeadlessOutput::new(form, approver, cancel.clone());
    let origin = agent.provider().origin();
    output.event(&RunEvent::Session {
        id: agent.host().session().conversation.to_string(),
        provider: origin.provider.clone(),
        model: origin.model.clone(),
        resumed: is_resumed,
    });
    let (user, problems) = user_entry(agent.host(), prompt);
    problems.iter().for_each(|problem| output.notice(problem));
    let mut interruption = None;
    let end = {
        let turn = agent.turn(user, &output, &cancel);
        let mut turn = std::pin::pin!(turn);
        loop {
            tokio::select! {
                biased;
                end = &mut turn => break Some(end),
                signal = interrupts.next() => {
                    cancel.cancel();
                    if interruption.replace(signal).is_some() {
                        break None;
                    }
                }
            }
        }
    };
    let tools = agent.host();
    let ends = tools.host().end_runs(tools.session()).await;
    ends.iter().for_each(|end| output.notice(end));
    output.finish(agent, end, interruption)
}

/// Standard output and standard error, as the run uses them.
struct HeadlessOutput {
    form: OutputForm,
    approver: Approver,
    /// Ends the run when nobody reads its output.
    cancel: CancellationToken,
    /// Whether standard output was a terminal when the run began: it is none any more once it is gone.
    has_terminal: bool,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    /// Text of an answer that is not complete, where it cannot be withdrawn.
    held: String,
    is_at_line_start: bool,
    error: Option<io::Error>,
    /// Calls that needed an approval nobody could give.
    asked: u64,
}

impl HeadlessOutput {
    fn new(form: OutputForm, approver: Approver, cancel: CancellationToken) -> Self {
        Self {
            form,
            approver,
            cancel,
            has_terminal: io::stdout().is_terminal(),
            written: Mutex::new(Written {
                is_at_line_start: true,
                ..Written::default()
            }),
        }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, event: &RunEvent) {
        if self.form == OutputForm::Json {
            self.write(&event.line());
        }
    }

    fn write(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
        if let Err(error) = written {
            self.written().error.get_or_insert(error);
            self.cancel.cancel();
        }
    }

    /// Text of the model: at once on a terminal, else when the answer is complete, so that nothing has to be withdrawn.
    fn text(&self, text: &str) {
        match io::stdout().is_terminal() {
            true => self.show(text),
            false => self.written().held.push_str(text),
        }
    }

    fn show(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.written().is_at_line_start = text.ends_with('\n');
        match io::stdout().is_terminal() {
            true => self.write(&escape(text)),
            false => self.write(text),
        }
    }

    /// Ends the line of the text, if there is one.
    fn end_text(&self) {
        let held = std::mem::take(&mut self.written().held);
        self.show(&held);
        let is_at_line_start = std::mem::replace(&mut self.written().is_at_line_start, true);
        if !is_at_line_start {
            self.write("\n");
        }
    }

    fn notice(&self, text: &str) {
        match self.form {
            OutputForm::Json => self.event(&RunEvent::Message {
                text: text.to_owned(),
            }),
            OutputForm::Text { is_quiet: false } => {
                crate::run::repl::say(&format!("{YELLOW}note:{YELLOW:#} {}\n", escape(text)));
            }
            OutputForm::Text { is_quiet: true } => {}
        }
    }

    /// Tells of the question that a call raised, whether or not somebody answered it.
    fn approval(&self, call: &ToolCall, end: &CallEnd) {
        let put = self.approver.take_put(&call.id);
        let (reason, answer) = match put {
            Some(PutQuestion { reason, answer }) => (reason, answer.map(UserReply::from)),
            None if end.kind == CallEndKind::NeedsApproval => {
                self.written().asked += 1;
                (end.text.clone(), None)
            }
            None => return,
        };
        self.event(&RunEvent::Approval {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            reason,
            answer,
        });
    }

    fn on_json(&self, event: &AgentEvent<'_>) {
        if let Some(event) = run_event(event) {
            self.event(&event);
        }
    }

    fn on_text(&self, event: &AgentEvent<'_>, is_quiet: bool) {
        match event {
            AgentEvent::Text(text) => return self.text(text),
            AgentEvent::Answered => return self.end_text(),
            AgentEvent::Retry { discards: true, .. } => {
                self.written().held.clear();
                self.end_text();
            }
            _ => {}
        }
        if is_quiet {
            return;
        }
        let line = match event {
            AgentEvent::Retry {
                why,
                after,
                discards,
            } => {
                let void = if *discards {
                    "; the text above is void"
                } else {
                    ""
                };
                Some(format!(
                    "{}, again in {:.1} s{void}",
                    escape(why),
                    after.as_secs_f64()
                ))
            }
            AgentEvent::CallStarted(call) => Some(card::title(call)),
            AgentEvent::CallEnded {
                call,
                end,
                duration,
            } => Some(card::end_line(call, end, *duration)),
            AgentEvent::Compacted { before, after } => Some(format!(
                "the conversation was compacted: about {before} tokens became {after}"
            )),
            AgentEvent::Notice(text) => Some(escape(text)),
            AgentEvent::Message(text) => Some(escape(text.lines().next().unwrap_or_default())),
            _ => None,
        };
        if let Some(line) = line {
            crate::run::repl::say(&format!("{DIM}{line}{DIM:#}\n"));
        }
    }

    /// The loss of the terminal, when writing to it has noticed that before a signal came.
    fn hung_up(&self) -> Option<Interruption> {
        let written = self.written();
        let code = written.error.as_ref()?.raw_os_error()?;
        let is_gone = self.has_terminal && code == rustix::io::Errno::IO.raw_os_error();
        is_gone.then_some(Interruption::HangUp)
    }

    fn finish(
        &self,
        agent: &HostAgent,
        end: Option<TurnEnd>,
        interruption: Option<Interruption>,
    ) -> RunEnd {
        self.end_text();
        let interruption = interruption.or(self.hung_up());
        let (status, text, message) = match end {
            None => (RunStatus::Interrupted, String::new(), None),
            Some(end) => {
                let status = status(&end);
                let is_good = matches!(end.status, TurnStatus::Done);
                let message = (!is_good).then(|| end.status.to_string());
                (status, end.text, message)
            }
        };
        let exit_code = match interruption {
            Some(Interruption::Terminate) => 143,
            Some(Interruption::HangUp) => 129,
            _ => status.exit_code(),
        };
        if let Some(message) = message.as_deref().filter(|_| interruption.is_none()) {
            self.event(&RunEvent::Error {
                message: message.to_owned(),
                retry_ms: None,
                discards_text: false,
            });
        }
        let spending = agent.spending();
        let asked = self.written().asked + self.approver.asked();
        self.event(&RunEvent::Result {
            status,
            text,
            usage: usage(&spending.usage, agent.cost()),
            calls: spending.calls,
            approvals: ApprovalCount::of(asked, spending.calls),
            exit_code,
        });
        RunEnd {
            status,
            interruption,
            output: self.written().error.take(),
            message,
        }
    }
}

impl Observer for HeadlessOutput {
    fn on(&self, event: AgentEvent<'_>) {
        if let AgentEvent::CallEnded { call, end, .. } = &event {
            self.approval(call, end);
        }
        match self.form {
            OutputForm::Json => self.on_json(&event),
            OutputForm::Text { is_quiet } => self.on_text(&event, is_quiet),
        }
    }
}

/// What an event is as a line of JSON.
fn run_event(event: &AgentEvent<'_>) -> Option<RunEvent> {
    Some(match event {
        AgentEvent::Text(text) => RunEvent::Text {
            text: (*text).to_owned(),
        },
        AgentEvent::CallStarted(call) => RunEvent::ToolCall {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            arguments: match &call.arguments {
                Arguments::Object(object) => object.clone().into(),
                Arguments::Malformed { text, .. } => text.clone().into(),
            },
        },
        AgentEvent::CallEnded {
            call,
            end,
            duration,
        } => RunEvent::ToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            status: call_status(end.kind),
            text: end.text.clone(),
            duration_ms: millis(*duration),
        },
        AgentEvent::Spent {
            usage: spent, cost, ..
        } => RunEvent::Usage(usage(spent, *cost)),
        AgentEvent::Retry {
            why,
            after,
            discards,
        } => RunEvent::Error {
            message: (*why).to_owned(),
            retry_ms: Some(millis(*after)),
            discards_text: *discards,
        },
        AgentEvent::Message(text) | AgentEvent::Notice(text) => RunEvent::Message {
            text: (*text).to_owned(),
        },
        AgentEvent::Compacted { before, after } => RunEvent::Message {
            text: format!("the conversation was compacted: about {before} tokens became {after}"),
        },
        AgentEvent::Waiting | AgentEvent::Thinking(_) | AgentEvent::Answered => return None,
    })
}

fn call_status(kind: CallEndKind) -> CallStatus {
    match kind {
        CallEndKind::Done => CallStatus::Ok,
        CallEndKind::Failed => CallStatus::Failed,
        CallEndKind::Malformed => CallStatus::Invalid,
        CallEndKind::NeedsApproval => CallStatus::ApprovalNeeded,
        CallEndKind::Denied => CallStatus::Denied,
        CallEndKind::Cancelled => CallStatus::Cancelled,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn usage(usage: &Usage, cost: Option<Cost>) -> RunUsage {
    RunUsage {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cache_read_tokens: usage.cache_read,
        cache_write_tokens: usage.cache_write,
        estimated_tokens: usage.estimated,
        cost_usd: cost.map(Cost::usd),
    }
}

/// How a turn's end is called in the `result`.
fn status(end: &TurnEnd) -> RunStatus {
    match &end.status {
        TurnStatus::Done if end.needs_approval => RunStatus::ApprovalNeeded,
        TurnStatus::Done => RunStatus::Done,
        TurnStatus::IterationLimit { .. } => RunStatus::IterationLimit,
        TurnStatus::DoomLoop => RunStatus::DoomLoop,
        TurnStatus::ContextFull => RunStatus::ContextFull,
        TurnStatus::Budget(_) => RunStatus::Budget,
        TurnStatus::Cut(_) => RunStatus::Cut,
        TurnStatus::Empty => RunStatus::Empty,
        TurnStatus::Refused => RunStatus::Refused,
        TurnStatus::Interrupted => RunStatus::Interrupted,
        TurnStatus::ProviderFailed(error) if error.kind == ProviderErrorKind::Settings => {
            RunStatus::Error
        }
        TurnStatus::ProviderFailed(_) => RunStatus::ProviderFailed,
        TurnStatus::JournalFailed(_) => RunStatus::Error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_agent::event::AgentEvent;
    use zeph_agent::message::{Arguments, ToolCall};

    use super::run_event;
    use crate::agent::events::RunEvent;

    #[test]
    fn arguments_are_shown_as_the_model_wrote_them() {
        let text = "{\"path\": ".to_owned();
        let cases = [
            (Arguments::Object(serde_json::Map::new()), json!({})),
            (
                Arguments::Malformed {
                    text: text.clone(),
                    why: "it ends too soon".to_owned(),
                },
                json!(text),
            ),
        ];
        for (arguments, expected) in cases {
            let call = ToolCall {
                id: "1".to_owned(),
                name: "read".to_owned(),
                arguments,
            };
            let shown = run_event(&AgentEvent::CallStarted(&call));
            let Some(RunEvent::ToolCall { arguments, .. }) = shown else {
                panic!("{shown:?}");
            };
            assert_eq!(arguments, expected);
        }
    }
}
