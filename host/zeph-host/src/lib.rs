//! The product: one pipeline, and the doors that lead to it.
//!
//! In reading order: `host` (everything built once), `session` (one conversation's
//! client), `pipeline` (the line every call follows) with its stages `resolve`, `deciding`, `guest`, `redact`, `shell` and `completed` (commands, and those that end in the background), `filtering` and `overflow` (what a model is shown of a result), `asking` (how it reaches a person), `questions` (what tools ask the user), `builtin` (tools the host itself runs), `calls` (the scheduler of calls for all doors), `run` (JSON lines and the
//! terminal), `serve` (clients of the Model Context Protocol) and `cli` (the command line).

mod asking;
mod audit;
mod builtin;
mod calls;
mod changed;
pub mod cli;
mod clock;
mod completed;
mod deciding;
mod filtering;
mod guest;
mod host;
mod offers;
mod order;
mod overflow;
mod path;
mod pipeline;
mod process;
mod questions;
mod redact;
mod resolve;
mod run;
mod seals;
mod serve;
mod session;
mod shell;
mod work;

pub use asking::{Answer, Ask, Question};
pub use calls::{CallControl, CallReport};
pub use host::{Host, StartError, StartOptions};
pub use offers::CatalogWatch;
pub use questions::SealedInquiry;
pub use session::Session;
