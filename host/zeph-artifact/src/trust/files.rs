//! The signatures of one plugin: as they were found in a registry, and as they are kept beside its component.

use serde::de::IgnoredAny;
use zeph_core::failure::one_line;
use zeph_core::signer::{SignaturePolicy, SignerKey};

use crate::pulled::FoundSignature;
use crate::registry::SIGNATURE_TYPE;
use crate::signature::minisign::{MinisignSignature, SIGNATURES_MAX};
use crate::signature::sigstore::Bundle;

/// Most signatures of each kind that are looked at.
pub const FILES_MAX: usize = 16;

/// The type of a file of minisign.
pub const MINISIGN_TYPE: &str = "application/vnd.minisign";

/// How the file with a signature in the format of minisign ends, which lies beside what it is for.
pub const MINISIGN_SUFFIX: &str = ".minisig";

/// How the types of bundles of Sigstore begin.
const BUNDLE_TYPES: &str = "application/vnd.dev.sigstore.bundle";

/// How the types begin of what cosign made before there were bundles.
const COSIGN_TYPES: &str = "application/vnd.dev.cosign.";

/// The signatures of one plugin, not checked yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignatureFiles {
    /// Files of minisign, over the digest document.
    pub minisign: Vec<Vec<u8>>,
    /// Bundles of Sigstore, over the manifest.
    pub bundles: Vec<Vec<u8>>,
    /// Signatures of kinds that are not read, by name.
    pub unread: Vec<String>,
}

impl SignatureFiles {
    /// What was found beside an artifact, each by its type.
    pub fn found(signatures: &[FoundSignature]) -> Self {
        let mut files = Self::default();
        for found in signatures {
            let types = [found.artifact_type.as_str(), found.media_type.as_str()];
            let is = |prefix: &str| types.iter().any(|kind| kind.starts_with(prefix));
            let bytes = found.bytes.to_vec();
            if is(BUNDLE_TYPES) {
                files.bundles.push(bytes);
            } else if is(SIGNATURE_TYPE) || is(MINISIGN_TYPE) {
                files.minisign.push(bytes);
            } else if is(COSIGN_TYPES) {
                files.unread.push("a legacy signature of cosign (simple signing), which is not read; `cosign sign --key` of version 3 makes a bundle that is".to_owned());
            } else {
                let kind = one_line(&found.artifact_type, 80);
                files.unread.push(format!(
                    "a signature of the type `{kind}`, which is not read"
                ));
            }
        }
        files
    }

    /// What lies beside a component: a file of minisign, and bundles one behind the other.
    pub fn kept(minisign: Option<&[u8]>, bundles: Option<&[u8]>) -> Self {
        Self {
            minisign: minisign.map(<[u8]>::to_vec).into_iter().collect(),
            bundles: bundles.map(parts).unwrap_or_default(),
            unread: Vec::new(),
        }
    }

    /// What says nothing and is not kept, each with why.
    pub fn not_kept(&self) -> Vec<String> {
        let minisign = self.minisign.iter().take(FILES_MAX);
        let minisign = minisign.filter_map(|file| MinisignSignature::all(file).err());
        let minisign = minisign.map(|error| format!("a signature that cannot be read ({error})"));
        let bundles = self.bundles.iter().take(FILES_MAX);
        let bundles = bundles.filter_map(|bundle| Bundle::read(bundle).err());
        let bundles = bundles.map(|error| error.to_string());
        self.unread
            .iter()
            .cloned()
            .chain(minisign)
            .chain(bundles)
            .collect()
    }

    /// A file of minisign to be kept, with the signatures of known keys first; none without a signature that can be read.
    ///
    /// Limits: [`SIGNATURES_MAX`] of them.
    pub fn minisign_file(&self, policy: &SignaturePolicy) -> Option<Vec<u8>> {
        let read = self.minisign.iter().take(FILES_MAX);
        let read = read.filter_map(|file| MinisignSignature::all(file).ok());
        let mut signatures: Vec<MinisignSignature> = read.flatten().collect();
        signatures.sort_by_key(|signature| !is_known(policy, |key| signature.means(key)));
        let kept = signatures.iter().take(SIGNATURES_MAX);
        let text: String = kept.map(MinisignSignature::to_text).collect();
        (!text.is_empty()).then(|| text.into_bytes())
    }

    /// Bundles to be kept, with those of known keys first; none without one that can be read.
    ///
    /// Limits: four of them, so that a file has at most 1 MiB.
    pub fn bundles_file(&self, policy: &SignaturePolicy) -> Option<Vec<u8>> {
        const BUNDLES_MAX: usize = 4;
        let bundles = self.bundles.iter().take(FILES_MAX);
        let read = bundles.filter_map(|bytes| Some((Bundle::read(bytes).ok()?, bytes)));
        let mut read: Vec<_> = read.collect();
        read.sort_by_key(|(bundle, _)| !is_known(policy, |key| bundle.means(key)));
        let kept = read
            .iter()
            .take(BUNDLES_MAX)
            .map(|(_, bytes)| bytes.trim_ascii());
        let kept: Vec<&[u8]> = kept.collect();
        (!kept.is_empty()).then(|| kept.join(&b'\n'))
    }
}

fn is_known(policy: &SignaturePolicy, means: impl Fn(&SignerKey) -> bool) -> bool {
    policy.signers.iter().any(|signer| means(&signer.key))
}

/// JSON texts that stand behind each other. What is no JSON is a part of its own, for its reader to refuse.
fn parts(text: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    let mut start = 0;
    while parts.len() < FILES_MAX {
        let read = values.next();
        let end = match read {
            None => break,
            Some(Ok(_)) => values.byte_offset(),
            Some(Err(_)) => text.len(),
        };
        parts.push(text[start..end].to_vec());
        start = end;
        if end == text.len() {
            break;
        }
    }
    parts
}
