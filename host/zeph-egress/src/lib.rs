//! The way out to the network: which host may be reached, at which address, within which limits.
//!
//! In reading order: which addresses nobody reaches (`address`), where addresses come from (`resolve`), how a connection is opened
//! (`connect`), and the one place where the three meet (`dial`): a name is resolved once, every answer is checked, and only a
//! checked address is dialled. [`Resolve`] and [`Connect`] are traits, so that tests decide what a name resolves to.

mod address;
mod connect;
mod dial;
mod resolve;

pub use self::address::{ForbiddenAddress, forbidden};
pub use self::connect::{Connect, SystemConnector};
pub use self::dial::{CheckedAddresses, DialError, DialedStream, Dialer};
pub use self::resolve::{Resolve, SystemResolver};

/// A future behind a trait object.
pub type Pending<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
