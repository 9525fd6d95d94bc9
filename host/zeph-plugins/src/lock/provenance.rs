//! Where a plugin was had from and who signed it, as it was accepted.

use std::fmt;
use std::path::{Path, PathBuf};

use semver::Version;
use serde::Serialize;
use zeph_core::id::Digest;

use super::LockedPlugin;
use crate::signature::CheckedSignature;

/// Most bytes of a source, a version, or the name or key of a signer.
const TEXT_BYTES_MAX: usize = 2048;

/// Where a plugin was had from, and who signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Where it was had from.
    pub source: PluginSource,
    /// Its version: what was signed counts before the tag, which the registry chooses. `None` where nothing names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Who signed it, as checked when it was accepted; `None` for one without a signature.
    pub signer: Option<PinnedSigner>,
}

/// A place that a plugin can be fetched from again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginSource {
    /// A registry, by a reference such as `ghcr.io/org/name:1.2.0`.
    Registry {
        /// As it was asked for.
        reference: String,
        /// The digest of the manifest it stood for.
        manifest: Digest,
    },
    /// A URL.
    Url {
        /// The URL.
        url: String,
    },
    /// A file of this machine.
    File {
        /// Absolute.
        path: PathBuf,
    },
}

/// A signer as it was when a plugin was accepted. It says who has to sign the next version, and allows nothing: who may sign what is the
/// operator's configuration (`plugins.trust`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PinnedSigner {
    /// The name in the operator's configuration.
    pub name: String,
    /// The key that was used, for people: a line of minisign, or the fingerprint of another.
    pub key: String,
}

/// What is known of a component that was not accepted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextVersion {
    /// Of which component.
    pub wasm: Digest,
    /// Where it was had from.
    pub provenance: Provenance,
}

impl Provenance {
    /// What is known of the file `component`, with what its signatures came to just now. A signature is believed when it is checked, and not
    /// for standing in a lock.
    pub(crate) fn checked(
        known: Option<Self>,
        component: &Path,
        signature: Option<&CheckedSignature>,
    ) -> Option<Self> {
        let Some(signature) = signature else {
            return known;
        };
        let by = signature.verdict.signed_by();
        let known = known.or_else(|| {
            let path = component.to_owned();
            by.map(|_| Self {
                source: PluginSource::File { path },
                version: None,
                signer: None,
            })
        })?;
        let version = by.and_then(|by| by.version.as_deref()?.parse().ok());
        Some(Self {
            version: version.or(known.version),
            signer: by.map(|by| PinnedSigner {
                name: by.signer.clone(),
                key: by.key.clone(),
            }),
            ..known
        })
    }
}

impl PluginSource {
    /// Registry and repository, URL or path: what stays the same from one version to the next.
    pub fn place(&self) -> String {
        match self {
            Self::Registry { reference, .. } => repository(reference).to_owned(),
            Self::Url { url } => url.clone(),
            Self::File { path } => path.to_string_lossy().into_owned(),
        }
    }

    /// The version that the tag of a reference is, which its registry chooses; `None` where there is no such tag.
    pub fn tagged_version(&self) -> Option<Version> {
        let Self::Registry { reference, .. } = self else {
            return None;
        };
        let rest = reference.strip_prefix(repository(reference))?;
        let tag = rest.strip_prefix(':')?.split('@').next()?;
        version_of_tag(tag)
    }

