//! A conversation with a model, as it is kept: what the user's side said, and what a model answered, item by item.
//!
//! An assistant turn holds the provider's own items as they came, so that they are replayed unchanged to the same provider and model,
//! and a neutral view of each for everybody else: the loop, the terminal, other providers.

mod image;
mod name;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use self::image::{IMAGE_BYTES_MAX, Image};
pub(crate) use self::name::valid_name;
use crate::settings::ProviderKind;

/// One turn of a conversation. It borrows what the transcript holds: a request keeps no second copy of the conversation in memory.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn<'a> {
    /// Of the user's side.
    User(UserTurn<'a>),
    /// Of a model.
    Assistant(Cow<'a, AssistantTurn>),
}

/// What the user's side says: the results of all calls of the turn before, then whatever else there is.
///
/// Shape: a valid conversation has exactly one result for each call of the assistant turn before it, and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UserTurn<'a> {
    /// The results of the calls of the turn before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<CallResult<'a>>,
    /// Text and images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Block<'a>>,
}

/// A piece of what the user's side says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A picture.
    Image(Cow<'a, Image>),
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallResult<'a> {
    /// The call's.
    pub call_id: Cow<'a, str>,
    /// The name of the tool, as the model called it.
    pub name: Cow<'a, str>,
    /// Text and images; may be empty.
    pub content: Vec<Block<'a>>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// Who made an assistant turn. Its items are replayed as they are to an equal one, and translated for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The name of the provider in the configuration.
    pub provider: String,
    /// What it speaks.
    pub kind: ProviderKind,
    /// The model, as it was asked for.
    pub model: String,
}

/// An answer of a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AssistantTurn {
    /// Who made it.
    pub origin: Origin,
    /// What it consists of, in the order in which it came. May be empty.
    pub items: Vec<Item>,
    /// How it ended.
    pub stop: StopReason,
}

/// A piece of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "StoredItem")]
pub struct Item {
    /// What it says, whoever said it.
    pub view: ItemView,
    /// As its provider sent it: JSON that is sent back as it is, but for the name of a tool that cannot be sent. None for what was found in
    /// a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Box<RawValue>>,
}

/// A piece of an answer as it is stored; earlier versions kept every name of a tool as it came.
#[derive(Deserialize)]
struct StoredItem {
    view: ItemView,
    #[serde(default)]
    wire: Option<Box<RawValue>>,
}

/// What a piece of an answer says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemView {
    /// Text for the user.
    Text(String),
    /// Readable reasoning; empty when it is sealed.
    Thinking(String),
    /// A call of a tool.
    Call(ToolCall),
    /// What only its provider can read.
    Opaque,
}

/// A call, as a model asked for it. It runs only when [`AssistantTurn::calls_may_run`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within its turn. Of the provider, or made here where the provider has none.
    pub id: String,
    /// The name of the tool, as every provider takes it back: of another that the model wrote, the characters that no tool has are `_`, and it is
    /// cut. Whether there is such a tool is not checked.
    pub name: String,
    /// What the model passes.
    pub arguments: Arguments,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A JSON object, not checked against the tool's schema.
    Object(Map<String, Value>),
    /// Something else, which is never repaired: the call gets an error for its result, and is replayed with `{}`.
    Malformed {
        /// As it came, at most [`MALFORMED_BYTES_MAX`].
        text: String,
        /// What is wrong, as one sentence.
        why: String,
    },
}

/// Most bytes that are kept of arguments that do not parse.
pub const MALFORMED_BYTES_MAX: usize = 4 * 1024;

/// How an answer ended, once its provider has said so. An answer without an end is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model has said what it wanted to say.
    EndTurn,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The answer met a limit of length.
    Length,
    /// The model or its provider refuses.
    Refusal,
    /// The model failed to write a call.
    MalformedCall,
    /// Another reason, in the words of the provider.
    Other(String),
}

impl<'a> UserTurn<'a> {
    /// One that says a text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            results: Vec::new(),
            content: vec![Block::Text(text.into())],
        }
    }
}

impl<'a> CallResult<'a> {
    /// A result of text for a call.
    pub fn text(call: &'a ToolCall, text: impl Into<Cow<'a, str>>, is_error: bool) -> Self {
        Self {
            call_id: Cow::Borrowed(&call.id),
            name: Cow::Borrowed(&call.name),
            content: vec![Block::Text(text.into())],
            is_error,
        }
    }

    /// The texts of the result, one after the other.
    pub fn to_text(&self) -> Cow<'_, str> {
        let mut texts = self.content.iter().filter_map(Block::as_text);
        let first = texts.next().unwrap_or_default();
        texts.fold(Cow::Borrowed(first), |all, text| {
            Cow::Owned(format!("{all}\n{text}"))
        })
    }
}

impl Block<'_> {
    /// The text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image(_) => None,
        }
    }
}

impl AssistantTurn {
    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.items.iter().filter_map(|item| match &item.view {
            ItemView::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The text for the user.
    pub fn text(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match &item.view {
            ItemView::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Whether the turn ended in a way that lets its calls run. Where it did not, each of them gets a result that says so.
    pub fn calls_may_run(&self) -> bool {
        matches!(self.stop, StopReason::EndTurn | StopReason::ToolCalls)
    }

    /// Whether there is neither a text nor a call in it.
    pub fn is_empty(&self) -> bool {
        let says = |item: &Item| match &item.view {
            ItemView::Text(text) => !text.trim().is_empty(),
            ItemView::Call(_) => true,
            ItemView::Thinking(_) | ItemView::Opaque => false,
        };
        !self.items.iter().any(says)
    }
}

impl From<StoredItem> for Item {
    fn from(stored: StoredItem) -> Self {
        let StoredItem { view, wire } = stored;
        Self { view, wire }.with_valid_name()
    }
}

impl Item {
    /// An item without a form of its provider.
    pub fn neutral(view: ItemView) -> Self {
        Self { view, wire: None }
    }
}

impl Arguments {
    /// Reads the text of arguments. No text at all is no arguments.
    pub fn read(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(value) => Self::of(value),
            Err(error) => Self::malformed(text, format!("the arguments are not JSON: {error}")),
        }
    }

    /// A value that should be an object.
    pub fn of(value: Value) -> Self {
        match value {
            Value::Object(object) => Self::Object(object),
            other => Self::malformed(
                &other.to_string(),
                "the arguments are not a JSON object".to_owned(),
            ),
        }
    }

    fn malformed(text: &str, why: String) -> Self {
        let end = text.floor_char_boundary(MALFORMED_BYTES_MAX);
        Self::Malformed {
            text: text[..end].to_owned(),
            why,
        }
    }

    /// The object; `{}` for arguments that are none.
    pub fn to_json(&self) -> String {
        match self {
            Self::Object(object) => serde_json::to_string(object).unwrap_or_else(|_| "{}".into()),
            Self::Malformed { .. } => "{}".to_owned(),
        }
    }
}
