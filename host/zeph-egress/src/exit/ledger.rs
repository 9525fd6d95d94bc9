//! What went through one exit: bytes by host, and what was refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeph_core::execution::{HostUse, NetworkReport};
use zeph_core::network::Destination;

/// Hosts that are told apart; what more there are of them is counted together.
const HOSTS_MAX: usize = 200;

/// What further hosts are counted as.
const OTHERS: &str = "(other hosts)";

/// Refusals that are told; what more there are of them is counted.
const NOTES_MAX: usize = 10;

/// The account of one exit while it is open.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<LedgerState>);

#[derive(Debug, Default)]
struct LedgerState {
    hosts: BTreeMap<String, Arc<Traffic>>,
    notes: Vec<String>,
    n_more: u64,
    unlisted: BTreeSet<String>,
}

/// What went between a run and one host.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    n_connections: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    pub(super) fn sent(&self, n_bytes: usize) {
        self.sent.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn received(&self, n_bytes: usize) {
        self.received.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }
}

impl Ledger {
    /// The account of a host, to which one connection is opened.
    pub(super) fn connected(&self, destination: &Destination) -> Arc<Traffic> {
        let mut state = self.state();
        let mut host = destination.to_string();
        if state.hosts.len() >= HOSTS_MAX && !state.hosts.contains_key(&host) {
            OTHERS.clone_into(&mut host);
        }
        let traffic = Arc::clone(state.hosts.entry(host).or_default());
        traffic.n_connections.fetch_add(1, Ordering::Relaxed);
        traffic
    }

    /// Something was refused.
    pub(super) fn refused(&self, note: &str) {
        let mut state = self.state();
        if state.notes.iter().any(|known| known == note) {
            return;
        }
        match state.notes.len() < NOTES_MAX {
            true => state.notes.push(note.to_owned()),
            false => state.n_more += 1,
        }
    }

    /// A host was asked for that the operator does not list.
    pub(super) fn note_unlisted(&self, host: String) {
        let mut state = self.state();
        if state.unlisted.len() < HOSTS_MAX {
            state.unlisted.insert(host);
        }
    }

    /// The hosts that the operator does not list.
    pub(super) fn unlisted(&self) -> Vec<String> {
        self.state().unlisted.iter().cloned().collect()
    }

    /// All of it.
    pub(super) fn report(&self) -> NetworkReport {
        let state = self.state();
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let hosts = state.hosts.iter().map(|(host, traffic)| HostUse {
            host: host.clone(),
            n_connections: load(&traffic.n_connections),
            sent_bytes: load(&traffic.sent),
            received_bytes: load(&traffic.received),
        });
        let mut notes = state.notes.clone();
        if state.n_more > 0 {
            let more = state.n_more;
            notes.push(format!("{more} more connections to hosts were refused"));
        }
        NetworkReport {
            hosts: hosts.collect(),
            notes,
        }
    }

    fn state(&self) -> MutexGuard<'_, LedgerState> {
        // Each change is one step, so a panic leaves it usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