    /// Errors: what is wrong, in one sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        let shown = self.to_string();
        match self {
            _ if shown.len() > TEXT_BYTES_MAX => {
                Err(format!("a source has at most {TEXT_BYTES_MAX} bytes"))
            }
            Self::Registry { reference, .. } if !is_reference(reference) => {
                Err("this is no reference such as `ghcr.io/org/name:1.2.0`".to_owned())
            }
            Self::Url { url } if !url.starts_with("https://") && !url.starts_with("http://") => {
                Err("a URL begins with `https://` or `http://`".to_owned())
            }
            Self::File { path } if !path.is_absolute() => {
                Err("the path of a file is absolute".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The version that a tag is, with or without `v` before it.
pub fn version_of_tag(tag: &str) -> Option<Version> {
    let text = tag.strip_prefix('v').unwrap_or(tag).replace('_', "+");
    Version::parse(&text).ok()
}

/// A reference without its tag and its digest.
fn repository(reference: &str) -> &str {
    let without_digest = reference.split('@').next().unwrap_or(reference);
    let name_start = without_digest.rfind('/').map_or(0, |at| at + 1);
    match without_digest[name_start..].find(':') {
        Some(colon) => &without_digest[..name_start + colon],
        None => without_digest,
    }
}

/// Its parts are read by what fetches it; here it must be one word that names a host and a repository.
fn is_reference(reference: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+[]".contains(&byte);
    let has_repository = reference.find('/').is_some_and(|at| at > 0);
    has_repository && reference.bytes().all(fits)
}

impl fmt::Display for PluginSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { reference, .. } => f.write_str(reference),
            Self::Url { url } => f.write_str(url),
            Self::File { path } => write!(f, "{}", path.display()),
        }
    }
}

impl PinnedSigner {
    /// Errors: what is wrong, in one sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        let fits = |text: &str| (1..=TEXT_BYTES_MAX).contains(&text.len());
        match fits(&self.name) && fits(&self.key) {
            true => Ok(()),
            false => Err(format!(
                "the name and the key of a signer have 1 to {TEXT_BYTES_MAX} bytes"
            )),
        }
    }
}

impl LockedPlugin {
    /// Where it was had from; `None` for a file that its user put into the folder.
    pub fn source(&self) -> Option<&PluginSource> {
        self.provenance.as_ref().map(|from| &from.source)
    }

    /// Who signed it.
    pub fn signer(&self) -> Option<&PinnedSigner> {
        self.provenance.as_ref()?.signer.as_ref()
    }

    /// Its version, where its source named one.
    pub fn version(&self) -> Option<&Version> {
        self.provenance.as_ref()?.version.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use zeph_core::id::Digest;

    use super::{PluginSource, is_reference, repository, version_of_tag};

    #[test]
    fn a_tag_is_a_version_with_or_without_its_letter() {
        for (tag, expect) in [
            ("1.2.3", Some("1.2.3")),
            ("v1.2.3", Some("1.2.3")),
            ("1.2.3_build.5", Some("1.2.3+build.5")),
            ("1.2", None),
            ("latest", None),
            ("", None),
        ] {
            let found = version_of_tag(tag).map(|version| version.to_string());
            assert_eq!(found.as_deref(), expect, "{tag}");
        }
    }

    #[test]
    fn the_tag_of_a_reference_may_be_a_version() {
        for (reference, expect) in [
            ("localhost:5000/name:v1.2.0", Some("1.2.0")),
            ("ghcr.io/org/name:1.2.0@sha256:00", Some("1.2.0")),
            ("ghcr.io/org/name:latest", None),
            ("localhost:5000/name", None),
            ("ghcr.io/org/name@sha256:00", None),
        ] {
            let source = PluginSource::Registry {
                reference: reference.to_owned(),
                manifest: Digest::new([3; 32]),
            };
            let found = source.tagged_version().map(|version| version.to_string());
            assert_eq!(found.as_deref(), expect, "{reference}");
        }
    }

    #[test]
    fn a_repository_is_a_reference_without_tag_and_digest() {
        let table = [
            ("ghcr.io/org/name:1.2", "ghcr.io/org/name"),
            ("localhost:5000/name", "localhost:5000/name"),
            ("localhost:5000/name:1.2.0", "localhost:5000/name"),
            ("[::1]:5000/a/b:1", "[::1]:5000/a/b"),
            ("ghcr.io/org/name@sha256:00", "ghcr.io/org/name"),
            ("ghcr.io/org/name:1@sha256:00", "ghcr.io/org/name"),
        ];
        for (reference, expect) in table {
            assert_eq!(repository(reference), expect);
            assert!(is_reference(reference), "{reference}");
        }
        for bad in ["", "name", "/name", "a b/c", "ghcr.io/é", "ghcr.io/a\n"] {
            assert!(!is_reference(bad), "{bad:?}");
        }
    }
}
