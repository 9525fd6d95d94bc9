//! What a plugin wants of the network, or was granted there.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{BadHostPattern, BadMethod, Destination, HTTP_PORT, HTTPS_PORT, HostPattern, Methods};

/// Hosts, how they may be spoken to, and what may be done there. In text: `[http://]HOST[:PORT][:METHODS]`, such as
/// `api.example.org`, `api.example.org:8443:GET+POST`, `http://printer.example.org`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAccess {
    /// The hosts.
    pub name: HostPattern,
    /// The methods; `None` is every method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub methods: Option<Methods>,
    /// Whether it is about plain `http`; else it is about `https`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
}

/// A text that is no [`HostAccess`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadHostAccess {
    /// Of the host.
    #[error(transparent)]
    Host(#[from] BadHostPattern),
    /// Of the methods.
    #[error(transparent)]
    Method(#[from] BadMethod),
}

impl HostAccess {
    /// `https` at `name`, by every method.
    pub fn of(name: HostPattern) -> Self {
        Self {
            name,
            methods: None,
            plain_http: false,
        }
    }

    /// One method at one destination. A method that no grant can name stands for every one.
    pub fn to(destination: &Destination, method: &str, plain_http: bool) -> Self {
        Self {
            name: destination.clone().into(),
            methods: method.parse().ok(),
            plain_http,
        }
    }

    /// The port of a pattern that names none.
    pub fn default_port(plain_http: bool) -> u16 {
        match plain_http {
            true => HTTP_PORT,
            false => HTTPS_PORT,
        }
    }

    /// Whether requests of `method` are part of it.
    pub fn allows_method(&self, method: &str) -> bool {
        self.methods
            .as_ref()
            .is_none_or(|methods| methods.allows(method))
    }

    /// Whether something can be sent by it, and not only fetched.
    pub fn can_send(&self) -> bool {
        self.methods.as_ref().is_none_or(Methods::can_send)
    }

    /// Of it only what fetches; `None` when nothing is left.
    pub fn fetching(&self) -> Option<Self> {
        let fetching = Methods::fetching();
        let methods = match &self.methods {
            Some(methods) => methods.intersect(&fetching)?,
            None => fetching,
        };
        Some(Self {
            methods: Some(methods),
            ..self.clone()
        })
    }

    /// What is part of both; `None` if there is nothing.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let name = self.name.intersect(&other.name)?;
        let methods = match (&self.methods, &other.methods) {
            (Some(one), Some(other)) => Some(one.intersect(other)?),
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        (self.plain_http == other.plain_http).then_some(Self {
            name,
            methods,
            plain_http: self.plain_http,
        })
    }

    /// Adds the methods of `more`, which is about the same hosts.
    pub fn widen(&mut self, more: Self) {
        self.methods = match (self.methods.take(), more.methods) {
            (Some(one), Some(other)) => Some(one.union(&other)),
            _ => None,
        };
    }

    /// Whether all of `other` is part of it.
    pub fn covers(&self, other: &Self) -> bool {
        self.intersect(other).as_ref() == Some(other)
    }
}

impl FromStr for HostAccess {
    type Err = BadHostAccess;

    fn from_str(text: &str) -> Result<Self, BadHostAccess> {
        let (rest, plain_http) = match text.strip_prefix("http://") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (name, methods) = match rest.rsplit_once(':') {
            Some((name, methods)) if is_methods(methods) => (name, Some(methods.parse()?)),
            _ => (rest, None),
        };
        let name = HostPattern::parse(name, Self::default_port(plain_http))?;
        Ok(Self {
            name,
            methods,
            plain_http,
        })
    }
}

/// Whether what stands behind a colon is no port and no part of an address.
fn is_methods(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && !text.contains(']')
}

impl fmt::Display for HostAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plain_http {
            f.write_str("http://")?;
        }
        let default_port = Self::default_port(self.plain_http);
        write!(f, "{}", self.name.with_default_port(default_port))?;
        match &self.methods {
            Some(methods) => write!(f, ":{methods}"),
            None => Ok(()),
        }
    }
}
