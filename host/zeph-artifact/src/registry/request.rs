//! One request, and where it is redirected to.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::{Method, Request, StatusCode};
use url::Url;
use zeph_core::failure::one_line;
use zeph_egress::{OwnAnswer, OwnPatience};

use super::{Registries, RegistryError};

/// Most redirects of one request: a registry sends its clients to a storage, and that perhaps to a nearer one.
const REDIRECTS_MAX: usize = 4;

/// No limits of their own: the whole operation has one.
const PATIENCE: OwnPatience = OwnPatience {
    headers: Duration::MAX,
    idle: Duration::MAX,
    total: Duration::MAX,
};

/// A request, without credentials.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Asked {
    pub(super) fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    pub(super) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    pub(super) fn accepting(mut self, types: &'static str) -> Self {
        self.headers.insert(ACCEPT, HeaderValue::from_static(types));
        self
    }

    pub(super) fn with(mut self, name: HeaderName, value: &'static str, body: Bytes) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self.body = body;
        self
    }

    /// What is told of it: the URL without its query, which may hold a signature.
    pub(super) fn told(&self) -> String {
        told(&self.url)
    }
}

fn told(url: &Url) -> String {
    one_line(&url[..url::Position::AfterPath], 300)
}

impl Registries {
    /// Sends a request without credentials, and follows where it is redirected to.
    pub(super) async fn send(&self, asked: &Asked) -> Result<OwnAnswer, RegistryError> {
        let answer = self.once(asked, &asked.url, None).await?;
        self.followed(asked, answer).await
    }

    /// Sends a request to `url`, where it may have been redirected to.
    pub(super) async fn once(
        &self,
        asked: &Asked,
        url: &Url,
        authorization: Option<&HeaderValue>,
    ) -> Result<OwnAnswer, RegistryError> {
        let refused = |why: String| RegistryError::Redirect {
            from: asked.told(),
            why,
        };
        let client = self.client.also(&[url.as_str()]);
        let client = client.map_err(|error| refused(error.to_string()))?;
        let request = Request::builder().method(asked.method.clone());
        let request = request.uri(url.as_str()).body(asked.body.clone());
        let mut request = request.map_err(|error| refused(error.to_string()))?;
        *request.headers_mut() = asked.headers.clone();
        if let Some(authorization) = authorization {
            request
                .headers_mut()
                .insert(AUTHORIZATION, authorization.clone());
        }
        let sent = match asked.method.is_safe() {
            true => client.send(request, PATIENCE).await,
            false => client.send_fresh(request, PATIENCE).await,
        };
        sent.map_err(RegistryError::of)
    }

    /// The answer at the end of the redirects that begin with `answer`. Each is checked like any request, and none gets credentials.
    pub(super) async fn followed(
        &self,
        asked: &Asked,
        mut answer: OwnAnswer,
    ) -> Result<OwnAnswer, RegistryError> {
        let mut url = asked.url.clone();
        for _ in 0..REDIRECTS_MAX {
            let Some(target) = target(asked, &answer, &url)? else {
                return Ok(answer);
            };
            url = target;
            answer = self.once(asked, &url, None).await?;
        }
        match target(asked, &answer, &url)? {
            None => Ok(answer),
            Some(_) => Err(RegistryError::Redirect {
                from: asked.told(),
                why: format!("it is redirected more than {REDIRECTS_MAX} times"),
            }),
        }
    }
}

/// Where an answer sends a request that only fetches; `None` when it is the last one.
fn target(asked: &Asked, answer: &OwnAnswer, here: &Url) -> Result<Option<Url>, RegistryError> {
    let follows = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    match asked.method.is_safe() && follows.contains(&answer.status) {
        true => location(answer, here).map(Some),
        false => Ok(None),
    }
}

/// The `Location` of an answer.
///
/// Errors: `Redirect` when there is none, and for what is not spoken.
pub(super) fn location(answer: &OwnAnswer, here: &Url) -> Result<Url, RegistryError> {
    let refused = |why: &str| RegistryError::Redirect {
        from: told(here),
        why: why.to_owned(),
    };
    let location = answer.headers.get(LOCATION);
    let location = location.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    let location = location.ok_or_else(|| refused("it does not say where"))?;
    let mut target = here
        .join(location)
        .map_err(|_| refused("its `Location` is not a URL"))?;
    target.set_fragment(None);
    match target.scheme() == "http" && here.scheme() == "https" {
        true => Err(refused("from HTTPS to plain HTTP")),
        false => Ok(target),
    }
}
