//! A model behind HTTP: one request, its attempts, and the answer as it arrives.

mod attempt;
mod backoff;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request};
use url::Url;
use zeph_egress::{Egress, OwnClient, OwnLimits, OwnPatience};

use self::attempt::Attempt;
use crate::error::{ProviderError, ProviderErrorKind};
use crate::fenced::Fenced;
use crate::message::Origin;
use crate::provider::{
    ModelEvent, ModelRequest, OnEvent, Pending, Provider, Reply, RequestPreview,
};
use crate::settings::{ApiKey, ProviderSettings};
use crate::usage::{Prices, Usage};
use crate::wire::{Ask, Codec, Failure, codec};

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

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
    settings: ProviderSettings,
    origin: Origin,
    base: Url,
    codec: Box<dyn Codec>,
    client: OwnClient,
}

impl HttpModel {
    fn new(settings: ProviderSettings, egress: &Egress) -> Result<Self, ProviderError> {
        let wrong = |message: String| ProviderError {
            provider: settings.name.clone(),
            kind: ProviderErrorKind::Settings,
            message,
            status: None,
            retry_after: None,
        };
        let base = settings.base_url.as_deref();
        let text = base.unwrap_or(settings.kind.base_url());
        let base = Url::parse(text)
            .map_err(|error| wrong(format!("`base_url` `{text}` is not a URL: {error}")))?;
        let variables = settings.kind.key_variables();
        if settings.key.is_none() && settings.base_url.is_none() && !variables.is_empty() {
            return Err(wrong(format!(
                "there is no key; set the variable `{}`, or `api_key_env` or `api_key_secret` of the provider",
                variables.join("` or `")
            )));
        }
        if let Some(key) = &settings.key
            && HeaderValue::from_str(key.expose()).is_err()
        {
            return Err(wrong("the key contains characters that no key has".into()));
        }
        let limits = OwnLimits {
            time: settings.timeouts.total,
            bytes: ANSWER_BYTES_MAX,
        };
        let client = OwnClient::new(egress, &[base.as_str()], limits);
        let client = client.map_err(|error| wrong(format!("`base_url`: {error}")))?;
        Ok(Self {
            origin: Origin {
                provider: settings.name.clone(),
                kind: settings.kind,
                model: settings.model.clone(),
            },
            codec: codec(&settings),
            base,
            client,
            settings,
        })
    }

    fn body(&self, request: ModelRequest<'_>) -> Result<String, Failure> {
        let ask = Ask {
            settings: &self.settings,
            origin: &self.origin,
            request,
        };
        let body = self.codec.body(&ask);
        body.map_err(|error| Failure::new(ProviderErrorKind::Request, error.to_string()))
    }

    fn url(&self) -> Url {
        let streams = self.settings.stream;
        self.codec.url(&self.base, &self.settings.model, streams)
    }

    fn http_request(&self, body: String) -> Result<Request<Bytes>, Failure> {
        let key = self.settings.key.as_ref().map(ApiKey::expose);
        let mut request = Request::post(self.url().as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json");
        for (name, value) in self.codec.headers(key) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Failure::new(ProviderErrorKind::Settings, "the key is not one"))?;
            value.set_sensitive(true);
            request = request.header(HeaderName::from_static(name), value);
        }
        let request = request.body(Bytes::from(body));
        request.map_err(|error| Failure::new(ProviderErrorKind::Settings, error.to_string()))
    }

    fn patience(&self) -> OwnPatience {
        let timeouts = self.settings.timeouts;
        OwnPatience {
            // An answer that comes at once has its header when the model is done.
            headers: match self.settings.stream {
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
            let http = self.http_request(self.body(request)?)?;
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
                false => backoff::pause(&failure, number, self.settings.retries),
            };
            let Some(after) = after else {
                return Err(failure);
            };
            number += 1;
            on_event(ModelEvent::Retry {
                attempt: number,
                after,
                why: failure.message,
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
            true => self.client.send_fresh(request, patience).await,
            false => self.client.send(request, patience).await,
        };
        let answer = answer.map_err(|error| attempt::of_network(&error))?;
        attempt.read(answer, self.codec.framing()).await
    }
}

impl Provider for HttpModel {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn prices(&self) -> Prices {
        self.settings.prices
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_event: OnEvent<'a>,
    ) -> Pending<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let answer = self.answer(request, on_event).await;
            answer.map_err(|failure| ProviderError {
                provider: self.settings.name.clone(),
                kind: failure.kind,
                message: advised(&failure, &self.settings),
                status: failure.status,
                retry_after: failure.retry_after,
            })
        })
    }

    fn preview(&self, request: ModelRequest<'_>) -> RequestPreview {
        RequestPreview {
            url: self.url().to_string(),
            body: self.body(request).unwrap_or_default(),
        }
    }
}

/// The message, with what helps where that is known.
fn advised(failure: &Failure, settings: &ProviderSettings) -> String {
    let message = &failure.message;
    let is_ollama = settings.kind == crate::settings::ProviderKind::Ollama;
    let advice = match failure.kind {
        ProviderErrorKind::NotFound if is_ollama => {
            format!("; `ollama pull {}` fetches the model", settings.model)
        }
        ProviderErrorKind::Request if message.contains("does not support tools") => {
            "; set `native_tools = false` for the provider".to_owned()
        }
        ProviderErrorKind::Authentication => "; check the key of the provider".to_owned(),
        ProviderErrorKind::Timeout => {
            "; `timeout_secs` and `idle_timeout_secs` set the limits".to_owned()
        }
        _ => String::new(),
    };
    format!("{message}{advice}")
}

#[cfg(test)]
mod tests;
