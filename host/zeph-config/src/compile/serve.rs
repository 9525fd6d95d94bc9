//! `mcp.serve`: how tools are served.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::{Compiling, count, size};
use crate::raw::{RawExpose, RawMcp, RawOAuth};
use crate::serve::{Expose, OAuthSettings, ServeSettings};

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
            oauth: self.oauth(&raw.oauth),
        }
    }

    /// All three or none: with one of them missing no token could be judged.
    fn oauth(&mut self, raw: &RawOAuth) -> Option<OAuthSettings> {
        let keys = [
            ("mcp.serve.oauth.issuer", &raw.issuer),
            ("mcp.serve.oauth.audience", &raw.audience),
            ("mcp.serve.oauth.jwks_url", &raw.jwks_url),
        ];
        if keys.iter().all(|(_, value)| value.is_empty()) {
            return None;
        }
        for (key, _) in keys.iter().filter(|(_, value)| value.is_empty()) {
            let message = "it is empty; set issuer, audience and jwks_url, or none of them";
            self.merged.problem(key, message);
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
