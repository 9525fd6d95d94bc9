//! The Chat Completions API of OpenAI, and of what is compatible with it.

mod answer;
mod call;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use self::answer::ChatReader;
use super::replay::{self, Caller, Json, Sent, exchanges};
use super::{Ask, Codec, Reader, bearer, join};
use crate::draft::raw;
use crate::frames::Framing;
use crate::message::{AssistantTurn, Block, CallResult, Image, ItemView, ToolCall, Turn, UserTurn};
use crate::provider::ToolDefinition;

/// The format.
#[derive(Debug)]
pub(crate) struct OpenAiChat;

impl Codec for OpenAiChat {
    fn url(&self, base: &Url, _model: &str, _streams: bool) -> Url {
        join(
            &versioned(base),
            &["/chat/completions"],
            "/chat/completions",
        )
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, ask: &Ask<'_>) -> serde_json::Result<String> {
        let streams = ask.settings.stream;
        // Where OpenAI itself answers, the older name is refused by newer models; others know only the older one.
        let base = ask.settings.base_url.as_deref();
        let is_openai = base.is_none_or(|base| base.contains("api.openai.com"));
        let max_tokens = ask.max_tokens();
        let request = Request {
            model: &ask.origin.model,
            tools: ask.request.tools.iter().map(Tool::new).collect(),
            tool_choice: forbids(ask),
            messages: messages(ask),
            max_tokens: max_tokens.filter(|_| !is_openai),
            max_completion_tokens: max_tokens.filter(|_| is_openai),
            temperature: ask.temperature(),
            stream: streams,
            stream_options: streams.then_some(StreamOptions {
                include_usage: true,
            }),
        };
        serde_json::to_string(&request)
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ChatReader>::default()
    }
}

/// OpenAI's own address is often written without its version.
pub(super) fn versioned(base: &Url) -> Url {
    let is_bare = base.path().trim_end_matches('/').is_empty();
    match is_bare && base.host_str() == Some("api.openai.com") {
        true => join(base, &[], "/v1"),
        false => base.clone(),
    }
}

pub(super) fn forbids(ask: &Ask<'_>) -> Option<&'static str> {
    let is_forbidden = ask.request.options.forbids_calls && !ask.request.tools.is_empty();
    is_forbidden.then_some("none")
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// A tool, as Ollama takes it too.
#[derive(Serialize)]
pub(super) struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Tool<'a> {
    pub(super) fn new(tool: &'a ToolDefinition) -> Self {
        Self {
            r#type: "function",
            function: Function {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.schema,
            },
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Message<'a> {
    Said {
        role: &'static str,
        content: Said<'a>,
    },
    Result {
        role: &'static str,
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
    Assistant(BTreeMap<String, Box<RawValue>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: &'a str,
    arguments: String,
}

fn messages<'a>(ask: &Ask<'a>) -> Vec<Message<'a>> {
    let mut messages = Vec::with_capacity(ask.request.turns.len() + 1);
    if let Some(system) = ask.system() {
        let content = Said::Text(Cow::Owned(system));
        messages.push(Message::Said {
            role: "system",
            content,
        });
    }
    for (caller, turn) in exchanges(ask.request.turns, ask.origin) {
        match turn {
            Turn::User(turn) => user(turn, caller, &mut messages),
            Turn::Assistant(turn) => messages.extend(assistant(turn, caller)),
        }
    }
    messages
}

/// Results first, in messages of their own; pictures of them follow as said by the user, because results are text.
fn user<'a>(turn: &'a UserTurn<'a>, caller: Caller, messages: &mut Vec<Message<'a>>) {
    let mut parts = Vec::new();
    for result in &turn.results {
        let (content, images) = replay::split(result);
        messages.push(Message::Result {
            role: "tool",
            tool_call_id: caller.id(&result.call_id),
            content,
        });
        parts.extend(pictures(result, &images));
    }
    let blocks = turn.content.iter().filter(|block| !replay::is_blank(block));
    parts.extend(blocks.map(|block| match block {
        Block::Text(text) => Part::Text {
            text: Cow::Borrowed(text),
        },
        Block::Image(image) => picture(image),
    }));
    let content = match parts.pop() {
        None => return,
        Some(Part::Text { text }) if parts.is_empty() => Said::Text(text),
        Some(last) => {
            parts.push(last);
            Said::Parts(parts)
        }
    };
    messages.push(Message::Said {
        role: "user",
        content,
    });
}

fn pictures<'a>(result: &CallResult<'_>, images: &[&Image]) -> Vec<Part<'a>> {
    let labelled = images.iter().flat_map(|image| {
        let text = Cow::Owned(replay::picture_of(result));
        [Part::Text { text }, picture(image)]
    });
    labelled.collect()
}

fn picture<'a>(image: &Image) -> Part<'a> {
    let url = replay::data_url(image);
    Part::ImageUrl {
        image_url: ImageUrl { url },
    }
}

fn assistant(turn: &AssistantTurn, caller: Caller) -> Option<Message<'static>> {
    let mut fields: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
    let (mut calls, mut text) = (Vec::new(), String::new());
    for item in replay::items(turn, caller) {
        match item {
            Sent::Own(wire, ItemView::Call(_)) => calls.push(Json::Own(wire)),
            Sent::Own(wire, _) => {
                let own: BTreeMap<String, Box<RawValue>> = serde_json::from_str(wire.get()).ok()?;
                fields.extend(own);
            }
            Sent::Other(ItemView::Call(call)) => calls.push(Json::Other(of_call(call, caller))),
            Sent::Other(ItemView::Text(said)) => text.push_str(said),
            Sent::Other(ItemView::Thinking(_) | ItemView::Opaque) => {}
        }
    }
    if !text.is_empty() {
        fields.insert("content".to_owned(), raw(&text)?);
    }
    let says = fields.contains_key("content") || fields.contains_key("refusal");
    if !says && calls.is_empty() {
        return None;
    }
    if !says {
        fields.insert("content".to_owned(), raw(&())?);
    }
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), raw(&calls)?);
    }
    fields.insert("role".to_owned(), raw("assistant")?);
    Some(Message::Assistant(fields))
}

fn of_call(call: &ToolCall, caller: Caller) -> Call<'_> {
    Call {
        id: caller.id(&call.id),
        r#type: "function",
        function: CallFunction {
            name: &call.name,
            arguments: call.arguments.to_json(),
        },
    }
}
