//! Several addresses of one host, tried one after the other and soon side by side (RFC 8305).

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::Poll;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::Pending;
use crate::connect::Connect;

/// How long an address is tried alone.
const HEAD_START: Duration = Duration::from_millis(250);

/// Most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 16;

/// The order in which addresses are tried: families take turns, beginning with that of the first.
pub(super) fn in_order(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let starts_with_v6 = addresses.first().is_some_and(IpAddr::is_ipv6);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for address in addresses {
        match address.is_ipv6() == starts_with_v6 {
            true => first.push(address),
            false => second.push(address),
        }
    }
    let mut ordered = Vec::new();
    let mut second = second.into_iter();
    for address in first {
        ordered.push(address);
        ordered.extend(second.next());
    }
    ordered.extend(second);
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

/// Connects to the first of `targets` that answers. The others are dropped.
///
/// Errors: of the attempt that failed last; `NotFound` without targets.
pub(super) async fn first(
    connector: &dyn Connect,
    targets: impl Iterator<Item = SocketAddr>,
) -> io::Result<(TcpStream, SocketAddr)> {
    let mut targets = targets;
    let mut attempts: Vec<(SocketAddr, Pending<'_, io::Result<TcpStream>>)> = Vec::new();
    let mut last_error = io::Error::from(io::ErrorKind::NotFound);
    loop {
        let next = targets.next();
        let is_last = next.is_none();
        attempts.extend(next.map(|target| (target, connector.connect(target))));
        if attempts.is_empty() {
            return Err(last_error);
        }
        let ended = tokio::select! {
            biased;
            ended = any(&mut attempts) => ended,
            () = sleep(HEAD_START), if !is_last => continue,
        };
        match ended {
            (address, Ok(stream)) => return Ok((stream, address)),
            (_, Err(error)) => last_error = error,
        }
    }
}

/// The first attempt that ends, which is removed.
async fn any(
    attempts: &mut Vec<(SocketAddr, Pending<'_, io::Result<TcpStream>>)>,
) -> (SocketAddr, io::Result<TcpStream>) {
    poll_fn(|context| {
        for idx in 0..attempts.len() {
            if let Poll::Ready(ended) = attempts[idx].1.as_mut().poll(context) {
                let (address, _) = attempts.swap_remove(idx);
                return Poll::Ready((address, ended));
            }
        }
        Poll::Pending
    })
    .await
}
