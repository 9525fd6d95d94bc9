//! Whose signature counts: what the operator decided about signers, applied to the signatures of one plugin.
//!
//! One good signature of a signer that may vouch for the plugin is enough, whatever stands beside it. Else a signature that a known key
//! did not make, or that may not count, stops the plugin; one of an unknown key counts as none.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use zeph_core::failure::one_line;
use zeph_core::signer::{
    SignaturePolicy, SignatureRefusal, SignatureVerdict, SignedBy, Signer, SignerKey,
};

use crate::document::DigestDocument;
use crate::signature::comment::SignedFacts;
use crate::signature::minisign::MinisignSignature;
use crate::signature::sigstore::{Bundle, BundleVerdict};

mod files;

pub use self::files::{FILES_MAX, MINISIGN_SUFFIX, MINISIGN_TYPE, SignatureFiles};

/// The plugin that signatures have to vouch for.
#[derive(Debug, Clone, Copy)]
pub struct SignedSubject<'s> {
    /// Where it comes from, without tag and digest: `ghcr.io/org/name`, a URL, or `file:NAME` for a file of this machine.
    pub reference: &'s str,
    /// What a signature that names a plugin has to call it.
    pub name: &'s str,
    /// What it is. None for an artifact of another kind, which only bundles sign.
    pub document: Option<&'s DigestDocument>,
    /// The version that the component itself says it is.
    pub version: Option<&'s str>,
    /// The manifest it has in its registry, which bundles sign.
    pub manifest: Option<&'s [u8]>,
}

/// What one signature comes to.
enum Finding {
    Good(SignedBy),
    Bad(SignatureRefusal),
    Nothing(String),
}

/// What the signatures come to, at `now_ms` (Unix milliseconds).
///
/// Limits: at most [`FILES_MAX`] of each kind are looked at.
pub fn judge(
    policy: &SignaturePolicy,
    subject: &SignedSubject<'_>,
    files: &SignatureFiles,
    now_ms: i64,
) -> SignatureVerdict {
    let judge = SignatureJudge {
        policy,
        subject,
        now_ms,
    };
    let minisign = files.minisign.iter().take(FILES_MAX);
    let mut findings: Vec<Finding> = minisign.flat_map(|file| judge.minisign(file)).collect();
    let bundles = files.bundles.iter().take(FILES_MAX);
    findings.extend(bundles.map(|bundle| judge.bundle(bundle)));
    findings.extend(files.unread.iter().cloned().map(Finding::Nothing));
    verdict(findings)
}

fn verdict(findings: Vec<Finding>) -> SignatureVerdict {
    let (mut bad, mut passed_over) = (None, Vec::new());
    for finding in findings {
        match finding {
            Finding::Good(by) => return SignatureVerdict::Signed(by),
            Finding::Bad(refusal) => bad = bad.or(Some(refusal)),
            Finding::Nothing(what) => passed_over.push(what),
        }
    }
    match bad {
        Some(refusal) => SignatureVerdict::Refused(refusal),
        None => SignatureVerdict::Unsigned { passed_over },
    }
}

struct SignatureJudge<'j> {
    policy: &'j SignaturePolicy,
    subject: &'j SignedSubject<'j>,
    now_ms: i64,
}

