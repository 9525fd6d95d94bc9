//! The agent: models of several providers, their wire formats, the loop of turns, the transcript.
//!
//! `message` is a conversation as it is kept, `provider` what the loop asks of a model, `settings` what the operator says about one.
//! [`connect`] makes a provider: `endpoint` is its address, `model` sends requests and tries again, `wire` holds the formats, `frames` cuts answers into pieces,
//! `draft` puts them together. `fenced` reads calls from the text of models that have no tools.
//! `transcript` is what happened, entry by entry; `agent` is the loop over a provider and a `tool_host`, which `budget`, `repetition` and
//! `compaction` keep within bounds, and `event` is what it tells. `selection` chooses the tools of a conversation, by `similarity`, `tafc`
//! gives their schemas room to think, `embedding` compares texts by vectors, and `judge` is a second model that looks at calls before they run.

pub mod agent;
pub mod budget;
mod compaction;
mod draft;
pub mod embedding;
mod endpoint;
mod error;
pub mod event;
mod fenced;
mod frames;
pub mod judge;
pub mod message;
mod model;
mod provider;
mod repetition;
pub mod scripted;
pub mod selection;
mod settings;
mod similarity;
pub mod tafc;
pub mod tool_host;
pub mod transcript;
mod usage;
mod wire;

pub use self::error::{ProviderError, ProviderErrorKind};
pub use self::fenced::tools_as_text;
pub use self::model::connect;
pub use self::provider::{
    ModelEvent, ModelRequest, OnEvent, Pending, Provider, Reply, RequestOptions, RequestPreview,
    ToolDefinition,
};
pub use self::settings::{ApiKey, ProviderKind, ProviderSettings, Timeouts};
pub use self::usage::{Cost, Prices, SideSpending, Usage};
