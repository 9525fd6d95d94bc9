//! The host's tools for the loop of an agent: every call takes the line, in a session of a model.

mod compared;
mod images;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zeph_agent::budget::{BudgetLimits, CallMeter, Meter, Spent};
use zeph_agent::message::{Arguments, ToolCall};
use zeph_agent::tool_host::{CallEnd, CallEndKind, HostMessage, OverlongResult, ToolHost};
use zeph_agent::{Pending, SideSpending, ToolDefinition, Usage};
use zeph_core::call::ToolRequest;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::inquiry::GivenAnswers;
use zeph_core::output::{Outcome, ToolOutput};
use zeph_shell::run::{OutputChunk, OutputListener};
use zeph_store::TokenUse;

use self::images::images;
use super::approver::Approver;
use super::shaping::{MeantCall, Shaping};
use crate::calls::{CallControl, CallReport, CallsEvent, RunningCalls};
use crate::clock::now_ms;
use crate::goal::plan;
use crate::host::Host;
use crate::overflow::{OMITTED, STORED};
use crate::questions::SealedInquiry;
use crate::session::Session;

/// How the announcement of a background run begins.
const BACKGROUND: &str = "[background complete] run_id=";

/// The tools of a host, as an agent calls them.
#[derive(Debug)]
pub(crate) struct HostTools {
    host: Host,
    session: Session,
    approver: Approver,
    /// Hears what commands print while they run.
    live: Option<mpsc::Sender<OutputChunk>>,
    /// The batch that runs. Protects the moment of its exchange.
    batch: Mutex<Uuid>,
    /// What the model is shown of them.
    shaping: Shaping,
    /// What the session may use up beside the requests of the loop.
    meter: Meter,
    /// The door behind which the agent works, where it takes part in calls.
    door: OnceLock<Arc<dyn CallDoor>>,
}

/// A door that takes part in the calls of an agent.
pub(crate) trait CallDoor: Send + Sync + fmt::Debug {
    /// Puts what the door has for a call into what the host is given with it.
    fn equip(&self, call_id: &str, control: CallControl) -> CallControl;

    /// What came of a call, before the agent hears of it.
    fn ended(&self, call_id: &str, report: &CallReport);

    /// Puts the questions of a tool to the user of the door; none when nobody answers.
    fn inquire<'a>(
        &'a self,
        call: &'a ToolCall,
        asked: &'a SealedInquiry,
    ) -> Pending<'a, Option<GivenAnswers>>;
}

impl HostTools {
    /// The tools of `host` in `session`, which is one of a model.
    pub(crate) fn new(
        (host, session): (Host, Session),
        approver: Approver,
        live: Option<mpsc::Sender<OutputChunk>>,
    ) -> Self {
        let shaping = Shaping::new(&host, &session);
        Self {
            host,
            session,
            shaping,
            meter: Meter::default(),
            approver,
            live,
            batch: Mutex::new(Uuid::now_v7()),
            door: OnceLock::new(),
        }
    }

    /// Has `door` take part in every call from now on. The first one stays.
    pub(crate) fn serve(&self, door: Arc<dyn CallDoor>) {
        // A second door would be a defect; the first one goes on working.
        drop(self.door.set(door));
    }

    /// Whose calls they are.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The host.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Who approves calls.
    pub(crate) fn approver(&self) -> &Approver {
        &self.approver
    }

