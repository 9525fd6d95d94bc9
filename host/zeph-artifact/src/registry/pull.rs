//! From a reference or a URL to a component: manifest, description, component, signatures.

use std::collections::BTreeMap;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use url::Url;
use zeph_core::id::Digest;
use zeph_egress::OwnAnswer;

use super::blob::{self, Expected};
use super::pages::Pages;
use super::request::Asked;
use super::session::Session;
use super::{Registries, RegistryError, SIGNATURE_BYTES_MAX, error, referrers};
use crate::manifest::{self, ACCEPTED, BadManifest, ComponentManifest, MANIFEST_BYTES_MAX};
use crate::pulled::{FoundSignature, Pulled, RawManifest};
use crate::reference::{ArtifactSource, Reference};
use crate::trust::{MINISIGN_SUFFIX, MINISIGN_TYPE};

/// Where a registry says what it believes the digest of a manifest is.
pub(super) const DIGEST_FIELD: &str = "docker-content-digest";

/// How many tags are asked for at once. A registry may answer with fewer.
const PAGE_TAGS: usize = 1_000;

pub(super) async fn pull(
    session: &Session<'_>,
    reference: &Reference,
) -> Result<Pulled, RegistryError> {
    let (raw, sent) = manifest(session, reference).await?;
    let bad = |why| RegistryError::Manifest {
        what: format!("`{reference}`"),
        why,
    };
    let manifest = manifest::read(&raw.bytes, &sent).map_err(bad)?;
    description(session, &manifest, bad).await?;
    let component = blob::component(session, &manifest.component).await?;
    Ok(Pulled {
        source: ArtifactSource::Registry(reference.clone()),
        signatures: referrers::signatures(session, raw.digest).await?,
        manifest: Some(raw),
        component,
        annotations: manifest.annotations,
    })
}

/// The manifest of a reference, and the type the registry says it has.
///
/// Errors: `Digest` when it is not the one that was asked for, or not the one the registry says it is.
pub(super) async fn manifest(
    session: &Session<'_>,
    reference: &Reference,
) -> Result<(RawManifest, String), RegistryError> {
    let asked = session.get(&format!("manifests/{}", reference.selector()));
    let answer = session.send(&asked.accepting(ACCEPTED)).await?;
    let answer = error::success(answer, &reference.to_string()).await?;
    let said = field(&answer, DIGEST_FIELD).and_then(|said| said.parse().ok());
    let sent = field(&answer, CONTENT_TYPE.as_str()).unwrap_or_default();
    let what = format!("the manifest of {reference}");
    let bytes = error::bytes(answer, &what, MANIFEST_BYTES_MAX).await?;
    let manifest = RawManifest::new(bytes);
    for expected in reference.digest().into_iter().chain(said) {
        check_digest(expected, manifest.digest)?;
    }
    Ok((manifest, sent))
}

fn check_digest(expected: Digest, found: Digest) -> Result<(), RegistryError> {
    match expected == found {
        true => Ok(()),
        false => Err(RegistryError::Digest {
            what: "the manifest",
            expected,
            found,
        }),
    }
}

fn field(answer: &OwnAnswer, name: &str) -> Option<String> {
    let value = answer.headers.get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

/// Fetches the description of the component, where there is one, and checks that it is of this component.
async fn description(
    session: &Session<'_>,
    manifest: &ComponentManifest,
    bad: impl Fn(BadManifest) -> RegistryError,
) -> Result<(), RegistryError> {
    let Some(config) = &manifest.config else {
        return Ok(());
    };
    let what = "the description of the component";
    let bytes = blob::small(session, what, config, MANIFEST_BYTES_MAX).await?;
    manifest.check_description(&bytes).map_err(bad)
}

pub(super) async fn download(
    registries: &Registries,
    url: &Url,
    wasm: Digest,
) -> Result<Pulled, RegistryError> {
    let asked = Asked::get(url.clone());
    let answer = registries.send(&asked).await?;
    let answer = error::success(answer, &asked.told()).await?;
    let expected = Expected {
        what: "the component",
        digest: wasm,
        n_bytes: None,
        bytes_max: registries.settings.bytes_max,
    };
    let component = blob::file(answer, &expected, &registries.report).await?;
    Ok(Pulled {
        source: ArtifactSource::Url(url.clone()),
        manifest: None,
        component,
        annotations: BTreeMap::new(),
        signatures: beside(registries, url).await?,
    })
}

/// The signature that lies beside a file. A server that has none may answer in many ways.
async fn beside(registries: &Registries, url: &Url) -> Result<Vec<FoundSignature>, RegistryError> {
    let mut url = url.clone();
    url.set_path(&format!("{}{MINISIGN_SUFFIX}", url.path()));
    let answer = registries.send(&Asked::get(url.clone())).await?;
    if answer.status != StatusCode::OK {
        return Ok(Vec::new());
    }
    let bytes = error::bytes(answer, url.as_str(), SIGNATURE_BYTES_MAX).await?;
    Ok(vec![FoundSignature {
        artifact_type: String::new(),
        media_type: MINISIGN_TYPE.to_owned(),
        bytes,
    }])
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// All tags of the repository, in as many parts as the registry makes of them.
///
/// Errors: those of [`Pages`]: the newest version could be on a part that is not read.
pub(super) async fn tags(session: &Session<'_>) -> Result<Vec<String>, RegistryError> {
    let mut asked = session.get("tags/list");
    asked.url.set_query(Some(&format!("n={PAGE_TAGS}")));
    let told = asked.told();
    let answer = session.send(&asked).await?;
    let mut page = Some(error::success(answer, &told).await?);
    let mut pages = Pages::new(session, "tags", asked);
    let mut tags = Vec::new();
    while let Some(answer) = page {
        let next = pages.after(&answer)?;
        let bytes = error::bytes(answer, &told, MANIFEST_BYTES_MAX).await?;
        let listed: Tags = manifest::json(&bytes).map_err(|why| RegistryError::Manifest {
            what: told.clone(),
            why,
        })?;
        tags.extend(listed.tags.unwrap_or_default());
        page = pages.get(next).await?;
    }
    Ok(tags)
}
