//! One run of a command: what its connections share, and how each of them is decided about, found and counted.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use zeph_core::network::{Destination, HTTP_PORT, HTTPS_PORT};

use super::ExitState;
use super::meter::{Allowance, RunMeter};
use super::rules::Granted;
use crate::ledger::Ledger;
use crate::metered::Metered;
use crate::{CheckedAddresses, DialError};

/// What the connections of one exit share.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) shared: Arc<ExitState>,
    pub(super) token: String,
    /// What an HTTP client sends that knows name and password.
    pub(super) credentials: String,
    pub(super) ledger: Arc<Ledger>,
    pub(super) allowance: Arc<Allowance>,
    /// The other ends of requests that are passed on.
    pub(super) upstreams: Mutex<JoinSet<()>>,
}

/// A connection to a host.
pub(super) type Upstream = Metered<TcpStream, RunMeter>;

/// What was decided about a connection, and where it may go.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) granted: Granted,
    pub(super) addresses: CheckedAddresses,
}

impl Run {
    /// Decides about a tunnel to `authority`, and finds where it may go. What is refused is in the ledger then.
    ///
    /// Errors: why not, in one sentence.
    pub(super) async fn opening(&self, authority: &str) -> Result<Opening, String> {
        let asked = self.asked(authority, HTTPS_PORT);
        self.found(asked, |asked| self.shared.rules.tunnel(asked))
            .await
    }

    /// Checks requests of plain HTTP.
    ///
    /// Errors: like [`Self::opening`].
    pub(super) async fn plain_opening(&self, authority: &str) -> Result<Opening, String> {
        let asked = self.asked(authority, HTTP_PORT);
        let decide = |asked: &Destination| {
            let granted = self.shared.rules.plain(asked)?;
            let private = self.shared.dialer.private(asked);
            match private.is_none_or(|private| private.plain_http) {
                true => Ok(granted),
                false => Err(format!(
                    "host {asked} is private; plain HTTP there needs `plain_http = true` in its [[tools.egress.private]]"
                )),
            }
        };
        self.found(asked, decide).await
    }

    /// What is asked for; a host that is not listed is noted.
    ///
    /// Errors: why it is no host, in one sentence.
    fn asked(&self, authority: &str, default_port: u16) -> Result<Destination, String> {
        let asked = self.shared.rules.parsed(authority, default_port)?;
        if let Some(host) = self.shared.rules.unlisted(&asked) {
            self.ledger.note_unlisted(host);
        }
        Ok(asked)
    }

    /// Decides about what was `asked`, and finds its addresses.
    async fn found(
        &self,
        asked: Result<Destination, String>,
        decide: impl Fn(&Destination) -> Result<Granted, String>,
    ) -> Result<Opening, String> {
        let asked = asked.inspect_err(|note| self.ledger.note(note))?;
        let found = match decide(&asked) {
            Ok(granted) => {
                let checked = self.shared.dialer.check(&asked).await;
                checked
                    .map(|addresses| Opening { granted, addresses })
                    .map_err(|error| failed(&error))
            }
            Err(refusal) => Err(refusal),
        };
        found.inspect_err(|note| self.refused_at(&asked, note))
    }

    fn refused_at(&self, destination: &Destination, note: &str) {
        self.ledger.refused_at(destination);
        self.ledger.note(note);
    }

    /// Connects to a checked address, counted from now on. What fails is in the ledger then.
    ///
    /// Errors: why not.
    pub(super) async fn connect(&self, addresses: &CheckedAddresses) -> io::Result<Upstream> {
        let dialed = self.shared.dialer.connect(addresses).await;
        let dialed = dialed.map_err(|error| {
            let note = failed(&error);
            self.ledger.note(&note);
            io::Error::other(note)
        })?;
        let traffic = self.ledger.of(addresses.destination());
        traffic.begun();
        let meter = RunMeter::new(traffic, Arc::clone(&self.allowance));
        Ok(Metered::new(dialed.stream, meter))
    }

    /// Says why something sent to a host was not passed on.
    pub(super) fn refused(&self, destination: &Destination, why: &str) -> io::Error {
        let note = format!("host {destination}: {why}");
        self.refused_at(destination, &note);
        io::Error::other(note)
    }

    /// Has the other end of a request run beside it, until the exit is closed.
    pub(super) fn beside(&self, end: impl Future<Output = ()> + Send + 'static) {
        let mut upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while upstreams.try_join_next().is_some() {}
        upstreams.spawn(end);
    }
}

fn failed(error: &DialError) -> String {
    match error {
        DialError::Forbidden { .. } => error.to_string(),
        other => format!("a command could not be connected: {other}"),
    }
}
