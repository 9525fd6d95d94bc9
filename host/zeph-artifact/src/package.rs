//! Names of packages as wkg writes them, `ns:name@1.2.0`: the registry that its configuration gives the namespace, and where that registry
//! says that its artifacts are (`https://REGISTRY/.well-known/wasm-pkg/registry.json`).
//!
//! What comes of it is a reference like any other: its registry, and the one that was asked, have to be allowed.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use semver::Version;
use serde::Deserialize;
use url::Url;

use crate::credentials::{BadCredentials, wkg_file};
use crate::reference::{BadReference, Reference};
use crate::registry::{Registries, RegistryError};

/// Most bytes of what a registry says about itself.
const METADATA_BYTES_MAX: usize = 64 * 1024;

/// Registries of namespaces that the configuration does not have.
///
/// Source: `wasm-pkg-common`, the defaults of its configuration.
const NAMESPACES: [(&str, &str); 2] = [("wasi", "wasi.dev"), ("ba", "bytecodealliance.org")];

/// A package with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageName {
    namespace: String,
    name: String,
    version: Version,
}

/// A package that cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// Nothing says which registry has its namespace.
    #[error("nothing says which registry has the packages of `{namespace}`")]
    NoRegistry {
        /// The namespace.
        namespace: String,
    },
    /// The file of wkg cannot be used.
    #[error(transparent)]
    Configuration(#[from] BadCredentials),
    /// The registry speaks another protocol, or what it says cannot be read.
    #[error("`{registry}` does not say where its packages are: {why}")]
    Metadata {
        /// The registry.
        registry: String,
        /// What is wrong.
        why: String,
    },
    /// It is not where it would be.
    #[error(transparent)]
    Reference(#[from] BadReference),
    /// The registry cannot be asked.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// What a registry says about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    preferred_protocol: Option<String>,
    oci: Option<OciMetadata>,
    // As registries wrote it at first.
    oci_registry: Option<String>,
    oci_namespace_prefix: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciMetadata {
    registry: Option<String>,
    namespace_prefix: Option<String>,
}

impl PackageName {
    /// Whether `text` has the form of one: two words with `:` between them, and `@`. A reference has `/`.
    pub fn looks_like_one(text: &str) -> bool {
        let parts = text
            .split_once('@')
            .and_then(|(name, _)| name.split_once(':'));
        parts.is_some_and(|(namespace, name)| is_word(namespace) && is_word(name))
    }

    /// The reference that it stands for. `wkg`: the configuration of wkg.
    ///
    /// Errors: [`PackageError`].
    pub async fn resolve(
        &self,
        registries: &Registries,
        wkg: Option<&Path>,
    ) -> Result<Reference, PackageError> {
        let registry = self.registry(wkg)?;
        let metadata = metadata(registries, &registry).await?;
        Ok(self.under(&registry, metadata)?)
    }

    /// The registry of its namespace.
    fn registry(&self, wkg: Option<&Path>) -> Result<String, PackageError> {
        let file = wkg_file(wkg)?;
        let package = format!("{}:{}", self.namespace, self.name);
        let known = file.registry_of(&self.namespace, &package);
        let usual = NAMESPACES.iter().find(|(name, _)| *name == self.namespace);
        let usual = usual.map(|(_, registry)| (*registry).to_owned());
        let found = known.or(usual).or(file.default_registry);
        found.ok_or_else(|| PackageError::NoRegistry {
            namespace: self.namespace.clone(),
        })
    }

    fn under(&self, registry: &str, metadata: Metadata) -> Result<Reference, BadReference> {
        let oci = metadata.oci.unwrap_or_default();
        let host = oci.registry.or(metadata.oci_registry);
        let host = host.unwrap_or_else(|| registry.to_owned());
        let prefix = oci.namespace_prefix.or(metadata.oci_namespace_prefix);
        let Self {
            namespace, name, ..
        } = self;
        let tag = self.version.to_string().replace('+', "_");
        let prefix = prefix.unwrap_or_default();
        format!("{host}/{prefix}{namespace}/{name}:{tag}").parse()
    }
}

/// What `registry` says about itself; nothing where it says nothing.
async fn metadata(registries: &Registries, registry: &str) -> Result<Metadata, PackageError> {
    let bad = |why: String| PackageError::Metadata {
        registry: registry.to_owned(),
        why,
    };
    let url = registries.origin_of(&registry.parse()?)?;
    let url = url.join("/.well-known/wasm-pkg/registry.json");
    let url: Url = url.map_err(|error| bad(error.to_string()))?;
    let text = match registries.file(&url, METADATA_BYTES_MAX).await {
        Ok(text) => text,
        Err(RegistryError::NotFound(_)) => return Ok(Metadata::default()),
        Err(error) => return Err(error.into()),
    };
    let said: Metadata = serde_json::from_slice(&text)
        .map_err(|error| bad(format!("line {} of it is not understood", error.line())))?;
    match said.preferred_protocol.as_deref() {
        None | Some("oci") => Ok(said),
        Some(other) => Err(bad(format!(
            "it speaks `{other}`, and only OCI is supported"
        ))),
    }
}

impl FromStr for PackageName {
    type Err = BadReference;

    /// Shape:  `NAMESPACE:NAME@VERSION`, words of `a-z 0-9 -` and a semantic version.
    /// Errors: what is none.
    fn from_str(text: &str) -> Result<Self, BadReference> {
        let bad = |why: &str| BadReference::new(text, why);
        let parts = text.split_once('@');
        let parts = parts.and_then(|(name, version)| Some((name.split_once(':')?, version)));
        let ((namespace, name), version) =
            parts.ok_or_else(|| bad("a package is `NAMESPACE:NAME@VERSION`"))?;
        if !is_word(namespace) || !is_word(name) {
            return Err(bad("namespace and name are small letters, digits and `-`"));
        }
        let version = Version::parse(version).map_err(|error| bad(&error.to_string()))?;
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version,
        })
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.namespace, self.name, self.version)
    }
}

fn is_word(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_letter)
}
