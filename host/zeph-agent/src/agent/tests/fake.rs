//! A model made of answers, a host made of results, a journal in memory, and an observer that can cancel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentLimits};
use crate::budget::BudgetLimits;
use crate::error::{ProviderError, ProviderErrorKind};
use crate::event::{AgentEvent, Journal, Observer, TurnEnd};
use crate::message::{
    Arguments, AssistantTurn, CallResult, Item, ItemView, Origin, StopReason, ToolCall, Turn,
};
use crate::provider::{
    ModelEvent, ModelRequest, OnEvent, Pending, Provider, Reply, RequestPreview, ToolDefinition,
};
use crate::tool_host::{CallEnd, CallEndKind, HostMessage, ToolHost};
use crate::transcript::{Transcript, TranscriptEntry, UserEntry};
use crate::usage::{Prices, Usage};

/// What a model does when it is asked.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Turn(AssistantTurn, Usage),
    Fails,
}

impl Answer {
    pub(super) fn stop(&mut self, reason: StopReason) {
        if let Self::Turn(turn, _) = self {
            turn.stop = reason;
        }
    }

    /// One for which a provider counts `tokens` of input.
    pub(super) fn taking(mut self, tokens: u64) -> Self {
        if let Self::Turn(_, usage) = &mut self {
            usage.input = tokens;
        }
        self
    }
}

pub(super) fn says(text: &str) -> Answer {
    answer(vec![ItemView::Text(text.to_owned())], StopReason::EndTurn)
}

pub(super) fn calls(tools: &[&str]) -> Answer {
    let views = tools.iter().enumerate().map(|(index, tool)| {
        let arguments = Arguments::read(&format!("{{\"n\":{index}}}"));
        call(index, tool, arguments)
    });
    answer(views.collect(), StopReason::ToolCalls)
}

pub(super) fn malformed_call(tool: &str) -> Answer {
    let arguments = Arguments::read("{\"n\":");
    answer(vec![call(0, tool, arguments)], StopReason::ToolCalls)
}

pub(super) fn fails() -> Answer {
    Answer::Fails
}

fn call(index: usize, tool: &str, arguments: Arguments) -> ItemView {
    ItemView::Call(ToolCall {
        id: format!("call-{index}"),
        name: tool.to_owned(),
        arguments,
    })
}

fn answer(views: Vec<ItemView>, stop: StopReason) -> Answer {
    let turn = AssistantTurn {
        origin: crate::transcript::tests::origin(),
        items: views.into_iter().map(Item::neutral).collect(),
        stop,
    };
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    Answer::Turn(turn, usage)
}

/// A request as the model saw it, in JSON.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenRequest {
    pub(super) system: String,
    pub(super) tools: String,
    pub(super) turns: Vec<String>,
}

/// Answers in order; then with its last words.
#[derive(Debug)]
pub(super) struct Model {
    origin: Origin,
    answers: Mutex<VecDeque<Answer>>,
    last: Mutex<Answer>,
    requests: Mutex<Vec<SeenRequest>>,
    prices: Prices,
    /// What it answers when it must not call tools.
    summary: Mutex<Option<String>>,
    /// Whether its usage is counted from what it is sent.
    counts: AtomicBool,
}

impl Model {
    pub(super) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            origin: crate::transcript::tests::origin(),
            answers: Mutex::new(answers.into_iter().collect()),
            last: Mutex::new(says("nothing more")),
            requests: Mutex::default(),
            summary: Mutex::default(),
            counts: AtomicBool::new(false),
            prices: Prices {
                input: Some(1_000_000.0),
                output: Some(0.0),
                ..Prices::default()
            },
        }
    }

    pub(super) fn then_says(&self, text: &str) {
        *self.last.lock().unwrap() = says(text);
    }

    pub(super) fn then(&self, answer: Answer) {
        *self.last.lock().unwrap() = answer;
    }

    /// Counts four bytes of a request as a token.
    pub(super) fn counting(self) -> Self {
        self.counts.store(true, Ordering::Relaxed);
        self
    }

    pub(super) fn summarises(self, summary: &str) -> Self {
        *self.summary.lock().unwrap() = Some(summary.to_owned());
        self
    }

    pub(super) fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Provider for Model {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn prices(&self) -> Prices {
        self.prices
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_event: OnEvent<'a>,
    ) -> Pending<'a, Result<Reply, ProviderError>> {
        crate::transcript::tests::assert_valid(request.turns);
        let text = |value: &Turn| serde_json::to_string(value).unwrap();
        self.requests.lock().unwrap().push(SeenRequest {
            system: request.system.join("\n"),
            tools: serde_json::to_string(request.tools).unwrap(),
            turns: request.turns.iter().map(text).collect(),
        });
        Box::pin(async move {
            let summary = self.summary.lock().unwrap().clone();
            let next = match summary.filter(|_| request.options.forbids_calls) {
                Some(summary) => Some(says(&summary)),
                None => self.answers.lock().unwrap().pop_front(),
            };
            let answer = next.unwrap_or_else(|| self.last.lock().unwrap().clone());
            tokio::task::yield_now().await;
            let Answer::Turn(turn, mut usage) = answer else {
                return Err(ProviderError {
                    provider: "fake".to_owned(),
                    kind: ProviderErrorKind::Server,
                    message: "it is down".to_owned(),
                    status: Some(503),
                    retry_after: None,
                });
            };
            if self.counts.load(Ordering::Relaxed) {
                let said = request
                    .turns
                    .iter()
                    .map(|turn| serde_json::to_string(turn).unwrap().len());
                usage.input = said.sum::<usize>() as u64 / 4;
            }
            on_event(ModelEvent::Text(turn.text()));
            tokio::task::yield_now().await;
            Ok(Reply {
                turn,
                usage,
                attempts: 1,
            })
        })
    }

    fn preview(&self, request: ModelRequest<'_>) -> RequestPreview {
        RequestPreview {
            url: "http://fake".to_owned(),
            body: serde_json::to_string(request.turns).unwrap(),
        }
    }
}

