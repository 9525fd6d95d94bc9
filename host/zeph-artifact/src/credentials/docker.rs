//! The file of docker, `config.json`, and that of podman, `auth.json`, which is written the same way.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Credential, Lookup};
use crate::reference::RegistryHost;

/// The name under which docker keeps the credentials of its own registry, and the hosts that are meant.
///
/// Source: the manual of `docker login`.
const HUB: (&str, [&str; 3]) = (
    "https://index.docker.io/v1/",
    ["docker.io", "index.docker.io", "registry-1.docker.io"],
);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Login>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    #[serde(default)]
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct Login {
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    identitytoken: Option<String>,
}

/// Errors: what is wrong with the file, without its content.
pub(super) fn lookup(text: &str, registry: &RegistryHost) -> Result<Lookup, String> {
    let file: File = serde_json::from_str(text)
        .map_err(|error| format!("line {} is not what docker writes", error.line()))?;
    let of_registry = |key: &String| is_for(key, registry);
    let helper = file.cred_helpers.iter().find(|(key, _)| of_registry(key));
    if let Some((_, helper)) = helper {
        return Ok(Lookup::Helper(helper.clone()));
    }
    let mut logins = file.auths.iter().filter(|(key, _)| of_registry(key));
    if let Some(known) = logins.find_map(|(_, login)| login.credential()) {
        return Ok(Lookup::Known(known));
    }
    Ok(match file.creds_store {
        Some(helper) => Lookup::Helper(helper),
        None => Lookup::None,
    })
}

impl Login {
    fn credential(&self) -> Option<Credential> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = given(&self.identitytoken) {
            return Some(Credential::Identity(token));
        }
        if let Some(auth) = given(&self.auth) {
            return Credential::decoded(&auth);
        }
        let user = given(&self.username)?;
        let password = given(&self.password)?;
        Some(Credential::Basic { user, password })
    }
}

/// Whether a name in the file means exactly this registry: a host, or the URL of its API. A path below a host means less than it.
fn is_for(key: &str, registry: &RegistryHost) -> bool {
    let (hub, hosts) = HUB;
    if key == hub {
        return hosts.contains(&registry.to_string().as_str());
    }
    let rest = key.strip_prefix("https://").unwrap_or(key);
    let rest = rest.strip_prefix("http://").unwrap_or(rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_whole = matches!(path.trim_end_matches('/'), "" | "v1" | "v2");
    is_whole
        && host
            .parse()
            .is_ok_and(|host: RegistryHost| host == *registry)
}
