//! The loop: a prompt goes to the model, its calls to the host, their results back to the model, until it has finished or a bound stops
//! it.
//!
//! In reading order: a turn (here), `choice` (of the tools), `request` (what is sent, and the bounds before it), `round` (the calls of one
//! answer), `summary` (results that are too long), `compact` (a conversation that grows), `images` (that are refused). Everything that happens is an entry of the transcript before anything follows from it, so that a process
//! that is killed leaves a conversation that can go on.

mod choice;
mod compact;
mod images;
mod request;
mod round;
mod summary;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::budget::{BudgetLimits, Exhausted};
use crate::event::{AgentEvent, Journal, Observer, SessionSpending, TurnEnd, TurnStatus};
use crate::message::{AssistantTurn, StopReason};
use crate::provider::{Provider, ToolDefinition};
use crate::repetition::Repetition;
use crate::tool_host::{HostMessage, ToolHost};
use crate::transcript::{AssistantEntry, NoteEntry, Transcript, TranscriptEntry, UserEntry};
use crate::usage::{Cost, Usage};

/// The bounds of the loop.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentLimits {
    /// Rounds of calls in one turn.
    pub max_tool_iterations: u32,
    /// Tokens a request may come to.
    pub context_budget_tokens: u64,
    /// Whether a conversation that grows is compacted.
    pub compaction: bool,
    /// What a session may use up.
    pub budget: BudgetLimits,
}

/// A conversation with a model that has tools.
#[derive(Debug)]
pub struct Agent<H, J> {
    provider: Arc<dyn Provider>,
    host: H,
    journal: J,
    limits: AgentLimits,
    /// Byte for byte the same in every request.
    system: Vec<String>,
    /// Chosen when the conversation begins and when it is compacted, and the same in between.
    tools: Vec<ToolDefinition>,
    transcript: Transcript,
    /// Whether the model shortens results that are too long.
    summarizes: bool,
    spending: SessionSpending,
    /// Tokens of the last request and its answer, and the number of entries there were then.
    measured: Option<(u64, usize)>,
    /// Background tasks of an earlier process that the model has not been told of. Told with the next thing the user says, and not
    /// before: who only looks at a stored conversation changes nothing, and does not take it away from a process that goes on with it.
    lost: Vec<String>,
    /// Tokens of a request that was too long for the model in use, about: its window is smaller than the budget.
    window_tokens: Option<u64>,
}

/// What a turn remembers.
struct Turn<'a> {
    observer: &'a dyn Observer,
    cancel: &'a CancellationToken,
    started: Instant,
    repetition: Repetition,
    /// Tools whose last call was wrong, with the round of the first such call: a later round is the attempt to correct it.
    wrong: HashMap<String, u32>,
    rounds: u32,
    /// Compactions that followed each other closely.
    compactions: u32,
    /// The rounds there were at the last compaction.
    compacted_in: u32,
    needs_approval: bool,
    text: String,
}

impl<'a> Turn<'a> {
    fn new(observer: &'a dyn Observer, cancel: &'a CancellationToken) -> Self {
        Self {
            observer,
            cancel,
            started: Instant::now(),
            repetition: Repetition::default(),
            wrong: HashMap::new(),
            rounds: 0,
            compactions: 0,
            compacted_in: 0,
            needs_approval: false,
            text: String::new(),
        }
    }
}

