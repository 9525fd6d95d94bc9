//! The file of wkg, `wasm-pkg/config.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Credential, Lookup};
use crate::reference::RegistryHost;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    registry: BTreeMap<String, Registry>,
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
pub(super) fn lookup(text: &str, registry: &RegistryHost) -> Result<Lookup, String> {
    let file: File = toml::from_str(text).map_err(|_| "it is not what wkg reads".to_owned())?;
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
