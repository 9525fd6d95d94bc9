//! The tools as clients see them, made once for each state of the catalog.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::Tool as McpTool;
use zeph_core::catalog::{Catalog, unknown_tool};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::tool::Tool;
use zeph_mcp::client::ToolDefinition;
use zeph_mcp::names::ExposedNames;
use zeph_mcp::subset::ToolSubset;
use zeph_mcp::tool::{OutputSchema, described};

use super::native::NativeServer;
use super::search;
use crate::builtin;
use crate::host::Host;
use crate::servers::OfferedTool;

/// Most subsets whose look is kept. Beyond it, all are computed again.
const LOOKS_MAX: usize = 1_024;

/// The tools of one state of the catalog.
#[derive(Debug)]
pub(crate) struct Listed {
    generation: u64,
    /// What other names may mean; nothing for the tools of a native server.
    catalog: Option<Arc<Catalog>>,
    /// In the order of the exposed names, which no client and no start changes.
    tools: Vec<ListedTool>,
    /// What the clients of a subset see, by its patterns, as a number that differs when that does.
    looks: Mutex<HashMap<Option<Arc<[String]>>, u64>>,
}

/// A tool with its description for clients.
#[derive(Debug)]
pub(crate) struct ListedTool {
    pub(crate) tool: Tool,
    pub(crate) described: McpTool,
    pub(crate) output: Option<OutputSchema>,
    /// Whether no rule lets it run. Then it is listed for nobody, and a call of it is refused and recorded like any other that rules deny.
    pub(super) is_hidden: bool,
}

impl ListedTool {
    fn of(tool: &Tool, exposed: &str) -> Self {
        let output = OutputSchema::of(tool);
        Self {
            tool: tool.clone(),
            described: described(tool, exposed, output.as_ref()),
            output,
            is_hidden: false,
        }
    }

    /// A tool of a native server, under its own name unless the operator chose another one, and as the server describes it but for what the
    /// operator changed.
    pub(super) fn native(offered: &OfferedTool, definition: &ToolDefinition) -> Self {
        let tool = &offered.tool;
        let output = OutputSchema::of(tool);
        let name = match tool.name.as_str() == tool.qualified_name() {
            true => definition.name.as_str(),
            false => tool.name.as_str(),
        };
        let ours = described(tool, name, output.as_ref());
        let mut shown = definition.listed.shown.clone();
        if tool.description != definition.description {
            shown.description.clone_from(&ours.description);
        }
        if tool.parameters.schema() != definition.parameters.schema() {
            shown.input_schema = ours.input_schema;
        }
        shown.name = ours.name;
        shown.output_schema = ours.output_schema;
        Self {
            tool: tool.clone(),
            described: shown,
            output,
            is_hidden: false,
        }
    }

    /// The tool, hidden when no rule lets it run.
    pub(super) fn hidden_by(self, is_hidden: impl Fn(&Tool) -> bool) -> Self {
        Self {
            is_hidden: is_hidden(&self.tool),
            ..self
        }
    }

    /// Whether the token of a caller lets it call the tool.
    pub(crate) fn is_of(&self, subset: &ToolSubset) -> bool {
        subset.has(self.tool.name.as_str(), &self.tool.qualified_name())
    }
}

impl Listed {
    fn new(generation: u64, catalog: Arc<Catalog>, is_hidden: impl Fn(&Tool) -> bool) -> Self {
        let names = ExposedNames::of(catalog.tools(), &search::RESERVED);
        let named = catalog.tools().filter_map(|tool| {
            let exposed = names.exposed(&tool.name)?;
            Some(ListedTool::of(tool, exposed).hidden_by(&is_hidden))
        });
        Self::sorted(generation, named.collect(), Some(Arc::clone(&catalog)))
    }

    /// The tools of a native server, and the one that reads back what was cut of their results.
    fn native(
        generation: u64,
        catalog: &Catalog,
        native: &NativeServer,
        is_hidden: impl Fn(&Tool) -> bool,
    ) -> Self {
        let reader = catalog.resolve(builtin::READ_OVERFLOW).ok();
        let named = |tool| ListedTool::of(tool, builtin::READ_OVERFLOW).hidden_by(is_hidden);
        let tools = with_reader(native.tools(), reader.map(named));
        Self::sorted(generation, tools, None)
    }

