//! Where the addresses of a host come from.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;

use zeph_core::network::Host;

use crate::Pending;

/// Names to addresses.
pub trait Resolve: Debug + Send + Sync {
    /// All addresses of `host`, in the order in which they should be tried. Called for addresses too.
    ///
    /// Errors: of the resolver; a name without an address is `NotFound` or an empty list.
    fn resolve<'a>(&'a self, host: &'a Host) -> Pending<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a Host) -> Pending<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let Some(name) = host.name() else {
                return Ok(host.address().into_iter().collect());
            };
            // As every program asks, so that the files of hosts of this machine count: what they say is checked like any answer.
            let found = tokio::net::lookup_host((name, 0)).await?;
            let mut addresses: Vec<IpAddr> = Vec::new();
            for address in found.map(|found| found.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            Ok(addresses)
        })
    }
}
