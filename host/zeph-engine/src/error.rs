//! What can go wrong in this room, for the operator. What a model is told is a `ToolFailure`.

use std::path::PathBuf;

use zeph_core::id::PluginId;

/// The engine could not be built.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The wasm engine refused its configuration.
    #[error("the wasm engine cannot start")]
    Start(#[source] wasmtime::Error),
    /// The host interfaces could not be linked.
    #[error("the host interfaces cannot be linked")]
    Link(#[source] wasmtime::Error),
    /// The epoch ticker's thread could not be started.
    #[error("the ticker thread cannot start")]
    Ticker(#[source] std::io::Error),
}

/// One component could not be loaded. The others are not affected.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are no component this host can compile.
    #[error("`{plugin}` is not a component this host can run")]
    Compile {
        /// Which plugin.
        plugin: PluginId,
        /// What the compiler says.
        source: wasmtime::Error,
    },
    /// It imports what the host does not have, or lacks the exports of a tool plugin.
    #[error("`{plugin}` does not fit the world `zeph:plugin/tool-plugin@0.1.0`")]
    World {
        /// Which plugin.
        plugin: PluginId,
        /// The missing or unknown item.
        source: wasmtime::Error,
    },
    /// Its tool list could not be read.
    #[error("`{plugin}` cannot list its tools: {reason}")]
    Tools {
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
