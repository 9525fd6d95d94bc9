//! The chat API of Ollama.

mod answer;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use url::Url;

use self::answer::OllamaReader;
use super::openai_chat::Tool;
use super::replay::{self, Caller, Json, Sent, exchanges};
use super::{Ask, Codec, Reader, bearer, join};
use crate::draft::raw;
use crate::frames::Framing;
use crate::message::{AssistantTurn, Block, ItemView, ToolCall, Turn, UserTurn};

/// The format.
#[derive(Debug)]
pub(crate) struct Ollama;

impl Codec for Ollama {
    fn url(&self, base: &Url, _model: &str, _streams: bool) -> Url {
        join(base, &["/chat", "/api", "/v1"], "/api/chat")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, ask: &Ask<'_>) -> serde_json::Result<String> {
        // The only way to forbid calls here: nothing is said about tools.
        let tools = match ask.request.options.forbids_calls {
            true => &[],
            false => ask.request.tools,
        };
        let request = Request {
            model: &ask.origin.model,
            tools: tools.iter().map(Tool::new).collect(),
            messages: messages(ask),
            options: Options {
                num_ctx: ask.settings.num_ctx,
                num_predict: ask.max_tokens(),
                temperature: ask.temperature(),
            },
            stream: ask.settings.stream,
        };
        serde_json::to_string(&request)
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<OllamaReader>::default()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Options::is_empty")]
    options: Options,
    stream: bool,
}

#[derive(Serialize, PartialEq)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

impl Options {
    fn is_empty(&self) -> bool {
        self.num_ctx.is_none() && self.num_predict.is_none() && self.temperature.is_none()
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Message<'a> {
    Said {
        role: &'static str,
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<&'a str>,
    },
    Result {
        role: &'static str,
        tool_name: &'a str,
        content: Cow<'a, str>,
    },
    Assistant(BTreeMap<String, Box<RawValue>>),
}

#[derive(Serialize)]
struct Call<'a> {
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: &'a str,
    arguments: Option<Box<RawValue>>,
}

fn messages<'a>(ask: &Ask<'a>) -> Vec<Message<'a>> {
    let mut messages = Vec::with_capacity(ask.request.turns.len() + 1);
    if let Some(content) = ask.system() {
        messages.push(Message::Said {
            role: "system",
            content: Cow::Owned(content),
            images: Vec::new(),
        });
    }
    for (caller, turn) in exchanges(ask.request.turns, ask.origin) {
        match turn {
            Turn::User(turn) => user(turn, &mut messages),
            Turn::Assistant(turn) => messages.extend(assistant(turn, caller)),
        }
    }
    messages
}

/// Results first, in the order of the calls, which have no ids here; pictures of them follow as said by the user.
fn user<'a>(turn: &'a UserTurn<'a>, messages: &mut Vec<Message<'a>>) {
    let (mut texts, mut images) = (Vec::<Cow<'a, str>>::new(), Vec::new());
    for result in &turn.results {
        let (content, pictures) = replay::split(result);
        messages.push(Message::Result {
            role: "tool",
            tool_name: &result.name,
            content,
        });
        texts.extend(pictures.iter().map(|_| replay::picture_of(result).into()));
        images.extend(pictures.iter().map(|image| image.base64.as_str()));
    }
    for block in turn.content.iter().filter(|block| !replay::is_blank(block)) {
        match block {
            Block::Text(text) => texts.push(Cow::Borrowed(text)),
            Block::Image(image) => images.push(&image.base64),
        }
    }
    if !texts.is_empty() || !images.is_empty() {
        let content = match texts.len() {
            1 => texts.remove(0),
            _ => Cow::Owned(texts.join("\n\n")),
        };
        messages.push(Message::Said {
            role: "user",
            content,
            images,
        });
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
            Sent::Other(ItemView::Call(call)) => calls.push(Json::Other(of_call(call))),
            Sent::Other(ItemView::Text(said)) => text.push_str(said),
            Sent::Other(ItemView::Thinking(_) | ItemView::Opaque) => {}
        }
    }
    if !fields.contains_key("content") {
        if text.is_empty() && calls.is_empty() {
            return None;
        }
        fields.insert("content".to_owned(), raw(&text)?);
    }
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), raw(&calls)?);
    }
    fields.insert("role".to_owned(), raw("assistant")?);
    Some(Message::Assistant(fields))
}

fn of_call(call: &ToolCall) -> Call<'_> {
    Call {
        function: CallFunction {
            name: &call.name,
            arguments: RawValue::from_string(call.arguments.to_json()).ok(),
        },
    }
}
