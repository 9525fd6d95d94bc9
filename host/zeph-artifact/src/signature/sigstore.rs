//! Bundles of Sigstore (version 0.3), checked with a key that was given: no certificates, no transparency log, no network.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};
use zeph_core::failure::one_line;
use zeph_core::signer::SignerKey;

use super::is_of;

/// The type of a bundle.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// How programs wrote the same version before.
const BUNDLE_TYPE_BEFORE: &str = "application/vnd.dev.sigstore.bundle+json;version=0.3";

/// Most bytes of a bundle. Those of cosign have a tenth of it.
pub const BUNDLE_BYTES_MAX: usize = 256 * 1024;

/// What an envelope holds that signs an artifact.
const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";

/// The versions of such a statement.
const STATEMENTS: [&str; 2] = [
    "https://in-toto.io/Statement/v1",
    "https://in-toto.io/Statement/v0.1",
];

/// What `cosign sign` states. Other statements (how something was built, what is wrong with it) are no signatures.
const SIGNS: &str = "https://sigstore.dev/cosign/sign/v1";

/// Most artifacts that one statement is about.
const SUBJECTS_MAX: usize = 64;

/// A bundle, not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// What is said about the key; anybody can change it.
    pub hint: String,
    signature: Vec<u8>,
    content: BundleContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BundleContent {
    /// The signature is over the bytes themselves, whose SHA-256 is said to be this.
    Message { digest: [u8; 32] },
    /// The signature is over `signed`, a statement about artifacts with these digests.
    Statement {
        signed: Vec<u8>,
        digests: Vec<String>,
    },
}

/// Why a text is no bundle that could be checked with a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBundle {
    /// It is none.
    #[error("a bundle that cannot be read ({0})")]
    Malformed(String),
    /// An older or newer version.
    #[error("a bundle of the type `{0}`; what is read is `{BUNDLE_TYPE}`")]
    Version(String),
    /// It is to be checked with a certificate.
    #[error(
        "a keyless signature of Sigstore, with a certificate; only given keys are checked (`cosign sign --key`)"
    )]
    Keyless,
    /// It states something else.
    #[error("a statement of the type `{0}`, which is no signature")]
    OtherStatement(String),
}