impl SignatureJudge<'_> {
    /// Every signature of a file.
    fn minisign(&self, file: &[u8]) -> Vec<Finding> {
        let Some(document) = self.subject.document else {
            return Vec::new();
        };
        match MinisignSignature::all(file) {
            Ok(signatures) => {
                let text = document.text();
                let signatures = signatures.iter();
                signatures
                    .map(|signature| self.one_of_minisign(signature, text.as_bytes()))
                    .collect()
            }
            Err(error) => vec![Finding::Bad(refusal(
                format!("its signature file cannot be read: {error}"),
                AGAIN,
            ))],
        }
    }

    fn one_of_minisign(&self, signature: &MinisignSignature, text: &[u8]) -> Finding {
        let meant = self
            .policy
            .signers
            .iter()
            .filter(|signer| signature.means(&signer.key));
        let meant: Vec<&Signer> = meant.collect();
        let Some(first) = meant.first() else {
            let id = SignerKey::minisign_id(signature.key_id);
            return Finding::Nothing(format!(
                "a signature by minisign {id}, which is no known key"
            ));
        };
        let of_key = meant
            .iter()
            .filter(|signer| signature.is_of(&signer.key, text));
        let of_key: Vec<&Signer> = of_key.copied().collect();
        if of_key.is_empty() {
            return Finding::Bad(mismatch(first));
        }
        match SignedFacts::read(&signature.trusted_comment) {
            Ok(facts) => self.best(&of_key, &facts),
            Err(error) => Finding::Bad(refusal(
                format!("the comment that `{}` signed is wrong: {error}", first.name),
                "have it signed again with `zeph-host plugin sign`",
            )),
        }
    }

    fn bundle(&self, bytes: &[u8]) -> Finding {
        let bundle = match Bundle::read(bytes) {
            Ok(bundle) => bundle,
            Err(error) => return Finding::Nothing(error.to_string()),
        };
        let Some(manifest) = self.subject.manifest else {
            return Finding::Nothing(
                "a bundle of Sigstore, and no manifest it could be for".to_owned(),
            );
        };
        let mut of_key = Vec::new();
        let mut other = None;
        for signer in &self.policy.signers {
            match bundle.check(&signer.key, manifest) {
                BundleVerdict::Signed => of_key.push(signer),
                BundleVerdict::Other => other = other.or(Some(signer)),
                BundleVerdict::NotOfKey if bundle.means(&signer.key) => {
                    other = other.or(Some(signer));
                }
                BundleVerdict::NotOfKey => {}
            }
        }
        match (of_key.is_empty(), other) {
            (false, _) => self.best(&of_key, &SignedFacts::default()),
            (true, Some(signer)) => Finding::Bad(mismatch(signer)),
            (true, None) => Finding::Nothing(format!(
                "a bundle of Sigstore by the key `{}`, which is no known key",
                one_line(&bundle.hint, 60)
            )),
        }
    }

    /// Of the signers that have the key, the first that may vouch for the plugin.
    fn best(&self, signers: &[&Signer], facts: &SignedFacts) -> Finding {
        let mut bad = None;
        for signer in signers {
            match self.accepted(signer, facts) {
                Ok(by) => return Finding::Good(by),
                Err(refusal) => bad = bad.or(Some(refusal)),
            }
        }
        bad.map_or_else(|| Finding::Nothing("no signer".to_owned()), Finding::Bad)
    }

    /// Whether a signature that holds may count.
    fn accepted(&self, signer: &Signer, facts: &SignedFacts) -> Result<SignedBy, SignatureRefusal> {
        self.valid_now(signer, facts)?;
        self.of_this(signer, facts)?;
        let name = &signer.name;
        let reference = self.subject.reference;
        if !signer.offers(reference) {
            return Err(refusal(
                format!(
                    "`{name}`, who signed it, may not offer `{}`",
                    one_line(reference, 300)
                ),
                &format!(
                    "a pattern in `offers` of the signer `{name}` below `[[plugins.trust.signers]]` allows it"
                ),
            ));
        }
        let millis = |seconds: Option<i64>| seconds.map(|seconds| seconds.saturating_mul(1000));
        let expires = [millis(facts.expires_at), signer.expires_at_ms];
        Ok(SignedBy {
            signer: name.clone(),
            key: signer.key.to_string(),
            version: facts.version.clone(),
            signed_at_ms: millis(facts.signed_at),
            expires_at_ms: expires.into_iter().flatten().min(),
        })
    }

    /// Keys are revoked and expire, and so do signatures: at the moment that is named, not after it.
    fn valid_now(&self, signer: &Signer, facts: &SignedFacts) -> Result<(), SignatureRefusal> {
        let (name, key) = (&signer.name, &signer.key);
        if let Some(Signer { name: revoker, .. }) = self.policy.revoker(key) {
            return Err(refusal(
                format!("it was signed by `{name}` with a revoked key ({key})"),
                &format!(
                    "have it signed with another key; `revoked` of the signer `{revoker}` below `[[plugins.trust.signers]]` says so"
                ),
            ));
        }
        if let Some(at_ms) = signer.expires_at_ms.filter(|at_ms| *at_ms <= self.now_ms) {
            return Err(refusal(
                format!(
                    "the key of `{name}`, who signed it, expired on {}",
                    shown(at_ms)
                ),
                "a later `expires` of this signer below `[[plugins.trust.signers]]` accepts it",
            ));
        }
        let expires = facts.expires_at.map(|seconds| seconds.saturating_mul(1000));
        if let Some(at_ms) = expires.filter(|at_ms| *at_ms <= self.now_ms) {
            return Err(refusal(
                format!("the signature of `{name}` expired on {}", shown(at_ms)),
                "get a version that was signed since, or have it signed again with `zeph-host plugin sign`",
            ));
        }
        Ok(())
    }

    /// A signature that names a plugin or a version is one of that alone.
    fn of_this(&self, signer: &Signer, facts: &SignedFacts) -> Result<(), SignatureRefusal> {
        let SignedSubject { name, version, .. } = *self.subject;
        let by = &signer.name;
        if let Some(signed) = facts.name.as_deref().filter(|signed| *signed != name) {
            return Err(refusal(
                format!(
                    "`{by}` signed it as the plugin `{signed}`, and here it is `{}`",
                    one_line(name, 200)
                ),
                &format!("`--name {signed}` gives a file that name"),
            ));
        }
        let versions = facts.version.as_deref().zip(version);
        if let Some((signed, said)) = versions.filter(|(signed, said)| signed != said) {
            return Err(refusal(
                format!(
                    "`{by}` signed it as version {signed}, and it says it is {}",
                    one_line(said, 100)
                ),
                "have it signed again with `zeph-host plugin sign`",
            ));
        }
        Ok(())
    }
}

/// What helps when a file and its signature do not belong together.
const AGAIN: &str = "get the plugin and its signature again, both from where they are published";

fn mismatch(signer: &Signer) -> SignatureRefusal {
    let Signer { name, key, .. } = signer;
    refusal(
        format!(
            "the signature of `{name}` ({key}) does not match: component, manifest or tool definitions are not those that were signed"
        ),
        AGAIN,
    )
}

fn refusal(problem: String, remedy: &str) -> SignatureRefusal {
    let remedy = remedy.to_owned();
    SignatureRefusal { problem, remedy }
}

/// The moment in UTC, to the second.
fn shown(at_ms: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp(at_ms.div_euclid(1000)).ok();
    let text = at.and_then(|at| at.format(&Rfc3339).ok());
    text.unwrap_or_else(|| format!("{at_ms} ms after 1970"))
}

#[cfg(test)]
mod tests;
