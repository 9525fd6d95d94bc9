//! An agent with a model made of answers, a host made of results, a journal in memory, and an observer that can cancel.

mod host;
mod model;
mod record;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub(super) use self::host::FakeHost;
pub(super) use self::model::{Model, breaks, calls, fails, malformed_call, says};
pub(super) use self::record::{Memory, Watcher};
use crate::agent::{Agent, AgentLimits};
use crate::budget::BudgetLimits;
use crate::event::TurnEnd;
use crate::message::Turn;
use crate::provider::Provider;
use crate::transcript::{Transcript, UserEntry};

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
            .flat_map(|user| {
                user.results
                    .iter()
                    .map(|result| result.to_text().into_owned())
            })
            .collect()
    }
}

pub(super) fn user_entry(text: &str) -> UserEntry {
    UserEntry {
        text: text.to_owned(),
        attachments: Vec::new(),
        context: String::new(),
        is_summary: false,
        is_by_model: false,
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
        observer: Arc::default(),
        cancel: CancellationToken::new(),
    }
}
