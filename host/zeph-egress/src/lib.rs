//! The way out to the network: which host may be reached, at which address, within which limits.
//!
//! In reading order: which addresses nobody reaches (`address`), where addresses come from (`resolve`), how a connection is opened
//! (`connect`, `proxy`), and the one place where the three meet (`dial`): a name is resolved once, every answer is checked, and only a
//! checked address is dialled. [`Resolve`] and [`Connect`] are traits, so that tests decide what a name resolves to. Requests of tools
//! are made by `client`, over `tls`, `connection` and `pool`; `request` is what is looked at before anything is sent, `body` what
//! bounds what comes back; `ledger` keeps what went where. `own` makes the requests of the host itself, `journal` tells the journal of
//! the system.

mod address;
mod body;
mod client;
mod connect;
mod connection;
mod dial;
mod error;
pub mod exit;
mod hop;
mod journal;
mod ledger;
mod metered;
mod own;
mod pool;
mod proxy;
mod request;
mod resolve;
pub mod secret;
mod tls;

pub use self::address::{ForbiddenAddress, forbidden};
pub use self::body::ResponseBody;
pub use self::client::{
    Answer, CallExit, Egress, Patience, PreparedRequest, REDIRECTS_FIELD, URL_FIELD,
};
pub use self::connect::{Connect, SystemConnector};
pub use self::connection::RequestBody;
pub use self::dial::{CheckedAddresses, DialError, DialedStream, Dialer, private_host_entry};
pub use self::error::{CertificateFault, EgressError};
pub use self::journal::{JOURNAL_SOCKET, send_to_journal};
pub use self::ledger::HostAccount;
pub use self::own::{
    OwnAnswer, OwnBody, OwnClient, OwnError, OwnHost, OwnLimits, OwnPatience, OwnPhase,
};
pub use self::proxy::ProxyConnector;
pub use self::request::URL_BYTES_MAX;
pub use self::resolve::{Resolve, SystemResolver};
pub use self::tls::{Tls, check_ca_file};

/// A future behind a trait object.
pub type Pending<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
