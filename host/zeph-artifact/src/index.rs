//! Indexes: signed lists of plugins with their sources and versions, for `plugin search`, `outdated` and `update`.
//!
//! An index says what there is and what was withdrawn; it gives nobody a right: what is fetched is checked as if it had been named by
//! hand. The signature is checked before anything is parsed. An index expires and counts upwards, so that a mirror that is frozen or
//! rolled back shows: [`IndexMark`] is what is remembered of the last one. It names the keys that sign the next one; a key that is left
//! out is revoked. Pure: bytes, keys and the time are arguments.

mod read;

use semver::Version;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;
use zeph_core::signer::SignerKey;

use crate::signature::{DetachedError, verify_detached};

/// Version of the format.
const FORMAT: u32 = 1;

/// Most bytes of an index.
pub const INDEX_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most bytes of the signature of an index.
pub const INDEX_SIGNATURE_BYTES_MAX: usize = 16 * 1024;

/// Most plugins of an index.
const PLUGINS_MAX: usize = 20_000;

/// Most versions of a plugin.
const VERSIONS_MAX: usize = 1_000;

/// Most keys that sign the next index.
const KEYS_MAX: usize = 16;

/// An index whose signature, date and number were checked.
#[derive(Debug, Clone)]
pub struct Index {
    /// Counts upwards from one index to the next; at least 1.
    pub number: i64,
    /// Until when it may be used, in Unix milliseconds.
    pub expires_at_ms: i64,
    /// Its plugins, as they stand there.
    pub plugins: Vec<IndexedPlugin>,
}

/// A plugin of an index. Its texts are its author's: what shows them escapes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexedPlugin {
    /// What it is called: 1 to 64 characters.
    pub name: String,
    /// What it is for: at most 1000 bytes.
    pub description: String,
    /// Registry and repository, such as `ghcr.io/org/name`; without it each version has a `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Words that it is found by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Its versions, each once.
    pub versions: Vec<IndexedVersion>,
}

/// A version of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexedVersion {
    /// The version, which is also its tag.
    pub version: Version,
    /// The digest of its manifest in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// The digest of its component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<Digest>,
    /// Where its component is, when that is not a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Why it was withdrawn, when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked: Option<String>,
}

/// Whose signature an index needs, and what is remembered of the last one.
#[derive(Debug, Clone, Default)]
pub struct IndexTrust {
    /// The keys that the operator trusts with this index.
    pub keys: Vec<SignerKey>,
    /// What is remembered.
    pub mark: Option<IndexMark>,
}

/// What is remembered of the last index of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMark {
    /// Its number.
    pub number: i64,
    /// Its digest.
    pub document: Digest,
    /// The keys it named for the next one; empty when it named none.
    pub keys: Vec<SignerKey>,
    /// The keys of the operator's configuration when those were named. With others in it, those count again.
    pub configured: Digest,
}

/// An index that must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// No key is trusted with it.
    #[error("no key in the configuration may sign it")]
    NoKey,
    /// Nobody who may signed it.
    #[error("{0}")]
    Signature(#[from] DetachedError),
    /// It makes no sense.
    #[error("it is not an index of plugins: {0}")]
    Bad(String),
    /// Written for a newer program.
    #[error("it has format {found}; this program knows format {FORMAT}")]
    Newer {
        /// The format in it.
        found: u32,
    },
    /// It is too old.
    #[error("it expired at {at}: its publisher stopped, or the server holds back the newer one")]
    Expired {
        /// When, as RFC 3339.
        at: String,
    },
    /// An older one than was seen before.
    #[error(
        "it is number {found}, and number {seen} was seen before: the server offers an old one"
    )]
    RolledBack {
        /// The number in it.
        found: i64,
        /// The greatest that was seen.
        seen: i64,
    },
    /// Another one with the same number.
    #[error("it is number {number}, and another index with that number was seen before")]
    Forked {
        /// The number of both.
        number: i64,
    },
}

impl IndexTrust {
    /// The keys that may sign the next index: those that the last one named, while the configuration is as it was then.
    fn accepted(&self) -> &[SignerKey] {
        match &self.mark {
            Some(mark) if !mark.keys.is_empty() && mark.configured == key_digest(&self.keys) => {
                &mark.keys
            }
            _ => &self.keys,
        }
    }
}

