//! Requests to one repository of one registry, with what it wants to know.

use std::sync::{Mutex, PoisonError};

use http::header::HeaderValue;
use http::{Method, StatusCode};
use url::Url;
use zeph_egress::OwnAnswer;

use super::request::Asked;
use super::{CredentialState, Registries, RegistryError, error, origin, token};
use crate::credentials::{BadCredentials, Lookup};
use crate::reference::{Reference, RegistryHost};

/// The host that stands in references to the registry of docker, and the one that answers.
///
/// Source: the documentation of the registry's API.
const HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// What is done in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actions {
    Pull,
    PullAndPush,
}

/// A repository of an allowed registry.
pub(super) struct Session<'a> {
    pub(super) registries: &'a Registries,
    pub(super) registry: &'a RegistryHost,
    repository: &'a str,
    actions: Actions,
    /// The URL of the repository in the API, with `/` at its end.
    base: Url,
    authorization: Mutex<Option<HeaderValue>>,
}

impl<'a> Session<'a> {
    /// The repository of `reference`.
    ///
    /// Errors: `NotAllowed`.
    pub(super) fn new(
        registries: &'a Registries,
        reference: &'a Reference,
        actions: Actions,
    ) -> Result<Self, RegistryError> {
        let registry = reference.registry();
        let not_allowed = || RegistryError::NotAllowed(registry.clone());
        let host = registries.allowed(registry)?;
        let mut base = origin(host).ok_or_else(not_allowed)?;
        let (hub, answering) = HUB;
        if registry.to_string() == hub && base.set_host(Some(answering)).is_err() {
            return Err(not_allowed());
        }
        // Of letters that stand for themselves in a path: see `Reference`.
        base.set_path(&format!("/v2/{}/", reference.repository()));
        Ok(Self {
            registries,
            registry,
            repository: reference.repository(),
            actions,
            base,
            authorization: Mutex::default(),
        })
    }

    /// The URL of something in the repository, such as `manifests/1.2`.
    ///
    /// Shape: `path` is made of constants, tags and digests.
    pub(super) fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("/v2/{}/{path}", self.repository));
        url
    }

    /// What the files of credentials say about it.
    ///
    /// Errors: a file that exists and cannot be read.
    pub(super) fn credentials(&self) -> Result<Lookup, BadCredentials> {
        let files = &self.registries.credentials;
        files.of(self.registry, self.repository)
    }

    /// What its token has to permit.
    pub(super) fn scope(&self) -> String {
        let actions = match self.actions {
            Actions::Pull => "pull",
            Actions::PullAndPush => "pull,push",
        };
        format!("repository:{}:{actions}", self.repository)
    }

    /// Whether `url` is of the registry itself: credentials go nowhere else.
    pub(super) fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    pub(super) fn get(&self, path: &str) -> Asked {
        Asked::get(self.url(path))
    }

    pub(super) fn head(&self, path: &str) -> Asked {
        Asked::new(Method::HEAD, self.url(path))
    }

    /// Sends a request; where the registry wants to know who asks, once more.
    ///
    /// Errors: [`RegistryError`]; `Denied` for the statuses 401 and 403.
    pub(super) async fn send(&self, asked: &Asked) -> Result<OwnAnswer, RegistryError> {
        let answer = self.authorized(asked).await?;
        self.registries.followed(asked, answer).await
    }

    async fn authorized(&self, asked: &Asked) -> Result<OwnAnswer, RegistryError> {
        if !self.is_own(&asked.url) {
            return self.registries.once(asked, &asked.url, None).await;
        }
        let known = self.known();
        let answer = self.once(asked, known.as_ref()).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let (authorization, credentials) = token::authorization(self, answer).await?;
        let answer = self.once(asked, Some(&authorization)).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(self.denied(credentials, answer).await)
            }
            _ => {
                *self.lock() = Some(authorization);
                Ok(answer)
            }
        }
    }

    async fn once(
        &self,
        asked: &Asked,
        authorization: Option<&HeaderValue>,
    ) -> Result<OwnAnswer, RegistryError> {
        let once = self.registries.once(asked, &asked.url, authorization);
        once.await
    }

    pub(super) async fn denied(
        &self,
        credentials: CredentialState,
        answer: OwnAnswer,
    ) -> RegistryError {
        RegistryError::Denied {
            registry: self.registry.clone(),
            credentials,
            said: error::said(answer).await,
        }
    }

    fn known(&self) -> Option<HeaderValue> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<HeaderValue>> {
        self.authorization
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