    /// Makes the call, and ends it when `cancel` comes; its end is always awaited.
    async fn report(
        &self,
        request: ToolRequest,
        (call_id, meter): (&str, &CallMeter),
        cancel: &CancellationToken,
    ) -> Result<Box<CallReport>, ToolFailure> {
        let control = CallControl {
            on_output: self.live.clone().map(OutputListener::new),
            ask: self.approver.prompt(call_id),
            batch: Some(*self.batch.lock().unwrap_or_else(PoisonError::into_inner)),
            meter: Some(meter.clone()),
            ..CallControl::default()
        };
        let control = match self.door.get() {
            Some(door) => door.equip(call_id, control),
            None => control,
        };
        let mut calls = RunningCalls::new(&self.host, NonZeroUsize::MIN);
        calls.start(&self.session, request, control, ());
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                ended = calls.one_end() => match ended {
                    Some(CallsEvent::Call { report, .. }) => return report,
                    Some(CallsEvent::Messages(_)) => {}
                    None => return Err(lost()),
                },
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    calls.cancel_all();
                }
            }
        }
    }

    /// What ended in the background and is to be told now.
    async fn ended_runs(&self) -> Vec<HostMessage> {
        let messages = self.host.take_completed(&self.session).await;
        let told = messages.into_iter().map(|text| HostMessage {
            ended_task: ended_task(&text),
            text,
        });
        told.collect()
    }

    async fn inquire(&self, call: &ToolCall, asked: &SealedInquiry) -> Option<GivenAnswers> {
        match self.door.get() {
            Some(door) => door.inquire(call, asked).await,
            None => self.approver.inquire(&call.name, asked).await,
        }
    }

    /// What the user answers to a tool is said by the user.
    fn hear(&self, given: &GivenAnswers) {
        let texts = given.answers.iter().filter_map(|one| one.content.as_ref());
        for text in texts.filter_map(serde_json::Value::as_str) {
            self.session.hear_user(text);
        }
    }

    fn end(&self, call_id: &str, report: CallReport, meter: &CallMeter) -> CallEnd {
        let denial = self.approver.take_denial(call_id);
        let kind = match denial {
            Some(_) => CallEndKind::Denied,
            None => kind(&report.output.outcome),
        };
        let mut text = report.output.text.clone();
        if let Some(Some(reason)) = denial {
            self.session.hear_user(&reason);
            text.push_str(&format!("\nThe user denied the call and said: {reason}"));
        }
        for message in report.messages.iter().rev() {
            text.insert_str(0, &format!("{message}\n\n"));
        }
        let images = images(&report.output.attachments, &mut text);
        CallEnd {
            kind,
            text,
            images,
            handle: report.output.overflow.map(|id| format!("overflow:{id}")),
            task: task(&report.output),
            ended_tasks: report
                .messages
                .iter()
                .filter_map(|text| ended_task(text))
                .collect(),
            messages: report.messages,
            spent: meter.spent(),
        }
    }
}

