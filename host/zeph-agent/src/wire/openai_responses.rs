//! The Responses API of OpenAI. Nothing is stored there: reasoning comes back sealed, and is sent again.

mod answer;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::Value;
use url::Url;

use self::answer::ResponsesReader;
use super::openai_chat::{forbids, versioned};
use super::replay::{self, Caller, Json, Sent, exchanges};
use super::{Ask, Codec, Failure, Reader, bearer, join};
use crate::frames::Framing;
use crate::message::{Block, CallResult, ItemView, Turn, UserTurn};
use crate::provider::ToolDefinition;

/// The format.
#[derive(Debug, Default)]
pub(crate) struct OpenAiResponses {
    /// Models without reasoning refuse to seal it.
    is_unsealed: AtomicBool,
}

impl Codec for OpenAiResponses {
    fn url(&self, base: &Url, _model: &str, _streams: bool) -> Url {
        join(&versioned(base), &["/responses"], "/responses")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, ask: &Ask<'_>) -> serde_json::Result<String> {
        let is_unsealed = self.is_unsealed.load(Ordering::Relaxed);
        let request = Request {
            model: &ask.origin.model,
            instructions: ask.system(),
            tools: ask.request.tools.iter().map(Tool::new).collect(),
            tool_choice: forbids(ask),
            input: input(ask),
            store: false,
            include: (!is_unsealed).then_some(["reasoning.encrypted_content"]),
            max_output_tokens: ask.max_tokens(),
            temperature: ask.temperature(),
            stream: ask.settings.stream,
        };
        serde_json::to_string(&request)
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ResponsesReader>::default()
    }

    fn concede(&self, failure: &Failure) -> bool {
        let message = failure.message.to_lowercase();
        message.contains("encrypted content is not supported")
            && !self.is_unsealed.swap(true, Ordering::Relaxed)
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    input: Vec<Json<'a, Input<'a>>>,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

impl<'a> Tool<'a> {
    fn new(tool: &'a ToolDefinition) -> Self {
        Self {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.schema,
            strict: false,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Input<'a> {
    Message {
        role: &'static str,
        content: Vec<Part<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    OutputText { text: &'a str },
}

fn input<'a>(ask: &Ask<'a>) -> Vec<Json<'a, Input<'a>>> {
    let mut input = Vec::with_capacity(ask.request.turns.len());
    for (caller, turn) in exchanges(ask.request.turns, ask.origin) {
        match turn {
            Turn::User(turn) => input.extend(user(turn, caller)),
            Turn::Assistant(turn) => {
                input.extend(replay::items(turn, caller).filter_map(|item| sent(item, caller)));
            }
        }
    }
    input
}

fn user<'a>(turn: &'a UserTurn<'_>, caller: Caller) -> Vec<Json<'a, Input<'a>>> {
    let results = turn.results.iter().map(|result| Input::FunctionCallOutput {
        call_id: caller.id(&result.call_id),
        output: output(result),
    });
    let content = turn.content.iter().filter(|block| !replay::is_blank(block));
    let content: Vec<Part<'_>> = content.map(part).collect();
    let said = (!content.is_empty()).then_some(Input::Message {
        role: "user",
        content,
    });
    results.chain(said).map(Json::Other).collect()
}

fn output<'a>(result: &'a CallResult<'_>) -> Output<'a> {
    let (text, images) = replay::split(result);
    if images.is_empty() {
        return Output::Text(text);
    }
    let text = (!text.trim().is_empty()).then_some(Part::InputText { text });
    let images = images.into_iter().map(|image| Part::InputImage {
        image_url: replay::data_url(image),
    });
    Output::Parts(text.into_iter().chain(images).collect())
}

fn part<'a>(block: &'a Block<'_>) -> Part<'a> {
    match block {
        Block::Text(text) => Part::InputText {
            text: Cow::Borrowed(text),
        },
        Block::Image(image) => Part::InputImage {
            image_url: replay::data_url(image),
        },
    }
}

fn sent<'a>(item: Sent<'a>, caller: Caller) -> Option<Json<'a, Input<'a>>> {
    let input = match item {
        Sent::Own(wire, _) => return Some(Json::Own(wire)),
        Sent::Other(ItemView::Call(call)) => Input::FunctionCall {
            call_id: caller.id(&call.id),
            name: &call.name,
            arguments: call.arguments.to_json(),
        },
        Sent::Other(ItemView::Text(text)) => Input::Message {
            role: "assistant",
            content: vec![Part::OutputText { text }],
        },
        Sent::Other(ItemView::Thinking(_) | ItemView::Opaque) => return None,
    };
    Some(Json::Other(input))
}
