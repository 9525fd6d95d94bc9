//! What is learned of sequences of calls, and what conversations remember: the words of their last calls, and the labels of what they read.
//!
//! A sequence is a candidate until it has gone wrong often enough without ever going well; then it is learned, and stays so until it
//! is forgiven. One that was forgiven is never learned again but by a person.

use serde::Serialize;
use zeph_core::id::{CallId, ConversationId, OverflowId};
use zeph_core::policy::{Label, LearnedCause};

use crate::error::StoreError;
use crate::store::{Access, Store, StoreReply, Task};

/// Most sequences that wait to be learned; the oldest go first.
pub(crate) const CANDIDATES_MAX: u32 = 2_000;

/// Most sequences that are learned. Beyond them only a person's are.
pub const LEARNED_MAX: u32 = 5_000;

/// Most labels of what a conversation read, and of its stored outputs, that are read back: the newest.
pub(crate) const HELD_MAX: u32 = 1_000;
pub(crate) const OF_OUTPUTS_MAX: u32 = 4_096;

/// Most destinations of one conversation that something was let go to; the oldest go first.
pub(crate) const RELEASES_MAX: u32 = 256;

/// As they stand in a row. What cannot be written was not let go.
pub(crate) fn labels_as_json(labels: &[Label]) -> String {
    serde_json::to_string(labels).unwrap_or_else(|_| "[]".to_owned())
}

/// How far the learning of a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SequenceState {
    /// It went wrong, not yet often enough.
    Candidate,
    /// It counts.
    Learned,
    /// A person wants it to be possible.
    Forgiven,
}

impl SequenceState {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Learned => "learned",
            Self::Forgiven => "forgiven",
        }
    }

    pub(crate) fn of_label(label: &str) -> Option<Self> {
        let all = [Self::Candidate, Self::Learned, Self::Forgiven];
        all.into_iter().find(|state| state.label() == label)
    }
}

/// A sequence that went wrong at least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSequence {
    /// What `zeph-host forgive` calls it; never used again.
    pub id: i64,
    /// Its words.
    pub words: Vec<String>,
    /// How far it is.
    pub state: SequenceState,
    /// Why it counts, or would.
    pub cause: LearnedCause,
    /// The call it was learned from.
    pub call_id: CallId,
    /// How often it went wrong.
    pub n_bad: u32,
    /// How often it went well.
    pub n_good: u32,
    /// When it last changed, in Unix milliseconds.
    pub at_ms: i64,
}

/// How a sequence ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceObservation {
    /// Its words.
    pub words: Vec<String>,
    /// Why it went wrong; none when it went well.
    pub cause: Option<LearnedCause>,
    /// Its last call.
    pub call_id: CallId,
    /// How often it has to go wrong to be learned.
    pub n_needed: u32,
    /// When.
    pub at_ms: i64,
}

/// What a conversation remembers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationPast {
    /// The words of its last calls, oldest first, as they were given.
    pub calls: Vec<(CallId, String)>,
    /// The labels of what it read, and of the outputs that are stored for it.
    pub labels: Vec<(Option<OverflowId>, Label)>,
    /// What a person let out of it: each destination with the labels of what was read by then.
    pub releases: Vec<(String, Vec<Label>)>,
}

impl Store {
    /// A number that changes when sequences do, in any process.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn sequences_version(&self) -> Result<i64, StoreError> {
        self.run("look for new sequences", Access::ReadRights, |operations| {
            operations.sequences_version()
        })
        .await
    }

    /// All sequences, by number.
    ///
    /// Errors: [`StoreError`] when the database cannot be read, or a row of it.
    pub async fn list_sequences(&self) -> Result<Vec<StoredSequence>, StoreError> {
        self.run("list the sequences", Access::Read, |operations| {
            operations.sequences()
        })
        .await
    }

    /// Counts how a sequence ended. Returns its number when it is learned by that.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn observe_sequence(
        &self,
        observed: SequenceObservation,
    ) -> Result<Option<i64>, StoreError> {
        self.run("learn a sequence", Access::Write, move |operations| {
            operations.observe_sequence(&observed)
        })
        .await
    }

    /// Learns a sequence because a person revoked its last call, whatever became of it before. Returns its number.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn revoke_sequence(
        &self,
        words: Vec<String>,
        call_id: CallId,
        at_ms: i64,
    ) -> Result<i64, StoreError> {
        self.run("revoke a sequence", Access::Write, move |operations| {
            operations.revoke_sequence(&words, call_id, at_ms)
        })
        .await
    }

    /// Lets a learned sequence happen again; says whether there was one of this number that counted.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn forgive_sequence(&self, id: i64, at_ms: i64) -> Result<bool, StoreError> {
        self.run("forgive a sequence", Access::Write, move |operations| {
            operations.forgive_sequence(id, at_ms)
        })
        .await
    }

    /// What a conversation remembers: at most `n_calls` calls.
    ///
    /// Errors: [`StoreError`] when the database cannot be read, or a row of it.
    pub async fn conversation_past(
        &self,
        conversation: ConversationId,
        n_calls: u32,
    ) -> Result<ConversationPast, StoreError> {
        self.run("recall a conversation", Access::Read, move |operations| {
            operations.conversation_past(conversation, n_calls)
        })
        .await
    }

    /// Remembers the words of a call, and forgets all but the last `n_calls` of its conversation. Waits for the queue alone.
    ///
    /// Errors: [`StoreError::Closed`].
    pub async fn remember_call(
        &self,
        conversation: ConversationId,
        (call, words): (CallId, String),
        n_calls: u32,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "remember a call";
        let work = move |operations: &dyn crate::operations::Operations| {
            operations.remember_call(conversation, (call, &words), n_calls, at_ms)
        };
        let reply = StoreReply::Logged(Box::new(move |result: Result<(), StoreError>| {
            if let Err(error) = result {
                tracing::error!(error = &error as &dyn std::error::Error, operation);
            }
        }));
        let task = Task::new(operation, Access::WriteSoon, work, reply);
        self.queue_task(task).await
    }

    /// Keeps the labels of what a conversation read, or of a stored output of it.
    ///
    /// Errors: [`StoreError`] when they cannot be recorded.
    pub async fn keep_labels(
        &self,
        conversation: ConversationId,
        output: Option<OverflowId>,
        labels: Vec<Label>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        self.run("keep labels", Access::Write, move |operations| {
            operations.keep_labels(conversation, output, &labels, at_ms)
        })
        .await
    }

    /// Keeps that a person let what has these labels go to a destination; what was let go there before is replaced.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn keep_release(
        &self,
        conversation: ConversationId,
        destination: String,
        labels: Vec<Label>,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        self.run("keep a release", Access::Write, move |operations| {
            operations.keep_release(conversation, (&destination, &labels), at_ms)
        })
        .await
    }
}
