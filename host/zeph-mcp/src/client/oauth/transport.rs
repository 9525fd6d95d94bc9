//! rmcp's requests, sent by `zeph-egress`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use rmcp::transport::auth::{AuthError, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::{Map, Value};
use url::Url;
use zeph_egress::{Egress, OwnClient, OwnError, OwnLimits, OwnPatience};

use super::error::foreign;
use super::{LoginError, RemoteServer};

/// How long a request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What of the answer of a token endpoint is used. The rest, such as ID tokens, is dropped before anything can log it.
const TOKEN_FIELDS: [&str; 8] = [
    "access_token",
    "error",
    "error_description",
    "error_uri",
    "expires_in",
    "refresh_token",
    "scope",
    "token_type",
];

/// Sends the requests of the login to one server. No redirect is followed: rmcp does where the protocol wants it, and asks again.
pub(super) struct Transport {
    server: RemoteServer,
    egress: Egress,
    /// Why the last request was not sent, which rmcp would report as text at best.
    refusal: Mutex<Option<LoginError>>,
}

impl Transport {
    pub(super) fn new(server: RemoteServer, egress: Egress) -> Self {
        Self {
            server,
            egress,
            refusal: Mutex::new(None),
        }
    }

    pub(super) fn server(&self) -> &RemoteServer {
        &self.server
    }

    /// A result of rmcp, with our reason where a request was not sent.
    pub(super) fn explain<T>(&self, result: Result<T, AuthError>) -> Result<T, LoginError> {
        result.map_err(|error| {
            let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
            let refusal = refusal.take();
            refusal.unwrap_or_else(|| LoginError::from_auth(&error))
        })
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, LoginError> {
        let url = self.server.allowed(&request.uri().to_string())?;
        let client = self.client(&url)?;
        let is_post = *request.method() == Method::POST;
        let patience = OwnPatience {
            headers: REQUEST_TIME_MAX,
            idle: REQUEST_TIME_MAX,
            total: REQUEST_TIME_MAX,
        };
        let answer = client.send(request.map(Bytes::from), patience).await;
        let answer = answer.map_err(|error| failed(&url, &error))?;
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = answer.bytes(ANSWER_BYTES_MAX).await;
        let body = body.map_err(|error| failed(&url, &error))?;
        let body = match is_post {
            true => without_others(&body),
            false => body.to_vec(),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// The server's own host may be a private one, because its URL is the operator's; others are what a server named.
    fn client(&self, url: &Url) -> Result<OwnClient, LoginError> {
        let limits = OwnLimits {
            time: REQUEST_TIME_MAX,
            bytes: ANSWER_BYTES_MAX,
        };
        let own = OwnClient::new(&self.egress, &[self.server.url().as_str()], limits);
        let client = match url.origin() == self.server.url().origin() {
            true => own,
            false => own.and_then(|own| own.also(&[url.as_str()])),
        };
        let client = client.map_err(|error| failed(url, &error))?;
        Ok(client.counted_in(self.server.account().clone()))
    }
}

impl OAuthHttpClient for Transport {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            self.send(request.request).await.map_err(|error| {
                let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
                *refusal = Some(error.clone());
                error.into()
            })
        })
    }
}

fn failed(url: &Url, error: &OwnError) -> LoginError {
    let host = url.host_str().unwrap_or_default();
    LoginError::Network(foreign(&format!("`{host}`: {error}")))
}

/// The answer of a token endpoint with the fields that are used; that of a registration with all it has, for it is no secret to rmcp.
fn without_others(body: &[u8]) -> Vec<u8> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        return body.to_vec();
    };
    if !fields.contains_key("access_token") {
        return body.to_vec();
    }
    let used = fields
        .into_iter()
        .filter(|(name, _)| TOKEN_FIELDS.contains(&name.as_str()));
    Value::Object(used.collect::<Map<_, _>>())
        .to_string()
        .into_bytes()
}
