//! A conversation that grows past its budget, or that the provider refuses as too long: old results go first, then the model writes a
//! summary, then what it has not been sent is cut.

use super::{Agent, Stopped, Turn};
use crate::compaction::{
    SUMMARY_INSTRUCTIONS, TOKEN_BYTES, abridged, base, entry_bytes, is_longer, level, long_results,
    material, shortened, stub, tail_start, transcript_bytes, unseen_lengths, unseen_start,
};
use crate::error::ProviderErrorKind;
use crate::event::{AgentEvent, Journal, TurnStatus};
use crate::message;
use crate::provider::{ModelRequest, Reply, RequestOptions};
use crate::tool_host::ToolHost;
use crate::transcript::{BaseEntry, Transcript, TranscriptEntry};
use crate::usage::SideSpending;

/// Percent of the budget at which compaction begins.
const COMPACT_PERCENT: u64 = 70;

/// Percent of the budget below which the results that were dropped are enough: a conversation that is larger is full again soon.
const ROOM_PERCENT: u64 = 50;

/// Percent of the budget at which the turn stops.
const STOP_PERCENT: u64 = 80;

/// Compactions that follow each other closely: a conversation that is full again after the third is not helped by another one.
const REFILLS_MAX: u32 = 3;

/// Rounds of calls between two compactions that do not follow each other closely.
const REFILL_ROUNDS: u32 = 3;

/// Tokens of a summary.
const SUMMARY_TOKENS_MAX: u32 = 4_096;

/// The share of the budget below which it is not worth a request to sum up what is old: one of this many.
const OLD_SHARE_MIN: u64 = 20;

