//! The client of registries: fetching and publishing, by the distribution specification of OCI.
//!
//! It is our own because `oci-client` makes its connections itself: `Client::try_from` builds a client of `reqwest` and takes neither a
//! connector nor a resolver, so that no address would be checked, neither of the registry nor of where it redirects to. Here every
//! request goes through the egress: hosts of `plugins.registries` as their operator said, all others at public addresses and over TLS.
//!
//! In reading order: `request` (one request, and where it is redirected to), `challenge` and `token` (what a registry wants to know),
//! `session` (requests to one repository), `blob` (bytes of a declared size and digest), `pages` (lists in parts), `pull`,
//! `referrers` (the signatures of an artifact), `publish`, `error`.

mod blob;
mod challenge;
mod error;
mod pages;
mod publish;
mod pull;
mod referrers;
mod request;
mod session;
mod token;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use url::Url;
use zeph_core::id::Digest;
use zeph_core::network::{HTTP_PORT, HTTPS_PORT};
use zeph_egress::{Egress, OwnClient, OwnHost, OwnLimits};

pub use self::error::{CredentialState, RegistryError};
pub use self::referrers::SIGNATURE_TYPE;
use self::request::Asked;
use self::session::{Actions, Session};
use crate::credentials::CredentialFiles;
use crate::manifest::{MANIFEST_BYTES_MAX, Publication};
use crate::pulled::{FoundSignature, Pulled, RawManifest};
use crate::reference::{ArtifactSource, Reference, RegistryHost};

/// Most bytes of a signature.
pub const SIGNATURE_BYTES_MAX: usize = 256 * 1024;

/// What the operator decided about registries.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// The registries that may be asked, and how they are reached (`plugins.registries`).
    pub allowed: Vec<OwnHost>,
    /// Most bytes of a component (`plugins.download_bytes_max`).
    pub bytes_max: u64,
    /// The time for all of one operation (`plugins.download_timeout_secs`).
    pub timeout: Duration,
}

/// How far a transfer of a component is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that arrived.
    pub n_bytes: u64,
    /// Bytes that were announced.
    pub n_bytes_total: Option<u64>,
}

/// Is told how far a transfer is, some hundred times.
pub type Report = Arc<dyn Fn(Progress) + Send + Sync>;

/// The registries that the operator allows. Cheap to clone.
#[derive(Clone)]
pub struct Registries {
    client: OwnClient,
    settings: RegistrySettings,
    credentials: CredentialFiles,
    report: Report,
}

impl Registries {
    /// Those of `settings`, reached through `egress`.
    pub fn new(
        egress: &Egress,
        settings: RegistrySettings,
        credentials: CredentialFiles,
        report: Report,
    ) -> Self {
        let bytes = usize::try_from(settings.bytes_max).unwrap_or(usize::MAX);
        let limits = OwnLimits {
            time: settings.timeout,
            bytes: bytes.max(MANIFEST_BYTES_MAX),
        };
        Self {
            client: OwnClient::of_hosts(egress, &settings.allowed, limits),
            settings,
            credentials,
            report,
        }
    }

    /// Fetches an artifact with its signatures. Its bytes have the digests that were asked for and declared.
    ///
    /// Shape:  `wasm` is the digest the component has to have. A URL needs one.
    /// Errors: [`RegistryError`].
    pub async fn fetch(
        &self,
        source: &ArtifactSource,
        wasm: Option<Digest>,
    ) -> Result<Pulled, RegistryError> {
        let pulled = match source {
            ArtifactSource::Registry(reference) => self.pull(reference).await?,
            ArtifactSource::Url(url) => {
                let wasm = wasm.ok_or(RegistryError::NoDigest)?;
                self.download(url, wasm).await?
            }
        };
        let found = pulled.component.digest();
        match wasm.filter(|wasm| *wasm != found) {
            None => Ok(pulled),
            Some(expected) => Err(RegistryError::Digest {
                what: "the component",
                expected,
                found,
            }),
        }
    }

    /// Fetches a component from a registry.
    ///
    /// Errors: [`RegistryError`].
    pub async fn pull(&self, reference: &Reference) -> Result<Pulled, RegistryError> {
        let pulling = async {
            let session = Session::new(self, reference, Actions::Pull)?;
            pull::pull(&session, reference).await
        };
        self.within(pulling).await
    }

