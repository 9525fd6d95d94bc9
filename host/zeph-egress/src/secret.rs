//! Secrets in requests: which headers egress fills in, once everything else about a request was decided, and which requests would carry
//! one elsewhere.

use std::fmt;
use std::sync::Arc;

use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use zeph_core::network::Destination;
use zeph_core::redact::Redactor;
use zeph_core::secret::SecretUse;

use crate::body::ResponseBody;

/// A granted use of a secret, with the value.
#[derive(Clone, PartialEq, Eq)]
pub struct GrantedSecret {
    /// Where it is sent.
    pub granted: SecretUse,
    /// The whole value of its header.
    pub value: String,
}

/// One hop of a request, as it is about to be sent: every check has passed.
#[derive(Debug, Clone, Copy)]
pub struct RequestHop<'a> {
    /// Where it goes.
    pub destination: &'a Destination,
    /// Its method.
    pub method: &'a str,
    /// Whether what is sent can be read on the way: plain `http` to a host for which the operator did not allow it
    /// (`plain_http` of `tools.egress.private`).
    pub is_exposed: bool,
    /// Whether this hop, or one before it, was redirected to another scheme, host or port than the first. One that came back counts.
    pub has_left_origin: bool,
}

/// What one call has of secrets, and what it must not be told. The default has none.
#[derive(Debug, Clone, Default)]
pub struct CallSecrets {
    /// Those it may use.
    pub granted: Arc<[GrantedSecret]>,
    /// Uses that were granted of secrets that have no value.
    pub unset: Arc<[SecretUse]>,
    /// Every secret that is known, but those that the call was handed itself.
    pub known: Redactor,
}

/// The headers of `secrets` for a hop. They take the place of what the guest gave under the same names.
///
/// None on a hop that is exposed or has left its first origin, none for another host, port or method than was granted.
pub fn headers<'s>(
    secrets: &'s [GrantedSecret],
    hop: RequestHop<'_>,
) -> impl Iterator<Item = (HeaderName, HeaderValue)> + use<'s> {
    let may_have = !hop.is_exposed && !hop.has_left_origin;
    let covered =
        |secret: &&GrantedSecret| may_have && secret.granted.covers(hop.destination, hop.method);
    let covered: Vec<&GrantedSecret> = secrets.iter().filter(covered).collect();
    covered.into_iter().filter_map(GrantedSecret::header)
}

impl CallSecrets {
    /// Refuses a URL that holds a known secret in any form, and a request that was to get a secret that has no value.
    ///
    /// Errors: a sentence, which names the secret.
    pub(crate) fn check(
        &self,
        url: &str,
        destination: &Destination,
        method: &str,
    ) -> Result<(), String> {
        check_url(&self.known, url).map_err(|refused| refused.to_string())?;
        let mut unset = self.unset.iter();
        match unset.find(|used| used.covers(destination, method)) {
            None => Ok(()),
            Some(SecretUse { name, .. }) => Err(format!(
                "the secret `{name}` was granted for it and has no value; `zeph-host secret set {name}` sets it"
            )),
        }
    }

    /// A response whose headers are clean, with a body that is.
    pub(crate) fn clean(&self, response: Response<ResponseBody>) -> Response<ResponseBody> {
        if self.known.is_empty() {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        // What is still encoded cannot be searched: the body of a redirect, which nobody needs.
        let is_opaque = parts.headers.contains_key(CONTENT_ENCODING);
        if is_opaque {
            parts.headers.remove(CONTENT_ENCODING);
            parts.headers.remove(CONTENT_LENGTH);
        }
        Response::from_parts(parts, body.redacted(&self.known, is_opaque))
    }
}

impl GrantedSecret {
    /// `None` for what no header can hold, which was refused when it was set.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let name = HeaderName::from_bytes(self.granted.header.as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(&self.value).ok()?;
        // Not shown by what prints headers, not kept by what indexes them.
        value.set_sensitive(true);
        Some((name, value))
    }
}

impl fmt::Debug for GrantedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrantedSecret({})", self.granted)
    }
}

/// A request that would carry a secret where it was not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the URL holds the value of the secret `{0}`: a secret is sent in a header only, as `plugin grant NAME --secret` says"
)]
pub struct SecretInUrl(pub String);

/// Refuses a URL that holds a known secret in any form.
///
/// Errors: [`SecretInUrl`], which names the secret.
pub fn check_url(known: &Redactor, url: &str) -> Result<(), SecretInUrl> {
    match known.find(url.as_bytes()) {
        Some(name) => Err(SecretInUrl(name.to_owned())),
        None => Ok(()),
    }
}

/// Removes every known secret from the headers of a response, in names too, which are in lower case. Values keep their length.
pub fn clean_headers(known: &Redactor, headers: &mut HeaderMap) {
    if known.is_empty() {
        return;
    }
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names {
        if known.is_in_any_case(name.as_str().as_bytes()) {
            headers.remove(name);
        }
    }
    for value in headers.values_mut() {
        let mut bytes = value.as_bytes().to_vec();
        known.clean_bytes(&mut bytes);
        if bytes != value.as_bytes() {
            // Stars are allowed in any value.
            *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static(""));
        }
    }
}

#[cfg(test)]
mod tests;
