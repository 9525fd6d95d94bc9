//! What was said and done in a conversation, entry by entry, and the turns a model is sent of it. Pure.
//!
//! Entries are appended as they happen, and stored as they are appended; nothing is ever changed. The messages are derived from them, by
//! one function of the entries alone. So the transcript is valid whatever is missing, at whichever entry a process was killed: each call
//! has exactly one result in the next message, ahead of any text. A call that never began was "not run"; of one that began and has no
//! result the outcome is unknown, and it is not made again. Results without a call are dropped. Because the same entries always give the
//! same messages, what a provider has cached stays valid.

mod turn;

use serde::{Deserialize, Serialize};

pub use self::turn::derive;
use crate::message::{AssistantTurn, Image, Turn};
use crate::usage::{Cost, Prices, SideSpending, Usage};

/// What happened, in the order it happened. Small: most of a conversation's entries say little, and it has thousands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptEntry {
    /// The user said something.
    User(Box<UserEntry>),
    /// A message for the model that nobody typed: the end of a background task, an interruption.
    Note(NoteEntry),
    /// The model answered, completely.
    Assistant(Box<AssistantEntry>),
    /// A call of the last answer began, or is about to: from now on its outcome may be unknown.
    Started {
        /// Its place among the calls of the answer, from 0.
        index: usize,
    },
    /// A call of the last answer ended.
    Result(Box<ResultEntry>),
    /// The conversation was compacted: it goes on from these entries, and those before are history.
    Base(Box<BaseEntry>),
    /// The tools of the conversation were chosen; until it is compacted they stay these.
    Tools {
        /// Their names.
        names: Vec<String>,
    },
    /// Models were asked for something that no other entry holds, such as vectors or a summary that was not used.
    Spent(SideSpending),
}

/// What the user said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserEntry {
    /// As it was typed.
    pub text: String,
    /// Files that were attached with `@`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What the host adds for this turn alone, such as the date and the goal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Whether the host wrote it: a summary of what was before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_summary: bool,
    /// Whether a model wrote it for later, as the prompt of a schedule: no user said it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_model: bool,
}

/// A file that was attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// As it was named.
    pub name: String,
    /// Its text, when it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// It, when it is an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// A message for the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteEntry {
    /// The message.
    pub text: String,
    /// The background task whose end it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_task: Option<String>,
}

/// What the model answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AssistantEntry {
    /// The answer, with the provider's own items in the order of the wire.
    pub turn: AssistantTurn,
    /// What the request and the answer used up.
    pub usage: Usage,
    /// What that cost at the prices of then, as far as they were known; none in entries of versions that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultEntry {
    /// Its place among the calls of the answer, from 0.
    pub index: usize,
    /// What the model is shown.
    pub text: String,
    /// Images the tool gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Whether it failed, was refused or cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The stored full text, such as `overflow:ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The background task it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Background tasks whose end it tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_tasks: Vec<String>,
    /// What the host itself asked models for it.
    #[serde(default, skip_serializing_if = "SideSpending::is_nothing")]
    pub spent: SideSpending,
}

/// Where a compacted conversation begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BaseEntry {
    /// All of it; none of them is a base.
    pub entries: Vec<TranscriptEntry>,
    /// What the conversation had used up until then, requests for summaries included, but for `side`.
    #[serde(default)]
    pub usage: Usage,
    /// What `usage` cost at the prices of then; none in entries of versions that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What was asked of other models until then, which have prices of their own.
    #[serde(default, skip_serializing_if = "SideSpending::is_nothing")]
    pub side: SideSpending,
}

/// The entries of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    entries: Vec<TranscriptEntry>,
    usage: Usage,
    cost: Cost,
    /// The part of `usage` whose cost is not stored.
    unpriced: Usage,
    side: SideSpending,
    tools: Option<Vec<String>>,
}

impl Transcript {
    /// A conversation that was stored. A base replaces what is before it.
    pub fn load(entries: impl IntoIterator<Item = TranscriptEntry>) -> Self {
        let mut transcript = Self::default();
        for entry in entries {
            transcript.push(entry);
        }
        transcript
    }

    /// Appends what happened.
    pub fn push(&mut self, entry: TranscriptEntry) {
        match entry {
            TranscriptEntry::Base(base) => {
                self.entries = base.entries;
                (self.usage, self.cost, self.unpriced) = Default::default();
                self.count(base.usage, base.cost);
                self.side = base.side;
                self.tools = None;
            }
            TranscriptEntry::Tools { names } => self.tools = Some(names),
            TranscriptEntry::Spent(spent) => self.side += spent,
            entry => {
                match &entry {
                    TranscriptEntry::Assistant(answer) => self.count(answer.usage, answer.cost),
                    TranscriptEntry::Result(result) => self.side += result.spent,
                    _ => {}
                }
                self.entries.push(entry);
            }
        }
    }

    fn count(&mut self, usage: Usage, cost: Option<Cost>) {
        self.usage += usage;
        match cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced += usage,
        }
    }

    /// What the conversation has used up, but for [`side_spending`](Self::side_spending).
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What [`usage`](Self::usage) cost when it was used up; at `prices`, where that is not stored.
    pub fn cost(&self, prices: &Prices) -> Cost {
        self.cost + prices.cost(&self.unpriced).unwrap_or_default()
    }

    /// What was asked of models beside the answers: for calls, for the choice of tools.
    pub fn side_spending(&self) -> SideSpending {
        self.side
    }

    /// The names of the tools that were chosen for it, when they were.
    pub fn tools(&self) -> Option<&[String]> {
        self.tools.as_deref()
    }

    /// All entries since the last base.
    pub fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    /// What a model is sent.
    pub fn turns(&self) -> Vec<Turn<'_>> {
        derive(&self.entries)
    }

    /// Background tasks that were started and whose end was never told.
    pub fn open_tasks(&self) -> Vec<&str> {
        let mut open: Vec<&str> = Vec::new();
        for entry in &self.entries {
            match entry {
                TranscriptEntry::Result(result) => {
                    open.extend(result.task.as_deref());
                    open.retain(|task| !result.ended_tasks.iter().any(|ended| ended == task));
                }
                TranscriptEntry::Note(note) => {
                    open.retain(|task| note.ended_task.as_deref() != Some(*task));
                }
                _ => {}
            }
        }
        open
    }
}

#[cfg(test)]
pub(crate) mod tests;
