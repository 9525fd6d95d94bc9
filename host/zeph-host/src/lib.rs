//! `zeph-host` as a library: a host that runs the tools of an agent, for programs written in Rust.
//!
//! A program builds a [`Host`] ([`Host::builder`]), opens a session for the model or the program that calls ([`Host::session`]), and makes
//! calls through the trait [`ToolExecutor`]. Executors of its own are put beside the host ([`CompositeExecutor`]) or into it, as backends
//! whose calls are authorised and recorded like all others ([`HostBuilder::backend`]).
//!
//! - It runs in the tokio runtime of its caller, of either kind, with time and I/O enabled; guests and commands have threads of their own.
//! - It changes nothing of the process: no working directory, no signal handler, no variable, no logger. Several hosts live in one process.
//! - It does not panic, and a call never fails with an error: whatever happens is in its [`CallReport`].
//! - When the last handle to a host is dropped, its MCP servers and its commands in the background are ended. That goes on for a moment beside
//!   the program; [`Session::close`] waits for the commands of one session.
//!
//! The examples of this crate are an agent of 40 lines, a host with a backend of its own, and a test double. Other languages use the same
//! calls as JSON lines (`zeph-host run`, with its schema in `host/zeph-host/schema`).
//!
//! # Inside
//!
//! In reading order: `host` (everything built once), `session` (one conversation's client), `pipeline` (the line every call
//! follows) with its stages `resolve`, `authorisation`, `guest`, `redact`, `shell` and `background` (commands, and the ends of
//! those in the background), `filtering`, `compression` (beside a `goal`) and `overflow` (what a model is shown of a result), `turn_state`
//! (what results held), `approval` (how it reaches a person), `dependencies` (which tools come before which), `judging` (a second model
//! that looks at calls),
//! `questions` (what tools ask the user) and `seals` (what has to come back as it left), `builtin` (tools the host itself runs),
//! `servers` (MCP servers of the operator), `registries` (where package managers get packages from),
//! `calls` (the scheduler of calls for all doors), `executor` (the library), `run` (JSON lines and the terminal), `agent` (a model with
//! tools, headless and as a chat), `serve` (clients of the Model Context Protocol) and `cli` (the command line).

mod admission;
mod agent;
mod announcements;
mod anomaly;
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
mod embeddings;
mod executor;
mod file_changes;
mod filtering;
mod goal;
mod governance;
mod grant_usage;
mod guest;
mod heap;
mod heartbeat;
mod host;
mod idle;
mod judging;
mod known_secrets;
mod mode;
mod named_tools;
mod network;
mod offers;
mod order;
mod overflow;
mod path;
mod pipeline;
mod process;
#[cfg(test)]
mod public_api;
mod questions;
mod quota;
mod recording;
mod redact;
mod registries;
mod replay;
mod resolve;
mod retry;
mod run;
mod scheduler;
mod seals;
mod serve;
mod servers;
mod session;
mod shell;
mod signatures;
mod suggestion;
mod telemetry;
#[cfg(test)]
mod traceless;
mod turn_state;
mod user;
mod work;
mod workspace;

pub use approval::{ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};
pub use calls::CallReport;
pub use executor::{
    BadDefinition, BuildError, CallEvent, CallOptions, Caller, CompositeExecutor, DynExecutor,
    ErasedToolExecutor, EventSink, HostBuilder, HostExecutor, NameClash, PendingReport,
    ScopedExecutor, ToolCall, ToolDefinition, ToolExecutor,
};
pub use host::{Host, StartError};
pub use offers::CatalogWatch;
pub use questions::SealedInquiry;
pub use session::Session;

// The vocabulary that calls and reports are written in.
pub use zeph_config::{ConfigErrors, Problem};
pub use zeph_core::category::{ErrorCategory, ErrorPhase};
pub use zeph_core::failure::ToolFailure;
pub use zeph_core::id::{CallId, ConversationId, OverflowId};
pub use zeph_core::inquiry::{GivenAnswer, GivenAnswers, Inquiry, UserAction, UserQuestion};
pub use zeph_core::lifetime::Lifetime;
pub use zeph_core::output::{Blob, Content, FileLocation, Outcome, ResourceBody, ToolOutput};
pub use zeph_core::policy::BadRule;
pub use zeph_core::tool::{Annotations, ToolKind};
pub use zeph_engine::{Cancel, Progress};
pub use zeph_plugins::component::Component;
pub use zeph_plugins::refusal::GrantRequest;
pub use zeph_shell::run::{OutputChunk, StreamKind};
pub use zeph_store::{ShownCall, StoreError};
