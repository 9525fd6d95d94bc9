//! Into a registry: blobs first, then the manifest that names them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Method, StatusCode};
use zeph_core::id::Digest;

use super::pull::DIGEST_FIELD;
use super::referrers::{tag, under_tag};
use super::request::{self, Asked};
use super::session::Session;
use super::{RegistryError, error};
use crate::manifest::{
    Descriptor, INDEX_TYPE, MANIFEST_TYPE, Publication, ReferrerIndex, ReferrerManifest, described,
};
use crate::pulled::{FoundSignature, RawManifest};

/// Where a registry says that it lists a manifest as one that refers to another.
const SUBJECT_FIELD: &str = "oci-subject";

pub(super) async fn publish(
    session: &Session<'_>,
    tag: &str,
    publication: &Publication,
) -> Result<(), RegistryError> {
    blob(session, &publication.config).await?;
    blob(session, &publication.component).await?;
    let manifest = &publication.manifest;
    put(session, tag, MANIFEST_TYPE, manifest).await?;
    Ok(())
}

/// Puts some bytes into the repository, unless they are there.
async fn blob(session: &Session<'_>, bytes: &Bytes) -> Result<Descriptor, RegistryError> {
    let kind = "application/octet-stream";
    let descriptor = described(kind, bytes);
    let digest = descriptor.digest.to_string();
    let there = session.head(&format!("blobs/{digest}"));
    if session.send(&there).await?.status == StatusCode::OK {
        return Ok(descriptor);
    }
    let begin = Asked::new(Method::POST, session.url("blobs/uploads/"));
    let begun = session.send(&begin).await?;
    if begun.status != StatusCode::ACCEPTED {
        return Err(error::unexpected(begun, &begin.told()).await);
    }
    // It may name a storage: that is reached like any redirect, without credentials.
    let mut place = request::location(&begun, &begin.url)?;
    place.query_pairs_mut().append_pair("digest", &digest);
    let upload = Asked::new(Method::PUT, place).with(CONTENT_TYPE, kind, bytes.clone());
    let stored = session.send(&upload).await?;
    match stored.status {
        StatusCode::CREATED | StatusCode::NO_CONTENT | StatusCode::OK => Ok(descriptor),
        _ => Err(error::unexpected(stored, &upload.told()).await),
    }
}

/// Puts a manifest into the repository, and checks that the registry read what was sent.
async fn put(
    session: &Session<'_>,
    selector: &str,
    media_type: &'static str,
    manifest: &RawManifest,
) -> Result<HeaderMap, RegistryError> {
    let url = session.url(&format!("manifests/{selector}"));
    let asked = Asked::new(Method::PUT, url);
    let asked = asked.with(CONTENT_TYPE, media_type, manifest.bytes.clone());
    let answer = session.send(&asked).await?;
    let is_stored = matches!(answer.status, StatusCode::CREATED | StatusCode::OK);
    if !is_stored {
        return Err(error::unexpected(answer, &asked.told()).await);
    }
    let said = answer.headers.get(DIGEST_FIELD);
    let said = said.and_then(|value| value.to_str().ok()?.parse::<Digest>().ok());
    match said.filter(|said| *said != manifest.digest) {
        None => Ok(answer.headers),
        Some(found) => Err(RegistryError::Digest {
            what: "the manifest, as the registry read it,",
            expected: manifest.digest,
            found,
        }),
    }
}

/// Publishes a signature beside an artifact, and lists it where the registry does not.
pub(super) async fn attach(
    session: &Session<'_>,
    subject: &RawManifest,
    signature: &FoundSignature,
) -> Result<Digest, RegistryError> {
    blob(session, &Bytes::from_static(crate::manifest::EMPTY)).await?;
    let mut layer = blob(session, &signature.bytes).await?;
    layer.media_type.clone_from(&signature.media_type);
    let manifest = ReferrerManifest::new(subject, &signature.artifact_type, layer);
    let manifest = RawManifest::new(json(&manifest)?);
    let selector = manifest.digest.to_string();
    let headers = put(session, &selector, MANIFEST_TYPE, &manifest).await?;
    if !headers.contains_key(SUBJECT_FIELD) {
        let mut referrer = described(MANIFEST_TYPE, &manifest.bytes);
        referrer.artifact_type = Some(signature.artifact_type.clone());
        list(session, subject.digest, referrer).await?;
    }
    Ok(manifest.digest)
}

/// Adds a manifest to the list under the tag made of the digest of what it refers to.
async fn list(
    session: &Session<'_>,
    subject: Digest,
    referrer: Descriptor,
) -> Result<(), RegistryError> {
    let known = under_tag(session, subject).await?;
    let mut index = known.unwrap_or_else(|| ReferrerIndex {
        schema_version: 2,
        media_type: INDEX_TYPE.to_owned(),
        manifests: Vec::new(),
    });
    if index
        .manifests
        .iter()
        .any(|known| known.digest == referrer.digest)
    {
        return Ok(());
    }
    index.manifests.push(referrer);
    let index = RawManifest::new(json(&index)?);
    put(session, &tag(subject), INDEX_TYPE, &index).await?;
    Ok(())
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, RegistryError> {
    serde_json::to_vec(value).map_err(|error| RegistryError::Protocol(error.to_string()))
}
