//! A conversation that grows past its budget: old results go first, then the model writes a summary.

use super::{Agent, Stopped, Turn};
use crate::compaction::{
    SUMMARY_INSTRUCTIONS, TOKEN_BYTES, base, long_results, material, stub, tail_start,
    transcript_bytes,
};
use crate::event::{AgentEvent, Journal, TurnStatus};
use crate::message;
use crate::provider::{ModelRequest, RequestOptions};
use crate::tool_host::ToolHost;
use crate::transcript::{BaseEntry, Transcript, TranscriptEntry};
use crate::usage::SideSpending;

/// Percent of the budget at which compaction begins.
const COMPACT_PERCENT: u64 = 70;

/// Percent of the budget below which the results that were dropped are enough: a conversation that is larger is full again soon.
const ROOM_PERCENT: u64 = 50;

/// Percent of the budget at which the turn stops.
const STOP_PERCENT: u64 = 80;

/// Compactions in one turn: a conversation that is full again after the third is not helped by another one.
const REFILLS_MAX: u32 = 3;

/// Tokens of a summary.
const SUMMARY_TOKENS_MAX: u32 = 4_096;

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// Compacts the conversation when it has grown, and stops the turn when that did not help.
    pub(super) async fn make_room(&mut self, turn: &mut Turn<'_>) -> Result<(), Stopped> {
        if self.limits.compaction && self.is_beyond(COMPACT_PERCENT) {
            self.compact(turn).await?;
        }
        match self.is_beyond(STOP_PERCENT) {
            true => Err(TurnStatus::ContextFull),
            false => Ok(()),
        }
    }

    fn is_beyond(&self, percent: u64) -> bool {
        let bound = self.limits.context_budget_tokens.saturating_mul(percent) / 100;
        self.context_tokens() >= bound
    }

    /// Compacts the conversation; says whether it is shorter.
    ///
    /// Errors: why the turn that does it must stop.
    pub(super) async fn compact(&mut self, turn: &mut Turn<'_>) -> Result<bool, Stopped> {
        if turn.compactions >= REFILLS_MAX {
            return Ok(false);
        }
        turn.compactions += 1;
        let before = self.context_tokens();
        let mut is_shorter = self.drop_results(turn).await?;
        if self.is_beyond(ROOM_PERCENT) || !is_shorter {
            is_shorter |= self.summarise(turn).await?;
        }
        if is_shorter {
            turn.repetition = crate::repetition::Repetition::default();
            let after = self.context_tokens();
            turn.observer.on(AgentEvent::Compacted { before, after });
        }
        Ok(is_shorter)
    }

    /// Compacts all of a conversation: the user asked for it.
    pub(super) async fn compact_all(&mut self, turn: &mut Turn<'_>) -> Result<bool, Stopped> {
        let before = self.context_tokens();
        let dropped = self.drop_results(turn).await?;
        let is_shorter = self.summarise(turn).await? || dropped;
        if is_shorter {
            let after = self.context_tokens();
            turn.observer.on(AgentEvent::Compacted { before, after });
        }
        Ok(is_shorter)
    }

    /// Replaces old results by a reference to the stored text.
    async fn drop_results(&mut self, turn: &Turn<'_>) -> Result<bool, Stopped> {
        let entries = self.transcript.entries();
        let end = tail_start(entries, self.limits.context_budget_tokens);
        let long = long_results(entries, end);
        if long.is_empty() {
            return Ok(false);
        }
        let mut entries = entries.to_vec();
        for idx in &long {
            let TranscriptEntry::Result(result) = &mut entries[*idx] else {
                continue;
            };
            if result.handle.is_none() {
                result.handle = self.host.keep(&result.text).await;
            }
            result.text = stub(result.text.len(), result.handle.as_deref());
            result.images.clear();
        }
        self.go_on_from(entries, turn).await.map(|()| true)
    }

    /// Has the model write a summary of all but the latest entries.
    async fn summarise(&mut self, turn: &Turn<'_>) -> Result<bool, Stopped> {
        let budget = self.limits.context_budget_tokens;
        let entries = self.transcript.entries().to_vec();
        let (old, tail) = entries.split_at(tail_start(&entries, budget));
        if old.is_empty() {
            return Ok(false);
        }
        turn.observer
            .on(AgentEvent::Notice("the conversation is being compacted"));
        let Some((summary, spent)) = self.summary_of(old, turn).await? else {
            return Ok(false);
        };
        let standing = self.host.standing().await;
        let shorter = base((old, tail), &summary, &standing, budget);
        let is_shorter = transcript_bytes(&Transcript::load(shorter.iter().cloned()))
            < transcript_bytes(&self.transcript);
        if !is_shorter {
            turn.observer.on(AgentEvent::Notice(
                "the summary is not shorter than what it sums up; it is not used",
            ));
            self.append(TranscriptEntry::Spent(spent)).await?;
            return Ok(false);
        }
        self.go_on_from(shorter, turn).await?;
        Ok(true)
    }

    /// The summary and what it took; none when the model has none to give.
    async fn summary_of(
        &mut self,
        old: &[TranscriptEntry],
        turn: &Turn<'_>,
    ) -> Result<Option<(String, SideSpending)>, Stopped> {
        self.check_budget(turn)?;
        let bytes_max = self
            .limits
            .context_budget_tokens
            .saturating_mul(TOKEN_BYTES)
            / 2;
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let text = format!(
            "<conversation>\n{}</conversation>\n\nWrite the summary.",
            material(old, bytes_max)
        );
        let request_tokens = text.len() as u64 / TOKEN_BYTES;
        let turns = [message::Turn::User(message::UserTurn::text(text))];
        let system = [SUMMARY_INSTRUCTIONS.to_owned()];
        let request = ModelRequest {
            system: &system,
            tools: &[],
            turns: &turns,
            options: RequestOptions {
                max_tokens: Some(SUMMARY_TOKENS_MAX),
                forbids_calls: true,
                ..RequestOptions::default()
            },
        };
        let told = (&Silent as _, turn.cancel);
        let reply = match self.respond(request, told, || request_tokens).await {
            Ok(reply) => reply,
            Err(failed) => match self.failed(failed).await {
                TurnStatus::ProviderFailed(error) => {
                    let notice = format!("the conversation cannot be summarised: {error}");
                    turn.observer.on(AgentEvent::Notice(&notice));
                    return Ok(None);
                }
                stopped => return Err(stopped),
            },
        };
        let cost = self.count(&reply);
        let spent = SideSpending::of_request(reply.usage, cost);
        let text = reply.turn.text();
        if reply.turn.calls_may_run() && !text.trim().is_empty() {
            return Ok(Some((text, spent)));
        }
        self.append(TranscriptEntry::Spent(spent)).await?;
        Ok(None)
    }

    /// Entries that the conversation goes on from, with what it has used up until now.
    pub(super) fn base(&self, entries: Vec<TranscriptEntry>) -> BaseEntry {
        let side = self.transcript.side_spending();
        BaseEntry {
            usage: self.spending.usage.without(side.usage),
            cost: Some(self.spending.cost.without(side.cost)),
            side,
            entries,
        }
    }

    pub(super) async fn go_on_from(
        &mut self,
        entries: Vec<TranscriptEntry>,
        turn: &Turn<'_>,
    ) -> Result<(), Stopped> {
        let base = self.base(entries);
        let about = about(&base.entries);
        self.append(TranscriptEntry::Base(Box::new(base))).await?;
        self.measured = None;
        self.tools = self.host.definitions();
        let entries = self.choose(&about, turn).await;
        if !entries.is_empty() {
            let stored = self.record(entries).await;
            stored.map_err(TurnStatus::JournalFailed)?;
        }
        Ok(())
    }
}

/// What a conversation is about that goes on from these entries: the words of the user, and the summary.
fn about(entries: &[TranscriptEntry]) -> String {
    let said = entries.iter().filter_map(|entry| match entry {
        TranscriptEntry::User(user) => Some(user.text.as_str()),
        _ => None,
    });
    said.collect::<Vec<_>>().join("\n")
}

/// Shows nothing.
pub(super) struct Silent;

impl crate::event::Observer for Silent {
    fn on(&self, _event: AgentEvent<'_>) {}
}
