//! The agent: models of several providers, their wire formats, the loop of turns, the transcript.
//!
//! `message` is a conversation as it is kept, `provider` what the loop asks of a model, `settings` what the operator says about one.

mod error;
pub mod message;
mod provider;
mod settings;
mod usage;

pub use self::error::{ProviderError, ProviderErrorKind};
pub use self::provider::{
    ModelEvent, ModelRequest, OnEvent, Pending, Provider, Reply, RequestOptions, RequestPreview,
    ToolDefinition,
};
pub use self::settings::{ApiKey, ProviderKind, ProviderSettings, Timeouts};
pub use self::usage::{Cost, Prices, Usage};
