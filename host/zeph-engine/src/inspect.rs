//! What a component is, read from its bytes alone: nothing is compiled and nothing of it runs.
//!
//! The bytes are untrusted. The work is bounded by their number, every name and text that is returned is bounded and
//! plain, and whatever is wrong becomes a sentence for the author who has to mend it.

use serde::Serialize;
use wasmparser::{Validator, WasmFeatures};
use zeph_core::manifest::Manifest;

use crate::component::COMPONENT_BYTES_MAX;

mod error;
mod host;
mod made_for;
mod metadata;
mod names;
mod problems;
mod read;
mod unfold;

pub use error::{ForeignFile, InspectError};
pub use made_for::MadeFor;
pub use metadata::Metadata;
pub use names::{Export, Import, ItemKind};

use names::InterfaceName;

/// The interface a tool plugin exports.
const TOOLS: &str = "zeph:plugin/tools";

/// The functions of [`TOOLS`].
const TOOLS_FUNCTIONS: &[&str] = &["list-tools", "call-tool"];

/// The interface a component of filters exports.
const STRATEGIES: &str = "zeph:filter/strategies";

/// The functions of [`STRATEGIES`].
const STRATEGIES_FUNCTIONS: &[&str] = &[
    "list-strategies",
    "[static]strategy.create",
    "[method]strategy.apply",
];

/// The version of `zeph:plugin` that this host supports. The same minor version is compatible either way.
pub(crate) const PLUGIN_VERSION: &str = "0.1.0";

/// The version of `zeph:filter` that this host supports.
pub(crate) const FILTER_VERSION: &str = "0.1.0";

/// What a component is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// What the host can do with it.
    pub kind: ComponentKind,
    /// Its size.
    pub n_bytes: u64,
    /// What it needs from its host, in the component's order.
    pub imports: Vec<Import>,
    /// What it offers, in the component's order.
    pub exports: Vec<Export>,
    /// What its author says about it.
    pub metadata: Metadata,
    /// What it wants. None: nothing, or its manifest is bad, which is then one of the problems.
    pub manifest: Option<Manifest>,
    /// Why this host cannot use it, one sentence each, the most important one first. Empty: it can.
    pub problems: Vec<String>,
}

/// What the host can do with a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "world", rename_all = "snake_case")]
pub enum ComponentKind {
    /// It exports `zeph:plugin/tools`.
    ToolPlugin {
        /// In this version, such as `0.1.0`; empty when the export names none.
        version: String,
    },
    /// It exports `zeph:filter/strategies`.
    FilterPlugin {
        /// In this version, such as `0.1.0`; empty when the export names none.
        version: String,
    },
    /// It exports functions of its own.
    Plain,
    /// It exports nothing a host of tools can call.
    Neither,
}

impl Inspection {
    /// Whether this host can use it.
    pub fn is_usable(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Reads what `bytes` are.
///
/// Errors: [`InspectError`] when they are no component that could be read; what is wrong with one that could be is in its
/// [`problems`](Inspection::problems).
/// Limits: some 20 MB a second, so nothing for a thread that others wait for; memory in proportion to `bytes`.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, InspectError> {
    let n_bytes = bytes.len() as u64;
    if n_bytes > COMPONENT_BYTES_MAX {
        return Err(InspectError::TooLarge { n_bytes });
    }
    let parts = read::parts(bytes)?;
    let validated = Validator::new_with_features(features()).validate_all(bytes);
    let imports = names::imports(&parts, validated.as_ref().ok());
    let mut problems = problems::of_imports(&imports);
    problems.extend(parts.unfolded.problem());
    let types = match validated {
        Ok(types) => Some(types),
        // A component of a later WASI does not validate for what it imports: then that is what its author has to know.
        Err(_) if imports.iter().any(Import::is_of_later_wasi) => None,
        Err(error) => return Err(InspectError::invalid(&error)),
    };
    let exports = names::exports(&parts, types.as_ref());
    let kind = kind(&exports);
    let of_kind = problems::of_kind(&kind, &exports);
    // Built for another version, it says the same of what it imports and of what it exports.
    problems.retain(|problem| of_kind.as_ref() != Some(problem));
    problems.splice(0..0, of_kind);
    let (manifest, bad_manifest) = metadata::manifest(&parts);
    problems.extend(bad_manifest);
    Ok(Inspection {
        kind,
        n_bytes,
        imports,
        exports,
        metadata: metadata::metadata(&parts),
        manifest,
        problems,
    })
}

/// What the engine's configuration compiles: no threads, no garbage collection, no exceptions.
fn features() -> WasmFeatures {
    (WasmFeatures::WASM3 | WasmFeatures::COMPONENT_MODEL | WasmFeatures::CM_ASYNC)
        - WasmFeatures::THREADS
        - WasmFeatures::EXCEPTIONS
        - WasmFeatures::GC_TYPES
}

fn kind(exports: &[Export]) -> ComponentKind {
    if let Some(tools) = exports.iter().find(|export| export.name == TOOLS) {
        let version = tools.version.clone().unwrap_or_default();
        return ComponentKind::ToolPlugin { version };
    }
    if let Some(strategies) = exports.iter().find(|export| export.name == STRATEGIES) {
        let version = strategies.version.clone().unwrap_or_default();
        return ComponentKind::FilterPlugin { version };
    }
    let is_callable =
        |export: &Export| !InterfaceName::is_of_wasi(&export.name) && export.n_functions > 0;
    if exports.iter().any(is_callable) {
        return ComponentKind::Plain;
    }
    ComponentKind::Neither
}

#[cfg(test)]
mod tests;
