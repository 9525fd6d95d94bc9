//! Errors of this crate, for the operator. Models see a `ToolFailure`.

use std::path::PathBuf;

use zeph_core::id::PluginId;
use zeph_core::text::plain_line;

use crate::inspect::InspectError;
use crate::plain::NotPlain;

/// The engine could not be built.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The wasm engine refused its configuration.
    #[error("the wasm engine cannot start")]
    Start(#[source] wasmtime::Error),
    /// The epoch ticker's thread could not be started.
    #[error("the ticker thread cannot start")]
    Ticker(#[source] std::io::Error),
}

/// One component could not be loaded. The others are not affected.
///
/// Shape: with its sources, one plain line of bounded length each, for the person who has to fix it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are no component that could be read.
    #[error("`{plugin}` is not a component this host can run")]
    Component {
        /// Which plugin.
        plugin: PluginId,
        /// What they are.
        source: InspectError,
    },
    /// It is a component that this host cannot use.
    #[error("`{plugin}` cannot be used: {}", problems.join("; "))]
    Unusable {
        /// Which plugin.
        plugin: PluginId,
        /// Why, the most important reason first; see [`Inspection`](crate::Inspection).
        problems: Vec<String>,
    },
    /// The compiler refused it.
    #[error("`{plugin}` cannot be compiled: {reason}")]
    Compile {
        /// Which plugin.
        plugin: PluginId,
        /// What the compiler says.
        reason: String,
    },
    /// What it imports or exports has other types than the host's.
    #[error("`{plugin}` does not fit this host: {reason}")]
    World {
        /// Which plugin.
        plugin: PluginId,
        /// The item that does not fit.
        reason: String,
    },
    /// It is not made for this host, and no function of it can be a tool either.
    #[error("`{plugin}` has no tools")]
    Plain {
        /// Which plugin.
        plugin: PluginId,
        /// What it is instead.
        source: NotPlain,
    },
    /// Its tool list could not be read.
    #[error("`{plugin}` cannot list its tools: {reason}")]
    Tools {
        /// Which plugin.
        plugin: PluginId,
        /// What was wrong.
        reason: String,
    },
    /// Its list of strategies could not be read.
    #[error("`{plugin}` cannot list its strategies: {reason}")]
    Strategies {
        /// Which plugin.
        plugin: PluginId,
        /// What was wrong.
        reason: String,
    },
    /// The file of a recalled plugin could not be read.
    #[error("the file of `{plugin}` cannot be read: `{}`", path.display())]
    Read {
        /// Which plugin.
        plugin: PluginId,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file of a recalled plugin is another one by now.
    #[error("the file of `{plugin}` changed: `{}`", path.display())]
    Changed {
        /// Which plugin.
        plugin: PluginId,
        /// Which file.
        path: PathBuf,
    },
    /// The host failed while it loaded the component.
    #[error("`{plugin}` could not be loaded: the host failed at it")]
    Crashed {
        /// Which plugin.
        plugin: PluginId,
    },
}

/// Most characters of what the wasm engine says. Its longest explanations name an interface, an item and both types.
const REASON_CHARS_MAX: usize = 400;

/// An error of the wasm engine with its causes, on one line.
pub(crate) fn reason(error: &wasmtime::Error) -> String {
    plain_line(&format!("{error:#}"), REASON_CHARS_MAX)
}
