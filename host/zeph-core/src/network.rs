//! Hosts of the network as values: one name or address, patterns of them, and what a plugin may do at one. No I/O.
//!
//! A [`Host`] is parsed once, and is the only input to matching, resolving, the server name of TLS and dialling: what was
//! decided about is what is reached. How an address is judged, and how it is dialled, is `zeph-egress`.

mod access;
mod exit;
mod host;
mod methods;
mod pattern;
mod settings;
mod suffix;

pub use self::access::{BadHostAccess, HostAccess};
pub use self::exit::{ExitHost, Inspection, Passage};
pub use self::host::{BadHost, Destination, Host};
pub use self::methods::{BadMethod, Methods};
pub use self::pattern::{BadHostPattern, HostPattern};
pub use self::settings::{EgressLimits, EgressSettings};

/// The port of `https`, and of every pattern that names none.
pub const HTTPS_PORT: u16 = 443;

/// The port of `http`.
pub const HTTP_PORT: u16 = 80;

/// A single private host that the operator opened (`[[tools.egress.private]]`): its addresses may be private ones.
///
/// It grants nothing: what reaches for it needs a grant for the same host and port besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateHost {
    /// A name or an address; never a pattern.
    pub host: Host,
    /// The ports that are opened. An empty list opens none.
    pub ports: Vec<u16>,
    /// Whether plain `http` may be spoken there.
    pub plain_http: bool,
}

impl PrivateHost {
    /// Whether it opens exactly this host and port.
    pub fn opens(&self, destination: &Destination) -> bool {
        self.host == destination.host && self.ports.contains(&destination.port)
    }
}

#[cfg(test)]
mod tests;
