//! `tools.scheduler`.

use jiff::tz::TimeZone;

use super::Compiling;
use crate::raw::{RawMissed, RawScheduler};
use crate::scheduler::{MissedRuns, SchedulerSettings};

const TIME_ZONE: &str = "tools.scheduler.time_zone";

impl Compiling<'_> {
    /// None where nothing is scheduled.
    pub(super) fn scheduler(&mut self, raw: &RawScheduler) -> Option<SchedulerSettings> {
        let time_zone = zone(&raw.time_zone).unwrap_or_else(|| {
            let problem = format!(
                "there is no time zone \"{}\"; write a name such as \"Europe/Berlin\" or \"UTC\"",
                raw.time_zone
            );
            self.merged.problem(TIME_ZONE, &problem);
            TimeZone::UTC
        });
        raw.enabled.then_some(SchedulerSettings {
            missed: match raw.missed {
                RawMissed::RunOnce => MissedRuns::RunOnce,
                RawMissed::Skip => MissedRuns::Skip,
                RawMissed::RunAll => MissedRuns::RunAll,
            },
            time_zone,
        })
    }
}

/// The time zone of this name. The first look into the database of the system walks through all of it, which every start would pay.
fn zone(name: &str) -> Option<TimeZone> {
    match name {
        "UTC" => Some(TimeZone::UTC),
        other => TimeZone::get(other).ok(),
    }
}
