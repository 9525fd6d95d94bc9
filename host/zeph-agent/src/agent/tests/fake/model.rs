//! A model made of answers.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{ProviderError, ProviderErrorKind};
use crate::message::{
    Arguments, AssistantTurn, Item, ItemView, Origin, StopReason, ToolCall, Turn,
};
use crate::provider::{
    ModelEvent, ModelRequest, OnEvent, Pending, Provider, Reply, RequestPreview,
};
use crate::usage::{Prices, Usage};

/// What a model does when it is asked.
#[derive(Debug, Clone)]
pub(in super::super) enum Answer {
    Turn(AssistantTurn, Usage),
    Fails,
    Refused,
    /// A provider that reports some tokens, says something and fails.
    Breaks,
}

impl Answer {
    pub(in super::super) fn stop(&mut self, reason: StopReason) {
        if let Self::Turn(turn, _) = self {
            turn.stop = reason;
        }
    }

    /// One for which a provider counts `tokens` of input.
    pub(in super::super) fn taking(mut self, tokens: u64) -> Self {
        if let Self::Turn(_, usage) = &mut self {
            usage.input = tokens;
        }
        self
    }
}

pub(in super::super) fn says(text: &str) -> Answer {
    answer(vec![ItemView::Text(text.to_owned())], StopReason::EndTurn)
}

pub(in super::super) fn calls(tools: &[&str]) -> Answer {
    let views = tools.iter().enumerate().map(|(index, tool)| {
        let arguments = Arguments::read(&format!("{{\"n\":{index}}}"));
        call(index, tool, arguments)
    });
    answer(views.collect(), StopReason::ToolCalls)
}

pub(in super::super) fn malformed_call(tool: &str) -> Answer {
    let arguments = Arguments::read("{\"n\":");
    answer(vec![call(0, tool, arguments)], StopReason::ToolCalls)
}

pub(in super::super) fn fails() -> Answer {
    Answer::Fails
}

pub(in super::super) fn breaks() -> Answer {
    Answer::Breaks
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

fn failure(kind: ProviderErrorKind, status: u16) -> ProviderError {
    ProviderError {
        provider: "fake".to_owned(),
        kind,
        message: "it is down".to_owned(),
        status: Some(status),
        retry_after: None,
    }
}

/// A request as the model saw it, in JSON.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct SeenRequest {
    pub(in super::super) system: String,
    pub(in super::super) tools: String,
    pub(in super::super) turns: Vec<String>,
}

/// Answers in order; then with its last words.
#[derive(Debug)]
pub(in super::super) struct Model {
    origin: Origin,
    answers: Mutex<VecDeque<Answer>>,
    last: Mutex<Answer>,
    requests: Mutex<Vec<SeenRequest>>,
    prices: Prices,
    /// What it answers when it must not call tools.
    summary: Mutex<Option<String>>,
    /// Whether its usage is counted from what it is sent.
    counts: AtomicBool,
    is_silent: AtomicBool,
    is_blind: AtomicBool,
    /// Bytes of the longest conversation that it takes.
    window: AtomicUsize,
}

impl Model {
    pub(in super::super) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            origin: crate::transcript::tests::origin(),
            answers: Mutex::new(answers.into_iter().collect()),
            last: Mutex::new(says("nothing more")),
            requests: Mutex::default(),
            summary: Mutex::default(),
            counts: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            is_blind: AtomicBool::new(false),
            window: AtomicUsize::new(usize::MAX),
            prices: Prices {
                input: Some(1_000_000.0),
                output: Some(0.0),
                ..Prices::default()
            },
        }
    }

    pub(in super::super) fn then_says(&self, text: &str) {
        *self.last.lock().unwrap() = says(text);
    }

    pub(in super::super) fn then(&self, answer: Answer) {
        *self.last.lock().unwrap() = answer;
    }

    /// Asks for so much a million tokens of input.
    pub(in super::super) fn costing(mut self, usd: f64) -> Self {
        self.prices.input = Some(usd);
        self
    }

    /// Reports no usage.
    pub(in super::super) fn silent(self) -> Self {
        self.is_silent.store(true, Ordering::Relaxed);
        self
    }

    /// Has another name.
    pub(in super::super) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.origin.model);
    }

    /// Refuses every request.
    pub(in super::super) fn refusing(self) -> Self {
        self.answers.lock().unwrap().push_back(Answer::Refused);
        self
    }

    /// Refuses pictures.
    pub(in super::super) fn blind(self) -> Self {
        self.is_blind.store(true, Ordering::Relaxed);
        self
    }

    /// Refuses conversations of more bytes.
    pub(in super::super) fn holding(self, n_bytes: usize) -> Self {
        self.window.store(n_bytes, Ordering::Relaxed);
        self
    }

    /// Counts four bytes of a request as a token.
    pub(in super::super) fn counting(self) -> Self {
        self.counts.store(true, Ordering::Relaxed);
        self
    }

    pub(in super::super) fn summarises(self, summary: &str) -> Self {
        *self.summary.lock().unwrap() = Some(summary.to_owned());
        self
    }

    pub(in super::super) fn requests(&self) -> Vec<SeenRequest> {
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
        let text = |value: &Turn<'_>| serde_json::to_string(value).unwrap();
        self.requests.lock().unwrap().push(SeenRequest {
            system: request.system.join("\n"),
            tools: serde_json::to_string(request.tools).unwrap(),
            turns: request.turns.iter().map(text).collect(),
        });
        let is_blind = self.is_blind.load(Ordering::Relaxed);
        let is_refused = is_blind
            && request
                .turns
                .iter()
                .any(|turn| text(turn).contains("base64"));
        let n_bytes: usize = request.turns.iter().map(|turn| text(turn).len()).sum();
        let is_too_long = n_bytes > self.window.load(Ordering::Relaxed);
        Box::pin(async move {
            if is_too_long {
                return Err(failure(ProviderErrorKind::ContextLength, 400));
            }
            if is_refused {
                return Err(failure(ProviderErrorKind::Request, 400));
            }
            let summary = self.summary.lock().unwrap().clone();
            let next = match summary.filter(|_| request.options.forbids_calls) {
                Some(summary) => Some(says(&summary)),
                None => self.answers.lock().unwrap().pop_front(),
            };
            let answer = next.unwrap_or_else(|| self.last.lock().unwrap().clone());
            tokio::task::yield_now().await;
            let (turn, mut usage) = match answer {
                Answer::Turn(turn, usage) => (turn, usage),
                Answer::Fails => return Err(failure(ProviderErrorKind::Server, 503)),
                Answer::Refused => return Err(failure(ProviderErrorKind::Request, 400)),
                Answer::Breaks => {
                    on_event(ModelEvent::Usage(Usage {
                        input: 10,
                        output: 1,
                        ..Usage::default()
                    }));
                    on_event(ModelEvent::Text("x".repeat(400)));
                    tokio::task::yield_now().await;
                    return Err(failure(ProviderErrorKind::Cut, 200));
                }
            };
            if self.counts.load(Ordering::Relaxed) {
                let said = request
                    .turns
                    .iter()
                    .map(|turn| serde_json::to_string(turn).unwrap().len());
                usage.input = said.sum::<usize>() as u64 / 4;
            }
            if self.is_silent.load(Ordering::Relaxed) {
                usage = Usage::default();
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
