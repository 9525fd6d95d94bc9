//! What a registry is told: a token from its own issuer, or a user and a password.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use url::Url;
use zeph_core::failure::one_line;
use zeph_core::network::Destination;
use zeph_egress::OwnAnswer;

use super::challenge::Challenge;
use super::error::{self, CredentialState};
use super::request::Asked;
use super::session::Session;
use super::{RegistryError, origin};
use crate::credentials::{Credential, Lookup};

/// Most bytes of the answer that holds a token.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Deserialize)]
struct Issued {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
}

/// The value of `Authorization` that an answer of status 401 asks for, and what it was made from.
///
/// Errors: `Denied`, `Challenge`, `Realm`, `Credentials`, and those of the connection.
pub(super) async fn authorization(
    session: &Session<'_>,
    refusal: OwnAnswer,
) -> Result<(HeaderValue, CredentialState), RegistryError> {
    let lookup = session.credentials()?;
    let (credential, state) = match lookup {
        Lookup::Known(credential) => (Some(credential), CredentialState::Refused),
        Lookup::Helper(helper) => (None, CredentialState::Helper(helper)),
        Lookup::None => (None, CredentialState::None),
    };
    match Challenge::of(&refusal.headers) {
        None => Err(RegistryError::Challenge(session.registry.clone())),
        Some(Challenge::Basic) => match credential.as_ref().and_then(Credential::basic) {
            Some(basic) => Ok((basic, state)),
            None => Err(session.denied(state, refusal).await),
        },
        Some(Challenge::Bearer { realm, service }) => {
            let url = checked(session, &realm)?;
            let asked = asked(url, service.as_deref(), session, credential.as_ref());
            let basic = credential.as_ref().and_then(Credential::basic);
            let answer = session
                .registries
                .once(&asked, &asked.url, basic.as_ref())
                .await?;
            Ok((issued(session, answer, &state).await?, state))
        }
    }
}

/// Who issues tokens: the registry itself, or another host that the operator allowed. Credentials go there, so that what a registry says
/// alone does not decide.
///
/// Errors: `Realm`.
fn checked(session: &Session<'_>, realm: &str) -> Result<Url, RegistryError> {
    let refused = |host: Option<Destination>| RegistryError::Realm {
        registry: session.registry.clone(),
        realm: one_line(realm, 200),
        host,
    };
    let mut url = Url::parse(realm).map_err(|_| refused(None))?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user || !matches!(url.scheme(), "https" | "http") {
        return Err(refused(None));
    }
    url.set_fragment(None);
    let mut allowed = session.registries.settings.allowed.iter();
    let is_allowed = session.is_own(&url)
        || allowed.any(|host| origin(host).is_some_and(|one| one.origin() == url.origin()));
    match is_allowed {
        true => Ok(url),
        // Plain HTTP is not made right by a line that allows the host.
        false if url.scheme() == "http" => Err(refused(None)),
        false => {
            let host = url.host_str().and_then(|host| host.parse().ok());
            let port = url.port_or_known_default();
            let host = host
                .zip(port)
                .map(|(host, port)| Destination { host, port });
            Err(refused(host))
        }
    }
}

/// The request for a token. A refresh token is exchanged, anything else asks.
fn asked(
    mut url: Url,
    service: Option<&str>,
    session: &Session<'_>,
    credential: Option<&Credential>,
) -> Asked {
    let scope = session.scope();
    let mut pairs = vec![("scope", scope.as_str())];
    pairs.extend(service.map(|service| ("service", service)));
    let Some(Credential::Identity(refresh)) = credential else {
        url.query_pairs_mut().extend_pairs(pairs);
        return Asked::get(url);
    };
    pairs.extend([
        ("grant_type", "refresh_token"),
        ("client_id", "zeph-host"),
        ("refresh_token", refresh),
    ]);
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    let body = Bytes::from(form.extend_pairs(pairs).finish());
    let kind = "application/x-www-form-urlencoded";
    Asked::new(Method::POST, url).with(CONTENT_TYPE, kind, body)
}

async fn issued(
    session: &Session<'_>,
    answer: OwnAnswer,
    state: &CredentialState,
) -> Result<HeaderValue, RegistryError> {
    let what = format!("the access token for {}", session.registry);
    match answer.status {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
            return Err(session.denied(state.clone(), answer).await);
        }
        _ => return Err(error::unexpected(answer, &what).await),
    }
    let bytes = error::bytes(answer, &what, ANSWER_BYTES_MAX).await?;
    let issued: Option<Issued> = serde_json::from_slice(&bytes).ok();
    let token = issued.and_then(|issued| issued.token.or(issued.access_token));
    let value = token.filter(|token| !token.is_empty());
    let value = value.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
    let mut value = value.ok_or_else(|| {
        let problem = format!("{what} does not stand in the answer of who issues it");
        RegistryError::Protocol(problem)
    })?;
    value.set_sensitive(true);
    Ok(value)
}
