//! What happens in a turn, as updates.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;
use zeph_acp::content::ContentBlock;
use zeph_acp::update::{Cost, SessionUpdate};
use zeph_agent::Cost as Price;
use zeph_agent::event::{AgentEvent, Observer};

use super::session::AcpSession;

/// Tells the client of one turn.
#[derive(Debug)]
pub(super) struct TurnTelling {
    session: Arc<AcpSession>,
    cancel: CancellationToken,
    /// Tokens a request may come to.
    context_max: u64,
    /// Whether the client was told anything.
    has_told: AtomicBool,
    /// Whether the model's text of this request was told.
    has_text: AtomicBool,
}

impl TurnTelling {
    pub(super) fn new(
        session: &Arc<AcpSession>,
        cancel: &CancellationToken,
        context_max: u64,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            cancel: cancel.clone(),
            context_max,
            has_told: AtomicBool::new(false),
            has_text: AtomicBool::new(false),
        }
    }

    /// Whether the client was told anything of the turn.
    pub(super) fn has_told(&self) -> bool {
        self.has_told.load(Ordering::Acquire)
    }

    /// Says something in the place of the model.
    pub(super) fn say(&self, text: &str) {
        // Nothing more is said in a turn that its user does not want any more.
        if text.is_empty() || self.cancel.is_cancelled() {
            return;
        }
        self.has_told.store(true, Ordering::Release);
        self.session.tell(&message(text));
    }

    fn think(&self, text: &str) {
        if !text.is_empty() && !self.cancel.is_cancelled() {
            let content = ContentBlock::text(text);
            self.session
                .tell(&SessionUpdate::AgentThoughtChunk { content });
        }
    }

    /// `cost` is that of the session, where prices are known.
    fn spent(&self, cost: Option<Price>, context_tokens: u64) {
        let cost = cost.map(|cost| Cost {
            amount: cost.usd(),
            currency: "USD",
        });
        if !self.cancel.is_cancelled() {
            self.session.tell(&SessionUpdate::UsageUpdate {
                used: context_tokens,
                size: self.context_max,
                cost,
            });
        }
    }

    fn retry(&self, why: &str, seconds: f64, discards: bool) {
        self.think(&format!("{why}; asked again in {seconds:.1} s\n"));
        if discards && self.has_text.swap(false, Ordering::AcqRel) {
            self.say("\n\n*(the text since the last step is void: the model is asked again)*\n\n");
        }
    }
}

/// A piece of what the agent says.
pub(super) fn message(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk {
        content: ContentBlock::text(text),
    }
}

impl Observer for TurnTelling {
    fn on(&self, event: AgentEvent<'_>) {
        match event {
            AgentEvent::Waiting => self.has_text.store(false, Ordering::Release),
            AgentEvent::Answered => {}
            AgentEvent::Text(text) => {
                self.has_text.store(true, Ordering::Release);
                self.say(text);
            }
            AgentEvent::Thinking(text) => self.think(text),
            AgentEvent::Retry {
                why,
                after,
                discards,
            } => self.retry(why, after.as_secs_f64(), discards),
            AgentEvent::CallStarted(call) => {
                self.has_told.store(true, Ordering::Release);
                self.session.call_begins(call);
            }
            AgentEvent::CallEnded { call, end, .. } => self.session.call_ends(&call.id, end),
            AgentEvent::Spent {
                cost,
                session_cost,
                context_tokens,
                ..
            } => self.spent(cost.map(|_| session_cost), context_tokens),
            AgentEvent::Message(text) => {
                self.say(&format!(
                    "> {}\n\n",
                    text.lines().next().unwrap_or_default()
                ));
            }
            AgentEvent::Compacted { before, after } => self.think(&format!(
                "the conversation was compacted: about {before} tokens became {after}\n"
            )),
            AgentEvent::Notice(text) => self.think(&format!("{text}\n")),
        }
    }
}
