//! `plugins.registries`: where plugins may be fetched from.

use std::time::Duration;

use zeph_core::network::{Destination, HTTP_PORT, HTTPS_PORT};

use super::Compiling;
use crate::raw::{RawPlugins, RawRegistry};
use crate::{DownloadLimits, RegistryConfig};

const REGISTRIES: &str = "plugins.registries";

impl Compiling<'_> {
    pub(super) fn registries(&mut self, raw: &[RawRegistry]) -> Vec<RegistryConfig> {
        let mut registries: Vec<RegistryConfig> = Vec::new();
        for (idx, raw) in raw.iter().enumerate() {
            let default_port = match raw.plain_http {
                true => HTTP_PORT,
                false => HTTPS_PORT,
            };
            let message = match Destination::parse(&raw.host, default_port) {
                Err(error) => format!("{error}; write `HOST` or `HOST:PORT`"),
                Ok(host) if registries.iter().any(|known| known.destination == host) => {
                    format!("`{host}` has an entry above")
                }
                Ok(destination) => {
                    registries.push(RegistryConfig {
                        destination,
                        plain_http: raw.plain_http,
                        private: raw.private,
                    });
                    continue;
                }
            };
            self.merged.problem_in(REGISTRIES, idx, "host", &message);
        }
        registries
    }
}

pub(super) fn downloads(raw: &RawPlugins) -> DownloadLimits {
    DownloadLimits {
        bytes_max: raw.download_bytes_max,
        timeout: Duration::from_secs(raw.download_timeout_secs.into()),
    }
}