/// Bytes of the conversation in the request for a summary that every model takes.
const MATERIAL_BYTES_MIN: usize = 8_000;

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// Compacts the conversation when it has grown, and stops the turn when that did not help.
    pub(super) async fn make_room(&mut self, turn: &mut Turn<'_>) -> Result<(), Stopped> {
        if self.limits.compaction && self.is_beyond(COMPACT_PERCENT) {
            self.compact(turn).await?;
            if !self.is_beyond(ROOM_PERCENT) {
                turn.compactions = 0;
            }
        }
        match self.is_beyond(STOP_PERCENT) {
            true => Err(TurnStatus::ContextFull),
            false => Ok(()),
        }
    }

    fn is_beyond(&self, percent: u64) -> bool {
        self.context_tokens() >= self.percent_of_budget(percent)
    }

    fn percent_of_budget(&self, percent: u64) -> u64 {
        self.budget_tokens().saturating_mul(percent) / 100
    }

    /// Tokens that a request may come to: what the operator allows, and the model in use takes, as far as that is known.
    pub(super) fn budget_tokens(&self) -> u64 {
        let budget = self.limits.context_budget_tokens;
        self.window_tokens
            .map_or(budget, |window| budget.min(window))
    }

    /// Compacts a conversation that the provider refuses as too long, against the length that was refused; says whether it is shorter.
    pub(super) async fn fit(&mut self, turn: &mut Turn<'_>) -> Result<bool, Stopped> {
        let refused = self.context_tokens();
        self.window_tokens = Some(self.budget_tokens().min(refused));
        self.compact(turn).await
    }

    /// Compacts the conversation; says whether it is shorter.
    ///
    /// Errors: why the turn that does it must stop.
    pub(super) async fn compact(&mut self, turn: &mut Turn<'_>) -> Result<bool, Stopped> {
        if turn.rounds >= turn.compacted_in + REFILL_ROUNDS {
            turn.compactions = 0;
        }
        if turn.compactions >= REFILLS_MAX {
            return Ok(false);
        }
        turn.compactions += 1;
        turn.compacted_in = turn.rounds;
        let before = self.context_tokens();
        let mut is_shorter = self.drop_results(turn).await?;
        if self.is_beyond(ROOM_PERCENT) || !is_shorter {
            let old_min = self.budget_tokens().saturating_mul(TOKEN_BYTES) / OLD_SHARE_MIN;
            is_shorter |= self.summarise(old_min, turn).await?;
        }
        if self.is_beyond(STOP_PERCENT) {
            is_shorter |= self.abridge(turn).await?;
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
        let is_shorter = self.summarise(1, turn).await? || dropped;
        if is_shorter {
            let after = self.context_tokens();
            turn.observer.on(AgentEvent::Compacted { before, after });
        }
        Ok(is_shorter)
    }

    /// Replaces old results by a reference to the stored text.
    async fn drop_results(&mut self, turn: &Turn<'_>) -> Result<bool, Stopped> {
        let entries = self.transcript.entries();
        let end = tail_start(entries, self.budget_tokens());
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

    /// Cuts results, attached files and what the user said, as far as the model has not been sent them and they leave no room for anything
    /// else. All of each is stored.
    async fn abridge(&mut self, turn: &Turn<'_>) -> Result<bool, Stopped> {
        let mut entries = self.transcript.entries().to_vec();
        let since = unseen_start(&entries);
        let lengths = unseen_lengths(&entries[since..]);
        let excess = self.context_tokens().saturating_sub(self.unseen_room());
        let excess = usize::try_from(excess.saturating_mul(TOKEN_BYTES)).unwrap_or(usize::MAX);
        let bytes_max = lengths.iter().sum::<usize>().saturating_sub(excess);
        let bytes_max = level(lengths, bytes_max);
        let mut n_cut = 0_usize;
        for entry in &mut entries[since..] {
            n_cut += self.abridge_entry(entry, bytes_max).await;
        }
        if n_cut == 0 {
            return Ok(false);
        }
        turn.observer.on(AgentEvent::Notice(
            "what the model is to be sent is longer than its context: the longest texts keep their beginning and their end",
        ));
        self.go_on_from(entries, turn).await.map(|()| true)
    }

    /// Tokens that a request may come to when it was cut: half of what the system prompt and the tools leave, so that the model can go on.
    fn unseen_room(&self) -> u64 {
        let fixed = self.fixed_bytes() / TOKEN_BYTES;
        let left = self.budget_tokens().saturating_sub(fixed);
        let room = fixed.saturating_add(left / 2);
        room.min(self.percent_of_budget(COMPACT_PERCENT))
    }

    /// How many texts of the entry were cut.
    async fn abridge_entry(&self, entry: &mut TranscriptEntry, bytes_max: usize) -> usize {
        match entry {
            TranscriptEntry::Result(result) if is_longer(&result.text, bytes_max) => {
                if result.handle.is_none() {
                    result.handle = self.host.keep(&result.text).await;
                }
                result.text = abridged(&result.text, bytes_max, result.handle.as_deref());
                1
            }
            TranscriptEntry::User(user) => {
                let said = (!user.is_summary).then_some(&mut user.text);
                let attached = user.attachments.iter_mut();
                let texts = attached.filter_map(|one| one.text.as_mut()).chain(said);
                let mut n_cut = 0;
                for text in texts.filter(|text| is_longer(text, bytes_max)) {
                    let handle = self.host.keep(text).await;
                    *text = abridged(text, bytes_max, handle.as_deref());
                    n_cut += 1;
                }
                n_cut
            }
            _ => 0,
        }
    }

    /// Has the model write a summary of all but the latest entries, where they have at least `old_bytes_min`.
    async fn summarise(&mut self, old_bytes_min: u64, turn: &Turn<'_>) -> Result<bool, Stopped> {
        let budget = self.budget_tokens();
        let entries = self.transcript.entries().to_vec();
        let (old, tail) = entries.split_at(tail_start(&entries, budget));
        if old.iter().map(entry_bytes).sum::<u64>() < old_bytes_min {
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

    /// The summary and what it took; none when the model has none to give. Where its window is too small for the request, it is asked again
    /// with less.
    async fn summary_of(
        &mut self,
        old: &[TranscriptEntry],
        turn: &Turn<'_>,
    ) -> Result<Option<(String, SideSpending)>, Stopped> {
        let bytes_max = self.budget_tokens().saturating_mul(TOKEN_BYTES) / 2;
        let mut material = material(old, usize::try_from(bytes_max).unwrap_or(usize::MAX));
        let reply = loop {
            match self.ask_for_summary(&material, turn).await {
                Ok(reply) => break reply,
                Err(TurnStatus::ProviderFailed(error)) => {
                    let is_too_long = error.kind == ProviderErrorKind::ContextLength;
                    if is_too_long && material.len() > MATERIAL_BYTES_MIN {
                        material = shortened(&material, material.len() / 2);
                        continue;
                    }
                    let notice = format!("the conversation cannot be summarised: {error}");
                    turn.observer.on(AgentEvent::Notice(&notice));
                    return Ok(None);
                }
                Err(stopped) => return Err(stopped),
            }
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

    async fn ask_for_summary(&mut self, material: &str, turn: &Turn<'_>) -> Result<Reply, Stopped> {
        self.check_budget(turn)?;
        let text = format!("<conversation>\n{material}</conversation>\n\nWrite the summary.");
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
        match self.respond(request, told, || request_tokens).await {
            Ok(reply) => Ok(reply),
            Err(failed) => Err(self.failed(failed).await),
        }
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
