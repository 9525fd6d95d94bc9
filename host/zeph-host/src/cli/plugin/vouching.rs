//! Whether a component that was fetched may be installed: it is a plugin, and its signatures are those that the operator's policy and the
//! lock want.

use std::sync::Arc;

use semver::Version;
use zeph_config::Config;
use zeph_core::failure::one_line;
use zeph_core::id::PluginId;
use zeph_core::signer::{SignaturePolicy, SignatureVerdict, SignedBy, UnsignedRule};
use zeph_engine::Engine;
use zeph_plugins::lock::{LockedPlugin, PinnedSigner, PluginSource, version_of_tag};
use zeph_plugins::manage::sync::SyncFolder;
use zeph_plugins::manage::trial;
use zeph_plugins::set::VettedPlugin;
use zeph_plugins::signature::{FoundSignatures, SignedPlugin};

use super::supply::Supplied;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::clock::now_ms;
use crate::host::StartError;
use crate::signatures::Signatures;

/// Characters of why something is no plugin.
const REASON_CHARS_MAX: usize = 500;

/// What is found of a component before it is installed.
pub(super) struct Voucher<'a> {
    config: &'a Config,
    engine: Engine,
}

/// What a component is, and who vouches for it.
pub(super) struct Vouched {
    pub(super) good: Arc<VettedPlugin>,
    /// Who signed it; `None` for a plugin that nobody signed.
    pub(super) signer: Option<SignedBy>,
    /// Whether its operator has to agree to it, because nobody signed it.
    pub(super) asks: bool,
}

impl Vouched {
    /// The version that its signer signed, in the signature or in the component.
    pub(super) fn signed_version(&self) -> Option<Version> {
        signed_version(self.signer.as_ref()?, self.good.about.version.as_deref())
    }

    /// The versions that its signer and it itself say it is.
    pub(super) fn versions(&self) -> Vec<Version> {
        let said = self.good.version();
        self.signed_version().into_iter().chain(said).collect()
    }

    /// That the tag it was had by is of another version than what was signed, in one sentence.
    pub(super) fn mistagged(&self, source: &PluginSource) -> Option<String> {
        mistagged(&source.tagged_version()?, &self.signed_version()?)
    }
}

impl<'a> Voucher<'a> {
    /// Errors: this machine cannot run components.
    pub(super) fn new(context: &Context, config: &'a Config) -> Result<Self, CliError> {
        let tell = super::progress(context);
        let engine = trial::engine(config.engine.cache_dir.clone(), tell);
        Ok(Self {
            engine: engine.map_err(StartError::Engine)?,
            config,
        })
    }

    /// The operator's policy of signatures.
    pub(super) fn policy(&self) -> &SignaturePolicy {
        &self.config.plugins.signatures
    }

    /// Why the signatures that lie beside an installed plugin are not those that the policy and the lock want; `None` where they are, or where
    /// nobody would look at them. Whether it is a plugin is another question.
    pub(super) async fn problem_of_installed(
        &self,
        folder: &SyncFolder,
        locked: &LockedPlugin,
    ) -> Option<CliError> {
        let (bytes, signatures) = match folder.component(&locked.name, locked.pin.wasm) {
            Ok(there) => there?,
            Err(problem) => return Some(CliError::internal(problem)),
        };
        let policy = self.policy();
        let counts = !policy.signers.is_empty() || policy.unsigned != UnsignedRule::Allow;
        if !counts && signatures.is_empty() {
            return None;
        }
        let limits = self.config.limits;
        let good = trial::load(&self.engine, &locked.name, bytes, limits).await;
        match judged(self.config, locked.source(), good.ok()?, &signatures) {
            Ok(vouched) => self.check_pinned(locked, &vouched).err(),
            Err(problem) => Some(problem),
        }
    }

    /// Loads a component, as it will be loaded from the folder, and has its signatures checked.
    ///
    /// Errors: it is no plugin, or the policy refuses it.
    pub(super) async fn vouched(
        &self,
        name: &PluginId,
        source: Option<&PluginSource>,
        supplied: &Supplied,
    ) -> Result<Vouched, CliError> {
        let bytes = supplied.bytes.clone();
        let good = trial::load(&self.engine, name, bytes, self.config.limits).await;
        let good = good.map_err(|reason| {
            let reason = one_line(&reason, REASON_CHARS_MAX);
            CliError::internal(format!("plugin `{name}` cannot be used: {reason}"))
        })?;
        judged(self.config, source, good, &supplied.signatures)
    }

