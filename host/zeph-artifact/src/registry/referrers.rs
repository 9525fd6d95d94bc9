//! The signatures of an artifact: manifests that refer to its own, listed by the registry or under a tag made of its digest.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use zeph_core::id::Digest;
use zeph_egress::OwnAnswer;

use super::pages::Pages;
use super::request::Asked;
use super::session::Session;
use super::{RegistryError, SIGNATURE_BYTES_MAX, blob, error};
use crate::manifest::{
    self, Descriptor, INDEX_TYPE, MANIFEST_BYTES_MAX, MANIFEST_TYPE, ReferrerIndex,
    ReferrerManifest,
};
use crate::pulled::{FoundSignature, RawManifest};

/// The type of our own signatures.
pub const SIGNATURE_TYPE: &str = "application/vnd.zeph-host.signature.v1";

/// How the types of signatures begin: ours, bundles of Sigstore, and what cosign writes.
const SIGNATURE_TYPES: [&str; 3] = [
    SIGNATURE_TYPE,
    "application/vnd.dev.sigstore.bundle",
    "application/vnd.dev.cosign.",
];

/// What the artifacts are, under the tag that cosign made before there were referrers.
const SIMPLE_SIGNING_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// Most signatures of one artifact that are fetched. Who may write more of them may also remove the right one.
const SIGNATURES_MAX: usize = 16;

/// Most bytes of the manifest of a signature.
const REFERRER_BYTES_MAX: usize = 64 * 1024;

