//! Credentials and addresses of registries as the user configured them, for installing: a package manager in a sandbox gets the addresses, and
//! the host adds the credentials to its requests.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::{Places, destination, files, written};

/// What authorizes requests to one registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RegistryLogin {
    /// The host, as `allow_hosts` takes it.
    pub(crate) host: String,
    /// The value of the header `authorization`.
    pub(crate) authorization: String,
    /// What of that is secret by itself.
    pub(crate) secrets: Vec<String>,
}

impl fmt::Debug for RegistryLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryLogin")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl RegistryLogin {
    fn bearer(host: String, token: &str) -> Self {
        Self {
            host,
            authorization: format!("Bearer {token}"),
            secrets: vec![token.to_owned()],
        }
    }

    /// Of a user and a password in base64.
    fn basic(host: String, encoded: &str) -> Self {
        Self {
            host,
            authorization: format!("Basic {encoded}"),
            secrets: vec![encoded.to_owned()],
        }
    }

    fn of_user(host: String, user: &str, password: &str) -> Self {
        let encoded = STANDARD.encode(format!("{user}:{password}"));
        let mut login = Self::basic(host, &encoded);
        login.secrets.push(password.to_owned());
        login
    }
}

/// The logins that npm keeps for registries: `//HOST/:_authToken`, `:_auth`, or `:username` with `:_password`. The nearest file counts.
pub(super) fn of_npm(places: &Places) -> Vec<RegistryLogin> {
    let mut settings = BTreeMap::<String, BTreeMap<String, String>>::new();
    for (key, value) in files::npm_pairs(places) {
        let parts = key.strip_prefix("//").and_then(|key| key.rsplit_once(':'));
        let Some((address, name)) = parts else {
            continue;
        };
        if let Some(destination) = destination(&format!("https://{address}")) {
            let known = settings.entry(written(&destination)).or_default();
            known
                .entry(name.to_owned())
                .or_insert_with(|| expanded(&value, places));
        }
    }
    settings
        .into_iter()
        .filter_map(|(host, login)| npm_login(host, &login))
        .collect()
}

fn npm_login(host: String, login: &BTreeMap<String, String>) -> Option<RegistryLogin> {
    if let Some(token) = login.get("_authToken") {
        return Some(RegistryLogin::bearer(host, token));
    }
    if let Some(encoded) = login.get("_auth") {
        return Some(RegistryLogin::basic(host, encoded));
    }
    let (user, password) = login.get("username").zip(login.get("_password"))?;
    let password = String::from_utf8(STANDARD.decode(password).ok()?).ok()?;
    Some(RegistryLogin::of_user(host, user, &password))
}

/// `${NAME}` as npm reads it; a variable that is not set stays as it is written.
fn expanded(value: &str, places: &Places) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        text.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            return text + "${" + after;
        };
        match places.env.get(name) {
            Some(value) => text.push_str(value),
            None => text.push_str(&format!("${{{name}}}")),
        }
        rest = behind;
    }
    text + rest
}

/// The logins in addresses of Python indexes.
pub(super) fn of_python(places: &Places) -> Vec<RegistryLogin> {
    let addresses = files::python_index(places);
    let addresses = addresses.into_iter().chain(files::python_more(places));
    let mut logins: Vec<RegistryLogin> = Vec::new();
    for address in addresses {
        let login = Url::parse(&address).ok().and_then(|url| {
            let host = written(&destination(&address)?);
            let user = decoded(url.username())?;
            let password = decoded(url.password().unwrap_or_default())?;
            (!user.is_empty()).then(|| RegistryLogin::of_user(host, &user, &password))
        });
        let is_new = |login: &RegistryLogin| !logins.iter().any(|one| one.host == login.host);
        if let Some(login) = login.filter(is_new) {
            logins.push(login);
        }
    }
    logins
}

/// The text behind percent signs.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

/// Variables that say where npm gets packages from.
pub(super) fn npm_variables(places: &Places) -> Vec<(String, String)> {
    let registry = files::npm_registry(places).into_iter();
    let registry = registry.map(|url| ("npm_config_registry".to_owned(), url));
    let pairs = files::npm_pairs(places).into_iter();
    let scopes = pairs.filter(|(key, _)| key.starts_with('@') && key.ends_with(":registry"));
    let mut known = Vec::new();
    let scopes = scopes.filter(|(key, _)| {
        let is_new = !known.contains(key);
        known.push(key.clone());
        is_new
    });
    let scopes = scopes.map(|(key, url)| (format!("npm_config_{key}"), url));
    registry.chain(scopes).map(without_login).collect()
}

/// Variables that say where pip and uv get packages from.
pub(super) fn python_variables(places: &Places) -> Vec<(String, String)> {
    let index = files::python_index(places).into_iter().next();
    let bare = |url: String| without_login((String::new(), url)).1;
    let more: Vec<String> = files::python_more(places).into_iter().map(bare).collect();
    let mut variables = Vec::new();
    let mut set = |names: [&str; 2], value: String| {
        variables.extend(names.map(|name| (name.to_owned(), value.clone())));
    };
    if let Some(index) = index {
        set(["PIP_INDEX_URL", "UV_DEFAULT_INDEX"], bare(index));
    }
    if !more.is_empty() {
        set(["PIP_EXTRA_INDEX_URL", "UV_INDEX"], more.join(" "));
    }
    variables
}

/// The same address without a user and a password.
fn without_login((name, address): (String, String)) -> (String, String) {
    let bare = Url::parse(&address).ok().and_then(|mut url| {
        if url.username().is_empty() && url.password().is_none() {
            return None;
        }
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        Some(url.to_string())
    });
    (name, bare.unwrap_or(address))
}
