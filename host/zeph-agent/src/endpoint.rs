//! Where a provider is reached: its address, its key, and what a request to it looks like, whatever is asked for.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request};
use url::Url;
use zeph_core::execution::SecretValue;
use zeph_core::failure::one_line;
use zeph_core::redact::Redactor;
use zeph_egress::{Egress, OwnClient, OwnLimits};

use crate::error::{ProviderError, ProviderErrorKind};
use crate::model::ASKED_MAX;
use crate::settings::{ApiKey, ProviderKind, ProviderSettings};
use crate::wire::{Codec, Failure};

/// Most characters of the message of a failure.
const MESSAGE_CHARS_MAX: usize = 800;

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The address of a provider, and the client that reaches only it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) settings: ProviderSettings,
    pub(crate) base: Url,
    pub(crate) client: OwnClient,
    /// Removes the key from what is said of failures.
    redactor: Redactor,
}

impl Endpoint {
    /// Nothing is sent.
    ///
    /// Errors: `Settings`, when the address is not a URL or the key is missing.
    pub(crate) fn new(settings: ProviderSettings, egress: &Egress) -> Result<Self, ProviderError> {
        match base_and_client(&settings, egress) {
            Ok((base, client)) => Ok(Self {
                redactor: redactor(&settings),
                settings,
                base,
                client,
            }),
            Err(message) => Err(ProviderError {
                provider: settings.name,
                kind: ProviderErrorKind::Settings,
                message,
                status: None,
                retry_after: None,
            }),
        }
    }

    /// A request with this body, and the key in the field that the format puts it in.
    pub(crate) fn request(
        &self,
        url: &Url,
        codec: &dyn Codec,
        body: String,
    ) -> Result<Request<Bytes>, Failure> {
        let key = self.settings.key.as_ref().map(ApiKey::expose);
        let mut request = Request::post(url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json");
        for (name, value) in codec.headers(key) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Failure::new(ProviderErrorKind::Settings, "the key is not one"))?;
            value.set_sensitive(true);
            request = request.header(HeaderName::from_static(name), value);
        }
        let request = request.body(Bytes::from(body));
        request.map_err(|error| Failure::new(ProviderErrorKind::Settings, error.to_string()))
    }

    /// What a failure says, on one line and without the key: a server may repeat what it was sent.
    pub(crate) fn message(&self, failure: &Failure) -> String {
        one_line(&self.redactor.text(&failure.message), MESSAGE_CHARS_MAX)
    }

    /// A failure, with the name of the provider and what helps where that is known.
    pub(crate) fn error(&self, failure: &Failure) -> ProviderError {
        let advice = advice(failure, &self.settings);
        ProviderError {
            provider: self.settings.name.clone(),
            kind: failure.kind,
            message: format!("{}{advice}", self.message(failure)),
            status: failure.status,
            retry_after: failure.retry_after,
        }
    }
}

fn redactor(settings: &ProviderSettings) -> Redactor {
    let keys = settings.key.iter().map(|key| SecretValue {
        name: format!("the key of {}", settings.name),
        value: key.expose().to_owned(),
    });
    Redactor::new(&keys.collect::<Vec<_>>())
}

/// Errors: what is wrong with the settings.
fn base_and_client(
    settings: &ProviderSettings,
    egress: &Egress,
) -> Result<(Url, OwnClient), String> {
    let text = settings.base_url.as_deref();
    let text = text.unwrap_or(settings.kind.base_url());
    let base =
        Url::parse(text).map_err(|error| format!("`base_url` `{text}` is not a URL: {error}"))?;
    let variables = settings.kind.key_variables();
    if settings.key.is_none() && settings.base_url.is_none() && !variables.is_empty() {
        return Err(format!(
            "there is no key; set the variable `{}`, or `api_key_env` or `api_key_secret` of the provider",
            variables.join("` or `")
        ));
    }
    if let Some(key) = &settings.key
        && HeaderValue::from_str(key.expose()).is_err()
    {
        return Err("the key contains characters that no key has".to_owned());
    }
    let limits = OwnLimits {
        time: settings.timeouts.total,
        bytes: ANSWER_BYTES_MAX,
    };
    let client = OwnClient::new(egress, &[base.as_str()], limits);
    let client = client.map_err(|error| format!("`base_url`: {error}"))?;
    Ok((base, client))
}

/// What helps, where that is known.
fn advice(failure: &Failure, settings: &ProviderSettings) -> String {
    let message = &failure.message;
    let is_ollama = settings.kind == ProviderKind::Ollama;
    match failure.kind {
        ProviderErrorKind::NotFound if is_ollama => {
            format!("; `ollama pull {}` fetches the model", settings.model)
        }
        ProviderErrorKind::Request if message.contains("does not support tools") => {
            "; set `native_tools = false` for the provider".to_owned()
        }
        ProviderErrorKind::Authentication => "; check the key of the provider".to_owned(),
        ProviderErrorKind::RateLimited | ProviderErrorKind::Overloaded => {
            let asked = failure.retry_after.filter(|asked| *asked > ASKED_MAX);
            asked.map_or_else(String::new, |asked| {
                format!("; it asks to wait for {} s", asked.as_secs())
            })
        }
        ProviderErrorKind::Timeout => {
            "; `timeout_secs` and `idle_timeout_secs` set the limits".to_owned()
        }
        _ => String::new(),
    }
}
