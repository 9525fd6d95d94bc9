//! `tools.egress`: the way out to the network.

use std::path::PathBuf;
use std::time::Duration;

use zeph_core::network::{Destination, EgressLimits, EgressSettings, HTTP_PORT, PrivateHost};

use super::{Compiling, size};
use crate::origin::path_text;
use crate::raw::RawEgress;

const CA_FILE: &str = "tools.egress.ca_file";
const PRIVATE: &str = "tools.egress.private";
const PROXY: &str = "tools.egress.proxy";

impl Compiling<'_> {
    pub(super) fn egress(&mut self, raw: &RawEgress) -> EgressSettings {
        let secs = |secs: u32| Duration::from_secs(secs.into());
        EgressSettings {
            private: self.private_hosts(raw).into(),
            proxy: self.proxy(&raw.proxy),
            ca_file: self.ca_file(&raw.ca_file),
            limits: EgressLimits {
                connect: secs(raw.connect_timeout_secs),
                header: secs(raw.header_timeout_secs),
                idle: secs(raw.idle_timeout_secs),
                total: secs(raw.timeout_secs),
                header_bytes: size(raw.max_header_bytes),
                body_bytes: raw.max_body_bytes,
                redirects: raw.max_redirects,
                requests: raw.max_requests,
                connections: raw.max_connections,
            },
        }
    }

    fn private_hosts(&mut self, raw: &RawEgress) -> Vec<PrivateHost> {
        let mut hosts = Vec::new();
        for (idx, private) in raw.private.iter().enumerate() {
            if private.ports.is_empty() {
                let message = "it is empty; name the ports that may be reached";
                self.merged.problem_in(PRIVATE, idx, "ports", message);
            }
            match private.host.parse() {
                Ok(host) => hosts.push(PrivateHost {
                    host,
                    ports: private.ports.clone(),
                    plain_http: private.plain_http,
                }),
                Err(error) => {
                    let message = format!("{error}; name one host, without a port");
                    self.merged.problem_in(PRIVATE, idx, "host", &message);
                }
            }
        }
        hosts
    }

    fn proxy(&mut self, text: &str) -> Option<Destination> {
        if text.is_empty() {
            return None;
        }
        let address = text
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'));
        let proxy = address.map(|address| Destination::parse(address, HTTP_PORT));
        let message = match proxy {
            Some(Ok(proxy)) => return Some(proxy),
            Some(Err(error)) => error.to_string(),
            None => "it has to begin with `http://`".to_owned(),
        };
        self.merged.problem(PROXY, &message);
        None
    }

    fn ca_file(&mut self, text: &str) -> Option<PathBuf> {
        if text.is_empty() {
            return None;
        }
        let path = self.base().absolute(text);
        let path = path
            .map_err(|message| self.merged.problem(CA_FILE, &message))
            .ok()?;
        // It may come later: it is read when the first connection is made.
        if let Err(error) = std::fs::File::open(&path) {
            self.merged.warnings.push(format!(
                "`{CA_FILE}`: {} cannot be read ({error}); until it can, no HTTPS connection is made",
                path_text(&path)
            ));
        }
        Some(path)
    }
}
