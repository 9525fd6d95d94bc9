//! When a tool fails so often that it is blocked: a sliding window over its last executions.
//!
//! Only what the tool itself is to blame for counts ([`Blame`]); what ended for another reason is no execution of it. There is a window for
//! every tool and every owner of tools, and one of its own for every caller, so that no caller's failures block a tool for another. A
//! window is empty until the first failure: what succeeded before would not change what it says.

use serde::{Deserialize, Serialize};

use crate::failure::{Blame, ToolFailure};

/// When an alert is raised (`tools.anomaly`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnomalySettings {
    /// Executions that are looked at; at least 1.
    pub window_size: usize,
    /// The part of them that may fail, from 0 to 1. More raises an alert.
    pub failure_threshold: f64,
    /// Whether an alert blocks.
    pub auto_block: bool,
}

/// What came of an execution, as far as the tool is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It did its work.
    Done,
    /// It failed, and its arguments may be the cause.
    Arguable,
    /// It broke.
    Broken,
}

/// One execution of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowItem {
    /// What came of it.
    pub outcome: ToolOutcome,
    /// The tool, in a window over all tools of an owner; else empty.
    pub tool: String,
}

/// The last executions of a tool, or of the tools of an owner, for one caller; the newest last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Window(Vec<WindowItem>);

/// A rate of failures that is critical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CriticalRate {
    /// Executions that failed.
    pub n_failed: usize,
    /// Of so many.
    pub n_last: usize,
}

impl ToolOutcome {
    /// What an ended call says of its tool; `None` when that is nothing. `is_own`: the tool is part of the program, whose own failures to do
    /// what it was asked for are answers.
    pub fn of(result: Result<(), &ToolFailure>, is_own: bool) -> Option<Self> {
        let Err(failure) = result else {
            return Some(Self::Done);
        };
        match failure.blame() {
            Blame::Tool => Some(Self::Broken),
            Blame::ToolOrArguments if is_own => Some(Self::Done),
            Blame::ToolOrArguments => Some(Self::Arguable),
            Blame::Elsewhere => None,
        }
    }
}

impl Window {
    /// Adds an execution, and lets go of what is more than `size`.
    pub fn push(&mut self, item: WindowItem, size: usize) {
        if self.0.is_empty() && item.outcome == ToolOutcome::Done {
            return;
        }
        self.0.push(item);
        let n_old = self.0.len().saturating_sub(size);
        self.0.drain(..n_old);
        if !self.0.iter().any(WindowItem::has_failed) {
            self.0.clear();
        }
    }

    /// Whether nothing has failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rate of failures, when it is critical.
    ///
    /// Shape: the rate is over `window_size` executions, those before the first failure included. Failures that arguments may have caused
    ///        count only when not one of these executions succeeded.
    pub fn critical(&self, settings: &AnomalySettings) -> Option<CriticalRate> {
        let n_last = settings.window_size;
        let n_of = |outcome| self.0.iter().filter(|item| item.outcome == outcome).count();
        let n_broken = n_of(ToolOutcome::Broken);
        let never_succeeded = self.0.len() >= n_last && n_of(ToolOutcome::Done) == 0;
        let n_failed = match never_succeeded {
            true => self.0.len(),
            false => n_broken,
        };
        #[expect(
            clippy::cast_precision_loss,
            reason = "a window has at most some thousand executions"
        )]
        let rate = n_failed as f64 / n_last.max(1) as f64;
        // At a threshold of 1 nothing exceeds it.
        let is_critical = rate > settings.failure_threshold;
        is_critical.then_some(CriticalRate { n_failed, n_last })
    }

    /// Whether more than one tool has failed in it.
    pub fn has_several(&self) -> bool {
        let mut failed = self.0.iter().filter(|item| item.has_failed());
        let first = failed.next();
        failed.any(|item| Some(&item.tool) != first.map(|item| &item.tool))
    }
}

impl WindowItem {
    fn has_failed(&self) -> bool {
        self.outcome != ToolOutcome::Done
    }
}

impl std::fmt::Display for CriticalRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { n_failed, n_last } = self;
        write!(f, "{n_failed} of its last {n_last} calls failed")
    }
}

#[cfg(test)]
mod tests;
