//! The way out of a jail to hosts: what a command reaches by it, and what it does not.
//!
//! No host is asked for anything: the only one that is allowed is this machine by its name, which lies at an address that nobody is
//! connected to.

use std::io;
use std::sync::Arc;

use zeph_core::network::{ExitHost, Passage};
use zeph_core::secret::SecretUse;
use zeph_egress::Dialer;
use zeph_egress::exit::{ExitLimits, ExitProxy, NamedValues, SecretValues};
use zeph_egress::secret::CallSecrets;
use zeph_shell::jail::{Jail, JailPolicy, Network};

use crate::ProductParts;

/// The line for bash: what the proxy answers to requests with its password and without, by name and by address; then the ways around
/// it. `PORT` is that of a server of the host.
pub(crate) const LINE: &str = r#"
    port=${HTTPS_PROXY##*:}
    user=${HTTPS_PROXY#http://}
    key="proxy-authorization: Basic $(printf %s "${user%@*}" | base64 -w0)"
    ask() {
        exec 3<>/dev/tcp/127.0.0.1/$port || return
        printf 'CONNECT %s HTTP/1.1\r\nhost: %s\r\n%s\r\n\r\n' "$1" "$1" "${2:-x: y}" >&3
        read -r -t 10 _ status _ <&3
        echo "$1 $status"
        exec 3>&-
    }
    ask localhost:443
    ask localhost:443 "$key"
    ask localhost:PORT "$key"
    ask 127.0.0.1:PORT "$key"
    ask example.org:443 "$key"
    exec 3<>/dev/tcp/127.0.0.1/PORT && echo connected to the host
    exec 3<>/dev/tcp/192.0.2.1/443 && echo connected to an address
    exec 3<>/dev/udp/192.0.2.53/53 && echo asked a name server
    echo done
"#;

/// What it prints when the way out holds.
pub(crate) const EXPECT: &str = "localhost:443 407\nlocalhost:443 403\nlocalhost:PORT 403\n127.0.0.1:PORT 403\nexample.org:443 403\ndone\n";

/// A jail with such a way out. To be called within a runtime.
///
/// Errors: the exit cannot be set up.
pub(crate) fn jail(policy: JailPolicy, parts: &ProductParts) -> io::Result<Jail> {
    let this_machine = ExitHost {
        pattern: "localhost".parse().map_err(io::Error::other)?,
        passage: Passage::Tls,
    };
    let dialer = Dialer::new([].into());
    let limits = ExitLimits::default();
    let exits = ExitProxy::new(
        vec![this_machine],
        dialer,
        limits,
        || Ok(Vec::new()),
        Arc::new(NoSecrets),
    );
    let policy = JailPolicy {
        network: Network::Hosts,
        ..policy
    };
    let outlets = (parts.outlets)(exits.map_err(io::Error::other)?);
    Ok(Jail::new(policy).with_outlets(outlets))
}

/// There are no secrets here.
#[derive(Debug)]
struct NoSecrets;

impl SecretValues for NoSecrets {
    fn of_request(&self, _: &[SecretUse], _: &[String]) -> (CallSecrets, NamedValues) {
        (CallSecrets::default(), NamedValues::new())
    }
}