impl ToolHost for HostTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.shaping.all()
    }

    async fn select(&self, text: &str, spent: &mut SideSpending) -> Option<Vec<ToolDefinition>> {
        let meter = self.meter.of_call();
        let selected = self.shaping.select(text, &meter).await;
        *spent += meter.spent();
        selected
    }

    fn selected(&self, names: &[String]) -> Option<Vec<ToolDefinition>> {
        self.shaping.selected(names)
    }

    fn compared_arguments(&self, call: &ToolCall) -> String {
        match self.shaping.meant(call) {
            MeantCall::Call(meant) => format!("{} {}", meant.name, meant.arguments.to_json()),
            MeantCall::Find | MeantCall::Wrong(_) => call.arguments.to_json(),
        }
    }

    fn compared_output(&self, text: &str) -> String {
        compared::output(text)
    }

    fn meter(&self, limits: &BudgetLimits, spent: &Spent) {
        self.meter.set(*limits, *spent);
    }

    fn answered(&self, usage: &Usage) {
        self.session.set_tokens(TokenUse {
            input: usage.prompt(),
            output: usage.output,
        });
    }

    fn is_read_only(&self, call: &ToolCall) -> bool {
        let MeantCall::Call(call) = self.shaping.meant(call) else {
            return true;
        };
        let catalog = self.host.catalog();
        catalog
            .resolve(&call.name)
            .is_ok_and(|tool| tool.annotations.read_only)
    }

    async fn begin_turn(&self) -> Vec<HostMessage> {
        self.session.begin_turn(None, None);
        self.ended_runs().await
    }

    async fn ended_meanwhile(&self) -> Vec<HostMessage> {
        self.session.shell().tells_ended_runs();
        self.ended_runs().await
    }

    fn begin_batch(&self, _n_calls: usize) -> Result<(), String> {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = Uuid::now_v7();
        Ok(())
    }

    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> CallEnd {
        let call = &match self.shaping.meant(call) {
            MeantCall::Call(call) => call,
            MeantCall::Find => return self.shaping.find(call),
            MeantCall::Wrong(why) => return CallEnd::of(CallEndKind::Malformed, why),
        };
        let meter = self.meter.of_call();
        let Arguments::Object(arguments) = &call.arguments else {
            return CallEnd::of(
                CallEndKind::Malformed,
                "[error] the arguments are not a JSON object",
            );
        };
        let mut request = ToolRequest {
            tool: call.name.clone(),
            arguments: arguments.clone().into(),
            answers: None,
        };
        loop {
            let made = self.report(request.clone(), (&call.id, &meter), cancel);
            let report = match made.await {
                Ok(report) => {
                    if let Some(door) = self.door.get() {
                        door.ended(&call.id, &report);
                    }
                    *report
                }
                Err(failure) => return CallEnd::of(CallEndKind::Failed, failure.feedback()),
            };
            let answers = match &report.asked {
                Some(asked) if !cancel.is_cancelled() => tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    answers = self.inquire(call, asked) => answers,
                },
                _ => None,
            };
            let Some(answers) = answers else {
                let mut end = self.end(&call.id, report, &meter);
                self.shaping.tell(&call.name, &mut end);
                return end;
            };
            self.hear(&answers);
            request.answers = Some(answers);
        }
    }

    async fn keep(&self, text: &str) -> Option<String> {
        let store = self.host.store();
        let kept = store.put_overflow(
            self.session.conversation,
            text.as_bytes().to_vec(),
            now_ms(),
        );
        match kept.await {
            Ok(id) => Some(format!("overflow:{id}")),
            Err(error) => {
                tracing::warn!(%error, "a result that leaves the conversation is not kept");
                None
            }
        }
    }

    async fn standing(&self) -> Vec<String> {
        let approvals = self.host.store().list_approvals(now_ms()).await;
        let approvals = approvals.unwrap_or_default().into_iter().map(|approval| {
            let call = crate::run::approval_text::one_line(&approval.call);
            format!(
                "approved ({}): {} {call}",
                approval.lifetime.label(),
                approval.call.tool
            )
        });
        let goal = plan::told(&self.session).map(|goal| format!("goal: {goal}"));
        goal.into_iter().chain(approvals).collect()
    }

    async fn overlong(&self, end: &CallEnd) -> Option<OverlongResult> {
        // What failed is shown as it is: a summary could lose why. So is what tells the end of other work.
        let is_plain = end.kind == CallEndKind::Done && end.ended_tasks.is_empty();
        let is_cut = is_plain && end.text.contains(OMITTED);
        let handle = end.handle.as_deref().filter(|_| is_cut)?;
        let id = handle.strip_prefix("overflow:")?.parse().ok()?;
        let notice = &end.text[end.text.rfind(STORED)?..];
        let stored = self.host.store().overflow(self.session.conversation, id);
        let stored = stored.await.ok()??;
        Some(OverlongResult {
            text: String::from_utf8_lossy(&stored).into_owned(),
            notice: notice.to_owned(),
        })
    }
}

fn lost() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Execution,
        "the host lost the call",
    )
}

fn kind(outcome: &Outcome) -> CallEndKind {
    let Outcome::Failed(failure) = outcome else {
        return CallEndKind::Done;
    };
    let was_read = !matches!(failure.phase, ErrorPhase::Setup | ErrorPhase::ParamHandling);
    match failure.category {
        ErrorCategory::ToolNotFound => CallEndKind::Malformed,
        ErrorCategory::InvalidParameters | ErrorCategory::TypeMismatch if !was_read => {
            CallEndKind::Malformed
        }
        ErrorCategory::ConfirmationRequired => CallEndKind::NeedsApproval,
        ErrorCategory::PolicyBlocked => CallEndKind::Denied,
        ErrorCategory::Cancelled => CallEndKind::Cancelled,
        _ => CallEndKind::Failed,
    }
}

/// The background task that a call started.
fn task(output: &ToolOutput) -> Option<String> {
    let structured = output.structured.as_ref()?;
    let run_id = structured.get("run_id")?.as_str()?;
    Some(run_id.to_owned())
}

/// The background task whose end a message tells.
fn ended_task(message: &str) -> Option<String> {
    let rest = message.strip_prefix(BACKGROUND)?;
    rest.split_whitespace().next().map(str::to_owned)
}
