//! Indexes: signed lists of plugins with their sources and versions, for `plugin search`, `outdated` and `update`.
//!
//! An index says what there is and what was withdrawn; it gives nobody a right: what is fetched is checked as if it had been named by
//! hand. The signature is checked before anything is parsed. An index expires and counts upwards, so that a mirror that is frozen or
//! rolled back shows: [`IndexMark`] is what is remembered of the last one. It names the keys that sign the next one; a key that is left
//! out is revoked (`keys`). Pure: bytes, keys and the time are arguments.

mod keys;
mod read;

use semver::Version;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;

pub use self::keys::{IndexTrust, KeyRotation};
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

/// Most keys that sign the next index, and most addresses of an index.
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

/// What is known of an artifact when an index is asked about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArtifactFacts {
    /// Where it comes from: registry and repository, or a URL.
    pub place: Option<String>,
    /// The versions that its tag, its signature and the artifact itself say it is.
    pub versions: Vec<Version>,
    /// The digest of its manifest in a registry.
    pub manifest: Option<Digest>,
    /// The digest of its component.
    pub component: Option<Digest>,
}

/// What is remembered of the last index of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMark {
    /// Its number.
    pub number: i64,
    /// Its digest.
    pub document: Digest,
    /// The keys that indexes handed on, and what that rests on; `None` where none ever named keys.
    pub rotation: Option<KeyRotation>,
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
    /// It says that it belongs elsewhere.
    #[error("it is the index of {addresses}: the server offers another one of its publisher")]
    Elsewhere {
        /// The addresses in it, each in backticks.
        addresses: String,
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
        let digest = Digest::new(Sha256::digest(document).into());
        let is_seen = trust.mark.as_ref().map(|mark| mark.document) == Some(digest);
        let accepted = match is_seen {
            // It was accepted already, and may have handed on the keys of its own signer.
            true => trust.accepted_before(),
            false => trust.accepted(),
        };
        if accepted.is_empty() {
            return Err(IndexError::NoKey);
        }
        let signed = verify_detached(signature, document, &accepted)?;
        let read::ReadIndex {
            index,
            keys,
            addresses,
        } = read::index(document)?;
        if !addresses.is_empty() && !addresses.contains(&trust.address) {
            let addresses: Vec<String> = addresses.iter().map(|one| format!("`{one}`")).collect();
            return Err(IndexError::Elsewhere {
                addresses: addresses.join(", "),
            });
        }
        if index.expires_at_ms <= now_ms {
            let at = read::shown(index.expires_at_ms);
            return Err(IndexError::Expired { at });
        }
        let mark = IndexMark {
            number: index.number,
            document: digest,
            rotation: match keys.is_empty() || is_seen {
                true => trust.kept(),
                false => trust.handed_on(&accepted[signed.key_idx], keys),
            },
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

    /// The plugins of this repository (`ghcr.io/org/name`), or with a version at this URL.
    pub fn plugins_at<'a>(&'a self, place: &str) -> impl Iterator<Item = &'a IndexedPlugin> {
        self.plugins.iter().filter(move |plugin| {
            let is_at = |version: &IndexedVersion| version.url.as_deref() == Some(place);
            plugin.source.as_deref() == Some(place) || plugin.versions.iter().any(is_at)
        })
    }

    /// Why an artifact was withdrawn, if it was: a version of its place, or these very bytes, wherever they come from and whatever they are
    /// called there.
    pub fn withdrawn<'a>(&'a self, artifact: &ArtifactFacts) -> Option<&'a str> {
        let is = |known: Option<Digest>, found: Option<Digest>| known.is_some() && known == found;
        let versions = self.plugins.iter().flat_map(|plugin| &plugin.versions);
        let of_bytes = versions.filter(|one| {
            is(one.component, artifact.component) || is(one.manifest, artifact.manifest)
        });
        let place = artifact.place.as_deref();
        let plugins = place.into_iter().flat_map(|place| self.plugins_at(place));
        let versions = plugins.flat_map(|plugin| &plugin.versions);
        let of_version = versions.filter(|one| artifact.versions.contains(&one.version));
        let mut reasons = of_bytes.chain(of_version);
        reasons.find_map(|one| one.yanked.as_deref())
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
}

impl IndexError {
    /// What the operator can do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoKey | Self::Signature(_) => {
                "name its publisher's key in `[[plugins.trust.signers]]`, with the address of the index among `offers`"
            }
            Self::Newer { .. } => "use a newer zeph-host",
            Self::Elsewhere { .. } => {
                "name one of those addresses in `plugins.index`, or ask its publisher to add this one to its `addresses`"
            }
            Self::Bad(_) | Self::Expired { .. } | Self::RolledBack { .. } | Self::Forked { .. } => {
                "ask its publisher, or remove it from `plugins.index`"
            }
        }
    }
}

#[cfg(test)]
mod tests;
