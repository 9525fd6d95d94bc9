use http::HeaderMap;
use std::time::Duration;
use url::Url;

use crate::scripted::tests::settings;
use crate::settings::ProviderKind;
use crate::wire::{codec, retry_after};

#[test]
fn addresses_end_where_documentation_ends_them_or_further() {
    use ProviderKind::{Anthropic, Gemini, Ollama, OpenAi, OpenAiResponses};
    let gemini = "/v1beta/models/scripted-1:streamGenerateContent?alt=sse";
    let cases = [
        (
            Anthropic,
            "https://api.anthropic.com",
            "https://api.anthropic.com/v1/messages",
        ),
        (
            Anthropic,
            "https://api.anthropic.com/v1/",
            "https://api.anthropic.com/v1/messages",
        ),
        (
            Anthropic,
            "http://gate/anthropic/",
            "http://gate/anthropic/v1/messages",
        ),
        (
            OpenAi,
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            OpenAi,
            "https://api.openai.com/",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            OpenAi,
            "https://api.deepseek.com",
            "https://api.deepseek.com/chat/completions",
        ),
        (
            OpenAi,
            "https://openrouter.ai/api/v1/",
            "https://openrouter.ai/api/v1/chat/completions",
        ),
        (
            OpenAi,
            "http://127.0.0.1:8080/v1/chat/completions",
            "http://127.0.0.1:8080/v1/chat/completions",
        ),
        (
            OpenAi,
            "https://a.example/openai?api-version=3",
            "https://a.example/openai/chat/completions?api-version=3",
        ),
        (
            OpenAiResponses,
            "https://api.openai.com/v1/",
            "https://api.openai.com/v1/responses",
        ),
        (
            Ollama,
            "http://127.0.0.1:11434",
            "http://127.0.0.1:11434/api/chat",
        ),
        (
            Ollama,
            "http://127.0.0.1:11434/api/",
            "http://127.0.0.1:11434/api/chat",
        ),
        (
            Ollama,
            "http://127.0.0.1:11434/v1",
            "http://127.0.0.1:11434/api/chat",
        ),
        (
            Gemini,
            "https://g.example",
            &format!("https://g.example{gemini}"),
        ),
        (
            Gemini,
            "https://g.example/v1beta/",
            &format!("https://g.example{gemini}"),
        ),
        (
            Gemini,
            "https://g.example/v1beta/models",
            &format!("https://g.example{gemini}"),
        ),
    ];
    for (kind, base, expected) in cases {
        let codec = codec(&settings(kind, base.to_owned()));
        let url = codec.url(&Url::parse(base).unwrap(), "scripted-1", true);
        assert_eq!(url.as_str(), expected);
    }
}

#[test]
fn waits_are_read_in_seconds_and_milliseconds() {
    let read = |name: &'static str, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        retry_after(&headers)
    };
    assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
    assert_eq!(
        read("retry-after-ms", "250"),
        Some(Duration::from_millis(250))
    );
    assert_eq!(read("retry-after", "-1"), None);
    assert_eq!(read("retry-after", "soon"), None);
}

#[test]
fn a_date_to_wait_for_is_compared_with_that_of_the_answer() {
    let until = |date: &str, now: Option<&str>| {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", date.parse().unwrap());
        if let Some(now) = now {
            headers.insert("date", now.parse().unwrap());
        }
        retry_after(&headers)
    };
    let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
    let seconds = |n| Some(Duration::from_secs(n));
    assert_eq!(until("Sun, 06 Nov 1994 08:50:07 GMT", now), seconds(30));
    // One in another of the three formats of HTTP, and one that has passed.
    assert_eq!(until("Sunday, 06-Nov-94 08:49:40 GMT", now), seconds(3));
    assert_eq!(until("Sun, 06 Nov 1994 08:00:00 GMT", now), seconds(0));
    assert_eq!(until("Sun, 06 Nov 1994 08:50:07 GMT", None), None);
}