/// Ends every call with the same end, and remembers what was called.
#[derive(Debug)]
pub(super) struct FakeHost {
    made: Mutex<Vec<String>>,
    end: Mutex<CallEnd>,
    messages: Mutex<Vec<HostMessage>>,
    at_once: AtomicUsize,
    pub(super) most_at_once: AtomicUsize,
    pub(super) batches_left: AtomicU32,
    /// Bytes of each output, which is another one each time.
    pub(super) output_bytes: AtomicUsize,
    /// Whether it chooses tools: `read` first, and `edit` from the second time on.
    pub(super) selects: AtomicBool,
    pub(super) n_selected: AtomicUsize,
}

impl Default for FakeHost {
    fn default() -> Self {
        Self {
            made: Mutex::default(),
            end: Mutex::new(CallEnd::of(CallEndKind::Done, "")),
            messages: Mutex::default(),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            batches_left: AtomicU32::new(u32::MAX),
            output_bytes: AtomicUsize::new(0),
            selects: AtomicBool::new(false),
            n_selected: AtomicUsize::new(0),
        }
    }
}

impl FakeHost {
    pub(super) fn made(&self) -> Vec<String> {
        self.made.lock().unwrap().clone()
    }

    pub(super) fn end_with(&self, end: CallEnd) {
        *self.end.lock().unwrap() = end;
    }

    pub(super) fn tell(&self, text: &str) {
        self.messages.lock().unwrap().push(HostMessage {
            text: text.to_owned(),
            ended_task: None,
        });
    }

    fn end(&self, n_made: usize) -> CallEnd {
        let mut end = self.end.lock().unwrap().clone();
        if end.text.is_empty() {
            let n_bytes = self.output_bytes.load(Ordering::Relaxed);
            end.text = format!("output {n_made}{}", "x".repeat(n_bytes));
        }
        end
    }
}

impl ToolHost for FakeHost {
    fn definitions(&self) -> Vec<ToolDefinition> {
        ["edit", "read"].map(definition).to_vec()
    }

    fn select(&self, _text: &str) -> Option<Vec<ToolDefinition>> {
        let name = match self.n_selected.fetch_add(1, Ordering::Relaxed) {
            0 => "read",
            _ => "edit",
        };
        let selects = self.selects.load(Ordering::Relaxed);
        selects.then(|| vec![definition(name)])
    }

    fn selected(&self, names: &[String]) -> Option<Vec<ToolDefinition>> {
        let selects = self.selects.load(Ordering::Relaxed);
        selects.then(|| names.iter().map(|name| definition(name)).collect())
    }

    fn is_read_only(&self, call: &ToolCall) -> bool {
        call.name == "read"
    }

    async fn begin_turn(&self) -> Vec<HostMessage> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }

    fn begin_batch(&self, _n_calls: usize) -> Result<(), String> {
        let left = self.batches_left.load(Ordering::Relaxed);
        let Some(less) = left.checked_sub(1) else {
            return Err("[error] quota".to_owned());
        };
        self.batches_left.store(less, Ordering::Relaxed);
        Ok(())
    }

    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> CallEnd {
        let n_made = {
            let mut made = self.made.lock().unwrap();
            made.push(call.name.clone());
            made.len()
        };
        let at_once = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
        tokio::task::yield_now().await;
        self.at_once.fetch_sub(1, Ordering::Relaxed);
        match cancel.is_cancelled() {
            true => CallEnd::of(CallEndKind::Cancelled, "[error] cancelled"),
            false => self.end(n_made),
        }
    }

    async fn keep(&self, _text: &str) -> Option<String> {
        Some("overflow:1".to_owned())
    }

    async fn standing(&self) -> Vec<String> {
        vec!["approved: write:src/**".to_owned()]
    }
}

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        schema: serde_json::json!({ "type": "object" }),
    }
}

