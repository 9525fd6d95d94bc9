//! To which plugin the name of a tool belongs, without `plugin__` before it.
//!
//! A name is given once, to the plugin that was pinned first, and stays with it when the plugin is off, changed or removed: a rule or
//! an approval that means one plugin must never come to mean another. Pure over the locks.

use std::collections::{BTreeMap, BTreeSet};

use zeph_core::id::{PluginId, ToolName};
use zeph_core::policy::tool_key;
use zeph_core::tool::Tool;

use super::set::{FolderLock, ProgramParts};

/// Stands between the name of a plugin and that of its tool.
pub(crate) const JOINT: &str = "__";

/// Keys that rules give a meaning of their own, whatever tools there are.
const RESERVED: [&str; 2] = ["bash", "write"];

/// Who owns which name.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// By what rules see of a name: two that they cannot tell apart are one.
    by_key: BTreeMap<String, PluginId>,
}

/// A name that is owned and not yet written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameClaim {
    pub(crate) name: ToolName,
    pub(crate) plugin: PluginId,
}

impl Owners {
    /// Gives out the names of everything pinned: first what the locks say of names, then the rest in the order of folders and pins.
    ///
    /// Returns with it, for each lock, what is to be added to it. While a lock cannot be read nothing new is given: it may say that a
    /// name is taken.
    pub(crate) fn of(fixed: &ProgramParts, locks: &[FolderLock]) -> (Self, Vec<Vec<NameClaim>>) {
        let mut owners = Self::default();
        for (name, plugin) in locks.iter().flatten().flat_map(|lock| lock.names()) {
            let key = tool_key(name.as_str());
            owners.by_key.entry(key).or_insert_with(|| plugin.clone());
        }
        let host = host_keys(fixed);
        let are_known = locks.iter().all(Result::is_ok);
        let given = locks.iter().map(|lock| match lock {
            Ok(lock) if are_known => {
                // One that is named like a plugin of the host is never in force and keeps no name from the others.
                let is_hosts =
                    |name: &PluginId| fixed.plugins.iter().any(|own| own.plugin.id() == name);
                let plugins = lock.plugins().iter();
                let plugins = plugins.filter(|plugin| !is_hosts(&plugin.name));
                let given = plugins.flat_map(|plugin| {
                    owners.give(&host, &plugin.name, plugin.definitions.tools())
                });
                given.collect()
            }
            _ => Vec::new(),
        });
        let given = given.collect();
        (owners, given)
    }

    fn give(
        &mut self,
        host: &BTreeSet<String>,
        plugin: &PluginId,
        tools: &[Tool],
    ) -> Vec<NameClaim> {
        let names = tools.iter().map(|tool| &tool.name);
        let names = names.filter(|name| {
            let key = tool_key(name.as_str());
            let is_free = !host.contains(&key) && !self.by_key.contains_key(&key);
            let can_stand_alone = !name.as_str().contains(JOINT);
            if is_free && can_stand_alone {
                self.by_key.insert(key, plugin.clone());
            }
            is_free && can_stand_alone
        });
        let given = names.map(|name| NameClaim {
            name: name.clone(),
            plugin: plugin.clone(),
        });
        given.collect()
    }

    /// Whether `name` alone means a tool of `plugin`.
    pub(crate) fn owns(&self, plugin: &PluginId, name: &ToolName) -> bool {
        !name.as_str().contains(JOINT) && self.by_key.get(&tool_key(name.as_str())) == Some(plugin)
    }
}

/// What the host's own tools are called by rules.
pub(crate) fn host_keys(fixed: &ProgramParts) -> BTreeSet<String> {
    let of_plugins = fixed.plugins.iter().flat_map(|own| own.plugin.tools());
    let tools = of_plugins.chain(&fixed.builtin);
    let keys = tools.map(|tool| tool_key(tool.name.as_str()));
    keys.chain(RESERVED.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests;