    fn sorted(generation: u64, mut tools: Vec<ListedTool>, catalog: Option<Arc<Catalog>>) -> Self {
        tools.sort_by(|one, other| one.described.name.cmp(&other.described.name));
        Self {
            generation,
            catalog,
            tools,
            looks: Mutex::default(),
        }
    }

    /// What the clients of `subset` see, as a number that differs when that does. `seen` is called once, however many ask at once.
    pub(super) fn look(&self, subset: &ToolSubset, seen: impl FnOnce() -> Vec<McpTool>) -> u64 {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let patterns = subset.patterns();
        if let Some(look) = looks.get(&patterns) {
            return *look;
        }
        if looks.len() >= LOOKS_MAX {
            looks.clear();
        }
        let mut hasher = DefaultHasher::new();
        // A tool that were no JSON could be listed for nobody.
        serde_json::to_vec(&seen())
            .unwrap_or_default()
            .hash(&mut hasher);
        *looks.entry(patterns).or_insert(hasher.finish())
    }

    /// Those that a caller sees, in order.
    pub(crate) fn of(&self, subset: &ToolSubset) -> impl Iterator<Item = &ListedTool> {
        let is_seen = |tool: &&ListedTool| !tool.is_hidden && tool.is_of(subset);
        self.tools.iter().filter(is_seen)
    }

    /// The tool that a request names: as it is exposed, as it is in the catalog, or as `plugin__tool`. Also one that is hidden.
    pub(crate) fn find(&self, name: &str) -> Option<&ListedTool> {
        let exposed = self
            .tools
            .iter()
            .find(|listed| listed.described.name == name);
        exposed.or_else(|| {
            let meant = &self.catalog.as_ref()?.resolve(name).ok()?.name;
            self.tools.iter().find(|listed| listed.tool.name == *meant)
        })
    }

    /// Why a tool that a caller may use is not listed, when the plugin or the server that has it is off.
    pub(crate) fn absence(
        &self,
        host: &Host,
        subset: &ToolSubset,
        name: &str,
    ) -> Option<ToolFailure> {
        let is_of_host = self.catalog.is_some();
        let may_use = subset.has(name, name);
        (is_of_host && may_use)
            .then(|| host.servers().why_absent(&host.plugins(), name))
            .flatten()
    }

    /// What a caller is told who names a tool that there is not: names of tools that it is listed, or, where it is listed none of them, what
    /// finds them.
    pub(crate) fn not_found(&self, subset: &ToolSubset, is_searched: bool, name: &str) -> String {
        if self.catalog.is_none() {
            return format!("no tool is named `{}`", one_line(name, 100));
        }
        if is_searched {
            let shown = one_line(name, 100);
            return format!(
                "no tool is named `{shown}`; find tools with `{}`",
                search::FIND
            );
        }
        let names: Vec<&str> = self
            .of(subset)
            .map(|tool| tool.described.name.as_ref())
            .collect();
        unknown_tool(name, &names).message
    }
}

/// The tools of a native server with the host's reader, unless clients know one of the server by its name.
fn with_reader(mut tools: Vec<ListedTool>, reader: Option<ListedTool>) -> Vec<ListedTool> {
    let Some(reader) = reader else { return tools };
    let is_same = |tool: &ListedTool| tool.described.name == reader.described.name;
    if tools.iter().any(|tool| is_same(tool) && !tool.is_hidden) {
        return tools;
    }
    tools.retain(|tool| !is_same(tool));
    tools.push(reader);
    tools
}

/// The list of this moment, kept until the catalog changes.
#[derive(Debug)]
pub(crate) struct Lists {
    native: Option<Arc<NativeServer>>,
    last: Mutex<Option<Arc<Listed>>>,
}

impl Lists {
    /// Lists of all tools, or of those of one server.
    pub(crate) fn new(native: Option<Arc<NativeServer>>) -> Self {
        Self {
            native,
            last: Mutex::default(),
        }
    }