/// Keeps entries in memory, as JSON, as a store does.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Vec<String>>);

impl Memory {
    pub(super) fn entries(&self) -> Vec<TranscriptEntry> {
        let lines = self.0.lock().unwrap();
        let read = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        read.collect()
    }
}

impl Journal for Memory {
    async fn append(&self, entries: &[TranscriptEntry]) -> Result<(), String> {
        let lines = entries
            .iter()
            .map(|entry| serde_json::to_string(entry).unwrap());
        self.0.lock().unwrap().extend(lines);
        Ok(())
    }
}

/// Counts events, and cancels at one of them.
#[derive(Debug)]
pub(super) struct Watcher {
    seen: AtomicUsize,
    at: AtomicUsize,
    cancel: Mutex<CancellationToken>,
    pub(super) notices: Mutex<Vec<String>>,
}

impl Watcher {
    pub(super) fn cancel_at(&self, at: usize) {
        self.seen.store(0, Ordering::Relaxed);
        self.at.store(at, Ordering::Relaxed);
    }
}

impl Observer for Watcher {
    fn on(&self, event: AgentEvent<'_>) {
        match event {
            AgentEvent::Notice(text) => self.notices.lock().unwrap().push(text.to_owned()),
            AgentEvent::Compacted { .. } => {
                self.notices.lock().unwrap().push("compacted".to_owned());
            }
            _ => {}
        }
        if self.seen.fetch_add(1, Ordering::Relaxed) == self.at.load(Ordering::Relaxed) {
            self.cancel.lock().unwrap().cancel();
        }
    }
}

/// An agent with all it needs.
pub(super) struct Lab {
    pub(super) agent: Agent<FakeHost, Memory>,
    pub(super) model: Arc<Model>,
    pub(super) observer: Arc<Watcher>,
    pub(super) cancel: CancellationToken,
}

impl Lab {
    pub(super) async fn turn(&mut self, text: &str) -> TurnEnd {
        *self.observer.cancel.lock().unwrap() = self.cancel.clone();
        let turn = self
            .agent
            .turn(user_entry(text), &*self.observer, &self.cancel);
        tokio::time::timeout(Duration::from_secs(60), turn)
            .await
            .unwrap()
    }

    /// The text of every result, in order.
    pub(super) fn results(&self) -> Vec<String> {
        let turns = self.agent.transcript().turns();
        let users = turns.iter().filter_map(|turn| match turn {
            Turn::User(user) => Some(user),
            Turn::Assistant(_) => None,
        });
        users
            .flat_map(|user| user.results.iter().map(CallResult::to_text))
            .collect()
    }
}

pub(super) fn user_entry(text: &str) -> UserEntry {
    UserEntry {
        text: text.to_owned(),
        attachments: Vec::new(),
        context: String::new(),
        is_summary: false,
    }
}

pub(super) fn limits() -> AgentLimits {
    AgentLimits {
        max_tool_iterations: 10,
        context_budget_tokens: 100_000,
        compaction: true,
        budget: BudgetLimits::default(),
    }
}

pub(super) fn lab(model: Model, host: FakeHost) -> Lab {
    with_limits(model, host, limits())
}

pub(super) fn with_limits(model: Model, host: FakeHost, limits: AgentLimits) -> Lab {
    lab_of(model, host, limits, Transcript::default())
}

pub(super) fn resumed(model: Model, transcript: Transcript) -> Lab {
    resumed_on(model, FakeHost::default(), transcript)
}

pub(super) fn resumed_on(model: Model, host: FakeHost, transcript: Transcript) -> Lab {
    lab_of(model, host, limits(), transcript)
}

fn lab_of(model: Model, host: FakeHost, limits: AgentLimits, transcript: Transcript) -> Lab {
    let model = Arc::new(model);
    let provider = Arc::clone(&model) as Arc<dyn Provider>;
    let system = vec!["You work with tools.".to_owned()];
    Lab {
        agent: Agent::new(
            provider,
            (host, Memory::default()),
            limits,
            system,
            transcript,
        ),
        model,
        observer: Arc::new(Watcher {
            seen: AtomicUsize::new(0),
            at: AtomicUsize::new(usize::MAX),
            cancel: Mutex::new(CancellationToken::new()),
            notices: Mutex::default(),
        }),
        cancel: CancellationToken::new(),
    }
}
