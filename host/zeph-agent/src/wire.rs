//! The wire formats: what a request looks like, and how an answer is read.
//!
//! They are written out here, over `zeph-egress`, instead of taken from a library: `genai` 0.7 hands on results of tools as strings
//! without images and without the mark of a failure, moves reasoning and its signatures away from their place, takes the end of a
//! connection for the end of an answer, and cannot set the context of Ollama.

pub(crate) mod anthropic;
pub(crate) mod embedding;
mod failure;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;
mod replay;

use std::fmt::Debug;
use std::time::Duration;

use http::HeaderMap;
use url::Url;

use crate::draft::Draft;
use crate::frames::Framing;
use crate::message::Origin;
use crate::provider::ModelRequest;
use crate::settings::{ProviderKind, ProviderSettings};

pub(crate) use self::failure::{Failure, of_status};

/// One wire format.
pub(crate) trait Codec: Debug + Send + Sync {
    /// Where a request goes to.
    fn url(&self, base: &Url, model: &str, streams: bool) -> Url;

    /// The fields of a request, the key among them.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// The body of a request. Byte for byte the same for the same request.
    fn body(&self, ask: &Ask<'_>) -> serde_json::Result<String>;

    /// How an answer that comes piece by piece is cut.
    fn framing(&self) -> Framing;

    /// Reads one answer.
    fn reader(&self) -> Box<dyn Reader>;

    /// Whether something about later requests was changed so that this failure goes away.
    fn concede(&self, _failure: &Failure) -> bool {
        false
    }
}

/// Reads one answer, frame by frame.
pub(crate) trait Reader: Send {
    /// Reads a frame of an answer that comes piece by piece.
    ///
    /// Errors: what the provider says instead of an answer, or what is wrong with the frame.
    fn read(&mut self, frame: &str, draft: &mut Draft) -> Result<(), Failure>;

    /// Reads an answer that came at once.
    ///
    /// Errors: as for [`Reader::read`].
    fn whole(&mut self, answer: &str, draft: &mut Draft) -> Result<(), Failure>;

    /// Whether the answer is over as its format demands, and what is left of it can be put into the draft.
    ///
    /// Errors: what is missing.
    fn finish(&mut self, draft: &mut Draft) -> Result<(), Failure>;

    /// Whether nothing follows that is of interest.
    fn is_over(&self) -> bool;
}

/// A request and what the operator set.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) settings: &'a ProviderSettings,
    pub(crate) origin: &'a Origin,
    pub(crate) request: ModelRequest<'a>,
}

impl Ask<'_> {
    pub(crate) fn max_tokens(&self) -> Option<u32> {
        let asked = self.request.options.max_tokens;
        asked.or(self.settings.max_tokens)
    }

    pub(crate) fn temperature(&self) -> Option<f64> {
        let asked = self.request.options.temperature;
        asked.or(self.settings.temperature)
    }

    /// The system prompt as one text; `None` when there is none.
    pub(crate) fn system(&self) -> Option<String> {
        let parts = self.request.system.iter();
        let parts: Vec<&str> = parts
            .map(String::as_str)
            .filter(|part| !part.trim().is_empty())
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

/// The format of a provider.
pub(crate) fn codec(settings: &ProviderSettings) -> Box<dyn Codec> {
    match settings.kind {
        ProviderKind::Anthropic => Box::new(anthropic::Anthropic),
        ProviderKind::OpenAi => Box::new(openai_chat::OpenAiChat),
        ProviderKind::OpenAiResponses => Box::<openai_responses::OpenAiResponses>::default(),
        ProviderKind::Ollama => Box::new(ollama::Ollama),
        ProviderKind::Gemini => Box::new(gemini::Gemini),
    }
}

/// `base` with `path` at its end; a query of the base stays. `ends` are ends of the base that belong to `path` already, and are cut.
fn join(base: &Url, ends: &[&str], path: &str) -> Url {
    let mut url = base.clone();
    let mut root = base.path().trim_end_matches('/');
    for end in ends {
        root = root.strip_suffix(end).unwrap_or(root).trim_end_matches('/');
    }
    url.set_path(&format!("{root}{path}"));
    url
}

fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    let key = key.map(|key| ("authorization", format!("Bearer {key}")));
    key.into_iter().collect()
}

/// How long the provider asks to wait: milliseconds, seconds, or a date, which is compared with the answer's own, so that no clock of ours
/// need agree with theirs.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let amount = |name: &str| text(name)?.parse::<f64>().ok();
    let seconds = amount("retry-after-ms")
        .map(|ms| ms / 1_000.0)
        .or_else(|| amount("retry-after"));
    if let Some(seconds) = seconds {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |name: &str| httpdate::parse_http_date(text(name)?).ok();
    let (until, now) = (date("retry-after")?, date("date")?);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests;