    /// The list of this moment.
    pub(crate) fn current(&self, host: &Host) -> Arc<Listed> {
        // Read before the catalog: a change in between is seen at the next look.
        let generation = host.watch_catalog().generation();
        let mut kept = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_ref() {
            Some(listed) if listed.generation == generation => Arc::clone(listed),
            _ => {
                let catalog = host.whole_catalog();
                let is_hidden = |tool: &Tool| host.hides(tool);
                let listed = Arc::new(match &self.native {
                    None => Listed::new(generation, catalog, is_hidden),
                    Some(native) => Listed::native(generation, &catalog, native, is_hidden),
                });
                *kept = Some(Arc::clone(&listed));
                listed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use zeph_core::catalog::Catalog;
    use zeph_core::tool::Tool;
    use zeph_mcp::subset::ToolSubset;

    use super::{Listed, ListedTool, with_reader};
    use crate::builtin;

    #[test]
    fn a_hidden_tool_of_a_server_takes_no_name_from_the_reader() {
        let catalog = Catalog::new(builtin::tools()).unwrap();
        let reader = catalog.resolve(builtin::READ_OVERFLOW).unwrap();
        let other = catalog.tools().find(|tool| tool.name != reader.name);
        let of_server = |exposed, hides| {
            let tool = ListedTool::of(other.unwrap(), exposed);
            vec![tool.hidden_by(|_| hides)]
        };
        for (exposed, hides, expect) in [
            ("other", false, true),
            (builtin::READ_OVERFLOW, false, false),
            (builtin::READ_OVERFLOW, true, true),
        ] {
            let own = ListedTool::of(reader, builtin::READ_OVERFLOW);
            let listed = Listed::sorted(1, with_reader(of_server(exposed, hides), Some(own)), None);
            let found = listed.find(builtin::READ_OVERFLOW).unwrap();
            assert_eq!(found.tool.name == reader.name, expect, "{exposed} {hides}");
        }
        assert_eq!(with_reader(of_server("other", false), None).len(), 1);
    }

    #[test]
    fn what_a_subset_sees_is_computed_once() {
        let list = || {
            let catalog = Catalog::new(builtin::tools()).unwrap();
            Listed::new(1, Arc::new(catalog), |_| false)
        };
        let (listed, again) = (list(), list());
        let subset = |pattern| ToolSubset::new([pattern]).unwrap();
        let n_computed = Cell::new(0);
        let look = |listed: &Listed, subset: &ToolSubset| {
            listed.look(subset, || {
                n_computed.set(n_computed.get() + 1);
                listed
                    .of(subset)
                    .map(|tool| tool.described.clone())
                    .collect()
            })
        };
        let all = look(&listed, &ToolSubset::ALL);
        let reader = look(&listed, &subset(builtin::READ_OVERFLOW));
        for _ in 0..100 {
            assert_eq!(look(&listed, &ToolSubset::ALL), all);
            assert_eq!(look(&listed, &subset(builtin::READ_OVERFLOW)), reader);
        }
        assert_eq!(n_computed.get(), 2);
        assert_ne!(all, reader);
        assert_eq!(look(&again, &ToolSubset::ALL), all);
        assert_ne!(look(&again, &ToolSubset::none()), reader);
    }

    #[test]
    fn a_hidden_tool_is_found_and_listed_for_nobody() {
        let reader = builtin::READ_OVERFLOW;
        let catalog = Arc::new(Catalog::new(builtin::tools()).unwrap());
        for hides in [false, true] {
            let is_hidden = |tool: &Tool| hides && tool.name.as_str() == reader;
            let listed = Listed::new(1, Arc::clone(&catalog), is_hidden);
            let is_listed = |subset| {
                let mut tools = listed.of(subset);
                tools.any(|tool| tool.tool.name.as_str() == reader)
            };
            assert_eq!(is_listed(&ToolSubset::ALL), !hides);
            assert_eq!(listed.find(reader).map(|tool| tool.is_hidden), Some(hides));
            let none = ToolSubset::none();
            assert!(!is_listed(&none));
            assert!(!listed.find(reader).unwrap().is_of(&none));
            let told = listed.not_found(&ToolSubset::ALL, false, "no_such_tool");
            assert!(!hides || !told.contains(reader), "{told}");
        }
    }
}
