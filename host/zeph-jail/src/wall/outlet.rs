//! The way out of a network that is nothing but a loopback: a port on it, on which the host listens.
//!
//! A socket belongs to the network it was made in, whichever process holds it. So this stage, which is in the network of the command, makes the
//! listening one and hands it to the host. No file, no other process and no other network is involved, and the way ends with the
//! host's end of it.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;

use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType};
use zeph_jail::READY;
use zeph_jail::plan::Outlet;

use super::descriptors;

/// Connections that wait to be taken by the host.
const BACKLOG: i32 = 128;

/// Opens the port, hands it to the host, and returns the variables that name it.
///
/// Errors: the kernel refuses a step.
pub(super) fn open(outlet: &Outlet) -> io::Result<Vec<Vec<u8>>> {
    let channel = descriptors::taken(outlet.channel);
    let flags = SocketFlags::CLOEXEC;
    let listener = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::listen(&listener, BACKLOG)?;
    let port = port(rustix::net::getsockname(&listener)?)?.to_string();
    descriptors::hand_over(&channel, READY, &[listener.as_fd()])?;
    let line = |(before, behind): &(Vec<u8>, Vec<u8>)| [before, port.as_bytes(), behind].concat();
    Ok(outlet.environment.iter().map(line).collect())
}

fn port(address: SocketAddrAny) -> io::Result<u16> {
    let address = SocketAddrV4::try_from(address)?;
    Ok(address.port())
}
