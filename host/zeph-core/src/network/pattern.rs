//! Patterns of hosts, as they stand in manifests, grants and the configuration.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::host::split_port;
use super::suffix::suffix_bytes;
use super::{BadHost, Destination, HTTPS_PORT, Host};

/// Hosts on one port: `example.org`, `*.example.org`, `example.org:8443`, `[::1]:8443`, `*`.
///
/// `*.example.org` matches one or more labels before `example.org` and never `example.org` itself. `*` matches every name under a public
/// suffix. Neither matches an address, a public suffix (`co.uk`), nor a name whose owner is another one than that of the
/// pattern: `*.amazonaws.com` does not match `anyone.s3.amazonaws.com`. The port is 443 unless one is written.
///
/// `*:*` stands in manifests: whatever host is granted, by name or as an address and on any port. It covers every pattern and, granted
/// itself, matches nothing. It is written so whatever the port of others is by default.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPattern {
    names: Names,
    port: u16,
}

/// Whatever the operator grants, as it stands in manifests.
const WHATEVER_IS_GRANTED: &str = "*:*";

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Names {
    One(Host),
    Below(Arc<str>),
    Any,
    WhateverIsGranted,
}

/// A text that is no pattern of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a host is a name such as `api.example.com`, `*.example.com` or `api.example.com:8443`, or `*`; {0}"
)]
pub struct BadHostPattern(String);

impl From<BadHost> for BadHostPattern {
    fn from(bad: BadHost) -> Self {
        Self(bad.to_string())
    }
}

impl HostPattern {
    /// Reads a pattern whose port, if it names none, is `default_port`.
    ///
    /// Errors: [`BadHostPattern`]: no host, `*` inside a name, or `*.` before an address, a single label or a public suffix.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, BadHostPattern> {
        if text == WHATEVER_IS_GRANTED {
            // It covers every port, so the default port does not matter.
            let (names, port) = (Names::WhateverIsGranted, HTTPS_PORT);
            return Ok(Self { names, port });
        }
        let (names, port) = split_port(text)?;
        let names = match names.strip_prefix("*.") {
            _ if names == "*" => Names::Any,
            Some(base) => Names::Below(base_name(base)?),
            None => Names::One(names.parse()?),
        };
        let port = port.unwrap_or(default_port);
        Ok(Self { names, port })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The only host it matches; `None` for a wildcard.
    pub fn host(&self) -> Option<&Host> {
        match &self.names {
            Names::One(host) => Some(host),
            Names::Below(_) | Names::Any | Names::WhateverIsGranted => None,
        }
    }

    /// Whether it is `*:*`, which manifests say and no grant.
    pub fn is_whatever_is_granted(&self) -> bool {
        self.names == Names::WhateverIsGranted
    }

    /// Whether it matches host and port.
    pub fn matches(&self, destination: &Destination) -> bool {
        self.port == destination.port && self.names.matches(&destination.host)
    }

    /// Whether it matches all that `other` matches.
    pub fn covers(&self, other: &Self) -> bool {
        if self.names == Names::WhateverIsGranted {
            return true;
        }
        self.port == other.port
            && match (&self.names, &other.names) {
                (Names::Any, Names::Any | Names::Below(_)) => true,
                (Names::Below(outer), Names::Below(inner)) => {
                    outer == inner || is_below(inner, outer)
                }
                (names, Names::One(host)) => names.matches(host),
                (Names::One(_) | Names::Below(_), _)
                | (_, Names::WhateverIsGranted)
                | (Names::WhateverIsGranted, _) => false,
            }
    }

    /// What both match; `None` if there is nothing. Two patterns have all of one in common, or nothing.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        if self.covers(other) {
            Some(other.clone())
        } else {
            other.covers(self).then(|| self.clone())
        }
    }

    /// The pattern as it is written where the port is `default_port` unless one is named.
    pub(super) fn with_default_port(&self, default_port: u16) -> impl fmt::Display + '_ {
        let is_written = self.port != default_port && !self.is_whatever_is_granted();
        let port = is_written.then_some(self.port);
        fmt::from_fn(move |f| match (&self.names, port) {
            (names, Some(port)) => write!(f, "{names}:{port}"),
            (names, None) => write!(f, "{names}"),
        })
    }
}

impl Names {
    fn matches(&self, host: &Host) -> bool {
        match (self, host.name()) {
            (Self::One(one), _) => one == host,
            (Self::Below(base), Some(name)) => is_below(name, base),
            (Self::Any, Some(name)) => suffix_bytes(name) < name.len(),
            (Self::Below(_) | Self::Any, None) | (Self::WhateverIsGranted, _) => false,
        }
    }
}

/// What stands behind `*.`: a name that one owner can hold.
fn base_name(text: &str) -> Result<Arc<str>, BadHostPattern> {
    let host: Host = text.parse()?;
    let name = match host.name() {
        Some(name) if !text.contains('*') => name,
        _ => return Err(BadHostPattern(format!("`*.{text}` stands for no names"))),
    };
    if suffix_bytes(name) >= name.len() {
        let problem = format!("`{name}` is a public suffix, below which names belong to many");
        return Err(BadHostPattern(problem));
    }
    Ok(name.into())
}

/// Whether `name` lies below `base` and belongs to the same owner.
fn is_below(name: &str, base: &str) -> bool {
    let above = name
        .strip_suffix(base)
        .and_then(|rest| rest.strip_suffix('.'));
    above.is_some_and(|labels| !labels.is_empty()) && suffix_bytes(name) < base.len()
}

/// Matches exactly that.
impl From<Destination> for HostPattern {
    fn from(destination: Destination) -> Self {
        let Destination { host, port } = destination;
        let names = Names::One(host);
        Self { names, port }
    }
}

impl FromStr for HostPattern {
    type Err = BadHostPattern;

    fn from_str(text: &str) -> Result<Self, BadHostPattern> {
        Self::parse(text, HTTPS_PORT)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(host) => host.fmt(f),
            Self::Below(base) => write!(f, "*.{base}"),
            Self::Any => f.write_str("*"),
            Self::WhateverIsGranted => f.write_str(WHATEVER_IS_GRANTED),
        }
    }
}

/// As it is read: the port stands there unless it is 443.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.with_default_port(HTTPS_PORT))
    }
}

impl fmt::Debug for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostPattern({self})")
    }
}

impl Serialize for HostPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
