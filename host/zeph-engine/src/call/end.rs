//! On which terms a call is made, and what is known of it when it has ended.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use zeph_core::failure::ToolFailure;
use zeph_core::inquiry::Inquiry;
use zeph_core::output::RawOutput;
use zeph_core::policy::PrivatePaths;

use crate::fs::{Touched, UsedFiles};
use crate::missing_grant::MissingGrant;
use crate::process::ProgramQueue;
use crate::services::ServiceQueue;
use crate::state::{GuestState, Inputs};

/// How an authorised call is made.
#[derive(Debug, Clone, Default)]
pub struct CallTerms {
    /// When it has to be over, should that be before its own limit.
    pub deadline: Option<Instant>,
    /// Whether all that the guest is told of files is written down.
    pub is_watched: bool,
    /// Whether every object that the guest uses is recorded.
    pub is_recorded: bool,
    /// Files whose content is private: the end of the call says which of them was opened.
    pub private: Arc<PrivatePaths>,
    /// Whether no result of the plugin depends on the date although it reads it: hash tables take their seeds from there.
    pub ignores_date: bool,
    /// Where the programs go that the guest wishes to run. It is closed when the guest is gone, at the latest some time after the call
    /// has returned.
    pub programs: Option<ProgramQueue>,
    /// Where what goes that the guest wishes the host to do elsewhere. It is closed as the other is.
    pub services: Option<ServiceQueue>,
}

impl CallTerms {
    pub(super) fn time_left(&self) -> Duration {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        self.deadline.map_or(Duration::MAX, left)
    }
}

/// How a call ended, and what it had tried.
#[derive(Debug)]
pub struct CallEnd {
    /// What the guest gave back, or why it gave nothing.
    pub result: Result<RawOutput, ToolFailure>,
    /// Operations refused because a grant is missing, merged; at most [`crate::REFUSED_MAX`] of files and as many of the network. A
    /// call may succeed all the same.
    pub refused: Vec<MissingGrant>,
    /// Whether an operation on files got to a granted tree, so that the call learned or changed something there.
    pub used_files: bool,
    /// What it used of files; single objects only where they are recorded. Not complete when the call outlived its limits.
    pub files: UsedFiles,
    /// Whether a request was let out to the network.
    pub used_network: bool,
    /// What the caller should know of what it left behind, one sentence each.
    pub left: Vec<String>,
    /// What it has to know from the user, when that is why it gave nothing.
    pub asked: Option<AskedCall>,
    /// Whether the same call may end otherwise: its failure is what the guest said of what it works with, and no limit, no crash
    /// and no change by others in what it had read.
    pub can_be_repeated: bool,
    /// All that the result depends on, besides arguments and grant. None when that was not watched, or is not all: the guest knows
    /// the date, random numbers, its frame, or what a server does not vouch for, or it looked at how much time had passed and took so
    /// long that this may be what ended it.
    pub touched: Option<Touched>,
}

/// A call that can be made again with answers.
#[derive(Debug)]
pub struct AskedCall {
    /// What its tool asks.
    pub inquiry: Inquiry,
    /// What it was made with.
    pub arguments: Map<String, Value>,
}

/// What is known of a guest's tries when it has ended.
#[derive(Default)]
pub(super) struct Tries {
    pub(super) refused: Vec<MissingGrant>,
    pub(super) used_files: bool,
    pub(super) used_network: bool,
    pub(super) met_change: bool,
    pub(super) touched: Option<Touched>,
    pub(super) files: UsedFiles,
    pub(super) left: Vec<String>,
}

impl Tries {
    /// Of a guest that could not be asked any more: the worst is assumed.
    pub(super) fn unknown() -> Self {
        Self {
            used_files: true,
            used_network: true,
            met_change: true,
            ..Self::default()
        }
    }

    /// Of one that ran for `time` and could plan with `planned`.
    /// The date is nothing that it learned where it `ignores_date`.
    pub(super) fn of(
        state: &mut GuestState,
        (time, planned): (Duration, Duration),
        ignores_date: bool,
    ) -> Self {
        let refused = state.take_refused();
        let Inputs {
            has_date,
            has_others,
            has_durations,
        } = state.inputs;
        let has_others = has_others || (has_date && !ignores_date);
        let used_network = state.network.is_used();
        let is_hurried = has_durations && time > planned / 2;
        let is_told_all = refused.is_empty() && !has_others && !is_hurried;
        let touched = state.fs.take_touched().filter(|_| is_told_all);
        let touched = match used_network {
            false => touched,
            true => touched
                .zip(state.network.fresh_until())
                .map(|(touched, until)| touched.until(until)),
        };
        Self {
            used_files: state.fs.is_used(),
            used_network,
            met_change: state.fs.met_change(),
            files: state.fs.take_used(),
            left: state.fs.end_drafts(),
            touched,
            refused,
        }
    }
}
