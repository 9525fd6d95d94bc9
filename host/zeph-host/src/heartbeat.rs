//! Says again and again that this process runs, in a store that several machines share: hosts on other machines cannot look for it.
//!
//! When it has not been said for a while, the calls of this process that have no end are taken for interrupted.

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use zeph_config::{Config, StoreLocation};
use zeph_store::{PROCESS_LEASE, Store, StoreError};

use crate::process;

/// How often it is said for each time it has to be heard.
const BEATS: u32 = 3;

/// How often in a row another replica of the same name has to be seen before it is told: one that this host replaces is seen until it counts
/// as ended.
const DOUBLED_BEATS: u32 = BEATS + 1;

/// Says it for the first time, and goes on with that in the tasks of the host.
pub(crate) async fn begin(
    config: &Config,
    store: &Store,
    tasks: &mut JoinSet<()>,
) -> Result<(), StoreError> {
    if matches!(config.store, StoreLocation::File(_) | StoreLocation::Memory) {
        return Ok(());
    }
    store.keep_process(process::own()).await?;
    tasks.spawn(go_on(store.clone(), config.serve.replica.clone()));
    Ok(())
}

async fn go_on(store: Store, replica: Option<String>) {
    let mut beats = interval(PROCESS_LEASE / BEATS);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats.tick().await;
    let mut n_doubled = 0;
    loop {
        beats.tick().await;
        if let Err(error) = store.keep_process(process::own()).await {
            tracing::warn!(%error, "other hosts cannot know that this one runs");
        }
        let Some(name) = &replica else { continue };
        n_doubled = match store.keep_replica(process::own(), name.clone()).await {
            Ok(true) => n_doubled + 1,
            Ok(false) => 0,
            Err(_) => continue,
        };
        if n_doubled == DOUBLED_BEATS {
            tracing::warn!(
                replica = name,
                "another host is the replica of this name, too: clients of one are sent to the other; give each its own `mcp.serve.replica`"
            );
        }
    }
}
