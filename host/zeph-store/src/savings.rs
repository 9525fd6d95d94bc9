//! What shortening outputs saved, summed by conversation and rule.
//!
//! Sums outlive their conversation: when it is swept they go on under none. Writing them never makes a call wait.

use serde::Serialize;
use zeph_core::id::{ConversationId, OverflowId};

use crate::error::StoreError;
use crate::store::{Access, Store};

/// The name under which all outputs are summed. No rule has an empty name.
pub(crate) const ALL_OUTPUTS: &str = "";

/// The conversation of sums whose own is gone.
pub(crate) const NO_CONVERSATION: &str = "";

/// The sums of [`AskedCalls`], and the calls they are about.
macro_rules! asked_sums {
    () => {
        "count(*), count(CASE WHEN asked THEN 1 END),
            count(CASE WHEN asked AND error_category = 'confirmation_required' THEN 1 END)
         FROM audit WHERE asked IS NOT NULL"
    };
}

pub(crate) use asked_sums;

/// Sums over outputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Savings {
    /// The rule that worked; empty for the sums over all outputs, where one that several rules worked on counts once.
    pub rule: String,
    /// Outputs it was tried on.
    pub n_outputs: u64,
    /// Outputs that were shortened.
    pub n_shortened: u64,
    /// Lines as the commands printed them.
    pub lines_before: u64,
    /// Lines that were shown.
    pub lines_after: u64,
    /// Bytes as the commands printed them.
    pub bytes_before: u64,
    /// Bytes that were shown.
    pub bytes_after: u64,
    /// Outputs that were as expected.
    pub n_full: u64,
    /// Outputs that were handled by a guess.
    pub n_partial: u64,
    /// Outputs that were not as expected.
    pub n_fallback: u64,
    /// Shortened outputs whose whole was read back.
    pub n_read_back: u64,
}

/// One output that rules were tried on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredOutput {
    /// The rules, in order.
    pub rules: Vec<String>,
    /// Whether it was shortened.
    pub is_shortened: bool,
    /// Lines before and after.
    pub lines: (u64, u64),
    /// Bytes before and after.
    pub bytes: (u64, u64),
    /// How sure the rules were.
    pub fit: RuleCoverage,
}

/// What the cache of results saved, over the calls that are still recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CacheSavings {
    /// Calls that were answered from an earlier one.
    pub n_hits: u64,
    /// Bytes of those answers.
    pub bytes: u64,
}

/// How often calls of programs and models needed a person, over the calls that are still recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AskedCalls {
    /// Calls; those that a person made at the terminal are not counted.
    pub n_calls: u64,
    /// Those among them that only a person could let run: one was asked, or nobody could be.
    pub n_asked: u64,
    /// Those among these that nobody answered.
    pub n_unanswered: u64,
}

/// How well an output fitted its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleCoverage {
    /// As expected.
    Full,
    /// By a guess.
    Partial,
    /// Not as expected.
    Fallback,
}

impl Savings {
    /// The sums over one output.
    pub(crate) fn of_output(rule: &str, output: &FilteredOutput) -> Self {
        let FilteredOutput {
            rules: _,
            is_shortened,
            lines,
            bytes,
            fit,
        } = output;
        let one_if = u64::from;
        Self {
            rule: rule.to_owned(),
            n_outputs: 1,
            n_shortened: one_if(*is_shortened),
            lines_before: lines.0,
            lines_after: lines.1,
            bytes_before: bytes.0,
            bytes_after: bytes.1,
            n_full: one_if(*fit == RuleCoverage::Full),
            n_partial: one_if(*fit == RuleCoverage::Partial),
            n_fallback: one_if(*fit == RuleCoverage::Fallback),
            n_read_back: 0,
        }
    }

    /// The sums in the order of their columns.
    pub(crate) fn numbers(&self) -> [u64; 10] {
        let Self {
            n_outputs,
            n_shortened,
            lines_before,
            lines_after,
            bytes_before,
            bytes_after,
            n_full,
            n_partial,
            n_fallback,
            n_read_back,
            ..
        } = *self;
        [
            n_outputs,
            n_shortened,
            lines_before,
            lines_after,
            bytes_before,
            bytes_after,
            n_full,
            n_partial,
            n_fallback,
            n_read_back,
        ]
    }
}

impl Store {
    /// Adds one output to the sums. Returns at once; when too much waits to be written it is omitted.
    pub fn count_filtered(&self, conversation: ConversationId, output: FilteredOutput, at_ms: i64) {
        self.queue_and_go("count a shortened output", move |operations| {
            operations.count_filtered(conversation, &output, at_ms)
        });
    }

    /// Stores the full text of an output that `rules` shortened, as [`Store::put_overflow`] does.
    ///
    /// Errors: what the database says.
    pub async fn put_filtered(
        &self,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        rules: Vec<String>,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        let rules = serde_json::Value::from(rules).to_string();
        self.put(conversation, content, Some(rules), at_ms).await
    }

    /// Counts that a stored output was read, once for each output that rules shortened. Returns at once.
    pub fn count_read_back(&self, conversation: ConversationId, id: OverflowId) {
        self.queue_and_go("count an output that was read back", move |operations| {
            operations.count_read_back(conversation, id)
        });
    }

    /// The sums of one conversation or of all, that over all outputs first, then by name.
    ///
    /// Errors: what the database says.
    pub async fn savings(
        &self,
        conversation: Option<ConversationId>,
    ) -> Result<Vec<Savings>, StoreError> {
        self.run("read what was saved", Access::Read, move |operations| {
            operations.savings(conversation)
        })
        .await
    }

    /// What the cache of results saved in one conversation or in all.
    ///
    /// Errors: what the database says.
    pub async fn cache_savings(
        &self,
        conversation: Option<ConversationId>,
    ) -> Result<CacheSavings, StoreError> {
        self.run(
            "read what the cache saved",
            Access::Read,
            move |operations| operations.cache_savings(conversation),
        )
        .await
    }

    /// How often calls needed a person, in one conversation or in all.
    ///
    /// Errors: what the database says.
    pub async fn asked_calls(
        &self,
        conversation: Option<ConversationId>,
    ) -> Result<AskedCalls, StoreError> {
        self.run(
            "read how often a person was asked",
            Access::Read,
            move |operations| operations.asked_calls(conversation),
        )
        .await
    }
}
