//! The product: one pipeline, and the doors that lead to it.
//!
//! In reading order: `host` (everything built once), `session` (one conversation's client), `pipeline` (the line every call
//! follows) with its stages `resolve`, `authorisation`, `guest`, `redact`, `shell` and `background` (commands, and the ends of
//! those in the background), `filtering`, `compression` (beside a `goal`) and `overflow` (what a model is shown of a result), `turn_state`
//! (what results held), `approval` (how it reaches a person), `dependencies` (which tools come before which), `judging` (a second model
//! that looks at calls),
//! `questions` (what tools ask the user) and `seals` (what has to come back as it left), `builtin` (tools the host itself runs),
//! `servers` (MCP servers of the operator), `registries` (where package managers get packages from),
//! `calls` (the scheduler of calls for all doors), `run` (JSON lines and the terminal), `agent` (a model with tools, headless and as a
//! chat), `serve` (clients of the Model Context
//! Protocol) and `cli` (the command line).

mod agent;
mod approval;
mod audit;
mod authorisation;
mod background;
mod builtin;
mod cache;
mod calls;
pub mod cli;
mod clock;
mod compression;
mod dependencies;
mod file_changes;
mod filtering;
mod goal;
mod guest;
mod heap;
mod host;
mod judging;
mod known_secrets;
mod mode;
mod network;
mod offers;
mod order;
mod overflow;
mod path;
mod pipeline;
mod process;
mod questions;
mod redact;
mod registries;
mod resolve;
mod retry;
mod run;
mod seals;
mod serve;
mod servers;
mod session;
mod shell;
mod telemetry;
#[cfg(test)]
mod traceless;
mod turn_state;
mod work;

pub use approval::{ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};
pub use calls::{CallControl, CallReport, EditorParts};
pub use host::{Host, StartError, StartOptions};
pub use offers::CatalogWatch;
pub use questions::SealedInquiry;
pub use session::Session;
pub use telemetry::RemoteRequest;
