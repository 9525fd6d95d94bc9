//! Where the server is and how to talk to it, as one URL. What is shown of it has no password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, SslMode};

use crate::error::StoreError;

/// The port of a server where nothing names one.
const PORT: u16 = 5432;

/// Which host a store belongs to when nothing says so.
const HOST: &str = "host";

/// Where a PostgreSQL server is: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…`, as its own programs write it.
///
/// `sslmode` and `sslrootcert` are as for those: `disable`, `require`, `verify-ca` or `verify-full`, and a file of certificates or `system`.
/// Without `sslmode` it is `verify-full`, but for servers on this machine, to which nothing is encrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub(super) config: Config,
    pub(super) security: Security,
    /// Which host the audit rows that are written belong to.
    pub(super) host: String,
}

/// How a server is talked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Security {
    /// In clear text.
    Plain,
    /// Encrypted.
    Tls {
        check: CertificateCheck,
        /// Who may vouch for the server; none for those the machine trusts.
        roots: Option<PathBuf>,
    },
}

/// What is asked of the certificate of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CertificateCheck {
    /// Nothing: whoever answers is believed.
    None,
    /// That somebody who is trusted vouches for it.
    Chain,
    /// That it is for the name of the server, too.
    Full,
}

impl ServerUrl {
    /// The same server with this password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Which host the audit rows that are written belong to.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The servers, each with its port where the URL names one.
    fn servers(&self) -> Vec<(String, Option<u16>)> {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let addresses = self.config.get_hostaddrs().iter().map(ToString::to_string);
        let names: Vec<String> = match self.config.get_hosts().is_empty() {
            true => addresses.collect(),
            false => hosts.collect(),
        };
        let ports = self.config.get_ports();
        let port = |idx: usize| ports.get(idx).or(ports.first()).copied();
        let names = names.into_iter().enumerate();
        names.map(|(idx, name)| (name, port(idx))).collect()
    }

    /// What the keys of the audit know the chain of this host by: the same for other names of the loopback, and where the usual port is left out.
    pub(crate) fn chain_place(&self) -> String {
        let servers = self.servers().into_iter().map(|(name, port)| {
            let name = match name.as_str() {
                "127.0.0.1" | "[::1]" | "::1" => "localhost",
                name => name,
            };
            format!("{name}:{}", port.unwrap_or(PORT))
        });
        let servers = servers.collect::<Vec<_>>().join(",");
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        let (options, host) = (self.options(), self.host());
        format!("postgres://{user}@{servers}/{database} {options} {host}")
    }

    /// What sessions on the server begin with, such as the schema they use.
    pub(crate) fn options(&self) -> &str {
        self.config.get_options().unwrap_or_default()
    }

    /// The same server for the audit rows of another host.
    #[must_use]
    pub fn of_host(self, host: String) -> Self {
        Self { host, ..self }
    }
}

impl FromStr for ServerUrl {
    type Err = StoreError;

    /// Errors: [`StoreError::BadUrl`]; it quotes nothing that could be a password.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let bad = |problem: String| StoreError::BadUrl { problem };
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
        {
            return Err(bad(
                "it has to begin with `postgres://` or `postgresql://`".to_owned()
            ));
        }
        let (rest, mode, roots) = without_tls(text).map_err(bad)?;
        let config: Config = rest.parse().map_err(|error| bad(words_of(&error)))?;
        check_hosts(&config).map_err(bad)?;
        let security = security(&config, mode.as_deref(), roots).map_err(bad)?;
        let mut config = config;
        config.ssl_mode(match security {
            Security::Plain => SslMode::Disable,
            Security::Tls { .. } => SslMode::Require,
        });
        Ok(Self {
            config,
            security,
            host: HOST.to_owned(),
        })
    }
}

