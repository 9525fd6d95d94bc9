//! Work for later: tools that schedule calls, and what runs them when their time has come.
//!
//! In reading order: when (`times`), what (`task`), the tools (`tools`, `listing`), what becomes of a time that has come (`step`), one run
//! (`run`, `live`), the places for runs (`places`), and the clockwork that waits for the next time (`clockwork`). Everything durable is the
//! store's, and a run begins in the transaction that moves its schedule on.

pub(crate) mod clockwork;
pub(crate) mod listing;
mod live;
mod places;
mod run;
mod step;
pub(crate) mod task;
pub(crate) mod times;
pub(crate) mod tools;

use std::sync::Arc;

use tokio::sync::Notify;
use zeph_config::{Config, MissedRuns, SchedulerSettings, StoreLocation};
use zeph_store::{Location, Owner, ScheduleBounds, ScheduleOwner};

use crate::workspace;

/// How many schedules there may be.
const BOUNDS: ScheduleBounds = ScheduleBounds {
    of_caller: 1_000,
    in_all: 10_000,
};

/// What the tools and the clockwork of one host share.
#[derive(Debug)]
pub(crate) struct SchedulerRoom {
    pub(crate) missed: MissedRuns,
    pub(crate) time_zone: jiff::tz::TimeZone,
    /// The working directory of tools: schedules of others are left alone.
    pub(crate) directory: String,
    /// Wakes the clockwork of this process.
    pub(crate) news: Arc<Notify>,
}

impl SchedulerRoom {
    /// None where nothing is scheduled.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let SchedulerSettings { missed, time_zone } = config.scheduler.clone()?;
        Some(Self {
            missed,
            time_zone,
            directory: directory(config),
            news: Arc::default(),
        })
    }

    /// Whose the schedules of a caller are.
    pub(crate) fn owner(&self, caller: Owner) -> ScheduleOwner {
        ScheduleOwner {
            directory: self.directory.clone(),
            caller,
        }
    }
}

/// The working directory of tools, as schedules name it. Hosts of several machines may share a server: one path is another directory at
/// each of them, unless their operator says that all have the same files.
pub(crate) fn directory(config: &Config) -> String {
    let directory = config.rules.policy.directory.to_string_lossy();
    match config.store {
        StoreLocation::Server(_) => on_server(config, &directory),
        StoreLocation::File(_) | StoreLocation::Memory => directory.into_owned(),
    }
}

/// A directory of this machine, where several machines may share a store.
fn on_server(config: &Config, directory: &str) -> String {
    format!("{}:{directory}", workspace::name(config))
}

/// What directories of this machine begin with in a store, and in its copy; none when that is the same. Those of others keep their names.
pub(crate) fn copied(config: &Config, from: &Location, to: &Location) -> Option<(String, String)> {
    let (here, on_server) = ("/".to_owned(), on_server(config, "/"));
    match (from, to) {
        (Location::File(_), Location::Server(_)) => Some((here, on_server)),
        (Location::Server(_), Location::File(_)) => Some((on_server, here)),
        _ => None,
    }
}
