//! The tools as clients see them, made once for each state of the catalog.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::Tool as McpTool;
use zeph_core::catalog::Catalog;
use zeph_core::tool::Tool;
use zeph_mcp::names::ExposedNames;
use zeph_mcp::subset::ToolSubset;
use zeph_mcp::tool::{OutputSchema, described};

use super::search;
use crate::host::Host;

/// The tools of one state of the catalog.
#[derive(Debug)]
pub(crate) struct Listed {
    generation: u64,
    catalog: Arc<Catalog>,
    names: ExposedNames,
    /// In the order of the exposed names, which no client and no start changes.
    tools: Vec<ListedTool>,
}

/// A tool with its description for clients.
#[derive(Debug)]
pub(crate) struct ListedTool {
    pub(crate) tool: Tool,
    pub(crate) described: McpTool,
    pub(crate) output: Option<OutputSchema>,
}

impl ListedTool {
    fn of(tool: &Tool, exposed: &str) -> Self {
        let output = OutputSchema::of(tool);
        Self {
            tool: tool.clone(),
            described: described(tool, exposed, output.as_ref()),
            output,
        }
    }

    /// Whether a caller may see and call it.
    pub(crate) fn is_of(&self, subset: &ToolSubset) -> bool {
        subset.has(self.tool.name.as_str(), &self.tool.qualified_name())
    }
}

impl Listed {
    fn new(generation: u64, catalog: Arc<Catalog>) -> Self {
        let names = ExposedNames::of(catalog.tools(), &search::RESERVED);
        let named = catalog.tools().filter_map(|tool| {
            let exposed = names.exposed(&tool.name)?;
            Some(ListedTool::of(tool, exposed))
        });
        let mut tools: Vec<ListedTool> = named.collect();
        tools.sort_by(|one, other| one.described.name.cmp(&other.described.name));
        Self {
            generation,
            catalog,
            names,
            tools,
        }
    }

    /// Those of a caller, in order.
    pub(crate) fn of(&self, subset: &ToolSubset) -> impl Iterator<Item = &ListedTool> {
        self.tools.iter().filter(|tool| tool.is_of(subset))
    }

    /// The tool that a request names: as it is exposed, as it is in the catalog, or as `plugin__tool`.
    pub(crate) fn find(&self, name: &str) -> Option<&ListedTool> {
        let name = match self.names.tool(name) {
            Some(name) => name,
            None => &self.catalog.resolve(name).ok()?.name,
        };
        let is_it = |listed: &&ListedTool| listed.tool.name == *name;
        self.tools.iter().find(is_it)
    }

    /// What a caller is told who names a tool that there is not.
    pub(crate) fn not_found(&self, name: &str) -> String {
        match self.catalog.resolve(name) {
            Err(failure) => failure.message,
            Ok(_) => format!("no tool is named `{name}`"),
        }
    }
}

/// The list of this moment, kept until the catalog changes.
#[derive(Debug, Default)]
pub(crate) struct Lists(Mutex<Option<Arc<Listed>>>);

impl Lists {
    /// The list of this moment.
    pub(crate) fn current(&self, host: &Host) -> Arc<Listed> {
        // Read before the catalog: a change in between is seen at the next look.
        let generation = host.watch_catalog().generation();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_ref() {
            Some(listed) if listed.generation == generation => Arc::clone(listed),
            _ => {
                let listed = Arc::new(Listed::new(generation, host.catalog()));
                *kept = Some(Arc::clone(&listed));
                listed
            }
        }
    }
}
