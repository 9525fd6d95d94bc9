//! What is learned from how calls end.

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::ExecutionFacts;
use zeph_core::id::CallId;
use zeph_core::output::{Outcome, ToolOutput};
use zeph_core::policy::LearnedCause;
use zeph_store::SequenceObservation;

use super::{GovernanceRoom, told};
use crate::clock::now_ms;
use crate::session::Session;

/// How often a call has to be refused, or a tool to fail, until that is learned.
const TIMES_NEEDED: u32 = 3;

/// How often what was not granted has to be tried.
const VIOLATIONS_NEEDED: u32 = 2;

/// Rules whose refusals say nothing about what a call does.
pub(super) const OWN_RULES: [&str; 5] = [
    "tools.governance",
    "quota",
    "trust",
    "mode read-only",
    "tools.dependencies",
];

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallEnd<'a> {
    pub(crate) output: &'a ToolOutput,
    pub(crate) facts: &'a ExecutionFacts,
    /// Whether it tried what was not granted.
    pub(crate) has_violated: bool,
}

impl CallEnd<'_> {
    /// Why its sequence went wrong, if it did. How a command ends is its own affair, and so is what passes by itself.
    pub(super) fn cause(&self, is_shell: bool) -> Option<LearnedCause> {
        let Outcome::Failed(failure) = &self.output.outcome else {
            return None;
        };
        if failure.phase != ErrorPhase::Execution {
            return None;
        }
        match failure.category {
            ErrorCategory::PolicyBlocked => Some(LearnedCause::Violated),
            _ if self.has_violated => Some(LearnedCause::Violated),
            ErrorCategory::PermanentFailure if !is_shell => Some(LearnedCause::Failed),
            _ => None,
        }
    }
}

/// Whether the words of a call say more than the names of its tool and of a program: without that, a sequence that ends with it would
/// block every call of one.
pub(crate) fn is_specific(words: &[String]) -> bool {
    let n_names = match words.first().map(String::as_str) {
        Some("bash") => 2,
        _ => 1,
    };
    words.len() > n_names
}

impl GovernanceRoom {
    /// Counts that the sequence that a call ends went wrong.
    pub(super) async fn learn(&self, session: &Session, id: CallId, cause: LearnedCause) {
        let words = session.trajectory().words(id);
        let learns =
            self.settings.trajectory && words.is_some_and(|words| is_specific(&words.pattern()));
        let Some(pattern) = session.trajectory().pattern(id).filter(|_| learns) else {
            return;
        };
        let n_needed = match cause {
            LearnedCause::Violated => VIOLATIONS_NEEDED,
            _ => TIMES_NEEDED,
        };
        self.observe(pattern, id, (Some(cause), n_needed)).await;
    }

    /// Counts for a sequence that went wrong before that it went well now.
    pub(super) async fn went_well(&self, session: &Session, id: CallId) {
        if !self.cache.has_candidates() {
            return;
        }
        let pattern = session.trajectory().pattern(id);
        if let Some(pattern) = pattern.filter(|pattern| self.cache.is_candidate(pattern)) {
            self.observe(pattern, id, (None, 0)).await;
        }
    }

    async fn observe(
        &self,
        words: Vec<String>,
        call_id: CallId,
        (cause, n_needed): (Option<LearnedCause>, u32),
    ) {
        let observed = SequenceObservation {
            words,
            cause,
            call_id,
            n_needed,
            at_ms: now_ms(),
        };
        match self.store.observe_sequence(observed).await {
            Ok(Some(id)) => tracing::info!(
                sequence = id,
                "a sequence of calls was learned; `zeph-host forgive {id}` removes it"
            ),
            Ok(None) => {}
            Err(error) => told(Err(error), "a sequence of calls cannot be learned"),
        }
        self.cache.forget();
    }
}
