//! The signatures of plugins, checked under the operator's policy: where the folders of plugins meet the readers of signatures.

use std::sync::Arc;

use zeph_artifact::document::DigestDocument;
use zeph_artifact::manifest::{self, MANIFEST_TYPE};
use zeph_artifact::trust::{self, SignatureFiles, SignedSubject};
use zeph_config::Config;
use zeph_core::signer::{SignaturePolicy, SignatureVerdict, UnsignedRule};
use zeph_plugins::signature::{FoundSignatures, SignatureCheck, SignedPlugin};

/// The policy of the configuration.
#[derive(Debug)]
pub(crate) struct Signatures {
    policy: SignaturePolicy,
}

impl Signatures {
    /// What checks signatures; none where nobody is named who could make them and nothing depends on them.
    pub(crate) fn of(config: &Config) -> Option<Arc<dyn SignatureCheck>> {
        let policy = &config.plugins.signatures;
        let is_idle = policy.unsigned == UnsignedRule::Allow && policy.signers.is_empty();
        (!is_idle).then(|| Self::under(policy.clone()))
    }

    /// The same under a policy that decides nothing, too.
    pub(crate) fn under(policy: SignaturePolicy) -> Arc<dyn SignatureCheck> {
        Arc::new(Self { policy })
    }
}

impl SignatureCheck for Signatures {
    fn rule(&self) -> UnsignedRule {
        self.policy.unsigned
    }

    fn verdict(
        &self,
        plugin: &SignedPlugin,
        files: &FoundSignatures,
        now_ms: i64,
    ) -> SignatureVerdict {
        let document = document(plugin);
        let manifest = files.manifest.as_deref();
        let subject = SignedSubject {
            reference: &plugin.reference,
            name: &plugin.published_as,
            document: Some(&document),
            version: plugin.version.as_deref(),
            manifest: manifest.filter(|bytes| is_of(bytes, plugin)),
        };
        let kept = SignatureFiles::kept(files.minisign.as_deref(), files.bundles.as_deref());
        let files = SignatureFiles {
            unread: files.unread.clone(),
            ..kept
        };
        trust::judge(&self.policy, &subject, &files, now_ms)
    }
}

/// What a signature of minisign over the plugin covers.
pub(crate) fn document(plugin: &SignedPlugin) -> DigestDocument {
    DigestDocument {
        component: plugin.component,
        manifest: plugin.manifest,
        definitions: plugin.definitions,
    }
}

/// Whether a manifest is one of exactly this component.
fn is_of(bytes: &[u8], plugin: &SignedPlugin) -> bool {
    let manifest = manifest::read(bytes, MANIFEST_TYPE);
    manifest.is_ok_and(|manifest| manifest.component.digest == plugin.component)
}
