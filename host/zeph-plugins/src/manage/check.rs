//! Everything that can be said of a component before it is added, without the configuration.
//!
//! It is read first; then it is asked for its tools, in the sandbox and with nothing granted.

use std::path::PathBuf;
use std::sync::Arc;

use zeph_core::id::{Digest, PluginId, ToolName};
use zeph_core::limit::CallLimits;
use zeph_core::manifest::Want;
use zeph_engine::{ComponentBytes, EngineError, Inspection, inspect};

use super::portable::{self, Portability};
use super::source::{self, ComponentSource};
use super::trial;
use crate::event::Tell;
use crate::set::VettedPlugin;

/// What was found out about a component.
#[derive(Debug)]
pub struct Checked {
    /// Bytes of the component.
    pub n_bytes: usize,
    /// Of the component.
    pub digest: Digest,
    /// What reading it says; none when it is no component at all.
    pub inspection: Option<Inspection>,
    /// What it answered.
    pub asked: ToolListing,
    /// What has to be fixed, one sentence each.
    pub problems: Vec<String>,
    /// What there is to say about each tool, in their order.
    pub tools: Vec<(ToolName, Portability)>,
}

/// Whether a component was asked for its tools.
#[derive(Debug)]
pub enum ToolListing {
    /// It was not, because that was not wanted or because it cannot be.
    No,
    /// It was checked, and is not a plugin.
    Refused,
    /// It was, and is one.
    Good(Arc<VettedPlugin>),
}

/// How far a check goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The component is read only.
    Read,
    /// It is asked for its tools, too.
    Ask,
}

impl Checked {
    /// Whether it can be used as it is, by every model.
    pub fn is_fine(&self) -> bool {
        let is_portable = |(_, found): &(ToolName, Portability)| found.problems.is_empty();
        self.problems.is_empty() && self.tools.iter().all(is_portable)
    }

    /// What it wants.
    pub fn wants(&self) -> &[Want] {
        let manifest = self
            .inspection
            .as_ref()
            .and_then(|read| read.manifest.as_ref());
        manifest
            .map(|manifest| manifest.wants.as_slice())
            .unwrap_or_default()
    }
}

/// How a check is made.
#[expect(missing_debug_implementations, reason = "it holds a listener")]
pub struct Trial {
    /// How far it goes.
    pub depth: Depth,
    /// What the component may use while it is asked.
    pub limits: CallLimits,
    /// Where the compiled form is kept, so that it is compiled once.
    pub cache_dir: Option<PathBuf>,
    /// Reports steps that take time.
    pub tell: Tell,
}

/// Checks the component that was read from `source`, whose name it gets in messages.
///
/// Errors: when this machine cannot run components at all.
pub async fn check(
    source: &ComponentSource,
    bytes: ComponentBytes,
    trial: Trial,
) -> Result<Checked, EngineError> {
    let mut checked = Checked {
        n_bytes: bytes.len(),
        digest: zeph_engine::digest(&bytes),
        inspection: None,
        asked: ToolListing::No,
        problems: Vec::new(),
        tools: Vec::new(),
    };
    match inspect(&bytes) {
        Err(error) => checked.problems.push(error.to_string()),
        Ok(inspection) => {
            checked.problems.clone_from(&inspection.problems);
            checked.inspection = Some(inspection);
        }
    }
    if trial.depth == Depth::Read || !checked.problems.is_empty() {
        return Ok(checked);
    }
    let name = source::name(None, source, &[]).unwrap_or_else(|_| PluginId("plugin".to_owned()));
    let engine = trial::engine(trial.cache_dir, trial.tell)?;
    match trial::load(&engine, &name, bytes, trial.limits).await {
        Err(reason) => {
            checked.problems.push(reason);
            checked.asked = ToolListing::Refused;
        }
        Ok(good) => {
            let tools = good.plugin.tools().iter();
            checked.tools = tools
                .map(|tool| (tool.name.clone(), portable::of_tool(tool)))
                .collect();
            checked.asked = ToolListing::Good(good);
        }
    }
    Ok(checked)
}
