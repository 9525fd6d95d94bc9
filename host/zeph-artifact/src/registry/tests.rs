//! The client against registries: one that behaves, hostile ones that answer byte for byte as a test says, and the one of Debian.

mod debian;
mod downloads;
mod hostile;
mod packages;
mod pulls;
mod server;
mod signatures;
mod tokens;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use zeph_core::network::{Destination, EgressLimits, EgressSettings};
use zeph_egress::{Egress, OwnHost};

use self::server::{Reply, Request, Server};
use super::{Registries, RegistryError, RegistrySettings};
use crate::credentials::CredentialFiles;
use crate::manifest::{ComponentFacts, MANIFEST_TYPE, Publication};
use crate::pulled::Pulled;
use crate::reference::Reference;

const LONG: Duration = Duration::from_secs(30);

/// Most bytes of a component in these tests.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

fn egress() -> Egress {
    egress_trusting(None)
}

/// As [`egress`], with these authorities besides those of the machine.
fn egress_trusting(ca_file: Option<PathBuf>) -> Egress {
    Egress::new(&EgressSettings {
        private: Arc::default(),
        proxy: None,
        ca_file,
        limits: EgressLimits {
            connect: LONG,
            header: LONG,
            idle: LONG,
            total: LONG,
            header_bytes: 65_536,
            body_bytes: 65_536,
            redirects: 0,
            requests: 1,
            connections: 1,
        },
    })
}

/// A registry on this machine, as its operator allowed it.
fn local(port: u16) -> OwnHost {
    OwnHost {
        destination: Destination {
            host: "127.0.0.1".parse().unwrap(),
            port,
        },
        plain_http: true,
        private: true,
    }
}

struct World {
    allowed: Vec<OwnHost>,
    credentials: CredentialFiles,
    timeout: Duration,
    ca_file: Option<PathBuf>,
    /// The files above.
    folder: tempfile::TempDir,
}

impl World {
    fn of(servers: &[&Server]) -> Self {
        let allowed = servers.iter().map(|server| local(server.port())).collect();
        Self {
            allowed,
            credentials: CredentialFiles::default(),
            timeout: LONG,
            ca_file: None,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// With this file of docker.
    fn docker(mut self, text: &str) -> Self {
        let path = self.folder.path().join("config.json");
        std::fs::write(&path, text).unwrap();
        self.credentials.docker = Some(path);
        self
    }

    /// With a user and a password for a registry.
    fn login(self, port: u16) -> Self {
        let auths =
            json!({ "auths": { format!("127.0.0.1:{port}"): { "auth": "b3BlbjpzZXNhbWU=" } } });
        self.docker(&auths.to_string())
    }

    fn registries(&self) -> Registries {
        let settings = RegistrySettings {
            allowed: self.allowed.clone(),
            bytes_max: BYTES_MAX,
            timeout: self.timeout,
        };
        Registries::new(
            &egress_trusting(self.ca_file.clone()),
            settings,
            self.credentials.clone(),
            Arc::new(|_| ()),
        )
    }

    async fn pull(&self, server: &Server) -> Result<Pulled, RegistryError> {
        self.registries()
            .pull(&reference(server.port(), ":1.2"))
            .await
    }

    async fn refusal(&self, server: &Server) -> RegistryError {
        self.pull(server).await.unwrap_err()
    }
}

fn reference(port: u16, selector: &str) -> Reference {
    format!("127.0.0.1:{port}/org/name{selector}")
        .parse()
        .unwrap()
}

/// An artifact of these bytes.
fn publication(component: impl Into<Bytes>) -> Publication {
    let facts = ComponentFacts {
        annotations: [(
            "org.opencontainers.image.version".to_owned(),
            "1.2.0".to_owned(),
        )]
        .into(),
        ..ComponentFacts::default()
    };
    Publication::new(component.into(), &facts).unwrap()
}

/// What a registry that has this artifact and no signatures answers.
fn honest(artifact: &Publication, request: &Request) -> Reply {
    let blob = |bytes: &Bytes| {
        format!(
            "/v2/org/name/blobs/{}",
            crate::manifest::described("", bytes).digest
        )
    };
    let digest = artifact.manifest.digest;
    let path = request.path.as_str();
    let is_manifest =
        path == "/v2/org/name/manifests/1.2" || path == format!("/v2/org/name/manifests/{digest}");
    match path {
        _ if is_manifest => Reply::whole(200, &artifact.manifest.bytes)
            .field("content-type", MANIFEST_TYPE)
            .field("docker-content-digest", &digest.to_string()),
        path if path == blob(&artifact.component) => Reply::whole(200, &artifact.component),
        path if path == blob(&artifact.config) => Reply::whole(200, &artifact.config),
        _ => Reply::whole(404, b"{}"),
    }
}

/// A registry that has this artifact, but for what `lie` answers.
async fn lying(
    artifact: &Publication,
    lie: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
) -> Server {
    let artifact = artifact.clone();
    Server::start(move |request| lie(request).unwrap_or_else(|| honest(&artifact, request))).await
}

/// Whether a request is for the component.
fn is_for_component(artifact: &Publication) -> impl Fn(&Request) -> bool + Send + Sync + 'static {
    let digest = crate::manifest::described("", &artifact.component).digest;
    move |request| {
        let path = request.path.split('?').next().unwrap_or_default();
        path.ends_with(&digest.to_string())
    }
}
