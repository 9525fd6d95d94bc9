//! Work for later (`tools.scheduler`).

use jiff::tz::TimeZone;

/// Work for later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerSettings {
    /// What becomes of times that passed while no host ran (`tools.scheduler.missed`).
    pub missed: MissedRuns,
    /// The time zone of what names none (`tools.scheduler.time_zone`).
    pub time_zone: TimeZone,
}

/// What becomes of times that passed while no host ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedRuns {
    /// One run makes up for all of them.
    RunOnce,
    /// They are recorded as missed.
    Skip,
    /// Each is made up for, the latest 100 at most.
    RunAll,
}
