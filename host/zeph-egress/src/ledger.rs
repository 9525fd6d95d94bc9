//! What went over the network for one call: bytes by host, and what was refused there.

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

/// What went between the clients of one purpose and their hosts. Clones are one account.
#[derive(Debug, Clone, Default)]
pub struct HostAccount(Arc<Ledger>);

impl HostAccount {
    /// What went through so far, by host: requests, and bytes with TLS.
    pub fn hosts(&self) -> Vec<HostUse> {
        self.0.report().hosts
    }

    /// Whether both are one account.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0
    }
}

/// The account of one call, or of one run of a command, while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<LedgerState>);

#[derive(Debug, Default)]
struct LedgerState {
    hosts: BTreeMap<String, Arc<Traffic>>,
    notes: Vec<String>,
    n_more: u64,
    unlisted: BTreeSet<String>,
}

/// What went between a call and one host.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    n_connections: AtomicU64,
    n_refused: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Traffic {
    /// Counts a connection, or a request where those are counted.
    pub(crate) fn begun(&self) {
        self.n_connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back what [`Self::begun`] counted: the request did not go out.
    pub(crate) fn taken_back(&self) {
        self.n_connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, n_bytes: usize) {
        self.sent.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, n_bytes: usize) {
        self.received.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }
}

impl Ledger {
    /// The account of a host. One that nothing is counted in is not told.
    pub(crate) fn of(&self, destination: &Destination) -> Arc<Traffic> {
        let mut state = self.state();
        let mut host = destination.to_string();
        if state.hosts.len() >= HOSTS_MAX && !state.hosts.contains_key(&host) {
            OTHERS.clone_into(&mut host);
        }
        Arc::clone(state.hosts.entry(host).or_default())
    }

    /// Something for this host was refused.
    pub(crate) fn refused_at(&self, destination: &Destination) {
        let traffic = self.of(destination);
        traffic.n_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes why something was refused, in a sentence.
    pub(crate) fn note(&self, note: &str) {
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
    pub(crate) fn report(&self) -> NetworkReport {
        let state = self.state();
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let hosts = state.hosts.iter().map(|(host, traffic)| HostUse {
            host: host.clone(),
            n_connections: load(&traffic.n_connections),
            n_refused: load(&traffic.n_refused),
            sent_bytes: load(&traffic.sent),
            received_bytes: load(&traffic.received),
        });
        let mut notes = state.notes.clone();
        if state.n_more > 0 {
            let more = state.n_more;
            notes.push(format!("{more} more connections to hosts were refused"));
        }
        let is_something = |host: &HostUse| host.n_connections > 0 || host.n_refused > 0;
        NetworkReport {
            hosts: hosts.filter(is_something).collect(),
            notes,
        }
    }

    fn state(&self) -> MutexGuard<'_, LedgerState> {
        // Each change is one step, so a panic leaves it usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
