//! The way out to the network, with a grant: what is granted is still not reached at an address that is not public.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use zeph_core::network::{EgressLimits, EgressSettings, HostAccess, PrivateHost};
use zeph_egress::secret::CallSecrets;
use zeph_egress::{CallExit, Egress};

use crate::lab::{GuestCall, Lab, PATIENT};
use crate::{CheckFuture, CheckResult, How, Probe};

pub(crate) const PROBES: &[Probe] = &[Probe {
    name: "egress",
    tried: "a request, with a grant for exactly it, to a listener on this machine",
    how: How::Own(own_machine),
}];

/// For anything on this machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the guest says of the error code of `wasi:http`: destination IP prohibited.
const PROHIBITED: &str = "04";

fn own_machine(lab: &Lab) -> CheckFuture<'_> {
    Box::pin(async move {
        let Some((listener, access)) = listener() else {
            return CheckResult::unavailable("no port of this machine can be listened on");
        };
        let port = access.name.port();
        let say = format!("b{port}");
        let call = GuestCall {
            http: Some((lab.parts().exit)(call_exit(
                access,
                &[],
                CallSecrets::default(),
            ))),
            ..GuestCall::new("network", &say, PATIENT)
        };
        let said = match lab.call(call).await {
            Some(Ok(output)) => output.to_text(),
            Some(Err(failure)) => failure.message,
            None => "nothing, in its time".to_owned(),
        };
        let called = listener.accept();
        match called {
            Err(error) if error.kind() == ErrorKind::WouldBlock && said == PROHIBITED => {
                CheckResult::Holds
            }
            Err(_) => CheckResult::broken(format!("the guest was told {said}")),
            Ok(_) => CheckResult::broken("the listener was reached"),
        }
    })
}

/// The way out of a call that holds exactly this, where `private` is opened.
pub(crate) fn call_exit(
    access: HostAccess,
    private: &[PrivateHost],
    secrets: CallSecrets,
) -> CallExit {
    let settings = EgressSettings {
        private: private.into(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: PATIENCE,
            header: PATIENCE,
            idle: PATIENCE,
            total: PATIENCE,
            header_bytes: 64 * 1024,
            body_bytes: 64 * 1024,
            redirects: 3,
            requests: 8,
            connections: 1,
        },
    };
    Egress::new(&settings).of_call("selftest".into(), [access].into(), secrets)
}

/// Who listens at a port of five digits, as the guest has room for, and the grant for it.
fn listener() -> Option<(TcpListener, HostAccess)> {
    (0..50).find_map(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        listener.set_nonblocking(true).ok()?;
        let port = listener.local_addr().ok()?.port();
        let access = format!("127.0.0.1:{port}").parse().ok()?;
        (port >= 10_000).then_some((listener, access))
    })
}