    /// Fetches a component from a server, and the signature beside it (`URL.minisig`) if there is one.
    ///
    /// Errors: [`RegistryError`]; `Digest` when it has another than `wasm`.
    pub async fn download(&self, url: &Url, wasm: Digest) -> Result<Pulled, RegistryError> {
        self.within(pull::download(self, url, wasm)).await
    }

    /// Fetches a small file, such as an index.
    ///
    /// Errors: [`RegistryError`]; `TooLarge` beyond `bytes_max`.
    pub async fn file(&self, url: &Url, bytes_max: usize) -> Result<Bytes, RegistryError> {
        let fetching = async {
            let answer = self.send(&Asked::get(url.clone())).await?;
            let answer = error::success(answer, url.as_str()).await?;
            error::bytes(answer, url.as_str(), bytes_max).await
        };
        self.within(fetching).await
    }

    /// The manifest that a reference stands for now.
    ///
    /// Errors: [`RegistryError`].
    pub async fn manifest(&self, reference: &Reference) -> Result<RawManifest, RegistryError> {
        let fetching = async {
            let session = Session::new(self, reference, Actions::Pull)?;
            let (manifest, _) = pull::manifest(&session, reference).await?;
            Ok(manifest)
        };
        self.within(fetching).await
    }

    /// The tags of the repository of a reference, as the registry orders them, in at most 32 answers.
    ///
    /// Errors: [`RegistryError`].
    pub async fn tags(&self, reference: &Reference) -> Result<Vec<String>, RegistryError> {
        let fetching = async {
            let session = Session::new(self, reference, Actions::Pull)?;
            pull::tags(&session).await
        };
        self.within(fetching).await
    }

    /// Publishes a component under the tag of `reference`.
    ///
    /// Errors: [`RegistryError`]; `NoTag`.
    pub async fn publish(
        &self,
        reference: &Reference,
        publication: &Publication,
    ) -> Result<(), RegistryError> {
        let publishing = async {
            let tag = reference.tag().ok_or(RegistryError::NoTag)?;
            let session = Session::new(self, reference, Actions::PullAndPush)?;
            publish::publish(&session, tag, publication).await
        };
        self.within(publishing).await
    }

    /// Publishes a signature of the artifact whose manifest is `subject`, beside it. Returns the digest of its manifest.
    ///
    /// Errors: [`RegistryError`].
    pub async fn attach(
        &self,
        reference: &Reference,
        subject: &RawManifest,
        signature: &FoundSignature,
    ) -> Result<Digest, RegistryError> {
        let publishing = async {
            let session = Session::new(self, reference, Actions::PullAndPush)?;
            publish::attach(&session, subject, signature).await
        };
        self.within(publishing).await
    }

    /// How a registry may be reached.
    /// The URL of a registry that is allowed.
    pub(crate) fn origin_of(&self, registry: &RegistryHost) -> Result<Url, RegistryError> {
        let origin = origin(self.allowed(registry)?);
        origin.ok_or_else(|| RegistryError::NotAllowed(registry.clone()))
    }

    fn allowed(&self, registry: &RegistryHost) -> Result<&OwnHost, RegistryError> {
        let mut allowed = self.settings.allowed.iter();
        let found = allowed.find(|host| {
            let default_port = match host.plain_http {
                true => HTTP_PORT,
                false => HTTPS_PORT,
            };
            host.destination == registry.destination(default_port)
        });
        found.ok_or_else(|| RegistryError::NotAllowed(registry.clone()))
    }

    /// Ends what takes too long as a whole: a server can answer slowly in many ways.
    async fn within<T>(
        &self,
        operation: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        let limit = self.settings.timeout;
        let ended = timeout(limit, operation).await;
        ended.unwrap_or(Err(RegistryError::TimedOut(limit)))
    }
}

/// The origin of a host, as a URL.
fn origin(host: &OwnHost) -> Option<Url> {
    let scheme = match host.plain_http {
        true => "http",
        false => "https",
    };
    Url::parse(&format!("{scheme}://{}/", host.destination)).ok()
}

impl fmt::Debug for Registries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed = &self.settings.allowed;
        f.debug_struct("Registries")
            .field("allowed", allowed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
