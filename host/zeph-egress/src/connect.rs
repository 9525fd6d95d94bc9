//! How a connection to a checked address is opened.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::Pending;

/// Addresses to streams.
pub trait Connect: Debug + Send + Sync {
    /// Opens a connection to exactly this address.
    ///
    /// Errors: of the platform. Dropping the future ends the attempt.
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>>;
}

/// Connections of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemConnector;

impl Connect for SystemConnector {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}
