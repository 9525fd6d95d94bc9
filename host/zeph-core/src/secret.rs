//! Where a secret may be used: the header of requests to one host that the host program fills in, so that no plugin holds the value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::network::{Destination, HTTPS_PORT, HostPattern, Methods};

/// Maximum length of a secret's name.
pub const NAME_BYTES_MAX: usize = 64;

/// Maximum length of a secret's value in bytes: what servers take of a header.
pub const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Headers that say how a message is carried; a value in one of them could change where a request ends or leads.
const HEADERS_OF_CONNECTIONS: [&str; 13] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// One use of a secret: as a manifest requests it, or as an operator granted it.
///
/// In text: `NAME=HOST[:PORT]:HEADER[:METHODS]`, such as `GH_TOKEN=api.example.com:authorization:GET+POST`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawSecretUse")]
pub struct SecretUse {
    /// The name of the secret: `A-Z a-z 0-9 _ -`, at most 64.
    pub name: String,
    /// The one host it is sent to, without wildcards.
    pub host: HostPattern,
    /// The header whose whole value it is. In lower case.
    pub header: String,
    /// The methods of the requests that get it; `None` is every method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Methods>,
}

/// As it is stored.
#[derive(Deserialize)]
struct RawSecretUse {
    name: String,
    host: String,
    header: String,
    #[serde(default)]
    methods: Option<Methods>,
}

/// Why a text is not the use of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSecretUse(String);

impl TryFrom<RawSecretUse> for SecretUse {
    type Error = BadSecretUse;

    fn try_from(raw: RawSecretUse) -> Result<Self, BadSecretUse> {
        Self::new(&raw.name, &raw.host, &raw.header, raw.methods)
    }
}

impl SecretUse {
    /// Makes a use of its parts, as they were written.
    ///
    /// Errors: [`BadSecretUse`] in one sentence: no name of a secret, a host that is none or stands for several, a header that says
    ///         how a message is carried.
    pub fn new(
        name: &str,
        host: &str,
        header: &str,
        methods: Option<Methods>,
    ) -> Result<Self, BadSecretUse> {
        let bad = |problem: &str| Err(BadSecretUse(problem.to_owned()));
        let pattern = HostPattern::parse(host, HTTPS_PORT);
        let host = pattern.map_err(|error| BadSecretUse(error.to_string()))?;
        let header = header.to_ascii_lowercase();
        if !is_name(name) {
            return bad("the name of a secret has 1 to 64 of `A-Z a-z 0-9 _ -`");
        }
        if host.host().is_none() {
            return bad(
                "a secret is sent to one host, such as `api.example.com` or `api.example.com:8443`, without `*`",
            );
        }
        if !is_header(&header) {
            return bad(
                "the header of a secret is a name such as `authorization` or `x-api-key`, and none that says how a message is carried",
            );
        }
        Ok(Self {
            name: name.to_owned(),
            host,
            header,
            methods,
        })
    }

    /// Whether a request of `method` to `destination` gets it.
    pub fn covers(&self, destination: &Destination, method: &str) -> bool {
        let methods = self.methods.as_ref();
        self.host.matches(destination) && methods.is_none_or(|methods| methods.allows(method))
    }

    /// The use that both allow; `None` if there is none.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let is_same =
            self.name == other.name && self.host == other.host && self.header == other.header;
        let methods = match (&self.methods, &other.methods) {
            (Some(one), Some(other)) => Some(one.intersect(other)?),
            (methods, None) | (None, methods) => methods.clone(),
        };
        is_same.then(|| Self {
            methods,
            ..self.clone()
        })
    }

    /// Adds the methods of `other`, which is the same use by other methods.
    pub fn widen(&mut self, other: &Self) {
        let methods = self.methods.as_ref().zip(other.methods.as_ref());
        self.methods = methods.map(|(one, other)| one.union(other));
    }
}

impl fmt::Display for SecretUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}:{}", self.name, self.host, self.header)?;
        match &self.methods {
            None => Ok(()),
            Some(methods) => write!(f, ":{methods}"),
        }
    }
}

impl FromStr for SecretUse {
    type Err = BadSecretUse;

    /// Reads what [`Display`](fmt::Display) writes; methods may also be joined by commas.
    fn from_str(text: &str) -> Result<Self, BadSecretUse> {
        let bad = || {
            let shape = "a secret is granted as `NAME=HOST:HEADER` or `NAME=HOST:HEADER:METHODS`, such as \
                         `GH_TOKEN=api.example.com:authorization:GET+POST`";
            BadSecretUse(shape.to_owned())
        };
        let (name, rest) = text.split_once('=').ok_or_else(bad)?;
        let (host, rest) = split_host(rest).ok_or_else(bad)?;
        let (header, methods) = match rest.split_once(':') {
            Some((header, methods)) => (header, Some(methods.replace(',', "+").parse())),
            None => (rest, None),
        };
        let methods = methods.transpose();
        let methods =
            methods.map_err(|error: crate::network::BadMethod| BadSecretUse(error.to_string()))?;
        Self::new(name, host, header, methods)
    }
}

/// `HOST[:PORT]`, and what stands behind the colon after it.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let name_end = match text.starts_with('[') {
        true => text.find(']')? + 1,
        false => text.find(':')?,
    };
    let rest = text[name_end..].strip_prefix(':')?;
    let port = rest.split_once(':').map_or("", |(port, _)| port);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let end = match is_port {
        true => name_end + 1 + port.len(),
        false => name_end,
    };
    Some((&text[..end], text[end..].strip_prefix(':')?))
}

/// Whether `name` can name a secret.
pub fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

/// What is wrong with `value` as the value of a secret, if anything.
pub fn value_problem(value: &str) -> Option<&'static str> {
    let is_visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if value.len() > VALUE_BYTES_MAX {
        return Some("it is longer than 8192 bytes");
    }
    if !value.bytes().all(is_visible) || value.trim() != value {
        return Some(
            "it has to be one line of printable ASCII characters without blanks at its ends: it becomes the value of a header",
        );
    }
    (!crate::redact::is_hideable(value)).then_some(
        "it has fewer than 8 characters, or fewer than 4 different ones: such a value occurs by chance, and could not be removed from what tools return",
    )
}

/// Whether `name`, in lower case, is a header that may carry a value of the operator: none that says how a message is carried.
pub fn is_header(name: &str) -> bool {
    let is_token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    (1..=64).contains(&name.len())
        && name.bytes().all(is_token)
        && !HEADERS_OF_CONNECTIONS.contains(&name)
}

#[cfg(test)]
mod tests;
