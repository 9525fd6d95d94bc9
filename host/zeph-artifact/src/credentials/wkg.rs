//! The file of wkg, `wasm-pkg/config.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Credential, Lookup};
use crate::reference::RegistryHost;

/// What of it is used.
#[derive(Default, Deserialize)]
pub(crate) struct File {
    pub(crate) default_registry: Option<String>,
    #[serde(default)]
    namespace_registries: BTreeMap<String, Mapping>,
    #[serde(default)]
    package_registry_overrides: BTreeMap<String, Mapping>,
    #[serde(default)]
    registry: BTreeMap<String, Registry>,
}

/// A registry, or one with what it would say about itself: that is asked of the registry.
#[derive(Deserialize)]
#[serde(untagged)]
enum Mapping {
    Registry(String),
    Custom { registry: String },
}

impl File {
    /// The registry of a package of `namespace`, if the file names one.
    pub(crate) fn registry_of(&self, namespace: &str, package: &str) -> Option<String> {
        let of_package = self.package_registry_overrides.get(package);
        let mapping = of_package.or_else(|| self.namespace_registries.get(namespace))?;
        let (Mapping::Registry(registry) | Mapping::Custom { registry }) = mapping;
        Some(registry.clone())
    }
}

#[derive(Deserialize)]
struct Registry {
    #[serde(default)]
    oci: Option<Oci>,
}

#[derive(Deserialize)]
struct Oci {
    #[serde(default)]
    auth: Option<Auth>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Auth {
    Base64(String),
    Named { username: String, password: String },
}

/// Errors: what is wrong with the file, without its content.
pub(super) fn parse(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|_| "it is not what wkg reads".to_owned())
}

/// Errors: what is wrong with the file, without its content.
pub(super) fn lookup(text: &str, registry: &RegistryHost) -> Result<Lookup, String> {
    let file = parse(text)?;
    let mut registries = file.registry.into_iter();
    let of_registry = registries.find(|(host, _)| {
        let host = host.parse::<RegistryHost>();
        host.is_ok_and(|host| host == *registry)
    });
    let auth = of_registry.and_then(|(_, registry)| registry.oci?.auth);
    let credential = match auth {
        None => return Ok(Lookup::None),
        Some(Auth::Base64(text)) => Credential::decoded(&text),
        Some(Auth::Named { username, password }) => Some(Credential::Basic {
            user: username,
            password,
        }),
    };
    let bad = || format!("`auth` of `{registry}` is not `user:password` in base 64");
    credential.map(Lookup::Known).ok_or_else(bad)
}
