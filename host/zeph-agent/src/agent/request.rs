//! One request: the bounds before it, what is sent, and what is told while the answer arrives.

use tokio_util::sync::CancellationToken;

use super::{Agent, Stopped, Turn};
use crate::budget::Spent;
use crate::compaction::{TOKEN_BYTES, entry_bytes};
use crate::error::ProviderErrorKind;
use crate::event::{AgentEvent, Journal, Observer, TurnStatus};
use crate::message;
use crate::provider::{ModelEvent, ModelRequest, Reply, RequestOptions, RequestPreview, SeenUsage};
use crate::tool_host::ToolHost;
use crate::transcript::{AssistantEntry, TranscriptEntry, UserEntry, derive};
use crate::usage::{Cost, SideSpending, Usage};

/// What helps where a conversation is too long and does not become short enough.
const TOO_LONG: &str = "; begin a new conversation, and set `agent.context_budget_tokens` no larger than the context window of the model";

/// A request that was not answered, or not to the end.
#[derive(Debug)]
pub(super) struct FailedRequest {
    stopped: Stopped,
    /// What it took nevertheless.
    usage: Usage,
}

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// The model's answer to the conversation, which is compacted while the provider refuses it as too long.
    pub(super) async fn ask(&mut self, turn: &mut Turn<'_>) -> Result<AssistantEntry, Stopped> {
        let window_tokens = self.window_tokens;
        loop {
            let mut error = match self.ask_as_it_is(turn).await {
                Err(TurnStatus::ProviderFailed(error)) => error,
                asked => return asked,
            };
            let is_too_long = error.kind == ProviderErrorKind::ContextLength;
            if is_too_long && self.limits.compaction && self.fit(turn).await? {
                continue;
            }
            // Nothing shorter was answered either: what was refused says nothing of the window.
            self.window_tokens = window_tokens;
            if is_too_long {
                error.message.push_str(TOO_LONG);
            }
            return Err(TurnStatus::ProviderFailed(error));
        }
    }

    /// The model's answer; where the provider refuses the request, the one without pictures that it may have refused.
    async fn ask_as_it_is(&mut self, turn: &Turn<'_>) -> Result<AssistantEntry, Stopped> {
        let asked = self.try_ask(None, turn).await;
        let Err(TurnStatus::ProviderFailed(error)) = &asked else {
            return asked;
        };
        // Pictures are most of a request that has too many bytes (413).
        if error.kind != ProviderErrorKind::Request && error.status != Some(413) {
            return asked;
        }
        match self.without_images(turn) {
            Some(entries) => self.try_ask(Some(entries), turn).await,
            None => asked,
        }
    }

    /// Sends the conversation, or what it shall go on from `instead`, once the model has answered to that.
    async fn try_ask(
        &mut self,
        instead: Option<Vec<TranscriptEntry>>,
        turn: &Turn<'_>,
    ) -> Result<AssistantEntry, Stopped> {
        self.check_budget(turn)?;
        turn.observer.on(AgentEvent::Waiting);
        let turns = derive(instead.as_deref().unwrap_or(self.transcript.entries()));
        let request = ModelRequest {
            system: &self.system,
            tools: &self.tools,
            turns: &turns,
            options: RequestOptions::default(),
        };
        let told = (turn.observer, turn.cancel);
        let reply = self.respond(request, told, || self.context_tokens()).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(failed) => return Err(self.failed(failed).await),
        };
        if let Some(entries) = instead {
            self.go_on_from(entries, turn).await?;
        }
        let n_entries = self.transcript.entries().len();
        let cost = self.count(&reply);
        self.host.answered(&reply.usage);
        self.measured = Some((reply.usage.total(), n_entries.saturating_add(1)));
        turn.observer.on(AgentEvent::Spent {
            usage: &reply.usage,
            cost,
            session_cost: self.spending.cost,
            context_tokens: self.context_tokens(),
        });
        Ok(AssistantEntry {
            turn: reply.turn,
            usage: reply.usage,
            cost: Some(cost.unwrap_or_default()),
        })
    }

    /// Sends a request and waits, unless it is cancelled. `request_tokens` is about what the request takes, for a provider that reports none.
    pub(super) async fn respond(
        &self,
        request: ModelRequest<'_>,
        (observer, cancel): (&dyn Observer, &CancellationToken),
        request_tokens: impl FnOnce() -> u64,
    ) -> Result<Reply, FailedRequest> {
        let mut seen = SeenUsage::default();
        let mut on_event = |event: ModelEvent| {
            seen.note(&event);
            tell(&event, observer);
        };
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(TurnStatus::Interrupted),
            reply = self.provider.respond(request, &mut on_event) => {
                reply.map_err(TurnStatus::ProviderFailed)
            }
        };
        match reply {
            Ok(reply) => Ok(reply.with_estimate(request_tokens)),
            Err(stopped) => Err(FailedRequest {
                stopped,
                usage: seen.total(request_tokens),
            }),
        }
    }

    /// Counts and stores what a request took that has no answer; why it has none.
    pub(super) async fn failed(&mut self, failed: FailedRequest) -> Stopped {
        let FailedRequest { stopped, usage } = failed;
        if usage.total() > 0 {
            let spent = SideSpending::of_request(usage, self.provider.prices().cost(&usage));
            self.spend(&spent);
            let stored = self.record(vec![TranscriptEntry::Spent(spent)]).await;
            if let Err(problem) = stored {
                tracing::warn!(problem, "what a failed request took is not stored");
            }
        }
        stopped
    }

    /// Adds what a request took; what it cost, where prices are known.
    pub(super) fn count(&mut self, reply: &Reply) -> Option<Cost> {
        self.spending.usage += reply.usage;
        self.spending.requests += 1;
        let cost = self.provider.prices().cost(&reply.usage);
        self.spending.cost += cost.unwrap_or_default();
        cost
    }

    /// Adds what the host itself asked models for.
    pub(super) fn spend(&mut self, spent: &SideSpending) {
        self.spending.usage += spent.usage;
        self.spending.cost += spent.cost;
        self.spending.requests += spent.requests;
    }

    /// Stops before a request for which there is no budget left.
    pub(super) fn check_budget(&self, turn: &Turn<'_>) -> Result<(), Stopped> {
        if turn.cancel.is_cancelled() {
            return Err(TurnStatus::Interrupted);
        }
        match self.limits.budget.exhausted(&self.spent(turn)) {
            Some(exhausted) => Err(TurnStatus::Budget(exhausted)),
            None => Ok(()),
        }
    }

    /// What was used up until now.
    pub(super) fn spent(&self, turn: &Turn<'_>) -> Spent {
        Spent {
            cost_usd: self.spending.cost.usd(),
            tokens: self.spending.usage.total(),
            wall: turn.started.elapsed(),
        }
    }

    /// Tokens of the next request, about: the last usage, and what came since by its bytes.
    pub fn context_tokens(&self) -> u64 {
        let entries = self.transcript.entries();
        let bytes_of = |entries: &[TranscriptEntry]| entries.iter().map(entry_bytes).sum::<u64>();
        match self.measured {
            Some((tokens, n_entries)) => {
                let since = entries.get(n_entries..).unwrap_or_default();
                tokens.saturating_add(bytes_of(since) / TOKEN_BYTES)
            }
            None => bytes_of(entries).saturating_add(self.fixed_bytes()) / TOKEN_BYTES,
        }
    }

    /// Bytes of the system prompt and the tools.
    pub(super) fn fixed_bytes(&self) -> u64 {
        let system: usize = self.system.iter().map(String::len).sum();
        let tools = self
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len());
        (system + tools.sum::<usize>()) as u64
    }

    /// The request that a prompt would make now, without sending it. Choosing its tools may take a request for vectors.
    pub async fn preview(&self, user: Option<UserEntry>) -> RequestPreview {
        let mut unused = SideSpending::default();
        let chosen = match &user {
            Some(user) => self.chosen_for(&user.text, &mut unused).await,
            None => None,
        };
        let mut entries = self.transcript.entries().to_vec();
        entries.extend(self.lost_tasks());
        entries.extend(user.map(|user| TranscriptEntry::User(Box::new(user))));
        let mut turns = derive(&entries);
        if !matches!(turns.last(), Some(message::Turn::User(_))) {
            turns.push(message::Turn::User(message::UserTurn::default()));
        }
        self.provider.preview(ModelRequest {
            system: &self.system,
            tools: chosen.as_deref().unwrap_or(&self.tools),
            turns: &turns,
            options: RequestOptions::default(),
        })
    }
}

fn tell(event: &ModelEvent, observer: &dyn Observer) {
    match event {
        ModelEvent::Text(text) => observer.on(AgentEvent::Text(text)),
        ModelEvent::Thinking(text) => observer.on(AgentEvent::Thinking(text)),
        ModelEvent::Retry {
            after,
            why,
            discards,
            ..
        } => observer.on(AgentEvent::Retry {
            why,
            after: *after,
            discards: *discards,
        }),
        ModelEvent::CallStarted { .. }
        | ModelEvent::CallArguments { .. }
        | ModelEvent::Usage(_) => {}
    }
}
