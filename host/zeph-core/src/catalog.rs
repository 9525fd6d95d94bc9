//! The immutable set of tools of one configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::category::{ErrorCategory, ErrorPhase};
use crate::failure::{ToolFailure, one_line};
use crate::id::ToolName;
use crate::nearest::nearest;
use crate::tool::Tool;

/// Every tool a session can call, by name, in a fixed order.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    tools: BTreeMap<ToolName, Arc<Tool>>,
    /// The tools that are offered under their last name, by `plugin__tool`.
    qualified: BTreeMap<String, ToolName>,
}

/// Two tools with one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two tools are named `{0}`")]
pub struct DuplicateTool(pub ToolName);

impl Catalog {
    /// Builds the catalog.
    ///
    /// Errors: [`DuplicateTool`] names the first name that occurs twice.
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Result<Self, DuplicateTool> {
        let mut catalog = Self::default();
        for tool in tools {
            let name = tool.name.clone();
            catalog
                .qualified
                .insert(tool.qualified_name(), name.clone());
            if catalog.tools.insert(name.clone(), Arc::new(tool)).is_some() {
                return Err(DuplicateTool(name));
            }
        }
        Ok(catalog)
    }

    /// The tools, sorted by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.tools.values().map(Arc::as_ref)
    }

    /// A catalog without the tools that `is_hidden` picks.
    pub fn without(&self, is_hidden: impl Fn(&Tool) -> bool) -> Self {
        let shown = self.tools.iter().filter(|(_, tool)| !is_hidden(tool));
        Self {
            tools: shown
                .map(|(name, tool)| (name.clone(), tool.clone()))
                .collect(),
            qualified: self.qualified.clone(),
        }
    }

    /// Looks a tool up by the name a request gave: the one it is offered by, or `plugin__tool`.
    ///
    /// Errors: `tool_not_found`, with the nearest name when there is one.
    pub fn resolve(&self, name: &str) -> Result<&Tool, ToolFailure> {
        self.resolve_shared(name).map(Arc::as_ref)
    }

    /// The same as [`resolve`](Self::resolve), to be kept without a copy.
    ///
    /// Errors: as there.
    pub fn resolve_shared(&self, name: &str) -> Result<&Arc<Tool>, ToolFailure> {
        let offered = ToolName::new(name).ok();
        let offered = offered.filter(|name| self.tools.contains_key(name));
        let offered = offered.as_ref().or_else(|| self.qualified.get(name));
        match offered.and_then(|name| self.tools.get(name)) {
            Some(tool) => Ok(tool),
            None => Err(self.not_found(name)),
        }
    }

    fn not_found(&self, name: &str) -> ToolFailure {
        let shown = one_line(name, 80);
        let names = self.tools.keys().map(ToolName::as_str);
        let message = match nearest(&shown, names) {
            Some(near) => format!("no tool is named `{shown}`; did you mean `{near}`?"),
            None => format!(
                "no tool is named `{shown}`; there are: {}",
                self.tools
                    .keys()
                    .map(ToolName::as_str)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        ToolFailure::new(ErrorCategory::ToolNotFound, ErrorPhase::Setup, message)
    }
}
