//! Into a registry: blobs first, then the manifest that names them.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use http::{Method, StatusCode};
use tokio::time::Instant;
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
const LIST_TRIES_MAX: usize = 32;

/// How often a registry may fail while the list is made.
const FAULTS_MAX: usize = 3;

/// How long what was added to a list has to stand there, at least and at most: longer than others need from reading the list to writing it.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

pub(super) async fn publish(
    session: &Session<'_>,
    tag: &str,
    publication: &Publication,
) -> Result<(), RegistryError> {
    let blobs = [&publication.config, &publication.component];
    let manifest = &publication.manifest;
    let asked = asked(session, tag, MANIFEST_TYPE, manifest);
    with_blobs(session, &blobs, (&asked, manifest)).await?;
    Ok(())
}

/// Puts blobs into the repository, then the manifest that names them. Where others put the same at the same time, a registry may lose
/// a blob that it took, and refuse one or the other: then all of it is done once more.
async fn with_blobs(
    session: &Session<'_>,
    blobs: &[&Bytes],
    (asked, manifest): (&Asked, &RawManifest),
) -> Result<HeaderMap, RegistryError> {
    let tried = async || {
        for bytes in blobs {
            blob(session, bytes).await?;
        }
        put(session, asked, manifest).await
    };
    match tried().await {
        Err(RegistryError::Status {
            status: StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND,
            ..
        }) => tried().await,
        put => put,
    }
}

/// Puts some bytes into the repository, unless they are there.
async fn blob(session: &Session<'_>, bytes: &Bytes) -> Result<(), RegistryError> {
    let kind = "application/octet-stream";
    let digest = described(kind, bytes).digest.to_string();
    let there = session.head(&format!("blobs/{digest}"));
    if session.send(&there).await?.status == StatusCode::OK {
        return Ok(());
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
        StatusCode::CREATED | StatusCode::NO_CONTENT | StatusCode::OK => Ok(()),
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
    let empty = Bytes::from_static(crate::manifest::EMPTY);
    let layer = described(&signature.media_type, &signature.bytes);
    let manifest = ReferrerManifest::new(subject, &signature.artifact_type, layer);
    let manifest = RawManifest::new(json(&manifest)?);
    let selector = manifest.digest.to_string();
    let put_asked = asked(session, &selector, MANIFEST_TYPE, &manifest);
    let blobs = [&empty, &signature.bytes];
    let headers = with_blobs(session, &blobs, (&put_asked, &manifest)).await?;
    if !headers.contains_key(SUBJECT_FIELD) {
        let mut referrer = described(MANIFEST_TYPE, &manifest.bytes);
        referrer.artifact_type = Some(signature.artifact_type.clone());
        list(session, subject.digest, referrer).await?;
    }
    Ok(manifest.digest)
}

/// Adds a manifest to the list under the tag made of the digest of what it refers to.
///
/// Others may change the list at the same time. A registry that compares (`If-Match`) refuses what was made from an older list. With any other
/// the list is read again, and once more after all who read it before have written it, and made again when it lost what was added.
async fn list(
    session: &Session<'_>,
    subject: Digest,
    referrer: Descriptor,
) -> Result<(), RegistryError> {
    let mut is_seen = false;
    let mut pause = Duration::ZERO;
    let mut n_faults = 0;
    // Those who would write at once wait for different times.
    let digits = referrer.digest.hex();
    let share: u64 = digits.bytes().take(4).map(u64::from).sum();
    let jitter = Duration::from_millis(share);
    for _ in 0..LIST_TRIES_MAX {
        let began = Instant::now();
        let known = match under_tag(session, subject).await {
            Err(error) if is_of_registry(&error) && n_faults < FAULTS_MAX => {
                n_faults += 1;
                tokio::time::sleep(jitter).await;
                continue;
            }
            known => known?,
        };
        let etag = known.as_ref().and_then(|known| known.etag.clone());
        let mut index = known.map_or_else(empty_list, |known| known.index);
        let digests = index.manifests.iter().map(|known| known.digest);
        match digests.into_iter().any(|known| known == referrer.digest) {
            // It stood there before, or for as long as another one needs to write.
            true if is_seen || pause.is_zero() => return Ok(()),
            true => {
                is_seen = true;
                tokio::time::sleep(pause).await;
                continue;
            }
            false => is_seen = false,
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
            Err(error) if is_of_registry(&error) && n_faults < FAULTS_MAX => {
                n_faults += 1;
                tokio::time::sleep(jitter).await;
            }
            put => drop(put?),
        }
        pause = (began.elapsed() * 3).clamp(PAUSE_MIN, PAUSE_MAX) + jitter;
    }
    let why = format!("others change the list of signatures: it was made {LIST_TRIES_MAX} times");
    Err(RegistryError::Protocol(why))
}

/// Whether the registry says that it failed: one that is asked to write a list by several at once may.
fn is_of_registry(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Status { status, .. } if status.is_server_error())
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
