//! `[plugins.trust]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

/// Who may vouch for plugins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPluginTrust {
    #[schemars(extend("x-project" = "tighten"))]
    pub(crate) unsigned: RawUnsigned,
    #[schemars(length(max = 256), extend("x-project" = "never: plugins"))]
    pub(crate) signers: Vec<RawSigner>,
}

/// What becomes of a plugin that no known signer signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawUnsigned {
    Allow,
    Ask,
    Refuse,
}

/// A signer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawSigner {
    /// Its name, for messages and `zeph.lock`.
    pub(crate) name: String,
    /// Its public key: a line of minisign (`RW…`), or a PEM block (ed25519, ECDSA on P-256).
    pub(crate) key: String,
    /// Globs over the references it may sign, without tags and digests.
    #[schemars(length(max = 256))]
    pub(crate) offers: Vec<String>,
    /// When the key stops counting: a date, whose end in UTC is meant, or a time.
    #[serde(default)]
    pub(crate) expires: String,
    /// Nothing it signed is accepted any more.
    #[serde(default)]
    pub(crate) revoked: bool,
}
