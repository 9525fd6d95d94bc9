//! Runs tool components: compiles and caches them, gives each call a fresh instance with exactly its grant, and ends
//! every call within its limits.
//!
//! In reading order: `engine` (built once), `cache` (compiled artifacts on disk), `plugin` (one loaded component and its
//! tools), `call` (one call from grant to result), `state`, `linker` and `limiter` (what a guest sees and how much of it), `fs`
//! (the guard around every file operation). Nothing here knows rules, sessions, SQL or the network.

pub mod bindings;
mod cache;
mod call;
mod cancel;
mod convert;
mod engine;
mod error;
pub mod fs;
mod limiter;
mod linker;
mod log;
mod plugin;
mod progress;
mod state;

pub use call::CallGrant;
pub use cancel::{Cancel, CancelOnDrop};
pub use convert::CallContext;
pub use engine::{Engine, EngineOptions};
pub use error::{EngineError, LoadError};
pub use plugin::Plugin;
pub use progress::{Listener, Progress};