/// The URL without what only this program understands, and that: `sslmode`, `sslrootcert`.
fn without_tls(text: &str) -> Result<(String, Option<String>, Option<String>), String> {
    let Some((base, query)) = text.split_once('?') else {
        return Ok((text.to_owned(), None, None));
    };
    let (mut mode, mut roots, mut others) = (None, None, Vec::new());
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let of_tls = match name {
            "sslmode" => &mut mode,
            "sslrootcert" => &mut roots,
            _ => {
                others.push(option);
                continue;
            }
        };
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| format!("`{name}` is not UTF-8"))?;
        *of_tls = Some(value.into_owned());
    }
    Ok((format!("{base}?{}", others.join("&")), mode, roots))
}

/// Refuses what cannot be the name of a server: mostly a password with characters that have to be written as `%XX`.
fn check_hosts(config: &Config) -> Result<(), String> {
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err("it names no host".to_owned());
    }
    let is_name = |name: &str| {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        !name.is_empty() && name.chars().all(is_of_name)
    };
    let are_names = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => is_name(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    if are_names {
        return Ok(());
    }
    Err(
        "its host is no name or address; in a password, write `@`, `/`, `:`, `?` and `%` as `%40`, `%2F`, `%3A`, `%3F` and `%25`"
            .to_owned(),
    )
}

fn security(
    config: &Config,
    mode: Option<&str>,
    roots: Option<String>,
) -> Result<Security, String> {
    let roots = roots.filter(|roots| roots != "system").map(PathBuf::from);
    let check = match mode {
        None if is_of_this_machine(config) && roots.is_none() => return Ok(Security::Plain),
        Some("disable") => return Ok(Security::Plain),
        // As in its own programs: who names certificates wants them looked at.
        Some("require") if roots.is_none() => CertificateCheck::None,
        Some("require" | "verify-ca") => CertificateCheck::Chain,
        None | Some("verify-full") => CertificateCheck::Full,
        Some(mode @ ("prefer" | "allow")) => {
            return Err(format!(
                "`sslmode={mode}` falls back to clear text when the server, or somebody in between, wants so: use `verify-full`, `verify-ca`, `require` or `disable`"
            ));
        }
        Some(_) => {
            return Err(
                "`sslmode` is one of `disable`, `require`, `verify-ca` and `verify-full`"
                    .to_owned(),
            );
        }
    };
    if config.get_channel_binding() == ChannelBinding::Require {
        return Err(
            "`channel_binding=require` is not possible: use `sslmode=verify-full`, which rules out the same attack"
                .to_owned(),
        );
    }
    Ok(Security::Tls { check, roots })
}

/// Whether nothing leaves the machine.
fn is_of_this_machine(config: &Config) -> bool {
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    let are_addresses_local = config.get_hostaddrs().iter().all(|addr| addr.is_loopback());
    config.get_hosts().iter().all(is_local) && are_addresses_local
}

/// An error of the library and its cause, in one line.
fn words_of(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

impl fmt::Display for ServerUrl {
    /// As it may be shown: user, servers and database.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        for (idx, (name, port)) in self.servers().iter().enumerate() {
            let comma = if idx == 0 { "" } else { "," };
            write!(f, "{comma}{name}")?;
            if let Some(port) = port {
                write!(f, ":{port}")?;
            }
        }
        match self.config.get_dbname() {
            Some(database) => write!(f, "/{database}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::ServerUrl;

    #[test]
    fn spellings_of_one_server_are_one_place_of_a_chain() {
        let place = |url: &str| {
            let url: ServerUrl = url.parse().unwrap();
            url.of_host("one".to_owned()).chain_place()
        };
        let known = place("postgres://ann:x@localhost:5432/calls");
        for same in [
            "postgresql://ann@127.0.0.1/calls",
            "postgres://ann:other@[::1]:5432/calls?sslmode=disable",
        ] {
            assert_eq!(place(same), known, "{same}");
        }
        for other in [
            "postgres://ann@localhost:5433/calls",
            "postgres://bob@localhost/calls",
            "postgres://ann@localhost/others",
            "postgres://ann@db.example.com/calls?sslmode=require",
        ] {
            assert_ne!(place(other), known, "{other}");
        }
        let named = place("postgres://ann@localhost");
        assert_eq!(named, place("postgres://ann@localhost/ann"));
    }
}