/// The signatures of the artifact whose manifest has this digest. What is broken is passed over: it signs nothing.
///
/// Errors: those of the connection, and a registry that answers with an error.
pub(super) async fn signatures(
    session: &Session<'_>,
    subject: Digest,
) -> Result<Vec<FoundSignature>, RegistryError> {
    let mut found = Vec::new();
    for referrer in referrers(session, subject).await? {
        if found.len() >= SIGNATURES_MAX {
            break;
        }
        match of_referrer(session, subject, &referrer).await {
            Ok(signature) => found.extend(signature),
            Err(error) if is_of_content(&error) => {
                tracing::warn!(digest = %referrer.digest, "a signature is passed over: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() {
        found.extend(simple_signing(session, subject).await?);
    }
    Ok(found)
}

fn is_of_content(error: &RegistryError) -> bool {
    matches!(
        error,
        RegistryError::NotFound(_)
            | RegistryError::Manifest { .. }
            | RegistryError::Digest { .. }
            | RegistryError::Size { .. }
            | RegistryError::Truncated { .. }
            | RegistryError::TooLarge { .. }
    )
}

/// The manifests that refer to `subject` and may be signatures.
async fn referrers(
    session: &Session<'_>,
    subject: Digest,
) -> Result<Vec<Descriptor>, RegistryError> {
    let asked = session.get(&format!("referrers/{subject}"));
    let asked = asked.accepting(INDEX_TYPE);
    let answer = session.send(&asked).await?;
    let is_index = answer.status == StatusCode::OK && is_index(&answer);
    let manifests = match (is_index, answer.status) {
        (true, _) => all_pages(session, asked, answer).await?,
        (false, status) if is_missing(status) => {
            let known = under_tag(session, subject).await?;
            known.map(|known| known.index.manifests).unwrap_or_default()
        }
        (false, _) => return Err(error::unexpected(answer, &asked.told()).await),
    };
    let may_be = |referrer: &Descriptor| match &referrer.artifact_type {
        // Some registries leave it out; then its manifest says it.
        None => referrer.media_type == MANIFEST_TYPE,
        Some(artifact_type) => is_signature(artifact_type),
    };
    Ok(manifests.into_iter().filter(may_be).collect())
}

/// The list that begins with `answer`, in as many parts as the registry makes of it.
///
/// Errors: those of [`Pages`].
async fn all_pages(
    session: &Session<'_>,
    asked: Asked,
    answer: OwnAnswer,
) -> Result<Vec<Descriptor>, RegistryError> {
    let mut pages = Pages::new(session, "signatures", asked);
    let mut manifests = Vec::new();
    let mut page = Some(answer);
    while let Some(answer) = page {
        let next = pages.after(&answer)?;
        manifests.append(&mut read_index(answer).await?.manifests);
        page = pages.get(next).await?;
    }
    Ok(manifests)
}

/// How registries without referrers answer: they know neither the path nor perhaps the method, or they have a page for everything.
fn is_missing(status: StatusCode) -> bool {
    status == StatusCode::OK
        || matches!(
            status,
            StatusCode::NOT_FOUND
                | StatusCode::BAD_REQUEST
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_ACCEPTABLE
                | StatusCode::NOT_IMPLEMENTED
        )
}

fn is_index(answer: &OwnAnswer) -> bool {
    let sent = answer.headers.get(CONTENT_TYPE);
    let sent = sent
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    sent.split(';').next().unwrap_or_default().trim() == INDEX_TYPE
}

fn is_signature(artifact_type: &str) -> bool {
    let mut known = SIGNATURE_TYPES.iter();
    known.any(|known| artifact_type.starts_with(known))
}

/// The tag of the list that clients keep where the registry does not.
///
/// Source: the distribution specification of OCI, "Referrers Tag Schema".
pub(super) fn tag(subject: Digest) -> String {
    format!("sha256-{}", subject.hex())
}

/// The list under a tag, and what the registry calls this state of it.
pub(super) struct TaggedIndex {
    pub(super) index: ReferrerIndex,
    pub(super) etag: Option<HeaderValue>,
}

/// The list under the tag made of the digest.
pub(super) async fn under_tag(
    session: &Session<'_>,
    subject: Digest,
) -> Result<Option<TaggedIndex>, RegistryError> {
    let asked = session.get(&format!("manifests/{}", tag(subject)));
    let asked = asked.accepting(INDEX_TYPE);
    let answer = session.send(&asked).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let answer = error::success(answer, &asked.told()).await?;
    if !is_index(&answer) {
        return Ok(None);
    }
    let etag = answer.headers.get(ETAG).cloned();
    let index = read_index(answer).await?;
    Ok(Some(TaggedIndex { index, etag }))
}

async fn read_index(answer: OwnAnswer) -> Result<ReferrerIndex, RegistryError> {
    let what = "the list of signatures";
    let bytes = error::bytes(answer, what, MANIFEST_BYTES_MAX).await?;
    manifest::json(&bytes).map_err(|why| bad(what, why))
}

fn bad(what: &str, why: manifest::BadManifest) -> RegistryError {
    let what = what.to_owned();
    RegistryError::Manifest { what, why }
}

/// The signatures in one manifest; none when it is something else.
async fn of_referrer(
    session: &Session<'_>,
    subject: Digest,
    referrer: &Descriptor,
) -> Result<Vec<FoundSignature>, RegistryError> {
    let bytes = raw(session, &referrer.digest.to_string()).await?;
    let Some(bytes) = bytes else {
        let missing = format!("signature `{}`", referrer.digest);
        return Err(RegistryError::NotFound(missing));
    };
    let found = RawManifest::new(bytes);
    if found.digest != referrer.digest {
        return Err(RegistryError::Digest {
            what: "the manifest of a signature",
            expected: referrer.digest,
            found: found.digest,
        });
    }
    let what = "the manifest of a signature";
    let manifest: ReferrerManifest = manifest::json(&found.bytes).map_err(|why| bad(what, why))?;
    let refers = manifest.subject.as_ref();
    let artifact_type = manifest.artifact_type.clone();
    let artifact_type = artifact_type.unwrap_or_else(|| manifest.config.media_type.clone());
    match refers.is_some_and(|refers| refers.digest == subject) && is_signature(&artifact_type) {
        true => layers(session, &manifest, &artifact_type).await,
        false => Ok(Vec::new()),
    }
}

async fn raw(session: &Session<'_>, selector: &str) -> Result<Option<Bytes>, RegistryError> {
    let asked = session.get(&format!("manifests/{selector}"));
    let asked = asked.accepting(MANIFEST_TYPE);
    let answer = session.send(&asked).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let answer = error::success(answer, &asked.told()).await?;
    let what = "the manifest of a signature";
    error::bytes(answer, what, REFERRER_BYTES_MAX)
        .await
        .map(Some)
}

async fn layers(
    session: &Session<'_>,
    manifest: &ReferrerManifest,
    artifact_type: &str,
) -> Result<Vec<FoundSignature>, RegistryError> {
    let mut found = Vec::new();
    for layer in manifest.layers.iter().take(SIGNATURES_MAX) {
        let bytes = blob::small(session, "a signature", layer, SIGNATURE_BYTES_MAX).await?;
        found.push(FoundSignature {
            artifact_type: artifact_type.to_owned(),
            media_type: layer.media_type.clone(),
            bytes,
        });
    }
    Ok(found)
}

/// That there is a signature of the first kind that cosign made, without its content: it is not supported, and has to be named.
async fn simple_signing(
    session: &Session<'_>,
    subject: Digest,
) -> Result<Option<FoundSignature>, RegistryError> {
    let manifest = raw(session, &format!("{}.sig", tag(subject))).await?;
    Ok(manifest.map(|bytes| FoundSignature {
        artifact_type: SIMPLE_SIGNING_TYPE.to_owned(),
        media_type: SIMPLE_SIGNING_TYPE.to_owned(),
        bytes,
    }))
}
