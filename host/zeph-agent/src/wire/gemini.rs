//! `generateContent` of Gemini.

mod answer;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use self::answer::GeminiReader;
use super::replay::{self, Caller, Json, Sent, exchanges};
use super::{Ask, Codec, Reader, join};
use crate::draft::is_made;
use crate::frames::Framing;
use crate::message::{Block, CallResult, Image, ItemView, Turn, UserTurn};
use crate::provider::ToolDefinition;

/// What stands for the signature of a call that another model made, by the documentation of the API.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The format.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Codec for Gemini {
    fn url(&self, base: &Url, model: &str, streams: bool) -> Url {
        let (verb, query) = match streams {
            true => ("streamGenerateContent", "alt=sse"),
            false => ("generateContent", ""),
        };
        model_url(base, model, verb, query)
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-goog-api-key", key.to_owned()));
        key.into_iter().collect()
    }

    fn body(&self, ask: &Ask<'_>) -> serde_json::Result<String> {
        let declarations: Vec<_> = ask.request.tools.iter().map(Declaration::new).collect();
        let forbids = ask.request.options.forbids_calls && !declarations.is_empty();
        let (max_output_tokens, temperature) = (ask.max_tokens(), ask.temperature());
        let is_plain = max_output_tokens.is_none() && temperature.is_none();
        let request = Request {
            system_instruction: ask.system().map(|text| Content {
                role: None,
                parts: vec![Json::Other(Part::Text {
                    text: Cow::Owned(text),
                })],
            }),
            tools: (!declarations.is_empty()).then_some([Tools {
                function_declarations: declarations,
            }]),
            tool_config: forbids.then_some(ToolConfig {
                function_calling_config: CallingConfig { mode: "NONE" },
            }),
            contents: contents(ask),
            generation_config: (!is_plain).then_some(Generation {
                max_output_tokens,
                temperature,
            }),
        };
        serde_json::to_string(&request)
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<GeminiReader>::default()
    }
}

/// Where a method of a model is; a query of the base stays.
pub(super) fn model_url(base: &Url, model: &str, verb: &str, query: &str) -> Url {
    let model = model.trim_start_matches("models/");
    let ends_with_version = ["/v1beta", "/v1", "/v1alpha"];
    let path = base
        .path()
        .trim_end_matches('/')
        .trim_end_matches("/models");
    let is_versioned = ends_with_version.iter().any(|end| path.ends_with(end));
    let root = if is_versioned { "" } else { "/v1beta" };
    let mut url = join(base, &["/models"], &format!("{root}/models/{model}:{verb}"));
    match url.query().unwrap_or_default().to_owned() {
        asked if asked.is_empty() => {
            url.set_query(Some(query).filter(|query| !query.is_empty()));
        }
        asked if query.is_empty() => url.set_query(Some(&asked)),
        asked => url.set_query(Some(&format!("{asked}&{query}"))),
    }
    url
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Generation>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Json<'a, Part<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

impl<'a> Declaration<'a> {
    fn new(tool: &'a ToolDefinition) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: &tool.schema,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: CallingConfig,
}

#[derive(Serialize)]
struct CallingConfig {
    mode: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Picture {
        inline_data: Inline<'a>,
    },
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    Result {
        function_response: Response<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    args: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

fn contents<'a>(ask: &Ask<'a>) -> Vec<Content<'a>> {
    let mut contents: Vec<Content<'a>> = Vec::with_capacity(ask.request.turns.len());
    let wants_signature = ask.origin.model.contains("gemini-3");
    for (caller, turn) in exchanges(ask.request.turns, ask.origin) {
        let (role, parts) = match turn {
            Turn::User(turn) => ("user", user(turn, caller)),
            Turn::Assistant(turn) => {
                let items = replay::items(turn, caller);
                (
                    "model",
                    items
                        .filter_map(|item| sent(item, wants_signature))
                        .collect(),
                )
            }
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            Some(last) if last.role == Some(role) => last.parts.extend(parts),
            _ => contents.push(Content {
                role: Some(role),
                parts,
            }),
        }
    }
    contents
}

/// Results first; pictures of them follow beside them.
fn user<'a>(turn: &'a UserTurn<'_>, caller: Caller) -> Vec<Json<'a, Part<'a>>> {
    let (mut parts, mut pictures) = (Vec::new(), Vec::new());
    for result in &turn.results {
        let (text, images) = replay::split_unmarked(result);
        parts.push(Part::Result {
            function_response: response(result, caller, text),
        });
        pictures.extend(images.into_iter().flat_map(|image| {
            let text = Cow::Owned(replay::picture_of(result));
            [Part::Text { text }, picture(image)]
        }));
    }
    parts.extend(pictures);
    let content = turn.content.iter().filter(|block| !replay::is_blank(block));
    parts.extend(content.map(|block| match block {
        Block::Text(text) => Part::Text {
            text: Cow::Borrowed(text),
        },
        Block::Image(image) => picture(image),
    }));
    parts.into_iter().map(Json::Other).collect()
}

/// An id is sent back when the call came with one.
fn response<'a>(result: &'a CallResult<'_>, caller: Caller, text: Cow<'a, str>) -> Response<'a> {
    let id = &*result.call_id;
    Response {
        id: (caller.is_own && !is_made(id)).then_some(id),
        name: &result.name,
        response: match result.is_error {
            true => Outcome::Error(text),
            false => Outcome::Output(text),
        },
    }
}

fn picture(image: &Image) -> Part<'_> {
    Part::Picture {
        inline_data: Inline {
            mime_type: &image.media_type,
            data: &image.base64,
        },
    }
}

fn sent(item: Sent<'_>, wants_signature: bool) -> Option<Json<'_, Part<'_>>> {
    let part = match item {
        Sent::Own(wire, _) => return Some(Json::Own(wire)),
        Sent::Other(ItemView::Call(call)) => Part::Call {
            function_call: Call {
                name: &call.name,
                args: RawValue::from_string(call.arguments.to_json()).ok(),
            },
            thought_signature: wants_signature.then_some(NO_SIGNATURE),
        },
        Sent::Other(ItemView::Text(text)) => Part::Text {
            text: Cow::Borrowed(text),
        },
        Sent::Other(ItemView::Thinking(_) | ItemView::Opaque) => return None,
    };
    Some(Json::Other(part))
}
