//! What a host is started with, and why it does not start.

use std::sync::Arc;

use zeph_core::catalog::DuplicateTool;
use zeph_core::id::ServerName;
use zeph_core::manifest::BadManifest;
use zeph_core::policy::AllowRule;
use zeph_engine::fs::FsPolicyError;
use zeph_engine::{EngineError, LoadError};
use zeph_mcp::client::ServerListener;
use zeph_plugins::component::Component;
use zeph_plugins::event::Tell;
use zeph_shell::jail::PathWatch;
use zeph_store::StoreError;

use crate::executor::BadDefinition;
use crate::executor::backend::Backends;
use crate::recording::Recorder;
use crate::replay::ReplayTerms;

/// How this process will use the host.
#[derive(Clone)]
pub(crate) struct StartOptions {
    /// Many calls are expected: prepare for them, and follow the folders of plugins.
    pub(crate) is_server: bool,
    /// How this program is called here, such as `zeph-host --config my.toml`, for the commands that messages name.
    pub(crate) program: String,
    /// Calls that run without asking, besides what the configuration's rules say.
    pub(crate) allow: Vec<AllowRule>,
    /// The components that are part of the program.
    pub(crate) components: Vec<Component>,
    /// The executors that are part of the program.
    pub(crate) backends: Backends,
    /// The tool of the one call that will be made. What it needs is begun at once: the jail of a command, the component of a plugin of
    /// the program. For a tool of the host itself no plugin is looked at, and no engine is built.
    pub(crate) expected_tool: Option<String>,
    /// No call is made: nothing is recorded, and the audit log is not opened.
    pub(crate) only_explains: bool,
    /// No call is made, but for looking at what there is: a damaged store stays as it is, and stops the start.
    pub(crate) only_looks: bool,
    /// Is told what happens to plugins. Must not block.
    pub(crate) tell: Option<Tell>,
    /// The one server whose tools are served; no plugin is looked at then. Only this program can make it.
    pub(crate) native: Option<NativeOptions>,
    /// The host is a part of another program, which has telemetry of its own.
    pub(crate) is_part: bool,
    /// Writes down what calls use, where that is wanted.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// How a call of an earlier host is made again.
    pub(crate) replay: Option<ReplayTerms>,
}

/// How one native server is served as this program.
#[derive(Debug, Clone)]
pub(crate) struct NativeOptions {
    /// Its name in the configuration.
    pub(crate) name: ServerName,
    /// Hears what it says besides answers, and answers what it asks.
    pub(crate) listener: Arc<dyn ServerListener>,
    /// Whether its tools need an approval where no rule allows them.
    pub(crate) asks: bool,
    /// Learns which paths it asks for in vain; none where nobody wants to know.
    pub(crate) watch: Option<PathWatch>,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            is_server: false,
            program: "zeph-host".to_owned(),
            allow: Vec::new(),
            components: Vec::new(),
            backends: Backends::default(),
            expected_tool: None,
            only_explains: false,
            only_looks: false,
            tell: None,
            native: None,
            is_part: false,
            recorder: None,
            replay: None,
        }
    }
}

impl std::fmt::Debug for StartOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartOptions")
            .field("is_server", &self.is_server)
            .field("components", &self.components)
            .finish_non_exhaustive()
    }
}

/// The host could not start. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The wasm engine.
    #[error("the engine cannot start")]
    Engine(#[source] EngineError),
    /// A first-party component.
    #[error("a first-party plugin cannot be loaded")]
    Plugin(#[source] LoadError),
    /// The manifest of a first-party component.
    #[error("the manifest of a first-party plugin cannot be read")]
    Manifest(#[source] BadManifest),
    /// Two plugins offer one name.
    #[error("the catalog cannot be built")]
    Catalog(#[source] DuplicateTool),
    /// A granted directory.
    #[error("the granted directories cannot be opened")]
    Files(#[source] FsPolicyError),
    /// The store.
    #[error("the store cannot be opened")]
    Store(#[source] StoreError),
    /// The model that judges calls.
    #[error("calls are to be judged (`tools.adversarial_policy`): {0}")]
    Judge(String, String),
    /// Keys that several hosts share: what is wrong with them, and what to do about it.
    #[error("{0}")]
    Seals(String, Option<String>),
    /// The user that tools are to work as.
    #[error("{0}")]
    User(String),
    /// The thread that starts commands.
    #[error("the shell cannot start")]
    Shell(#[source] std::io::Error),
    /// A tool of an executor of the program.
    #[error("a backend cannot be used")]
    Backend(#[source] BadDefinition),
}
