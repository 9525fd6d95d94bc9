//! To which plugin the name of a tool belongs, without `plugin__` before it.
//!
//! A name is given once, to the plugin that was pinned first, and stays with it when the plugin is off, changed or removed: a rule or
//! an approval that means one plugin must never come to mean another. A folder that was typed for one run comes after those of the
//! operator: its lock, which may come with a repository, gives no name away that a plugin of theirs has. Pure over the locks.

use std::collections::{BTreeMap, BTreeSet};

use zeph_core::id::{PluginId, ToolName};
use zeph_core::policy::tool_key;
use zeph_core::server::SERVER_TOOL_PREFIX;
use zeph_core::tool::Tool;

use super::lock::Lock;
use super::set::{FolderLock, ProgramParts};

/// Stands between the name of a plugin and that of its tool.
pub(crate) const JOINT: &str = "__";

/// Keys that rules give a meaning of their own, whatever tools there are.
const RESERVED: [&str; 2] = ["bash", "write"];

/// Who owns which name.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// By what rules see of a name: two that they cannot tell apart are one.
    by_key: BTreeMap<String, NameOwner>,
}

/// A plugin that owns a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NameOwner {
    plugin: PluginId,
    /// Whether its folder was typed for this run: another plugin of the same name, in a folder of the operator, is another owner.
    is_typed: bool,
}

/// A name that is owned and not yet written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameClaim {
    pub(crate) name: ToolName,
    pub(crate) plugin: PluginId,
}

impl Owners {
    /// Gives out the names of everything pinned: first what the locks say of names, then the rest in the order of folders and pins; the
    /// last `n_typed` locks, of folders that were typed for this run, get what the others leave.
    ///
    /// Returns with it, for each lock, what is to be added to it. While a lock cannot be read nothing new is given: it may say that a
    /// name is taken.
    pub(crate) fn of(
        fixed: &ProgramParts,
        locks: &[FolderLock],
        n_typed: usize,
    ) -> (Self, Vec<Vec<NameClaim>>) {
        let mut owners = Self::default();
        let (own, typed) = locks.split_at(locks.len().saturating_sub(n_typed));
        let mut are_known = true;
        let mut given = Vec::new();
        for (locks, is_typed) in [(own, false), (typed, true)] {
            are_known &= locks.iter().all(Result::is_ok);
            owners.claim(locks, is_typed);
            let each = locks.iter().map(|lock| match lock {
                Ok(lock) if are_known => owners.give_all(fixed, lock, is_typed),
                _ => Vec::new(),
            });
            given.extend(each);
        }
        (owners, given)
    }

    /// Takes what locks say of names. A typed one speaks only of what it pins.
    fn claim(&mut self, locks: &[FolderLock], is_typed: bool) {
        for lock in locks.iter().flatten() {
            let names = lock.names().iter();
            for (name, plugin) in
                names.filter(|(_, plugin)| !is_typed || lock.get(plugin).is_some())
            {
                let key = tool_key(name.as_str());
                let plugin = plugin.clone();
                let owner = NameOwner { plugin, is_typed };
                self.by_key.entry(key).or_insert(owner);
            }
        }
    }

    fn give_all(&mut self, fixed: &ProgramParts, lock: &Lock, is_typed: bool) -> Vec<NameClaim> {
        let host = host_keys(fixed);
        // One that is named like a plugin of the host is never in force and keeps no name from the others.
        let is_hosts = |name: &PluginId| fixed.plugins.iter().any(|own| own.plugin.id() == name);
        let plugins = lock.plugins().iter();
        let plugins = plugins.filter(|plugin| !is_hosts(&plugin.name));
        let given = plugins.flat_map(|plugin| {
            let owner = NameOwner {
                plugin: plugin.name.clone(),
                is_typed,
            };
            self.give(&host, &owner, plugin.definitions.tools())
        });
        given.collect()
    }

    fn give(
        &mut self,
        host: &BTreeSet<String>,
        owner: &NameOwner,
        tools: &[Tool],
    ) -> Vec<NameClaim> {
        let names = tools.iter().map(|tool| &tool.name);
        let names = names.filter(|name| {
            let key = tool_key(name.as_str());
            let is_free = !host.contains(&key) && !self.by_key.contains_key(&key);
            let is_given = is_free && can_stand_alone(name);
            if is_given {
                self.by_key.insert(key, owner.clone());
            }
            is_given
        });
        let given = names.map(|name| NameClaim {
            name: name.clone(),
            plugin: owner.plugin.clone(),
        });
        given.collect()
    }

    /// Whether `name` alone means a tool of `plugin`, whose folder was typed for this run or is the operator's.
    pub(crate) fn owns(&self, plugin: &PluginId, is_typed: bool, name: &ToolName) -> bool {
        let owner = self.by_key.get(&tool_key(name.as_str()));
        let is_its =
            owner.is_some_and(|owner| owner.plugin == *plugin && owner.is_typed == is_typed);
        is_its && can_stand_alone(name)
    }
}

/// Whether `name` has the form of one without its plugin: others are those of qualified tools and of MCP servers' tools.
fn can_stand_alone(name: &ToolName) -> bool {
    !name.as_str().contains(JOINT) && !tool_key(name.as_str()).starts_with(SERVER_TOOL_PREFIX)
}

/// What the host's own tools are called by rules.
pub(crate) fn host_keys(fixed: &ProgramParts) -> BTreeSet<String> {
    let of_plugins = fixed.plugins.iter().flat_map(|own| own.plugin.tools());
    let tools = of_plugins.chain(&fixed.builtin);
    let keys = tools.map(|tool| tool_key(tool.name.as_str()));
    keys.chain(RESERVED.map(str::to_owned)).collect()
}

#[cfg(test)]
pub(crate) mod tests;