/// Why a turn goes no further.
type Stopped = TurnStatus;

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// A conversation that begins, or goes on from `transcript`. Nothing is stored before its first turn.
    pub fn new(
        provider: Arc<dyn Provider>,
        (host, journal): (H, J),
        limits: AgentLimits,
        system: Vec<String>,
        transcript: Transcript,
    ) -> Self {
        let tools = choice::of_transcript(&host, &transcript);
        let lost = transcript.open_tasks();
        let lost = lost.into_iter().map(str::to_owned).collect();
        let (usage, side) = (transcript.usage(), transcript.side_spending());
        // Bounds of a session hold for all of it, whichever processes it ran in.
        let cost = transcript.cost(&provider.prices());
        let spending = SessionSpending {
            usage: usage + side.usage,
            cost: cost + side.cost,
            ..SessionSpending::default()
        };
        Self {
            provider,
            host,
            journal,
            limits,
            system,
            tools,
            transcript,
            summarizes: false,
            spending,
            measured: None,
            lost,
            window_tokens: None,
        }
    }

    /// Has the model shorten results that are too long, from now on.
    pub fn summarizes_results(&mut self, summarizes: bool) {
        self.summarizes = summarizes;
    }

    /// What was said and done.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What the session has used up; requests and calls since the process began.
    pub fn spending(&self) -> &SessionSpending {
        &self.spending
    }

    /// What the session has cost as far as prices are known; `None` when that is nothing, because the provider has no prices.
    pub fn cost(&self) -> Option<Cost> {
        let of_provider = self.provider.prices().cost(&Usage::default());
        let cost = self.spending.cost;
        (of_provider.is_some() || cost != Cost::default()).then_some(cost)
    }

    /// The bounds.
    pub fn limits(&self) -> &AgentLimits {
        &self.limits
    }

    /// What runs the calls.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// What keeps the conversation.
    pub fn journal(&self) -> &J {
        &self.journal
    }

    /// The model in use.
    pub fn provider(&self) -> &Arc<dyn Provider> {
        &self.provider
    }

    /// Uses another model from the next request on.
    pub fn use_provider(&mut self, provider: Arc<dyn Provider>) {
        self.provider = provider;
        self.measured = None;
        self.window_tokens = None;
    }

    /// Forgets what was said and done, also for those who load the conversation later; what it has used up counts on. The tools are
    /// chosen anew.
    ///
    /// Errors: in words, when it cannot be stored; then nothing is forgotten.
    pub async fn clear(&mut self) -> Result<(), String> {
        let base = self.base(Vec::new());
        self.record(vec![TranscriptEntry::Base(Box::new(base))])
            .await?;
        self.tools = choice::of_transcript(&self.host, &self.transcript);
        self.measured = None;
        self.lost.clear();
        Ok(())
    }

    /// A whole turn: what the user says, and all that follows from it.
    ///
    /// It always comes to an end that leaves a valid transcript. Cancelling ends it soon, and so does the end of its time; running calls
    /// are awaited.
    pub async fn turn(
        &mut self,
        user: UserEntry,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        let max_wall = self.limits.budget.max_wall;
        let of_turn = cancel.child_token();
        let mut turn = Turn::new(observer, &of_turn);
        let ended = tokio::select! {
            biased;
            ended = self.rounds(user, &mut turn) => ended,
            never = cancel_after(max_wall, &of_turn) => match never {},
        };
        let status = match (ended, max_wall) {
            (Ok(()), _) => TurnStatus::Done,
            (Err(TurnStatus::Interrupted), Some(max)) if !cancel.is_cancelled() => {
                TurnStatus::Budget(Exhausted::Wall { max })
            }
            (Err(stopped), _) => stopped,
        };
        self.note_end(&status).await;
        TurnEnd {
            status,
            text: turn.text,
            needs_approval: turn.needs_approval,
        }
    }

    /// Compacts the conversation, however long it is; says whether it is shorter.
    ///
    /// Errors: why it was not even tried.
    pub async fn compact_now(
        &mut self,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<bool, TurnStatus> {
        self.compact_all(&mut Turn::new(observer, cancel)).await
    }

    async fn rounds(&mut self, user: UserEntry, turn: &mut Turn<'_>) -> Result<(), Stopped> {
        self.begin(user, turn).await?;
        loop {
            self.make_room(turn).await?;
            let answer = self.ask(turn).await?;
            let goes_on = self.take(&answer, turn);
            let calls: Vec<_> = answer.turn.calls().cloned().collect();
            let answer = TranscriptEntry::Assistant(Box::new(answer));
            if goes_on != Ok(true) {
                self.append(answer).await?;
                return goes_on.map(|_done| ());
            }
            turn.rounds += 1;
            self.round(answer, &calls, turn).await?;
            let ended = self.host.ended_meanwhile().await;
            self.note_ended(ended, turn).await?;
        }
    }

    /// What ended in the background or was lost, then what the user says.
    async fn begin(&mut self, user: UserEntry, turn: &Turn<'_>) -> Result<(), Stopped> {
        let ended = self.host.begin_turn().await;
        self.note_ended(ended, turn).await?;
        let mut entries = self.choose(&user.text, turn).await;
        entries.extend(self.lost_tasks());
        entries.push(TranscriptEntry::User(Box::new(user)));
        let stored = self.record(entries).await;
        stored.map_err(TurnStatus::JournalFailed)?;
        self.lost.clear();
        Ok(())
    }

    /// Tells the user and the model what ended in the background.
    async fn note_ended(
        &mut self,
        messages: Vec<HostMessage>,
        turn: &Turn<'_>,
    ) -> Result<(), Stopped> {
        for message in messages {
            turn.observer.on(AgentEvent::Message(&message.text));
            let note = NoteEntry {
                text: message.text,
                ended_task: message.ended_task,
            };
            self.append(TranscriptEntry::Note(note)).await?;
        }
        Ok(())
    }

    /// What the model is told of the background tasks of an earlier process. That process may still run, but it has lost the conversation
    /// once this is stored.
    fn lost_tasks(&self) -> impl Iterator<Item = TranscriptEntry> {
        let notes = self.lost.iter().map(|task| NoteEntry {
            text: format!(
                "[background lost] run_id={task}: the process that ran it no longer has this conversation; its output is lost"
            ),
            ended_task: Some(task.clone()),
        });
        notes.map(TranscriptEntry::Note)
    }

    /// Looks at how an answer ended: whether its calls are made now, or it has none.
    fn take(&self, answer: &AssistantEntry, turn: &mut Turn<'_>) -> Result<bool, Stopped> {
        let AssistantTurn { stop, .. } = &answer.turn;
        turn.text = answer.turn.text();
        turn.observer.on(AgentEvent::Answered);
        match stop {
            StopReason::Refusal => return Err(TurnStatus::Refused),
            StopReason::Length => {
                return Err(TurnStatus::Cut("it met the limit of length".to_owned()));
            }
            StopReason::MalformedCall => {
                return Err(TurnStatus::Cut(
                    "the model failed to write a call".to_owned(),
                ));
            }
            StopReason::Other(why) => return Err(TurnStatus::Cut(why.clone())),
            StopReason::EndTurn | StopReason::ToolCalls => {}
        }
        if answer.turn.is_empty() {
            return Err(TurnStatus::Empty);
        }
        if answer.turn.calls().next().is_none() {
            return Ok(false);
        }
        let max = self.limits.max_tool_iterations;
        match turn.cancel.is_cancelled() {
            true => Err(TurnStatus::Interrupted),
            false if turn.rounds >= max => Err(TurnStatus::IterationLimit { max }),
            false => Ok(true),
        }
    }

    /// Tells the model, at its next turn, why this one ended early.
    async fn note_end(&mut self, status: &TurnStatus) {
        let text = match status {
            TurnStatus::Done | TurnStatus::JournalFailed(_) => return,
            TurnStatus::Interrupted => "[the user interrupted the turn]".to_owned(),
            TurnStatus::ProviderFailed(_) => "[no answer: the provider failed]".to_owned(),
            other => format!("[the turn was ended: {other}]"),
        };
        let note = NoteEntry {
            text,
            ended_task: None,
        };
        if let Err(problem) = self.record(vec![TranscriptEntry::Note(note)]).await {
            tracing::warn!(problem, "the end of a turn is not stored");
        }
    }

    /// Stores an entry.
    async fn append(&mut self, entry: TranscriptEntry) -> Result<(), Stopped> {
        let stored = self.record(vec![entry]).await;
        stored.map_err(TurnStatus::JournalFailed)
    }

    /// Stores entries, then takes them for true.
    async fn record(&mut self, entries: Vec<TranscriptEntry>) -> Result<(), String> {
        self.journal.append(&entries).await?;
        entries
            .into_iter()
            .for_each(|entry| self.transcript.push(entry));
        Ok(())
    }
}

/// Cancels a turn when its time is over; who waits for it does so beside the turn.
async fn cancel_after(max_wall: Option<Duration>, turn: &CancellationToken) -> Infallible {
    if let Some(max) = max_wall {
        tokio::time::sleep(max).await;
        turn.cancel();
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests;
