//! Servers with a `url`.

use std::collections::BTreeMap;

use zeph_core::failure::one_line;
use zeph_core::network::{
    Destination, EgressSettings, HTTP_PORT, HTTPS_PORT, HostPattern, PrivateHost,
};
use zeph_core::secret;

use super::{SHOWN_CHARS_MAX, ServerRoom};
use crate::compile::Compiling;
use crate::compile::serve::is_local;
use crate::raw::{RawServer, RawServerValue};
use crate::servers::HttpServer;

impl Compiling<'_> {
    pub(super) fn http(&mut self, room: &ServerRoom<'_>, raw: &RawServer) -> Option<HttpServer> {
        if let Some(problem) = url_problem(&raw.url, room.egress) {
            self.wrong(room, "url", &problem);
            return None;
        }
        let mut headers = BTreeMap::new();
        for (name, value) in &raw.headers {
            let lower = name.to_ascii_lowercase();
            let is_plain = |text: &str| {
                text.bytes()
                    .all(|byte| byte == b' ' || byte.is_ascii_graphic())
            };
            let is_fit = match value {
                RawServerValue::Text(text) => is_plain(text),
                RawServerValue::Secret(value) => is_plain(&value.prefix),
            };
            if !secret::is_header(&lower) || !is_fit {
                let message = format!(
                    "`{}` is not a header that can be set, or its value is not printable ASCII",
                    one_line(name, 100)
                );
                self.wrong(room, "headers", &message);
            }
            let value = self.value(room, "headers", value);
            headers.extend(value.map(|value| (lower, value)));
        }
        Some(HttpServer {
            url: raw.url.clone(),
            headers,
            login_hosts: self.login_hosts(room, &raw.hosts),
        })
    }

    /// The other hosts of a login. Patterns would let the server choose.
    fn login_hosts(&mut self, room: &ServerRoom<'_>, hosts: &[String]) -> Vec<HostPattern> {
        let mut single = Vec::new();
        for host in hosts {
            let pattern = HostPattern::parse(host, HTTPS_PORT).map_err(|bad| bad.to_string());
            match pattern {
                Ok(pattern) if pattern.host().is_some() => single.push(pattern),
                Ok(_) => {
                    let message = "the hosts of a login have to be named one by one";
                    self.wrong(room, "hosts", message);
                }
                Err(bad) => self.wrong(room, "hosts", &bad),
            }
        }
        single
    }
}

/// Why no server is reached at `url`; none when one can be.
pub(in crate::compile) fn url_problem(url: &str, egress: &EgressSettings) -> Option<String> {
    let shown = one_line(url, SHOWN_CHARS_MAX);
    let (is_plain, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => {
            return Some(format!(
                "`{shown}` does not begin with `https://` or `http://`"
            ));
        }
    };
    if url.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Some(format!("`{shown}` contains a character that a URL cannot"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        let advice = "write them as a header, such as `headers = { authorization = { secret = \"NAME\", prefix = \"Bearer \" } }`";
        return Some(format!(
            "a user or password in a URL is not taken; {advice}"
        ));
    }
    let port = if is_plain { HTTP_PORT } else { HTTPS_PORT };
    let destination = match Destination::parse(authority, port) {
        Ok(destination) => destination,
        Err(bad) => return Some(bad.to_string()),
    };
    let opens = |host: &PrivateHost| host.plain_http && host.opens(&destination);
    let is_open = !is_plain || is_local(url) || egress.private.iter().any(opens);
    (!is_open).then(|| {
        format!(
            "`{shown}` is plain HTTP, which is taken for this machine and for hosts of `tools.egress.private` with `plain_http = true`; write `https://`"
        )
    })
}
