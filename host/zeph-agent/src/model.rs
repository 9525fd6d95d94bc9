//! A model behind HTTP: one request, its attempts, and the answer as it arrives.

mod attempt;
mod backoff;

use bytes::Bytes;
use http::Request;
use url::Url;
use zeph_egress::{Egress, OwnPatience};

use self::attempt::Attempt;
pub(crate) use self::attempt::{of_network, refusal};
pub(crate) use self::backoff::{ASKED_MAX, pause};
use crate::endpoint::Endpoint;
use crate::error::{ProviderError, ProviderErrorKind};
use crate::fenced::Fenced;
use crate::message::Origin;
use crate::provider::{
    ModelEvent, ModelRequest, OnEvent, Pending, Provider, Reply, RequestPreview,
};
use crate::settings::ProviderSettings;
use crate::usage::{Prices, Usage};
use crate::wire::{Ask, Codec, Failure, codec};

/// The provider of these settings. Nothing is sent.
///
/// Errors: `Settings`, when the address is none or the key is missing.
pub fn connect(
    settings: ProviderSettings,
    egress: &Egress,
) -> Result<Box<dyn Provider>, ProviderError> {
    let has_tools = settings.native_tools;
    let model = HttpModel::new(settings, egress)?;
    Ok(match has_tools {
        true => Box::new(model),
        false => Box::new(Fenced::new(model)),
    })
}

/// A model behind HTTP.
#[derive(Debug)]
struct HttpModel {
    endpoint: Endpoint,
    origin: Origin,
    codec: Box<dyn Codec>,
}

impl HttpModel {
    fn new(settings: ProviderSettings, egress: &Egress) -> Result<Self, ProviderError> {
        Ok(Self {
            origin: Origin {
                provider: settings.name.clone(),
                kind: settings.kind,
                model: settings.model.clone(),
            },
            codec: codec(&settings),
            endpoint: Endpoint::new(settings, egress)?,
        })
    }

    fn settings(&self) -> &ProviderSettings {
        &self.endpoint.settings
    }

    fn body(&self, request: ModelRequest<'_>) -> Result<String, Failure> {
        let ask = Ask {
            settings: self.settings(),
            origin: &self.origin,
            request,
        };
        let body = self.codec.body(&ask);
        body.map_err(|error| Failure::new(ProviderErrorKind::Request, error.to_string()))
    }

    fn url(&self) -> Url {
        let settings = self.settings();
        self.codec
            .url(&self.endpoint.base, &settings.model, settings.stream)
    }

    fn patience(&self) -> OwnPatience {
        let timeouts = self.settings().timeouts;
        OwnPatience {
            // An answer that comes at once has its header when the model is done.
            headers: match self.settings().stream {
                true => timeouts.headers,
                false => timeouts.total,
            },
            idle: timeouts.idle,
            total: timeouts.total,
        }
    }

    async fn answer(
        &self,
        request: ModelRequest<'_>,
        on_event: OnEvent<'_>,
    ) -> Result<Reply, Failure> {
        let mut spent = Usage::default();
        let mut number = 1;
        loop {
            let body = self.body(request)?;
            let http = self.endpoint.request(&self.url(), &*self.codec, body)?;
            let mut attempt = Attempt::new(self.codec.reader(), &mut *on_event);
            let is_fresh = number > 1;
            let result = self.attempt(&mut attempt, http, is_fresh).await;
            let (usage, discards) = attempt.seen();
            spent += usage;
            let failure = match result.and_then(|()| attempt.finish(&self.origin)) {
                Ok(turn) => {
                    return Ok(Reply {
                        turn,
                        usage: spent,
                        attempts: number,
                    });
                }
                Err(failure) => failure,
            };
            let is_conceded = self.codec.concede(&failure);
            let after = match is_conceded {
                true => Some(std::time::Duration::ZERO),
                false => pause(&failure, number, self.settings().retries),
            };
            let Some(after) = after else {
                return Err(failure);
            };
            number += 1;
            on_event(ModelEvent::Retry {
                attempt: number,
                after,
                why: self.endpoint.message(&failure),
                discards,
            });
            tokio::time::sleep(after).await;
        }
    }

    async fn attempt(
        &self,
        attempt: &mut Attempt<'_>,
        request: Request<Bytes>,
        is_fresh: bool,
    ) -> Result<(), Failure> {
        let patience = self.patience();
        let answer = match is_fresh {
            true => self.endpoint.client.send_fresh(request, patience).await,
            false => self.endpoint.client.send(request, patience).await,
        };
        let answer = answer.map_err(|error| of_network(&error))?;
        attempt.read(answer, self.codec.framing()).await
    }
}

impl Provider for HttpModel {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn prices(&self) -> Prices {
        self.settings().prices
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_event: OnEvent<'a>,
    ) -> Pending<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let answer = self.answer(request, on_event).await;
            answer.map_err(|failure| self.endpoint.error(&failure))
        })
    }

    fn preview(&self, request: ModelRequest<'_>) -> RequestPreview {
        RequestPreview {
            url: self.url().to_string(),
            body: self.body(request).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
