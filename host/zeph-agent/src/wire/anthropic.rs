//! The Messages API of Anthropic.

mod answer;
mod block;
mod marks;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use self::answer::AnthropicReader;
use self::marks::Marks;
use super::replay::{self, Caller, Json, Sent, exchanges};
use super::{Ask, Codec, Reader, join};
use crate::frames::Framing;
use crate::message::{AssistantTurn, Block, CallResult, ItemView, Turn, UserTurn};
use crate::provider::ToolDefinition;

/// Most tokens of an answer when the operator says nothing: the API wants a number.
const MAX_TOKENS: u32 = 8_192;

/// The format.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Codec for Anthropic {
    fn url(&self, base: &Url, _model: &str, _streams: bool) -> Url {
        join(base, &["/messages", "/v1"], "/v1/messages")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-api-key", key.to_owned()));
        let version = ("anthropic-version", "2023-06-01".to_owned());
        std::iter::once(version).chain(key).collect()
    }

    fn body(&self, ask: &Ask<'_>) -> serde_json::Result<String> {
        let has_system = ask.system().is_some();
        let tools = ask.request.tools;
        let request = Request {
            model: &ask.origin.model,
            max_tokens: ask.max_tokens().unwrap_or(MAX_TOKENS),
            // Everything up to a mark is cached: tools come first, so that the system prompt marks both.
            tools: tools
                .iter()
                .enumerate()
                .map(|(n, tool)| Tool::new(tool, !has_system && n + 1 == tools.len()))
                .collect(),
            tool_choice: (ask.request.options.forbids_calls && !tools.is_empty())
                .then_some(Choice { r#type: "none" }),
            system: ask.system().map(|text| {
                [Part {
                    content: Content::Text {
                        text: Cow::Owned(text),
                    },
                    cache_control: Some(MARK),
                }]
            }),
            messages: messages(ask),
            temperature: ask.temperature(),
            stream: ask.settings.stream,
        };
        serde_json::to_string(&request)
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<AnthropicReader>::default()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Part<'a>; 1]>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

impl<'a> Tool<'a> {
    fn new(tool: &'a ToolDefinition, is_marked: bool) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.schema,
            cache_control: is_marked.then_some(MARK),
        }
    }
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

/// `cache_control`: everything up to here is cached.
#[derive(Debug, Clone, Copy, Serialize)]
struct Mark {
    r#type: &'static str,
}

const MARK: Mark = Mark {
    r#type: "ephemeral",
};

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Json<'a, Part<'a>>>,
}

#[derive(Serialize)]
struct Part<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl<'a> From<Content<'a>> for Part<'a> {
    fn from(content: Content<'a>) -> Self {
        Self {
            content,
            cache_control: None,
        }
    }
}

fn messages<'a>(ask: &Ask<'a>) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'a>> = Vec::with_capacity(ask.request.turns.len());
    for (caller, turn) in exchanges(ask.request.turns, ask.origin) {
        let (role, content) = match turn {
            Turn::User(turn) => ("user", user_parts(turn, caller)),
            Turn::Assistant(turn) => ("assistant", assistant_parts(turn, caller)),
        };
        match messages.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => messages.push(Message { role, content }),
        }
    }
    Marks::of(&messages).put(&mut messages);
    messages
}

fn user_parts<'a>(turn: &'a UserTurn<'_>, caller: Caller) -> Vec<Json<'a, Part<'a>>> {
    let results = turn
        .results
        .iter()
        .map(|result| result_part(result, caller));
    let content = turn.content.iter().filter(|block| !replay::is_blank(block));
    let content = content.map(|block| Part::from(of_block(block)));
    results.chain(content).map(Json::Other).collect()
}

fn result_part<'a>(result: &'a CallResult<'_>, caller: Caller) -> Part<'a> {
    let content = result.content.iter();
    let content = content.filter(|block| !replay::is_blank(block));
    Part::from(Content::ToolResult {
        tool_use_id: caller.id(&result.call_id),
        content: content.map(|block| Part::from(of_block(block))).collect(),
        is_error: result.is_error,
    })
}

fn of_block<'a>(block: &'a Block<'_>) -> Content<'a> {
    match block {
        Block::Text(text) => Content::Text {
            text: Cow::Borrowed(text),
        },
        Block::Image(image) => Content::Image {
            source: Source {
                r#type: "base64",
                media_type: &image.media_type,
                data: &image.base64,
            },
        },
    }
}

/// The API refuses a message that ends with a thought, as of an answer that was cut short: such thoughts are not sent.
fn assistant_parts<'a>(turn: &'a AssistantTurn, caller: Caller) -> Vec<Json<'a, Part<'a>>> {
    let mut items: Vec<Sent<'a>> = replay::items(turn, caller).collect();
    while items.last().is_some_and(is_thought) {
        items.pop();
    }
    let parts = items.into_iter().map(|item| sent(item, caller));
    parts.collect()
}

fn is_thought(item: &Sent<'_>) -> bool {
    match item {
        Sent::Own(_, ItemView::Thinking(_)) => true,
        Sent::Own(wire, ItemView::Opaque) => wire.get().contains(r#""type":"redacted_thinking""#),
        Sent::Own(..) | Sent::Other(_) => false,
    }
}

fn sent<'a>(item: Sent<'a>, caller: Caller) -> Json<'a, Part<'a>> {
    let content = match item {
        Sent::Own(wire, _) => return own(wire),
        Sent::Other(ItemView::Call(call)) => Content::ToolUse {
            id: caller.id(&call.id),
            name: &call.name,
            input: serde_json::from_str(&call.arguments.to_json()).unwrap_or_default(),
        },
        Sent::Other(ItemView::Text(text) | ItemView::Thinking(text)) => Content::Text {
            text: Cow::Borrowed(text),
        },
        Sent::Other(ItemView::Opaque) => Content::Text {
            text: Cow::Borrowed(""),
        },
    };
    Json::Other(Part::from(content))
}

fn own<'a>(wire: &'a RawValue) -> Json<'a, Part<'a>> {
    Json::Own(wire)
}
