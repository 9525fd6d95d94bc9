//! Connections through the HTTP proxy of the operator. The proxy is asked for an address that was checked, never for a name.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use zeph_core::network::Destination;

use crate::Pending;
use crate::connect::Connect;

/// Most bytes of a proxy's answer.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Connects by `CONNECT` to one proxy, which the operator named: its address is not checked.
#[derive(Debug)]
pub struct ProxyConnector {
    proxy: Destination,
}

impl ProxyConnector {
    /// One for this proxy.
    pub fn new(proxy: Destination) -> Self {
        Self { proxy }
    }

    async fn tunnel(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let failed = |what: String| {
            let proxy = &self.proxy;
            io::Error::other(format!("the proxy `{proxy}` (`tools.egress.proxy`) {what}"))
        };
        let reached = self.reach().await;
        let mut stream = reached.map_err(|error| failed(format!("cannot be reached: {error}")))?;
        match ask(&mut stream, address).await {
            Ok(200..=299) => Ok(stream),
            Ok(status) => Err(failed(format!("answers with {status}"))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(failed("closed the connection".to_owned()))
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn reach(&self) -> io::Result<TcpStream> {
        let Destination { host, port } = &self.proxy;
        let stream = match (host.address(), host.name()) {
            (Some(address), _) => TcpStream::connect((address, *port)).await?,
            (None, name) => TcpStream::connect((name.unwrap_or_default(), *port)).await?,
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Connect for ProxyConnector {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(self.tunnel(address))
    }
}

/// Asks for a tunnel; gives the status of the answer.
async fn ask(stream: &mut TcpStream, address: SocketAddr) -> io::Result<u16> {
    let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    status(stream).await
}

/// The status of the answer, of which nothing more is read than its header: what follows belongs to the peer.
async fn status(stream: &mut TcpStream) -> io::Result<u16> {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= ANSWER_BYTES_MAX {
            return Err(io::Error::other("gives an answer that has no end"));
        }
        answer.push(stream.read_u8().await?);
    }
    let line = answer
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other("does not speak HTTP"))
}
