//! What providers say instead of an answer, in the words of all of them.

use std::time::Duration;

use serde_json::Value;

use crate::error::ProviderErrorKind;

/// A failure that no provider is named in yet. What a server says is in it as it came, and may repeat the key: the endpoint, which knows it,
/// words the message that is handed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ProviderErrorKind,
    pub(crate) message: String,
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
        }
    }

    /// What came is not what it should be.
    pub(crate) fn protocol(what: impl std::fmt::Display) -> Self {
        Self::new(
            ProviderErrorKind::Protocol,
            format!("the answer cannot be read: {what}"),
        )
    }

    /// The answer ended before its end.
    pub(crate) fn cut() -> Self {
        Self::new(
            ProviderErrorKind::Cut,
            "the answer ended before the provider said that it was complete",
        )
    }

    /// An error that came in the middle of an answer: the value of its field `error`.
    pub(crate) fn in_stream(error: &Value) -> Self {
        let spoken = Spoken::of(error);
        let kind = spoken.kind(None);
        Self::new(kind, spoken.message())
    }
}

/// An answer that is none.
pub(crate) fn of_status(status: u16, body: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(body);
    let value: Option<Value> = serde_json::from_str(&text).ok();
    // Gemini wraps errors of streams in a list.
    let value = match value {
        Some(Value::Array(mut list)) if !list.is_empty() => Some(list.swap_remove(0)),
        value => value,
    };
    let spoken = match value.as_ref().and_then(|value| value.get("error")) {
        Some(error) => Spoken::of(error),
        None => match &value {
            Some(value) => Spoken::of(value),
            None => Spoken {
                message: text.into_owned(),
                ..Spoken::default()
            },
        },
    };
    Failure {
        kind: spoken.kind(Some(status)),
        message: match spoken.message.trim().is_empty() {
            true => "the provider refuses the request without a word".to_owned(),
            false => spoken.message(),
        },
        status: Some(status),
        retry_after: spoken.retry_after,
    }
}

/// What an error object says.
#[derive(Debug, Default)]
struct Spoken {
    message: String,
    /// `type`, `code` and `status`, one after the other.
    words: String,
    retry_after: Option<Duration>,
}

impl Spoken {
    fn of(error: &Value) -> Self {
        if let Value::String(message) = error {
            return Self {
                message: message.clone(),
                ..Self::default()
            };
        }
        let word = |name: &str| match error.get(name) {
            Some(Value::String(word)) => word.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        Self {
            message: match error.get("message") {
                Some(Value::String(message)) => message.clone(),
                _ => word("detail"),
            },
            words: ["type", "code", "status"].map(word).join(" "),
            retry_after: retry_delay(error),
        }
    }

    fn message(&self) -> String {
        match self.message.trim().is_empty() {
            true => format!("the provider reports `{}`", self.words.trim()),
            false => self.message.trim().to_owned(),
        }
    }

    fn kind(&self, status: Option<u16>) -> ProviderErrorKind {
        let said = by_message(&self.message.to_lowercase())
            .or_else(|| by_words(&self.words.to_lowercase()));
        match (said, status) {
            // Some call everything an invalid request.
            (Some(ProviderErrorKind::Request) | None, Some(status)) => by_status(status),
            (Some(kind), _) => kind,
            (None, None) => ProviderErrorKind::Server,
        }
    }
}

/// How providers, and servers that speak like them, say that a conversation is too long.
const TOO_LONG: [&str; 20] = [
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "maximum prompt length",
    "context length exceeded",
    "exceeds the context length",
    "greater than the context length",
    "exceeds the context window",
    "context window exceeds",
    "exceeds the available context size",
    "exceeds the maximum number of tokens",
    "exceeded model token limit",
    "exceed_context_size",
    "exceed max message tokens",
    "input length and `max_tokens` exceed",
    "range of input length should be",
    "reduce the length of the messages",
    "prompt exceeds max length",
    "too many tokens: size limit",
    // Of one request; the limit of all requests is worded otherwise.
    "request too large for",
];

/// What only the message tells apart.
fn by_message(message: &str) -> Option<ProviderErrorKind> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    let billing = [
        "credit balance is too low",
        "insufficient credits",
        "insufficient balance",
        "billing hard limit",
    ];
    if says(&billing) {
        return Some(ProviderErrorKind::Billing);
    }
    if says(&TOO_LONG) {
        return Some(ProviderErrorKind::ContextLength);
    }
    says(&["api key not valid", "api key expired"]).then_some(ProviderErrorKind::Authentication)
}

