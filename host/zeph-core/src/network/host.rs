//! One host: a DNS name or an address.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Most bytes of a DNS name in text.
const NAME_BYTES_MAX: usize = 253;

/// Most bytes of a label of a DNS name.
const LABEL_BYTES_MAX: usize = 63;

/// Most bytes of a text that is read as a host: a name whose letters take several bytes each.
const TEXT_BYTES_MAX: usize = 1024;

/// A DNS name in lower case and in ASCII, without the final dot, or an address.
///
/// Parsed as browsers parse the host of a URL: names are mapped by IDNA, and whatever ends in a number is an IPv4 address in any of its
/// spellings (`0x7f.1`, `2130706433`, `0177.0.0.1`). More is refused than by them: see [`BadHost`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(Kind);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Name(Arc<str>),
    Address(IpAddr),
}

/// A text that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a host: {why}")]
pub struct BadHost {
    /// What was read, shortened and in one line.
    text: String,
    /// What is wrong with it.
    why: &'static str,
}

impl BadHost {
    fn new(text: &str, why: &'static str) -> Self {
        let text = crate::failure::one_line(text, 100);
        Self { text, why }
    }
}

impl Host {
    /// The name; `None` for an address.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Name(name) => Some(name),
            Kind::Address(_) => None,
        }
    }

    /// The address; `None` for a name.
    pub fn address(&self) -> Option<IpAddr> {
        match &self.0 {
            Kind::Name(_) => None,
            Kind::Address(address) => Some(*address),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self(Kind::Address(address))
    }
}

impl FromStr for Host {
    type Err = BadHost;

    /// Shape:  a name (one final dot is dropped), an IPv4 address in any spelling, an IPv6 address with or without brackets.
    /// Errors: [`BadHost`]: empty or too long, a control character, `%`, a zone, brackets around a name, a letter that no
    ///         name has.
    fn from_str(text: &str) -> Result<Self, BadHost> {
        let bad = |why| BadHost::new(text, why);
        if text.len() > TEXT_BYTES_MAX {
            return Err(bad("it is too long"));
        }
        if text.chars().any(char::is_control) {
            return Err(bad("it contains a control character"));
        }
        if text.contains('%') {
            return Err(bad("`%` belongs to no name, and zones are not supported"));
        }
        if let Some(inside) = bracketed(text) {
            let address = inside.and_then(|inside| inside.parse::<Ipv6Addr>().ok());
            let address =
                address.ok_or_else(|| bad("brackets stand around IPv6 addresses only"))?;
            return Ok(IpAddr::V6(address).into());
        }
        if text.contains(':') {
            let address = text
                .parse::<Ipv6Addr>()
                .map_err(|_| bad("it is no IPv6 address"))?;
            return Ok(IpAddr::V6(address).into());
        }
        named(text).map_err(bad)
    }
}

/// What stands between brackets, where `text` has some: `None` inside when they are not around all of it.
fn bracketed(text: &str) -> Option<Option<&str>> {
    text.contains(['[', ']']).then(|| {
        let inside = text.strip_prefix('[')?.strip_suffix(']')?;
        Some(inside)
    })
}

/// A name, or an IPv4 address in one of its spellings.
fn named(text: &str) -> Result<Host, &'static str> {
    let parsed = match url::Host::parse(text) {
        Ok(parsed) => parsed,
        Err(url::ParseError::EmptyHost) => return Err("it is empty"),
        Err(url::ParseError::InvalidIpv4Address) => {
            return Err("it ends in a number and is no IPv4 address");
        }
        Err(_) => return Err("it contains what no name of a host has"),
    };
    match parsed {
        url::Host::Ipv4(address) => Ok(IpAddr::V4(address).into()),
        url::Host::Ipv6(address) => Ok(IpAddr::V6(address).into()),
        url::Host::Domain(name) => checked(&name).map(|name| Host(Kind::Name(name.into()))),
    }
}

/// The name without its final dot, when it is one that DNS and certificates can hold.
fn checked(name: &str) -> Result<&str, &'static str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > NAME_BYTES_MAX {
        return Err("a name has at most 253 bytes");
    }
    match name.split('.').all(is_label) {
        true => Ok(name),
        false => Err(
            "the parts of a name are 1 to 63 letters, digits, `-` and `_`, with no `-` at the ends",
        ),
    }
}

fn is_label(label: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(plain)
}

/// As in a URL: IPv6 addresses stand in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Name(name) => f.write_str(name),
            Kind::Address(IpAddr::V4(address)) => address.fmt(f),
            Kind::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({self})")
    }
}

impl Serialize for Host {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The port; never 0.
    pub port: u16,
}

impl Destination {
    /// Reads the authority of a URL: `host`, `host:port`, `[address]:port`.
    ///
    /// Errors: [`BadHost`]: what stands for a user or password, a port that is none, an IPv6 address without brackets, and the
    ///         errors of a [`Host`].
    pub fn parse(authority: &str, default_port: u16) -> Result<Self, BadHost> {
        if authority.contains('@') {
            // What stands before it may be a password.
            let (_, host) = authority.rsplit_once('@').unwrap_or_default();
            return Err(BadHost::new(host, "a user or password stands before it"));
        }
        let (host, port) = split_port(authority)?;
        let host = host.parse()?;
        let port = port.unwrap_or(default_port);
        Ok(Self { host, port })
    }
}

/// Tells the port at the end of `text` from the host before it.
///
/// Errors: [`BadHost`]: a port that is empty, 0, above 65535 or written with anything but digits.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<u16>), BadHost> {
    let bad = |why| BadHost::new(text, why);
    if text.contains("//") {
        return Err(bad(
            "it is a URL; write its host alone, without scheme and path",
        ));
    }
    let (host, port) = match text.rsplit_once(':') {
        // The colon stands inside the brackets.
        Some((_, after)) if after.contains(']') => return Ok((text, None)),
        Some((host, port)) => (host, port),
        None => return Ok((text, None)),
    };
    if host.contains(':') && !host.ends_with(']') {
        return Err(bad("an IPv6 address stands in brackets"));
    }
    port_number(port)
        .map(|port| (host, Some(port)))
        .ok_or_else(|| bad("its port is not a number from 1 to 65535"))
}

fn port_number(text: &str) -> Option<u16> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// `host:port`, always with the port.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
