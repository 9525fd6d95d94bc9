//! Which hosts a command may reach, and what may pass there.

use zeph_core::network::{BadHost, Destination, ExitHost, HTTP_PORT, HTTPS_PORT, Passage};

/// Most characters of a host in a message that could not be read as one.
const SHOWN_CHARS_MAX: usize = 100;

/// The hosts of one configuration. No host at all is what an empty list allows.
#[derive(Debug)]
pub(super) struct ExitRules {
    hosts: Vec<ExitHost>,
    /// The key that lists them, in messages.
    key: String,
}

/// The key that lists the hosts of commands.
const KEY: &str = "[tools.sandbox] allow_hosts";

/// One way to a host, decided about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) destination: Destination,
    pub(super) passage: Passage,
}

impl ExitRules {
    pub(super) fn new(hosts: Vec<ExitHost>) -> Self {
        Self {
            hosts,
            key: KEY.to_owned(),
        }
    }

    /// Has messages name `key`.
    pub(super) fn set_key(&mut self, key: String) {
        self.key = key;
    }

    /// The host as the operator would list it, if it is not listed.
    pub(super) fn unlisted(&self, destination: &Destination) -> Option<String> {
        self.passage(destination)
            .is_err()
            .then(|| listed(destination))
    }

    /// Decides about a connection to `destination`.
    ///
    /// Errors: why not, in one sentence with the key that would allow it.
    pub(super) fn tunnel(&self, destination: &Destination) -> Result<Granted, String> {
        let passage = self.passage(destination)?.clone();
        Ok(Granted {
            destination: destination.clone(),
            passage,
        })
    }

    /// Decides about requests of plain HTTP to `destination`: to port 80, or to where anything may be spoken.
    ///
    /// Errors: like [`Self::tunnel`].
    pub(super) fn plain(&self, destination: &Destination) -> Result<Granted, String> {
        let passage = self.passage(destination)?.clone();
        if destination.port != HTTP_PORT && passage != Passage::Raw {
            return Err(format!(
                "host {destination} is reached by TLS only; plain HTTP there needs `raw = true` in [[tools.sandbox.hosts]]"
            ));
        }
        Ok(Granted {
            destination: destination.clone(),
            passage,
        })
    }

    /// What passes at a destination. What is said of a host by its name goes before what is said of a wildcard.
    fn passage(&self, destination: &Destination) -> Result<&Passage, String> {
        let matching = || {
            self.hosts
                .iter()
                .filter(|one| one.pattern.matches(destination))
        };
        let by_name = matching().find(|one| one.pattern.host().is_some());
        by_name
            .or_else(|| matching().next())
            .map(|one| &one.passage)
            .ok_or_else(|| {
                let shown = listed(destination);
                format!("host {shown} is not allowed; add it to {}", self.key)
            })
    }

    /// The destination that `authority` (`host:port` or `host`) names.
    ///
    /// Errors: it is none, or an address.
    pub(super) fn parsed(&self, authority: &str, default_port: u16) -> Result<Destination, String> {
        let parsed: Result<Destination, BadHost> = Destination::parse(authority, default_port);
        let destination = parsed.map_err(|bad| format!("nothing was connected: {bad}"))?;
        match destination.host.name() {
            Some(_) => Ok(destination),
            None => Err(format!(
                "host {destination} is an address; hosts are reached by their names in {}",
                self.key
            )),
        }
    }
}

/// What a person adds to the list is what stands there.
fn listed(destination: &Destination) -> String {
    let Destination { host, port } = destination;
    let shown = match *port {
        HTTPS_PORT => host.to_string(),
        _ => destination.to_string(),
    };
    zeph_core::failure::one_line(&shown, SHOWN_CHARS_MAX)
}