/// What a bundle and a key come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleVerdict {
    /// The key signed this artifact.
    Signed,
    /// The key signed another artifact.
    Other,
    /// The key did not sign.
    NotOfKey,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBundle {
    media_type: String,
    verification_material: RawMaterial,
    message_signature: Option<RawMessage>,
    dsse_envelope: Option<RawEnvelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMaterial {
    public_key: Option<RawKey>,
    certificate: Option<IgnoredAny>,
    x509_certificate_chain: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RawKey {
    #[serde(default)]
    hint: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMessage {
    message_digest: RawDigest,
    signature: String,
}

#[derive(Deserialize)]
struct RawDigest {
    algorithm: String,
    digest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEnvelope {
    payload: String,
    payload_type: String,
    signatures: Vec<RawSignature>,
}

#[derive(Deserialize)]
struct RawSignature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<RawSubject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct RawSubject {
    digest: RawDigests,
}

/// A key that stands twice in an object is an error of its reader, and so is one of these.
#[derive(Deserialize)]
struct RawDigests {
    sha256: Option<String>,
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// Errors: [`BadBundle`], as what the artifact has in place of a signature.
    /// Limits: [`BUNDLE_BYTES_MAX`].
    pub fn read(bytes: &[u8]) -> Result<Self, BadBundle> {
        if bytes.len() > BUNDLE_BYTES_MAX {
            return Err(malformed(&format!("more than {BUNDLE_BYTES_MAX} bytes")));
        }
        let raw: RawBundle = json(bytes)?;
        if ![BUNDLE_TYPE, BUNDLE_TYPE_BEFORE].contains(&raw.media_type.as_str()) {
            return Err(BadBundle::Version(one_line(&raw.media_type, 80)));
        }
        let material = raw.verification_material;
        if material.certificate.is_some() || material.x509_certificate_chain.is_some() {
            return Err(BadBundle::Keyless);
        }
        let key = material.public_key.ok_or_else(|| malformed("no key"))?;
        let (signature, content) = match (raw.message_signature, raw.dsse_envelope) {
            (Some(message), None) => message.content()?,
            (None, Some(envelope)) => envelope.content()?,
            _ => return Err(malformed("not exactly one signature")),
        };
        Ok(Self {
            hint: one_line(&key.hint, 100),
            signature,
            content,
        })
    }

    /// Whether it is said to be made with `key`: what cosign writes there is the SHA-256 of the key.
    pub fn means(&self, key: &SignerKey) -> bool {
        self.hint == STANDARD.encode(Sha256::digest(key.der()))
    }

    /// Whether `key` signed the artifact with these bytes.
    ///
    /// Shape: keys of minisign sign no bundles.
    pub fn check(&self, key: &SignerKey, artifact: &[u8]) -> BundleVerdict {
        if matches!(key, SignerKey::Minisign { .. }) {
            return BundleVerdict::NotOfKey;
        }
        let digest = Sha256::digest(artifact);
        match &self.content {
            BundleContent::Message { digest: said } => {
                let is_signed = is_of(key, artifact, &self.signature);
                match is_signed && said[..] == digest[..] {
                    true => BundleVerdict::Signed,
                    false => BundleVerdict::NotOfKey,
                }
            }
            BundleContent::Statement { signed, digests } => {
                let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                match (is_of(key, signed, &self.signature), digests.contains(&hex)) {
                    (false, _) => BundleVerdict::NotOfKey,
                    (true, false) => BundleVerdict::Other,
                    (true, true) => BundleVerdict::Signed,
                }
            }
        }
    }
}

impl RawMessage {
    fn content(self) -> Result<(Vec<u8>, BundleContent), BadBundle> {
        if self.message_digest.algorithm != "SHA2_256" {
            return Err(malformed("a digest that is not SHA-256"));
        }
        let digest = decoded(&self.message_digest.digest)?.try_into();
        let digest = digest.map_err(|_| malformed("a digest of the wrong length"))?;
        Ok((decoded(&self.signature)?, BundleContent::Message { digest }))
    }
}

impl RawEnvelope {
    fn content(self) -> Result<(Vec<u8>, BundleContent), BadBundle> {
        let [signature] = self.signatures.as_slice() else {
            return Err(malformed("not exactly one signature"));
        };
        let signature = decoded(&signature.sig)?;
        if self.payload_type != STATEMENT_TYPE {
            return Err(BadBundle::OtherStatement(one_line(&self.payload_type, 80)));
        }
        let payload = decoded(&self.payload)?;
        let statement: RawStatement = json(&payload)?;
        let kind = statement.kind.as_str();
        if !STATEMENTS.contains(&kind) || statement.predicate_type != SIGNS {
            return Err(BadBundle::OtherStatement(one_line(
                &statement.predicate_type,
                80,
            )));
        }
        if statement.subject.len() > SUBJECTS_MAX {
            return Err(malformed(&format!("more than {SUBJECTS_MAX} artifacts")));
        }
        let digests = statement.subject.into_iter();
        let digests = digests
            .filter_map(|subject| subject.digest.sha256)
            .collect();
        let signed = pre_authentication(&self.payload_type, &payload);
        Ok((signature, BundleContent::Statement { signed, digests }))
    }
}

/// What an envelope of DSSE signs.
///
/// Source: the specification of DSSE 1.0.
fn pre_authentication(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut signed = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    signed.extend_from_slice(payload);
    signed
}

fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, BadBundle> {
    serde_json::from_slice(bytes).map_err(|error| malformed(&one_line(&error.to_string(), 200)))
}

fn decoded(text: &str) -> Result<Vec<u8>, BadBundle> {
    STANDARD
        .decode(text)
        .map_err(|_| malformed("invalid base64"))
}

fn malformed(problem: &str) -> BadBundle {
    BadBundle::Malformed(problem.to_owned())
}
