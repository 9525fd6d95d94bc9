//! Into a registry: blobs first, then the manifest that names them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH};
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

/// How often the list of signatures is made again because others change it, too.
const LIST_TRIES_MAX: usize = 8;

pub(super) async fn publish(
    session: &Session<'_>,
    tag: &str,
    publication: &Publication,
) -> Result<(), RegistryError> {
    blob(session, &publication.config).await?;
    blob(session, &publication.component).await?;
    let manifest = &publication.manifest;
    put(
        session,
        &asked(session, tag, MANIFEST_TYPE, manifest),
        manifest,
    )
    .await?;
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

/// The request that puts a manifest into the repository.
fn asked(
    session: &Session<'_>,
    selector: &str,
    media_type: &'static str,
    manifest: &RawManifest,
) -> Asked {
    let url = session.url(&format!("manifests/{selector}"));
    let asked = Asked::new(Method::PUT, url);
    asked.with(CONTENT_TYPE, media_type, manifest.bytes.clone())
}

/// Puts a manifest into the repository, and checks that the registry read what was sent.
async fn put(
    session: &Session<'_>,
    asked: &Asked,
    manifest: &RawManifest,
) -> Result<HeaderMap, RegistryError> {
    let answer = session.send(asked).await?;
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
    let put_asked = asked(session, &selector, MANIFEST_TYPE, &manifest);
    let headers = put(session, &put_asked, &manifest).await?;
    if !headers.contains_key(SUBJECT_FIELD) {
        let mut referrer = described(MANIFEST_TYPE, &manifest.bytes);
        referrer.artifact_type = Some(signature.artifact_type.clone());
        list(session, subject.digest, referrer).await?;
    }
    Ok(manifest.digest)
}

/// Adds a manifest to the list under the tag made of the digest of what it refers to.
///
/// Others may change the list at the same time. A registry that compares (`If-Match`) refuses what was made from an older list; after any
/// other the list is read again, and made again when it lost what was added.
async fn list(
    session: &Session<'_>,
    subject: Digest,
    referrer: Descriptor,
) -> Result<(), RegistryError> {
    for _ in 0..LIST_TRIES_MAX {
        let known = under_tag(session, subject).await?;
        let etag = known.as_ref().and_then(|known| known.etag.clone());
        let mut index = known.map_or_else(empty_list, |known| known.index);
        let digests = index.manifests.iter().map(|known| known.digest);
        if digests.into_iter().any(|known| known == referrer.digest) {
            return Ok(());
        }
        index.manifests.push(referrer.clone());
        let index = RawManifest::new(json(&index)?);
        let mut asked = asked(session, &tag(subject), INDEX_TYPE, &index);
        match etag {
            Some(etag) => asked.headers.insert(IF_MATCH, etag),
            None => asked
                .headers
                .insert(IF_NONE_MATCH, HeaderValue::from_static("*")),
        };
        match put(session, &asked, &index).await {
            Err(RegistryError::Status { status, .. })
                if status == StatusCode::PRECONDITION_FAILED => {}
            put => drop(put?),
        }
    }
    let why = format!("others change the list of signatures: it was made {LIST_TRIES_MAX} times");
    Err(RegistryError::Protocol(why))
}

fn empty_list() -> ReferrerIndex {
    ReferrerIndex {
        schema_version: 2,
        media_type: INDEX_TYPE.to_owned(),
        manifests: Vec::new(),
    }
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, RegistryError> {
    serde_json::to_vec(value).map_err(|error| RegistryError::Protocol(error.to_string()))
}
