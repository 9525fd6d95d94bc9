//! The names that tools of plugins are offered by.

use std::collections::BTreeSet;

use zeph_core::id::{PluginId, ToolName};
use zeph_core::policy::tool_key;
use zeph_core::tool::Tool;

use super::{ProgramParts, VettedPlugin};
use crate::owners::{JOINT, Owners, host_keys};

/// The names that are taken.
pub(super) struct TakenNames {
    owners: Owners,
    /// By what rules see of them.
    tools: BTreeSet<String>,
    plugins: BTreeSet<PluginId>,
}

impl TakenNames {
    pub(super) fn of(fixed: &ProgramParts, owners: Owners) -> Self {
        let plugins = fixed.plugins.iter().map(|own| own.plugin.id().clone());
        Self {
            owners,
            tools: host_keys(fixed),
            plugins: plugins.collect(),
        }
    }

    /// The tools of a plugin under the names they are offered by.
    ///
    /// Errors: one sentence when a name cannot be given; then none is.
    pub(super) fn give(&mut self, good: &VettedPlugin) -> Result<Vec<Tool>, String> {
        let id = good.plugin.id();
        if self.plugins.contains(id) {
            return Err(format!("another plugin is named `{id}`; rename the file"));
        }
        let mut keys = BTreeSet::new();
        let mut offered: Vec<Tool> = Vec::new();
        for tool in good.plugin.tools() {
            let name = self.offered(id, &tool.name)?;
            let key = tool_key(name.as_str());
            if self.tools.contains(&key) || !keys.insert(key) {
                return Err(format!("its tool `{name}` has a name that is taken"));
            }
            offered.push(Tool {
                name,
                ..tool.clone()
            });
        }
        self.plugins.insert(id.clone());
        self.tools.extend(keys);
        Ok(offered)
    }

    /// The name of a tool: its own when it belongs to the plugin, else `plugin__tool`.
    fn offered(&self, id: &PluginId, own: &ToolName) -> Result<ToolName, String> {
        // A tool that came with a newer host keeps its name from everybody.
        let is_free = !self.tools.contains(&tool_key(own.as_str()));
        if is_free && self.owners.owns(id, own) {
            return Ok(own.clone());
        }
        ToolName::new(format!("{id}{JOINT}{own}")).map_err(|_| {
            format!(
                "its tool `{own}` has a name that is taken, and `{id}{JOINT}{own}` is too long; rename the file to something shorter"
            )
        })
    }
}
