//! The names that tools of plugins are offered by.

use std::collections::{BTreeMap, BTreeSet};

use zeph_core::id::{PluginId, ToolName};
use zeph_core::policy::tool_key;
use zeph_core::tool::Tool;

use super::standing::PluginCandidate;
use super::{FolderLock, ProgramParts, VettedPlugin};
use crate::owners::{JOINT, Owners, host_keys};

/// The names that are taken.
pub(super) struct TakenNames {
    owners: Owners,
    /// By what rules see of them.
    tools: BTreeSet<String>,
    plugins: BTreeSet<PluginId>,
    /// In which folder the plugin of each name is.
    homes: BTreeMap<PluginId, usize>,
    /// The first folder that was typed for this run.
    typed_from: usize,
}

impl TakenNames {
    /// Shape: the last `n_typed` of `locks` are of folders that were typed for this run.
    pub(super) fn of(
        fixed: &ProgramParts,
        candidates: &[PluginCandidate],
        (locks, n_typed): (&[FolderLock], usize),
    ) -> Self {
        let (owners, _) = Owners::of(fixed, locks, n_typed);
        let plugins = fixed.plugins.iter().map(|own| own.plugin.id().clone());
        Self {
            owners,
            tools: host_keys(fixed),
            plugins: plugins.collect(),
            homes: homes(candidates, locks),
            typed_from: locks.len().saturating_sub(n_typed),
        }
    }

    /// The tools of a plugin of this folder under the names they are offered by.
    ///
    /// Errors: one sentence when a name cannot be given; then none is.
    pub(super) fn give(
        &mut self,
        good: &VettedPlugin,
        folder_idx: usize,
    ) -> Result<Vec<Tool>, String> {
        let id = good.plugin.id();
        let is_elsewhere = self.homes.get(id).is_some_and(|home| *home != folder_idx);
        if is_elsewhere || self.plugins.contains(id) {
            return Err(format!(
                "another plugin is named `{id}`, whether it is on or off; rename the file, or remove the other one"
            ));
        }
        let is_typed = folder_idx >= self.typed_from;
        let mut keys = BTreeSet::new();
        let mut offered: Vec<Tool> = Vec::new();
        for tool in good.plugin.tools() {
            let name = self.offered((id, is_typed), &tool.name)?;
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
    fn offered(
        &self,
        (id, is_typed): (&PluginId, bool),
        own: &ToolName,
    ) -> Result<ToolName, String> {
        // A tool that came with a newer host keeps its name from everybody.
        let is_free = !self.tools.contains(&tool_key(own.as_str()));
        if is_free && self.owners.owns(id, is_typed, own) {
            return Ok(own.clone());
        }
        ToolName::new(format!("{id}{JOINT}{own}")).map_err(|_| {
            format!(
                "its tool `{own}` has a name that is taken, and `{id}{JOINT}{own}` is too long; rename the file to something shorter"
            )
        })
    }
}

/// The first folder in which the plugin of each name was accepted, on or off: rules, settings and habits mean that one. Of a folder whose lock
/// cannot be read every file counts.
fn homes(candidates: &[PluginCandidate], locks: &[FolderLock]) -> BTreeMap<PluginId, usize> {
    let mut homes = BTreeMap::new();
    for (folder_idx, lock) in locks.iter().enumerate() {
        let pinned = lock.iter().flat_map(|lock| lock.plugins());
        let pinned = pinned.map(|plugin| &plugin.name);
        let here = candidates
            .iter()
            .filter(|candidate| candidate.folder_idx == folder_idx);
        let unread = here
            .filter(|_| lock.is_err())
            .map(|candidate| &candidate.name);
        for name in pinned.chain(unread) {
            homes.entry(name.clone()).or_insert(folder_idx);
        }
    }
    homes
}
