//! The file of docker, `config.json`, and that of podman, `auth.json`, which is written the same way.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use zeph_core::failure::one_line;

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
    auths: Option<BTreeMap<String, Option<Login>>>,
    cred_helpers: Option<BTreeMap<String, String>>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
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

/// Shape:  what is known for the longest part of `repository` counts, as podman has it; docker writes whole registries alone.
/// Errors: what is wrong with the file, without its content.
pub(super) fn lookup(
    text: &str,
    registry: &RegistryHost,
    repository: &str,
) -> Result<Lookup, String> {
    // An empty file is what both write where there is nothing.
    if text.trim().is_empty() {
        return Ok(Lookup::None);
    }
    let file: File = serde_json::from_str(text)
        .map_err(|error| format!("line {} is not what docker writes", error.line()))?;
    let helpers = file.cred_helpers.unwrap_or_default();
    let mut helpers = helpers.into_iter();
    let helper =
        helpers.find(|(key, name)| part_of(key, registry, "").is_some() && !name.is_empty());
    if let Some((_, helper)) = helper {
        return Ok(Lookup::Helper(helper));
    }
    let mut logins: Vec<(usize, String, Login)> = file
        .auths
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(key, login)| {
            let n_bytes = part_of(&key, registry, repository)?;
            Some((n_bytes, key, login.unwrap_or_default()))
        })
        .collect();
    logins.sort_by_key(|(n_bytes, ..)| Reverse(*n_bytes));
    for (_, key, login) in logins {
        if let Some(known) = login.credential(&key)? {
            return Ok(Lookup::Known(known));
        }
    }
    Ok(match file.creds_store {
        Some(helper) if !helper.is_empty() => Lookup::Helper(helper),
        _ => Lookup::None,
    })
}

impl Login {
    /// Errors: what stands for `key` cannot be read, without its content.
    fn credential(&self, key: &str) -> Result<Option<Credential>, String> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = given(&self.identitytoken) {
            return Ok(Some(Credential::Identity(token)));
        }
        if let Some(auth) = given(&self.auth) {
            let known = Credential::decoded(&auth);
            let key = one_line(key, 200);
            return known.map(Some).ok_or_else(|| {
                format!("`auth` of `{key}` is not a user and a password in base 64")
            });
        }
        let known = given(&self.username).zip(given(&self.password));
        Ok(known.map(|(user, password)| Credential::Basic { user, password }))
    }
}

/// How many bytes of `repository` a name in the file means: none for all of the registry, by its host or the URL of its API. `None` where it
/// means something else.
fn part_of(key: &str, registry: &RegistryHost, repository: &str) -> Option<usize> {
    let (hub, hosts) = HUB;
    if key == hub {
        return hosts.contains(&registry.to_string().as_str()).then_some(0);
    }
    let rest = key.strip_prefix("https://").unwrap_or(key);
    let rest = rest.strip_prefix("http://").unwrap_or(rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host: RegistryHost = host.parse().ok()?;
    let path = path.trim_end_matches('/');
    let n_bytes = match path {
        "" | "v1" | "v2" => 0,
        path => {
            let rest = repository.strip_prefix(path)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(path.len())?
        }
    };
    (host == *registry).then_some(n_bytes)
}
