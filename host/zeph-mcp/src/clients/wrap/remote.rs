//! Servers that are reached by an address, with headers that the host keeps and sends from now on.

use serde_json::Value;

use super::{Unwrappable, is_reference, variables};
use crate::clients::{Client, Format};

/// How a server is called that is reached over HTTP as this program reaches it; absent means the same.
const KINDS: [&str; 3] = ["http", "streamable-http", "streamableHttp"];

/// Keys by which a client brings credentials of its own, which would be lost.
const OF_CLIENT: [&str; 7] = [
    "auth",
    "authProviderType",
    "bearer_token_env_var",
    "env_http_headers",
    "headersHelper",
    "oauth",
    "oauth_scopes",
];

/// A server behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) url: String,
    /// In the order of the file.
    pub(super) headers: Vec<(String, String)>,
}

impl Remote {
    /// Of an entry whose headers are all literal. One without any may need a login that is its client's.
    pub(super) fn of(client: &Client, entry: &Value) -> Result<Self, Unwrappable> {
        let key = url_key(client).ok_or(Unwrappable::Remote)?;
        let url = entry.get(key).and_then(Value::as_str);
        let url = url.filter(|url| !is_reference(url));
        let kind = entry
            .get("type")
            .map(|kind| kind.as_str().unwrap_or_default());
        if let Some(kind) = kind.filter(|kind| !KINDS.contains(kind)) {
            return Err(Unwrappable::Kind(kind.to_owned()));
        }
        let is_of_client = OF_CLIENT.iter().any(|key| entry.get(key).is_some());
        let headers = variables(entry.get(headers_key(client))).unwrap_or_default();
        let literal = headers.into_iter().map(|(name, value)| {
            let value = value.filter(|value| !is_reference(value));
            value.map(|value| (name, value))
        });
        let literal: Option<Vec<_>> = literal.collect();
        if url.is_some_and(|url| authority(url).contains('@')) {
            return Err(Unwrappable::Login);
        }
        match (url, literal) {
            (Some(url), Some(headers)) if !is_of_client && !headers.is_empty() => Ok(Self {
                url: url.to_owned(),
                headers,
            }),
            _ => Err(Unwrappable::Remote),
        }
    }
}

/// The part of an address that names the host.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The names and values in the query of an address, as they stand there.
pub(super) fn query(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let url = url.split('#').next().unwrap_or_default();
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(|pair| pair.split_once('='))
}

/// The key of the address, for a client that can reach one.
pub(super) fn url_key(client: &Client) -> Option<&'static str> {
    client.http.as_ref().map(|http| http.url)
}

/// The key of the headers.
pub(super) fn headers_key(client: &Client) -> &'static str {
    match client.format {
        Format::Json(_) => "headers",
        Format::Toml => "http_headers",
    }
}
