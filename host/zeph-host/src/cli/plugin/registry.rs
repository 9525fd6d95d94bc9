//! The registries as a command uses them: through the egress, with the credentials of docker and wkg, and with progress on a terminal.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;

use zeph_artifact::credentials::CredentialFiles;
use zeph_artifact::registry::{Progress, Registries, RegistrySettings, Report};
use zeph_config::Config;
use zeph_egress::{Egress, OwnHost};

use super::display;
use crate::cli::context::Context;
use crate::cli::out;

/// The line on the terminal that says how far a transfer is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    is_shown: bool,
}

impl Transfer {
    /// One that is shown on a terminal only.
    pub(super) fn new(quiet: bool) -> Self {
        Self {
            is_shown: !quiet && io::stderr().is_terminal(),
        }
    }

    fn report(self) -> Report {
        Arc::new(move |progress| {
            if self.is_shown {
                out::stderr(&format!("\r{}\x1b[K", shown(progress)));
            }
        })
    }

    /// Takes the line away.
    pub(super) fn end(self) {
        if self.is_shown {
            out::stderr("\r\x1b[K");
        }
    }
}

fn shown(progress: Progress) -> String {
    let n_bytes = display::size(progress.n_bytes);
    match progress.n_bytes_total {
        Some(total) => format!("{n_bytes} of {}", display::size(total)),
        None => n_bytes,
    }
}

/// The registries of the configuration.
pub(super) fn registries(context: &Context, config: &Config, transfer: &Transfer) -> Registries {
    let allowed = config.plugins.registries.iter().map(|registry| OwnHost {
        destination: registry.destination.clone(),
        plain_http: registry.plain_http,
        private: registry.private,
    });
    let settings = RegistrySettings {
        allowed: allowed.collect(),
        bytes_max: config.plugins.downloads.bytes_max,
        timeout: config.plugins.downloads.timeout,
    };
    let egress = Egress::new(&config.egress);
    Registries::new(&egress, settings, credentials(context), transfer.report())
}

/// Where docker, podman and wkg keep what they know.
fn credentials(context: &Context) -> CredentialFiles {
    let surroundings = &context.surroundings;
    let docker = zeph_config::variable("DOCKER_CONFIG").filter(|folder| !folder.is_empty());
    let home = surroundings.home.as_ref();
    let docker = docker
        .map(PathBuf::from)
        .or_else(|| Some(home?.join(".docker")));
    let given = |name| zeph_config::variable(name).filter(|value| !value.is_empty());
    let runtime = given("XDG_RUNTIME_DIR").map(PathBuf::from);
    let podman = given("REGISTRY_AUTH_FILE").map(PathBuf::from);
    CredentialFiles {
        docker: docker.map(|folder| folder.join("config.json")),
        podman: podman.or_else(|| Some(runtime?.join("containers/auth.json"))),
        wkg: wkg_file(context),
    }
}

/// The configuration of wkg.
pub(super) fn wkg_file(context: &Context) -> Option<PathBuf> {
    let home = context.surroundings.config_home.as_ref();
    home.map(|home| home.join("wasm-pkg/config.toml"))
}
