//! The way out of a jail that may reach some hosts: a port on the command's own loopback, on which the host listens.
//!
//! The jail only makes it and hands it over. What goes through it is the matter of `Outlets`, which the host implements: this room
//! opens no connection and knows no host.

use std::fmt::Debug;
use std::io;
use std::net::TcpListener;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::net::UnixStream;
use uuid::Uuid;
use zeph_core::execution::NetworkReport;
use zeph_jail::plan::Outlet;

use super::policy::Network;
use super::{Jail, JailError};
use crate::environment;

#[cfg_attr(target_vendor = "apple", path = "outlet/channel_apple.rs")]
pub(super) mod channel;

/// Serves the ways out of commands. The host implements it; whether a host may be reached is decided there.
pub trait Outlets: Debug + Send + Sync {
    /// Begins to serve the way out of one run. Never blocks.
    fn open(&self, door: OutletDoor) -> Box<dyn OpenOutlet>;

    /// The certificates that commands are to trust, as the whole content of a PEM file; none when they are those of the machine.
    fn certificates(&self) -> Option<&[u8]>;

    /// Variables that commands get, such as placeholders of secrets.
    fn variables(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// The way out of one run while it is open. Dropping it closes it, with every connection through it.
pub trait OpenOutlet: Debug + Send {
    /// Closes it, and says what went through it. Never blocks.
    fn close(self: Box<Self>) -> NetworkReport;
}

/// The host's side of the way out of one run.
#[derive(Debug)]
pub struct OutletDoor {
    channel: OwnedFd,
    /// The password of the run: commands of one session may share a loopback, and each has a way of its own.
    pub token: String,
}

impl OutletDoor {
    /// The socket to listen on, in the network of the command, once the jail is closed around that.
    ///
    /// Errors: the jail was never closed, so nothing runs in it; the socket cannot be had.
    /// Limits: waits as long as the jail takes; to be called within a runtime.
    pub async fn listener(self) -> io::Result<TcpListener> {
        let channel = std::os::unix::net::UnixStream::from(self.channel);
        channel.set_nonblocking(true)?;
        let channel = UnixStream::from_std(channel)?;
        let taken = channel.async_io(Interest::READABLE, || channel::take(&channel));
        let listener = TcpListener::from(taken.await?);
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

/// The two ends of what the listening socket is handed over: the host's, and that of the inner stage.
pub(super) type OutletEnds = (OwnedFd, OwnedFd);

impl Jail {
    /// Has `outlets` serve the ways out of commands. Without them, no command that may reach hosts is run.
    #[must_use]
    pub fn with_outlets(mut self, outlets: Arc<dyn Outlets>) -> Self {
        self.outlets = Some(outlets);
        self
    }

    /// What commands are to trust besides the machine's own certificates.
    pub(super) fn certificates(&self) -> Option<&[u8]> {
        let outlets = self.outlets.as_ref()?;
        let is_used = self.policy.network == Network::Hosts;
        outlets.certificates().filter(|_| is_used)
    }

    /// The variables that go with the ways out of commands.
    pub(super) fn outlet_variables(&self) -> Vec<(String, String)> {
        let is_used = self.policy.network == Network::Hosts;
        let outlets = self.outlets.as_ref().filter(|_| is_used);
        outlets
            .map(|outlets| outlets.variables())
            .unwrap_or_default()
    }

    /// The ends for one run; none where commands have no such way.
    ///
    /// Errors: `JailError`.
    pub(super) fn outlet_ends(&self) -> Result<Option<OutletEnds>, JailError> {
        if self.policy.network != Network::Hosts {
            return Ok(None);
        }
        if self.outlets.is_none() {
            return Err(JailError::BadJob {
                reason: "nothing serves its way out to hosts (`tools.sandbox.allow_hosts`)",
            });
        }
        channel().map(Some)
    }

    /// Opens the way out of one run by the host's end of its channel: what is served, and what the inner stage, which has the other
    /// end under the number `inner`, is told. Nothing for a run without such a way.
    pub(super) fn open_outlet(&self, channel: Option<OwnedFd>, inner: Option<RawFd>) -> Opened {
        let parts = self.outlets.as_ref().zip(channel).zip(inner);
        let Some(((outlets, channel), inner)) = parts else {
            return Opened::default();
        };
        let token = Uuid::new_v4().simple().to_string();
        let told = Outlet {
            channel: inner,
            environment: environment::of_outlet(&token),
        };
        Opened {
            served: Some(outlets.open(OutletDoor { channel, token })),
            told: Some(told),
        }
    }
}

/// The two ends of a channel over which the inner stage hands a descriptor to the host.
///
/// Errors: `JailError::System`.
pub(super) fn channel() -> Result<OutletEnds, JailError> {
    channel::pair().map_err(JailError::system("make a pair of sockets"))
}

/// The way out of one run.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// To be kept until the run has ended.
    pub(super) served: Option<Box<dyn OpenOutlet>>,
    /// For the plan.
    pub(super) told: Option<Outlet>,
}
