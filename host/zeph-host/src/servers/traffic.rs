//! What a server and hosts exchanged while a call was on its way. Each server has an account of its own. Calls of one server that run at the
//! same time are all charged with it: who asked for it is known to the server alone.

use std::sync::Arc;

use zeph_core::execution::HostUse;
use zeph_core::id::ServerName;
use zeph_egress::HostAccount;

use super::Servers;
use super::opener::ServerProcess;

/// The account of a server at one moment.
#[derive(Debug)]
pub(crate) struct Traffic {
    source: Option<Source>,
    hosts: Vec<HostUse>,
}

/// Where the account is kept: it begins with the process, or with the connection to a remote server.
#[derive(Debug)]
enum Source {
    Process(Arc<dyn ServerProcess>),
    Remote(HostAccount),
}

impl Source {
    fn hosts(&self) -> Vec<HostUse> {
        match self {
            Self::Process(process) => process.hosts(),
            Self::Remote(account) => account.hosts(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Process(one), Self::Process(other)) => Arc::ptr_eq(one, other),
            (Self::Remote(one), Self::Remote(other)) => one.is(other),
            _ => false,
        }
    }
}

impl Traffic {
    /// The account of `server` at this moment.
    pub(crate) fn of(servers: &Servers, server: &ServerName) -> Self {
        let set = servers.set();
        let standing = set.standing(server.as_str());
        let process = standing.and_then(|standing| standing.about.as_ref()?.process.clone());
        let account = standing.and_then(|standing| standing.connection.as_ref()?.account());
        let remote = || account.cloned().map(Source::Remote);
        let source = process.map(Source::Process).or_else(remote);
        Self {
            hosts: source.as_ref().map(Source::hosts).unwrap_or_default(),
            source,
        }
    }

    /// What came to it until `now`. One that was started in between began with an empty account.
    pub(crate) fn until(self, now: Self) -> Vec<HostUse> {
        let is_other = |source: &Source| !now.source.as_ref().is_some_and(|now| now.is(source));
        let ended = self.source.as_ref().filter(|source| is_other(source));
        let of_ended = ended.map(|source| since(source.hosts(), &self.hosts));
        let before = match ended {
            None => self.hosts.as_slice(),
            Some(_) => &[],
        };
        let mut added = of_ended.unwrap_or_default();
        for host in since(now.hosts, before) {
            match added.iter_mut().find(|known| known.host == host.host) {
                Some(known) => add(known, &host),
                None => added.push(host),
            }
        }
        added
    }
}

/// What is in `now` and was not in `before`.
fn since(now: Vec<HostUse>, before: &[HostUse]) -> Vec<HostUse> {
    let added = now.into_iter().map(|mut host| {
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

fn add(known: &mut HostUse, more: &HostUse) {
    known.n_connections += more.n_connections;
    known.sent_bytes += more.sent_bytes;
    known.received_bytes += more.received_bytes;
    known.n_refused += more.n_refused;
}
