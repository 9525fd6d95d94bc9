//! Runs tool components: compiles and caches them, gives each call a fresh instance with exactly its grant, and ends
//! every call within its limits.
//!
//! In reading order: `engine` (built once), `component` (bytes), `inspect` (what they are, without running them), `compile` and
//! `cache` (compiled artifacts on disk), `lazy` (a component that is loaded when it is needed), `plugin` (one component and its tools),
//! `call` (one call from grant to result), `state`, `linker` and `limiter` (what a guest sees and how much of it), `filter` (strategies of
//! filters, warm for a session), `fs` (the guard around every file operation), `network` (requests, which an `http_exit` takes). Nothing here knows rules, sessions,
//! SQL or hosts.

pub mod bindings;
mod cache;
mod call;
mod cancel;
mod compile;
mod component;
mod context;
mod convert;
mod definition;
mod engine;
mod error;
mod filter;
pub mod fs;
mod http_exit;
mod inspect;
mod json;
mod lazy;
mod limiter;
mod linker;
mod log;
mod missing_grant;
mod network;
mod plain;
mod plugin;
mod process;
mod progress;
mod services;
mod state;

pub use cache::{SHARED_KEY_BYTES, SharedArtifacts};
pub use call::{AskedCall, CallEnd, CallGrant, CallTerms, GuestWork, NO_SETTINGS};
pub use cancel::{Cancel, CancelOnDrop};
pub use compile::{CompileEvent, CompileListener, compile_if_asked};
pub use component::{COMPONENT_BYTES_MAX, ComponentBytes, digest};
pub use engine::{Engine, EngineOptions};
pub use error::{EngineError, LoadError};
pub use filter::{
    FILTER_LIMITS, FILTER_TEXT_BYTES_MAX, FilterAnswer, FilterConfidence, FilterFailure,
    FilterInput, FilterPiece, FilterSession, StrategyDefinition,
};
pub use http_exit::{
    HttpExit, HttpFailure, HttpFailureKind, HttpPatience, HttpRequestBody, HttpResponseBody,
    HttpSending, SentRequest,
};
pub use inspect::{
    ComponentKind, Export, ForeignFile, Import, InspectError, Inspection, ItemKind, MadeFor,
    Metadata, inspect,
};
pub use limiter::{LIMITS_MAX, ceiling};
pub use missing_grant::{MissingGrant, REFUSED_MAX};
pub use plain::{NotPlain, SkippedExport};
pub use plugin::Plugin;
pub use process::{
    PrintedText, ProgramCompleted, ProgramEnd, ProgramError, ProgramQueue, ProgramRequest,
    ProgramResult, ProgramRun,
};
pub use progress::{Listener, Progress};
pub use services::{
    EmbeddingFault, EmbeddingResult, NearestQuery, Reply, ServerToolCall, ServerToolFault,
    ServerToolResult, ServiceQueue, ServiceRequest,
};