    /// Refuses a plugin that was signed on the machine of the bundle and by no signer known here. The names that machine gives to signers
    /// do not count.
    ///
    /// Errors: nobody who is known signed it, and the configuration knows signers.
    pub(super) fn check_claimed(
        &self,
        bundled: &LockedPlugin,
        vouched: &Vouched,
    ) -> Result<(), CliError> {
        let is_checked = vouched.signer.is_some() || self.policy().signers.is_empty();
        let Some(PinnedSigner { name: claimed, .. }) = bundled.signer().filter(|_| !is_checked)
        else {
            return Ok(());
        };
        let name = &bundled.name;
        let problem = format!(
            "plugin `{name}` has no signature of a known signer, and the lock of the bundle pins the signer `{claimed}`"
        );
        Err(CliError::internal(problem).hint(
            "if you trust that signer, ask for the public key and name it in `[[plugins.trust.signers]]`, under any name",
        ))
    }

    /// That a plugin of the lock has the signer that is pinned there. A signer that the configuration does not know cannot be checked; the
    /// digest was.
    ///
    /// Errors: another signer, or none.
    pub(super) fn check_pinned(
        &self,
        locked: &LockedPlugin,
        vouched: &Vouched,
    ) -> Result<(), CliError> {
        let Some(PinnedSigner { name: pinned, .. }) = locked.signer() else {
            return Ok(());
        };
        let found = vouched.signer.as_ref().map(|by| by.signer.as_str());
        let signers = &self.config.plugins.signatures.signers;
        if found == Some(pinned) || signers.is_empty() {
            return Ok(());
        }
        let name = &locked.name;
        let found = match found {
            Some(found) => format!("is signed by `{found}`"),
            None => "has no signature of a known signer".to_owned(),
        };
        let problem = format!("plugin `{name}` {found}, and the lock pins the signer `{pinned}`");
        Err(CliError::internal(problem).hint(format!(
            "`zeph-host plugin update {name}` shows the difference and takes another signer over; `[[plugins.trust.signers]]` names those that are known"
        )))
    }
}

/// Has the signatures of a plugin that was loaded checked under the policy.
///
/// Errors: the policy refuses it.
pub(super) fn judged(
    config: &Config,
    source: Option<&PluginSource>,
    good: Arc<VettedPlugin>,
    signatures: &FoundSignatures,
) -> Result<Vouched, CliError> {
    let name = good.plugin.id().clone();
    let policy = config.plugins.signatures.clone();
    let rule = policy.unsigned;
    let plugin = SignedPlugin::of_source(&name, source, &good);
    let check = Signatures::under(policy);
    match check.verdict(&plugin, signatures, now_ms()) {
        SignatureVerdict::Signed(by) => Ok(Vouched {
            good,
            signer: Some(by),
            asks: false,
        }),
        SignatureVerdict::Unsigned { .. } if rule != UnsignedRule::Refuse => Ok(Vouched {
            good,
            signer: None,
            asks: rule == UnsignedRule::Ask,
        }),
        refused => Err(refusal(&name, &refused, rule)),
    }
}

/// The version that a signature counts for, where `own` is what the component says; `None` where neither says one.
pub(super) fn signed_version(by: &SignedBy, own: Option<&str>) -> Option<Version> {
    let said = by.version.as_deref().and_then(version_of_tag);
    said.or_else(|| own.and_then(version_of_tag))
}

/// That a tag is of another version than what was signed: its registry chooses the tag. `None` where they agree.
pub(super) fn mistagged(tagged: &Version, signed: &Version) -> Option<String> {
    let differs = tagged.cmp_precedence(signed).is_ne();
    differs
        .then(|| format!("its tag is of version {tagged}, and what was signed is version {signed}"))
}

/// A signer as the lock pins it.
pub(super) fn pinned(by: &SignedBy) -> PinnedSigner {
    PinnedSigner {
        name: by.signer.clone(),
        key: by.key.clone(),
    }
}

fn refusal(name: &PluginId, verdict: &SignatureVerdict, rule: UnsignedRule) -> CliError {
    match verdict.refusal(rule, None) {
        Some(refusal) => {
            CliError::internal(format!("plugin `{name}` is refused: {}", refusal.problem))
                .hint(refusal.remedy)
        }
        None => CliError::internal(format!("plugin `{name}` is refused: nobody vouches for it")),
    }
}
