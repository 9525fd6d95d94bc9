//! What a server and hosts exchanged while a call was on its way. Calls that run at the same time are all charged with it: who asked for it
//! is known to the server alone.

use std::sync::Arc;

use zeph_core::execution::HostUse;
use zeph_core::id::ServerName;

use super::Servers;
use super::opener::ServerProcess;

/// The account of a server at one moment.
#[derive(Debug)]
pub(crate) struct Traffic {
    process: Option<Arc<dyn ServerProcess>>,
    hosts: Vec<HostUse>,
}

impl Traffic {
    /// The account of `server` at this moment.
    pub(crate) fn of(servers: &Servers, server: &ServerName) -> Self {
        let set = servers.set();
        let about = set
            .standing(server.as_str())
            .and_then(|standing| standing.about.as_ref());
        let process = about.and_then(|about| about.process.clone());
        let hosts = process.as_ref().map(|process| process.hosts());
        Self {
            hosts: hosts.unwrap_or_default(),
            process,
        }
    }

    /// What came to it until `now`. A process that was started in between began with an empty one.
    pub(crate) fn until(self, now: Self) -> Vec<HostUse> {
        let is_same = match (&self.process, &now.process) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            _ => false,
        };
        let before = if is_same { self.hosts } else { Vec::new() };
        let added = now.hosts.into_iter().map(|mut host| {
            if let Some(known) = before.iter().find(|known| known.host == host.host) {
                host.n_connections = host.n_connections.saturating_sub(known.n_connections);
                host.sent_bytes = host.sent_bytes.saturating_sub(known.sent_bytes);
                host.received_bytes = host.received_bytes.saturating_sub(known.received_bytes);
                host.n_refused = host.n_refused.saturating_sub(known.n_refused);
            }
            host
        });
        let is_something = |host: &HostUse| {
            host.n_connections + host.n_refused + host.sent_bytes + host.received_bytes > 0
        };
        added.filter(is_something).collect()
    }
}
