//! Where a provider is reached: its address, its key, and what a request to it looks like, whatever is asked for.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request};
use url::Url;
use zeph_egress::{Egress, OwnClient, OwnLimits};

use crate::error::{ProviderError, ProviderErrorKind};
use crate::settings::{ApiKey, ProviderKind, ProviderSettings};
use crate::wire::{Codec, Failure};

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The address of a provider, and the client that reaches only it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) settings: ProviderSettings,
    pub(crate) base: Url,
    pub(crate) client: OwnClient,
}

impl Endpoint {
    /// Nothing is sent.
    ///
    /// Errors: `Settings`, when the address is not a URL or the key is missing.
    pub(crate) fn new(settings: ProviderSettings, egress: &Egress) -> Result<Self, ProviderError> {
        match base_and_client(&settings, egress) {
            Ok((base, client)) => Ok(Self {
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

    /// A failure, with the name of the provider and what helps where that is known.
    pub(crate) fn error(&self, failure: &Failure) -> ProviderError {
        ProviderError {
            provider: self.settings.name.clone(),
            kind: failure.kind,
            message: advised(failure, &self.settings),
            status: failure.status,
            retry_after: failure.retry_after,
        }
    }
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

/// The message, with what helps where that is known.
fn advised(failure: &Failure, settings: &ProviderSettings) -> String {
    let message = &failure.message;
    let is_ollama = settings.kind == ProviderKind::Ollama;
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
