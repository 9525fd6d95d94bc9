//! Why a strategy gave no answer, in words for the operator's note; the log gets more.

use std::time::Duration;

use zeph_core::text::{plain_line, plain_text};

use super::{FAILURES_MAX, FILTER_TEXT_BYTES_MAX};
use crate::limiter::GuestStop;
use crate::log::GuestLog;

/// Most characters of what a guest or the engine says.
const REASON_CHARS_MAX: usize = 200;

/// A strategy that gave no answer. Each text is one plain line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterFailure {
    /// The component cannot be loaded, or is none of strategies.
    #[error("its component cannot be loaded: {0}")]
    NotLoaded(String),
    /// It does not take the options of the rule.
    #[error("it does not take its options: {0}")]
    Options(String),
    /// The output is longer than what components are given.
    #[error("the output has {n_bytes} bytes, {FILTER_TEXT_BYTES_MAX} are given to a component")]
    TooLong {
        /// How long it is.
        n_bytes: usize,
    },
    /// It took too long.
    #[error("it took longer than {} s", .0.as_secs_f64())]
    Time(Duration),
    /// It wanted too much of something else.
    #[error("it wanted more than {0}")]
    Greedy(String),
    /// It ended with a trap.
    #[error("it crashed{0}")]
    Crashed(String),
    /// It does not speak the contract.
    #[error("it broke its contract: {0}")]
    Broken(String),
    /// It failed too often in this session.
    #[error("it failed {FAILURES_MAX} times and is left alone for the rest of the session")]
    Off,
}

impl FilterFailure {
    /// Whether the rule or the output is at fault and the instance is as good as before.
    pub(super) fn is_of_the_rule(&self) -> bool {
        matches!(self, Self::Options(_) | Self::TooLong { .. } | Self::Off)
    }

    /// What the author's own words are worth on one line.
    pub(super) fn of_options(words: &str) -> Self {
        Self::Options(plain_line(words, REASON_CHARS_MAX))
    }

    /// The error of a guest.
    pub(super) fn of(error: &wasmtime::Error, log: &GuestLog) -> Self {
        if let Some(stop) = error.downcast_ref::<GuestStop>() {
            return Self::of_stop(*stop);
        }
        tracing::debug!(error = %plain_text(&format!("{error:?}")), "a filter strategy failed");
        let said = log.last_words().map_or_else(String::new, |words| {
            format!("; it said: {}", plain_line(&words, REASON_CHARS_MAX))
        });
        if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
            return Self::Crashed(format!(": it ended itself with exit code {}{said}", exit.0));
        }
        if format!("{error:#}").contains("fuel allocated for hostcalls") {
            let n_mib = super::ANSWER_BYTES_MAX >> 20;
            return Self::Greedy(format!("{n_mib} MiB for its answer"));
        }
        match error.downcast_ref::<wasmtime::Trap>() {
            Some(wasmtime::Trap::UnreachableCodeReached) => Self::Crashed(said),
            Some(trap) => Self::Crashed(format!(" ({trap}){said}")),
            None => Self::Broken(plain_line(
                &error.root_cause().to_string(),
                REASON_CHARS_MAX,
            )),
        }
    }

    fn of_stop(stop: GuestStop) -> Self {
        match stop {
            GuestStop::WallClock(limit) | GuestStop::Cpu(limit) => Self::Time(limit),
            GuestStop::Memory(limit) => Self::Greedy(format!("{} MiB of memory", limit >> 20)),
            GuestStop::Table(limit) => Self::Greedy(format!("{limit} table elements")),
            GuestStop::HostCalls(limit) => Self::Greedy(format!("{limit} host calls")),
            GuestStop::Cancelled => Self::Broken("the call was cancelled".to_owned()),
        }
    }
}
