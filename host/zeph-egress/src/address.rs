//! Addresses that no guest reaches. What is public is said; everything else is forbidden.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Why an address is not one of the public network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum ForbiddenAddress {
    Unspecified,
    Loopback,
    Private,
    Shared,
    LinkLocal,
    UniqueLocal,
    Multicast,
    Broadcast,
    Documentation,
    Benchmark,
    Metadata,
    Transition,
    Reserved,
    /// An address of a network interface of this machine.
    OwnMachine,
}

impl fmt::Display for ForbiddenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Shared => "an address of a shared address space",
            Self::LinkLocal => "a link-local address",
            Self::UniqueLocal => "a unique local address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmark => "an address for benchmarks",
            Self::Metadata => "an address of a cloud's metadata service",
            Self::Transition => "an address that stands for another one",
            Self::Reserved => "a reserved address",
            Self::OwnMachine => "an address of this machine",
        })
    }
}

use ForbiddenAddress as F;

/// Blocks of IPv4 that are not public: the registry of special-purpose addresses, and a metadata service outside it. The first that
/// holds an address names it.
const IPV4: [(Ipv4Addr, u32, F); 23] = [
    (v4(0, 0, 0, 0), 32, F::Unspecified),
    (v4(0, 0, 0, 0), 8, F::Reserved),
    (v4(10, 0, 0, 0), 8, F::Private),
    (v4(100, 100, 100, 200), 32, F::Metadata),
    (v4(100, 64, 0, 0), 10, F::Shared),
    (v4(127, 0, 0, 0), 8, F::Loopback),
    (v4(168, 63, 129, 16), 32, F::Metadata),
    (v4(169, 254, 169, 254), 32, F::Metadata),
    (v4(169, 254, 0, 0), 16, F::LinkLocal),
    (v4(172, 16, 0, 0), 12, F::Private),
    (v4(192, 0, 2, 0), 24, F::Documentation),
    (v4(192, 0, 0, 0), 24, F::Reserved),
    (v4(192, 31, 196, 0), 24, F::Reserved),
    (v4(192, 52, 193, 0), 24, F::Reserved),
    (v4(192, 88, 99, 0), 24, F::Transition),
    (v4(192, 168, 0, 0), 16, F::Private),
    (v4(192, 175, 48, 0), 24, F::Reserved),
    (v4(198, 18, 0, 0), 15, F::Benchmark),
    (v4(198, 51, 100, 0), 24, F::Documentation),
    (v4(203, 0, 113, 0), 24, F::Documentation),
    (v4(224, 0, 0, 0), 4, F::Multicast),
    (v4(255, 255, 255, 255), 32, F::Broadcast),
    (v4(240, 0, 0, 0), 4, F::Reserved),
];

/// Blocks of IPv6 that are not public. What lies outside `2000::/3` and is not named here is reserved.
const IPV6: [(Ipv6Addr, u32, F); 19] = [
    (Ipv6Addr::UNSPECIFIED, 128, F::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, F::Loopback),
    // Mapped, compatible and translated IPv4.
    (v6([0; 8]), 32, F::Transition),
    // NAT64 of a local network: where the address stands in it only that network knows.
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0]), 48, F::Transition),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0]), 64, F::Reserved),
    // Teredo, before the block it lies in.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 32, F::Transition),
    (v6([0x2001, 2, 0, 0, 0, 0, 0, 0]), 48, F::Benchmark),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 23, F::Reserved),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]), 32, F::Documentation),
    // 6to4.
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0]), 16, F::Transition),
    (v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0]), 48, F::Reserved),
    // The test network that has gone.
    (v6([0x3ffe, 0, 0, 0, 0, 0, 0, 0]), 16, F::Reserved),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0]), 20, F::Documentation),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]), 128, F::Metadata),
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]), 128, F::Metadata),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0]), 7, F::UniqueLocal),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0]), 10, F::LinkLocal),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0]), 10, F::Private),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8, F::Multicast),
];

/// The addresses of the IPv6 network that are given out.
const GLOBAL: (Ipv6Addr, u32) = (v6([0x2000, 0, 0, 0, 0, 0, 0, 0]), 3);

/// NAT64 as everybody has it: its last 32 bits are the address of IPv4 that is reached.
const NAT64: (Ipv6Addr, u32) = (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0]), 96);

const fn v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

const fn v6(parts: [u16; 8]) -> Ipv6Addr {
    let [a, b, c, d, e, f, g, h] = parts;
    Ipv6Addr::new(a, b, c, d, e, f, g, h)
}

/// Why nobody may reach `address`; `None` for a public one. Addresses of this machine's interfaces are told by [`is_own`].
pub fn forbidden(address: IpAddr) -> Option<ForbiddenAddress> {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

fn of_v4(address: Ipv4Addr) -> Option<F> {
    let mut blocks = IPV4.iter();
    let held = blocks.find(|(block, bits, _)| {
        address.to_bits() >> (32 - bits) == block.to_bits() >> (32 - bits)
    });
    held.map(|(_, _, why)| *why)
}

fn of_v6(address: Ipv6Addr) -> Option<F> {
    if is_in(address, NAT64) {
        let [.., a, b, c, d] = address.octets();
        return of_v4(v4(a, b, c, d));
    }
    let mut blocks = IPV6.iter();
    if let Some((_, _, why)) = blocks.find(|(block, bits, _)| is_in(address, (*block, *bits))) {
        return Some(*why);
    }
    if !is_in(address, GLOBAL) {
        return Some(F::Reserved);
    }
    is_isatap(address).then_some(F::Transition)
}

/// Whether the address is made of one of IPv4 within a site (ISATAP), whatever its network.
fn is_isatap(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    matches!(parts[4], 0 | 0x200 | 0x100 | 0x300) && parts[5] == 0x5efe
}

fn is_in(address: Ipv6Addr, (block, bits): (Ipv6Addr, u32)) -> bool {
    address.to_bits() >> (128 - bits) == block.to_bits() >> (128 - bits)
}

/// Whether `address` is one of this machine's interfaces: the way there begins where it ends. Sends nothing.
///
/// Shape: a public address. An answer that cannot be had counts as no: there is no way there at all.
pub(crate) fn is_own(address: IpAddr) -> bool {
    let from: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((from, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests;