/// The names of errors, of all providers.
fn by_words(words: &str) -> Option<ProviderErrorKind> {
    use ProviderErrorKind as Kind;
    let kinds = [
        (
            Kind::Billing,
            &["insufficient_quota", "billing_error", "billing_not_active"][..],
        ),
        (
            Kind::ContextLength,
            &[
                "context_length_exceeded",
                "exceed_context_size_error",
                "max_prompt_tokens_exceeded",
                "request_too_large",
            ],
        ),
        (
            Kind::Authentication,
            &["authentication_error", "invalid_api_key", "unauthenticated"],
        ),
        (
            Kind::RateLimited,
            &["rate_limit", "resource_exhausted", "too_many_requests"],
        ),
        (
            Kind::Overloaded,
            &["overloaded", "unavailable", "slow_down"],
        ),
        (Kind::NotFound, &["not_found", "model_not_found"]),
        (Kind::Timeout, &["timeout_error", "deadline_exceeded"]),
        (
            Kind::Request,
            &["invalid_request", "invalid_argument", "invalid_prompt"],
        ),
        (Kind::Server, &["api_error", "server_error", "internal"]),
    ];
    let found = kinds
        .iter()
        .find(|(_, names)| names.iter().any(|name| words.contains(name)));
    found.map(|(kind, _)| *kind)
}

fn by_status(status: u16) -> ProviderErrorKind {
    match status {
        401 | 403 => ProviderErrorKind::Authentication,
        402 => ProviderErrorKind::Billing,
        404 => ProviderErrorKind::NotFound,
        413 => ProviderErrorKind::ContextLength,
        408 | 504 => ProviderErrorKind::Timeout,
        429 => ProviderErrorKind::RateLimited,
        503 | 529 => ProviderErrorKind::Overloaded,
        500.. => ProviderErrorKind::Server,
        _ => ProviderErrorKind::Request,
    }
}

/// `RetryInfo` of Google: `"retryDelay": "34s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_that_is_too_long_is_told_from_other_refusals() {
        let invalid = "invalid_request_error";
        let cases = [
            (
                400,
                invalid,
                "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
                true,
            ),
            (
                400,
                invalid,
                "Your input exceeds the context window of this model.",
                true,
            ),
            (
                400,
                invalid,
                "Please reduce the length of the messages or completion.",
                true,
            ),
            (
                413,
                "request_too_large",
                "Request exceeds the maximum size",
                true,
            ),
            (413, "", "", true),
            (
                413,
                "tokens",
                "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 10000",
                true,
            ),
            (
                400,
                "model_max_prompt_tokens_exceeded",
                "prompt token count of 9 exceeds the limit of 8",
                true,
            ),
            (
                429,
                "throttling",
                "Too many tokens, please wait before trying again.",
                false,
            ),
            (
                400,
                invalid,
                "Unsupported parameter: 'max_tokens' is not supported with this model.",
                false,
            ),
            (
                400,
                invalid,
                "schema: the maximum length of a name is 64",
                false,
            ),
        ];
        for (status, kind, message, is_too_long) in cases {
            let body = json!({ "error": { "type": kind, "message": message } }).to_string();
            let failure = of_status(status, body.as_bytes());
            let is = failure.kind == ProviderErrorKind::ContextLength;
            assert_eq!(is, is_too_long, "{status} {message}: {failure:?}");
        }
    }
}
