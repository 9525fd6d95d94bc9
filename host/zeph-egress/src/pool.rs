//! Connections that wait for another request of the same plugin, with the same grants, to the same address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zeph_core::network::Destination;

use crate::connection::Connection;

/// How long a connection waits.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Most connections that wait, and most of them for one key.
const WAITING_MAX: usize = 64;
const WAITING_FOR_ONE_MAX: usize = 4;

/// What two requests have in common that may share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    /// Plugin, grants and secrets.
    pub(crate) owner: Arc<str>,
    pub(crate) is_plain: bool,
    pub(crate) destination: Destination,
    pub(crate) address: IpAddr,
}

/// The connections that wait. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    connections: HashMap<PoolKey, Vec<(Instant, Connection)>>,
    /// Closes what waited too long; runs while something waits.
    sweeper: JoinSet<()>,
}

impl Pool {
    /// A connection that is still good, the one used last first.
    pub(crate) fn take(&self, key: &PoolKey) -> Option<Connection> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = waiting.connections.get_mut(key)?;
        while let Some((since, mut connection)) = connections.pop() {
            if since.elapsed() < IDLE_MAX && connection.is_reusable() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for another request, unless too many wait.
    pub(crate) fn put(&self, key: PoolKey, connection: Connection) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n_waiting: usize = waiting.connections.values().map(Vec::len).sum();
        let of_key = waiting.connections.entry(key).or_default();
        if n_waiting >= WAITING_MAX || of_key.len() >= WAITING_FOR_ONE_MAX {
            return;
        }
        of_key.push((Instant::now(), connection));
        while waiting.sweeper.try_join_next().is_some() {}
        if waiting.sweeper.is_empty() {
            waiting.sweeper.spawn(sweep(Arc::downgrade(&self.0)));
        }
    }
}

/// Closes connections that waited too long, until none waits.
async fn sweep(pool: Weak<Mutex<Waiting>>) {
    loop {
        sleep(IDLE_MAX / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut waiting = pool.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.connections.retain(|_, connections| {
            // One more round comes after this: what it would close then has waited too long by then.
            connections.retain(|(since, _)| since.elapsed() < IDLE_MAX / 2);
            !connections.is_empty()
        });
        if waiting.connections.is_empty() {
            return;
        }
    }
}
