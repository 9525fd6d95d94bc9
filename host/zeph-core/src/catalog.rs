//! The immutable set of tools of one configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::category::{ErrorCategory, ErrorPhase};
use crate::failure::{ToolFailure, one_line};
use crate::id::ToolName;
use crate::nearest::nearest;
use crate::tool::Tool;

/// Most names that the answer to an unknown one lists: it is read by a model, and a whole catalog can be long.
const NAMES_MAX: usize = 10;

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
        let names: Vec<&str> = self.tools.keys().map(ToolName::as_str).collect();
        unknown_tool(name, &names)
    }
}

/// The failure of a call of a tool that there is not: with the nearest of the names that its caller may know, else with the first of them.
pub fn unknown_tool(name: &str, names: &[&str]) -> ToolFailure {
    let shown = one_line(name, 80);
    let more = match (nearest(&shown, names.iter().copied()), names) {
        (Some(near), _) => format!("; did you mean `{near}`?"),
        (None, []) => String::new(),
        (None, names) => {
            let first = names.iter().copied().take(NAMES_MAX).collect::<Vec<_>>();
            let others = match names.len() - first.len() {
                0 => String::new(),
                n_others => format!(" and {n_others} more"),
            };
            format!("; there are: {}{others}", first.join(", "))
        }
    };
    let message = format!("no tool is named `{shown}`{more}");
    ToolFailure::new(ErrorCategory::ToolNotFound, ErrorPhase::Setup, message)
}

#[cfg(test)]
mod tests {
    use super::unknown_tool;

    #[test]
    fn an_unknown_name_is_answered_with_few_others() {
        let many: Vec<String> = (0..13).map(|number| format!("tool{number:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let first = many[..10].join(", ");
        let table = [
            ("x", vec![], "no tool is named `x`".to_owned()),
            (
                "x",
                vec!["read", "write"],
                "no tool is named `x`; there are: read, write".to_owned(),
            ),
            (
                "raed",
                vec!["read", "write"],
                "no tool is named `raed`; did you mean `read`?".to_owned(),
            ),
            (
                "x",
                many,
                format!("no tool is named `x`; there are: {first} and 3 more"),
            ),
        ];
        for (name, names, expect) in table {
            assert_eq!(unknown_tool(name, &names).message, expect);
        }
    }
}
