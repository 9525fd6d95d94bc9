//! `mcp.serve`: how tools are served.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::{Compiling, count, size};
use crate::raw::{RawExpose, RawMcp, RawOAuth, RawServe, RawWorkspace};
use crate::serve::{Expose, OAuthSettings, ServeSettings, Workspace};

const REPLICA: &str = "mcp.serve.replica";
const SEAL_KEYS: &str = "mcp.serve.seal_keys";

impl Compiling<'_> {
    pub(super) fn serve(&mut self, raw: &RawMcp) -> ServeSettings {
        let raw = &raw.serve;
        ServeSettings {
            expose: match raw.expose {
                RawExpose::All => Expose::All,
                RawExpose::Search => Expose::Search,
                RawExpose::Auto => Expose::Auto {
                    tokens_max: size(raw.expose_auto_tokens),
                },
            },
            approval_ttl: Duration::from_secs(raw.approval_ttl_secs.into()),
            max_body_bytes: size(raw.max_body_bytes),
            max_concurrent_calls: count(raw.max_concurrent_calls).unwrap_or(NonZeroUsize::MIN),
            drain_timeout: Duration::from_secs(raw.drain_timeout_secs.into()),
            replica: self.replica(&raw.replica),
            seal_keys: self.seal_keys(raw),
            workspace: match raw.workspace {
                RawWorkspace::Own => Workspace::Own,
                RawWorkspace::Shared => Workspace::Shared,
                RawWorkspace::None => Workspace::None,
            },
            oauth: self.oauth(&raw.oauth),
        }
    }

    /// A name that can stand in a header and in the configuration of a balancer, and ends before a `.`.
    fn replica(&mut self, name: &str) -> Option<String> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.starts_with('-') || !name.bytes().all(is_plain) {
            let message =
                "a name has lower-case letters, digits and `-`, and does not begin with `-`";
            self.merged.problem(REPLICA, message);
        }
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn seal_keys(&mut self, raw: &RawServe) -> Option<PathBuf> {
        let text = &raw.seal_keys;
        if text.is_empty() {
            return None;
        }
        if raw.replica.is_empty() {
            // What belongs to one machine could not be told from what belongs to another.
            let message =
                "every server with shared keys needs a name of its own: set `mcp.serve.replica`";
            self.merged.problem(SEAL_KEYS, message);
        }
        let path = self.base().absolute(text);
        path.map_err(|message| self.merged.problem(SEAL_KEYS, &message))
            .ok()
    }

    /// All three or none: with one of them missing no token could be judged.
    fn oauth(&mut self, raw: &RawOAuth) -> Option<OAuthSettings> {
        let keys = [
            ("mcp.serve.oauth.issuer", &raw.issuer),
            ("mcp.serve.oauth.audience", &raw.audience),
            ("mcp.serve.oauth.jwks_url", &raw.jwks_url),
        ];
        let (set, _) = keys.iter().find(|(_, value)| !value.is_empty())?;
        for (key, _) in keys.iter().filter(|(_, value)| value.is_empty()) {
            let message =
                format!("`{key}` is empty; set issuer, audience and jwks_url, or none of them");
            self.merged.problem(set, &message);
        }
        for (key, url) in [keys[0], keys[2]] {
            if !url.is_empty() && !is_url(url) {
                let message = "found something that is not an `https://` URL, or an `http://` URL of this machine";
                self.merged.problem(key, message);
            }
        }
        Some(OAuthSettings {
            issuer: raw.issuer.clone(),
            audience: raw.audience.clone(),
            jwks_url: raw.jwks_url.clone(),
        })
    }
}

/// Whether nobody on the way can change what is found there.
fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://");
    is_local(url) || rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// Whether it is plain HTTP of this machine: its name or address, and a port at most.
pub(super) fn is_local(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
        let port = authority.strip_prefix(host);
        port.is_some_and(|port| port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
    })
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn a_name_before_the_host_does_not_make_a_url_local() {
        for local in [
            "http://localhost",
            "http://127.0.0.1:80/x",
            "http://[::1]:9/?a#b",
            "http://localhost?x",
        ] {
            assert!(is_local(local), "{local}");
        }
        let others = [
            "http://localhost:x@example.org",
            "http://localhost@example.org/",
            "http://localhost:80@example.org",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "http://localhost:/",
            "http://localhost\\@example.org",
            "https://localhost",
            "http://",
        ];
        for other in others {
            assert!(!is_local(other), "{other}");
        }
    }
}
