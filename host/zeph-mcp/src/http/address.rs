//! Where the endpoint listens, and under which names it may be asked for.
//!
//! A page in a browser reaches any address of this machine under a name of its own choice (DNS rebinding). So the endpoint answers only
//! requests for a name or address it listens on, and only pages that it could have served itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Uri};

/// What may stand in the headers `Host` and `Origin`.
#[derive(Debug, Clone)]
pub(super) struct AllowedNames {
    listens_on: SocketAddr,
    /// Further names, in lower case: those a proxy passes on.
    others: Vec<String>,
}

/// Why a request is refused before it is looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ForeignName {
    #[error("the request has no valid `Host` header")]
    NoHost,
    #[error(
        "the host `{0}` is not a name of this server; `--allow-host {0}` allows it, such as for a proxy"
    )]
    Host(String),
    #[error("pages of another origin may not use this server")]
    Origin,
}

/// Not an address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an address to listen on; write a port (`8080`), or `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`"
)]
pub struct BadAddress(String);

/// Reads `PORT`, `:PORT`, `localhost:PORT` or `IP:PORT`; without an address, that of this machine alone. Port 0 means any free port.
///
/// Errors: [`BadAddress`]. Names are not resolved: they could lead anywhere.
pub fn parse_address(text: &str) -> Result<SocketAddr, BadAddress> {
    let loopback = |port: &str| {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number)?;
        Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
    };
    let local = text.strip_prefix("localhost:").unwrap_or(text);
    let local = local.strip_prefix(':').unwrap_or(local);
    let bad = || BadAddress(zeph_core::failure::one_line(text, 60));
    loopback(local)
        .or_else(|| text.parse().ok())
        .ok_or_else(bad)
}

impl AllowedNames {
    pub(super) fn new(listens_on: SocketAddr, others: &[String]) -> Self {
        let others = others.iter().map(|name| name.to_ascii_lowercase());
        Self {
            listens_on,
            others: others.collect(),
        }
    }

    /// Whether a request with these headers may be answered.
    ///
    /// Errors: [`ForeignName`].
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), ForeignName> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(ForeignName::NoHost);
        };
        let host = host.to_str().ok();
        let host = host.and_then(|host| host.parse::<Authority>().ok());
        let host = host.ok_or(ForeignName::NoHost)?;
        if !self.has(host.host()) {
            let name = zeph_core::failure::one_line(host.host(), 100);
            return Err(ForeignName::Host(name));
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match origins.all(|origin| origin.to_str().is_ok_and(|origin| self.has_origin(origin))) {
            true => Ok(()),
            false => Err(ForeignName::Origin),
        }
    }

    /// A name or address as it stands in a URL.
    fn has(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let bare = bare.to_ascii_lowercase();
        self.is_own(&bare) || self.others.contains(&bare)
    }

    fn is_own(&self, bare: &str) -> bool {
        let own = self.listens_on.ip();
        let is_local = own.is_loopback() || own.is_unspecified();
        match bare.parse::<IpAddr>() {
            // An address is never the name of a foreign page.
            Ok(address) => {
                address == own || own.is_unspecified() || (is_local && address.is_loopback())
            }
            Err(_) => is_local && bare == "localhost",
        }
    }

    fn has_origin(&self, origin: &str) -> bool {
        let Ok(origin) = origin.parse::<Uri>() else {
            return false;
        };
        let (Some(scheme), Some(authority)) = (origin.scheme_str(), origin.authority()) else {
            return false;
        };
        let standard = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        let name = authority.host().to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(standard);
        self.others.contains(&name) || (self.has(&name) && port == self.listens_on.port())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{AllowedNames, parse_address};

    fn answer(names: &AllowedNames, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("host", host.parse().expect("a header"));
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().expect("a header"));
        }
        names.check(&headers).is_ok()
    }

    fn names(address: &str, others: &[&str]) -> AllowedNames {
        let others: Vec<String> = others.iter().map(|&name| name.to_owned()).collect();
        AllowedNames::new(address.parse().expect("an address"), &others)
    }

    #[test]
    fn only_names_of_the_listening_address_are_answered() {
        let table = [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "LocalHost", true),
            ("127.0.0.1:80", "[::1]:80", true),
            ("127.0.0.1:80", "evil.example", false),
            ("127.0.0.1:80", "localhost.evil.example", false),
            ("127.0.0.1:80", "192.0.2.1", false),
            ("127.0.0.1:80", "a b", false),
            ("127.0.0.1:80", "", false),
            ("192.0.2.1:80", "192.0.2.1", true),
            ("192.0.2.1:80", "localhost", false),
            ("192.0.2.1:80", "192.0.2.2", false),
            ("0.0.0.0:80", "192.0.2.2", true),
            ("0.0.0.0:80", "[2001:db8::1]", true),
            ("0.0.0.0:80", "localhost", true),
            ("0.0.0.0:80", "evil.example", false),
        ];
        for (address, host, expect) in table {
            assert_eq!(
                answer(&names(address, &[]), host, None),
                expect,
                "{address} {host}"
            );
        }
        assert!(answer(
            &names("127.0.0.1:80", &["Proxy.Example"]),
            "proxy.example",
            None
        ));
        assert!(names("127.0.0.1:80", &[]).check(&HeaderMap::new()).is_err());
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let names = names("127.0.0.1:8080", &["proxy.example"]);
        let table = [
            ("http://127.0.0.1:8080", true),
            ("http://localhost:8080", true),
            ("http://localhost:3000", false),
            ("http://localhost", false),
            ("https://proxy.example", true),
            ("https://evil.example", false),
            ("https://evil.example:8080", false),
            ("null", false),
            ("", false),
            ("file://", false),
            ("localhost:8080", false),
        ];
        for (origin, expect) in table {
            assert_eq!(
                answer(&names, "localhost:8080", Some(origin)),
                expect,
                "{origin}"
            );
        }
    }

    #[test]
    fn addresses_are_of_this_machine_unless_they_say_otherwise() {
        let table = [
            ("8080", Some("127.0.0.1:8080")),
            (":0", Some("127.0.0.1:0")),
            ("localhost:1", Some("127.0.0.1:1")),
            ("[::1]:1", Some("[::1]:1")),
            ("0.0.0.0:1", Some("0.0.0.0:1")),
            ("", None),
            ("127.0.0.1", None),
            ("example.com:80", None),
            ("70000", None),
            ("+1", None),
        ];
        for (text, expect) in table {
            let address = parse_address(text).ok().map(|address| address.to_string());
            assert_eq!(address.as_deref(), expect, "{text}");
        }
    }
}
