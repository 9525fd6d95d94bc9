//! Joins the jail, which makes the way out of a command, with the egress, which serves it.

use std::io;
use std::sync::Arc;

use zeph_config::Config;
use zeph_core::execution::NetworkReport;
use zeph_core::secret::SecretUse;
use zeph_egress::Egress;
use zeph_egress::exit::{
    ExitLimits, ExitProxy, NamedValues, OpenExit, SecretValues, trusted_certificates,
};
use zeph_egress::secret::CallSecrets;
use zeph_shell::jail::{Jail, Network, OpenOutlet, OutletDoor, Outlets};

use crate::known_secrets::KnownSecrets;

/// The exits of the commands of this host.
#[derive(Debug)]
struct Exits(ExitProxy);

/// The exit of one run.
#[derive(Debug)]
struct OpenedExit(OpenExit);

/// The jail, whose commands reach the hosts that the configuration names. Changes nothing where it names none.
///
/// Errors: TLS cannot be set up.
pub(super) fn with_exits(
    jail: Jail,
    config: &Config,
    secrets: &Arc<KnownSecrets>,
) -> io::Result<Jail> {
    if jail.policy().network != Network::Hosts {
        return Ok(jail);
    }
    let dialer = Egress::new(&config.egress).dialer().clone();
    let hosts = config.sandbox.hosts.clone();
    let ca_file = config.egress.ca_file.as_deref();
    let trusted = || trusted_certificates(ca_file);
    let secrets = Arc::clone(secrets);
    let proxy = ExitProxy::new(hosts, dialer, ExitLimits::default(), trusted, secrets);
    let proxy = proxy.map_err(io::Error::other)?;
    let proxy = match ca_file.is_some() && proxy.certificates().is_none() {
        true => proxy.trusting(&trusted().map_err(io::Error::other)?),
        false => proxy,
    };
    Ok(jail.with_outlets(outlets(proxy)))
}

/// The ways out of a jail that `proxy` serves.
pub(crate) fn outlets(proxy: ExitProxy) -> Arc<dyn Outlets> {
    Arc::new(Exits(proxy))
}

impl SecretValues for KnownSecrets {
    fn of_request(&self, uses: &[SecretUse], names: &[String]) -> (CallSecrets, NamedValues) {
        KnownSecrets::of_request(self, uses, names)
    }
}

impl Outlets for Exits {
    fn open(&self, door: OutletDoor) -> Box<dyn OpenOutlet> {
        let token = door.token.clone();
        Box::new(OpenedExit(self.0.open(door.listener(), token)))
    }

    fn certificates(&self) -> Option<&[u8]> {
        self.0.certificates()
    }

    fn variables(&self) -> Vec<(String, String)> {
        self.0.variables()
    }
}

impl OpenOutlet for OpenedExit {
    fn close(self: Box<Self>) -> NetworkReport {
        self.0.close()
    }
}