/// The digest of a set of keys, whatever their order.
fn key_digest(keys: &[SignerKey]) -> Digest {
    let mut keys: Vec<String> = keys.iter().map(SignerKey::to_text).collect();
    keys.sort_unstable();
    keys.dedup();
    Digest::new(Sha256::digest(keys.join("\n")).into())
}

impl Index {
    /// Checks and reads an index, and says what to remember of it.
    ///
    /// Errors: [`IndexError`].
    /// Limits: 8 MiB, 20,000 plugins, 1000 versions each.
    pub fn open(
        document: &[u8],
        signature: &[u8],
        trust: &IndexTrust,
        now_ms: i64,
    ) -> Result<(Self, IndexMark), IndexError> {
        let keys = trust.accepted();
        if keys.is_empty() {
            return Err(IndexError::NoKey);
        }
        verify_detached(signature, document, keys)?;
        let read::ReadIndex { index, keys } = read::index(document)?;
        if index.expires_at_ms <= now_ms {
            let at = read::shown(index.expires_at_ms);
            return Err(IndexError::Expired { at });
        }
        let mark = IndexMark {
            number: index.number,
            document: Digest::new(Sha256::digest(document).into()),
            keys: match keys.is_empty() {
                true => kept_keys(trust),
                false => keys,
            },
            configured: key_digest(&trust.keys),
        };
        if let Some(seen) = &trust.mark {
            seen.check_next(&mark)?;
        }
        Ok((index, mark))
    }

    /// The plugins that fit all of `words`, each found in the name, the description or the keywords; capitals do not matter.
    pub fn search<'a>(&'a self, words: &'a [String]) -> impl Iterator<Item = &'a IndexedPlugin> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let plugins = self.plugins.iter();
        plugins.filter(move |plugin| words.iter().all(|word| plugin.mentions(word)))
    }

    /// The plugin of this repository (`ghcr.io/org/name`), or with a version at this URL.
    pub fn plugin_at(&self, place: &str) -> Option<&IndexedPlugin> {
        self.plugins.iter().find(|plugin| {
            let is_at = |version: &IndexedVersion| version.url.as_deref() == Some(place);
            plugin.source.as_deref() == Some(place) || plugin.versions.iter().any(is_at)
        })
    }
}

/// The keys that still count when an index names none.
fn kept_keys(trust: &IndexTrust) -> Vec<SignerKey> {
    let accepted = trust.accepted();
    match accepted == trust.keys.as_slice() {
        true => Vec::new(),
        false => accepted.to_vec(),
    }
}

impl IndexMark {
    /// That `next` is not older than this one, nor another one of the same number.
    ///
    /// Errors: `RolledBack`, `Forked`.
    fn check_next(&self, next: &Self) -> Result<(), IndexError> {
        match next.number.cmp(&self.number) {
            std::cmp::Ordering::Less => Err(IndexError::RolledBack {
                found: next.number,
                seen: self.number,
            }),
            std::cmp::Ordering::Equal if next.document != self.document => {
                let number = self.number;
                Err(IndexError::Forked { number })
            }
            _ => Ok(()),
        }
    }
}

impl IndexedPlugin {
    /// `word` in small letters.
    fn mentions(&self, word: &str) -> bool {
        let mut texts = [&self.name, &self.description]
            .into_iter()
            .chain(&self.keywords)
            .chain(&self.source);
        texts.any(|text| text.to_lowercase().contains(word))
    }

    /// The newest version that was not withdrawn; one before its release only when there is no other.
    pub fn newest(&self) -> Option<&IndexedVersion> {
        let offered = self.versions.iter().filter(|one| one.yanked.is_none());
        offered.max_by_key(|one| (one.version.pre.is_empty(), &one.version))
    }

    /// Why the version with this number or this component was withdrawn, when it was.
    pub fn yanked(&self, version: Option<&Version>, component: Digest) -> Option<&str> {
        let mut versions = self.versions.iter();
        let same = versions.find(|one| {
            one.component == Some(component)
                || (version == Some(&one.version) && one.component.is_none_or(|it| it == component))
        });
        same?.yanked.as_deref()
    }
}

impl IndexError {
    /// What the operator can do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoKey | Self::Signature(_) => {
                "name its publisher's key in `[[plugins.trust.signers]]`, with the address of the index among `offers`"
            }
            Self::Newer { .. } => "use a newer zeph-host",
            Self::Bad(_) | Self::Expired { .. } | Self::RolledBack { .. } | Self::Forked { .. } => {
                "ask its publisher, or remove it from `plugins.index`"
            }
        }
    }
}

#[cfg(test)]
mod tests;
