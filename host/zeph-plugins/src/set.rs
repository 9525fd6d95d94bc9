//! Everything that can be called at one moment: the active plugins, and the names of their tools.
//!
//! Built anew after every change and never altered; a call keeps the set it began with. Pure over what was found and pinned.

mod names;
mod standing;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use semver::Version;
use zeph_core::catalog::{Catalog, DuplicateTool};
use zeph_core::id::{Digest, Pin, PluginId};
use zeph_core::manifest::{Manifest, Want};
use zeph_core::tool::{Backend, Tool};
use zeph_engine::Plugin;

use super::definitions::Definitions;
use super::lock::version_of_tag;
use super::record::ComponentInfo;

pub(crate) use self::standing::{CandidateState, FolderLock, PluginCandidate};
pub use self::standing::{PluginStanding, Status};

use self::names::TakenNames;
use self::standing::order;

/// The plugins and tools of one moment.
#[derive(Debug, Default)]
pub struct PluginSet {
    /// Every tool that can be called.
    pub catalog: Arc<Catalog>,
    /// Those whose tools are in the catalog.
    in_force: BTreeMap<PluginId, InForce>,
    /// The filter strategies of active plugins, as rules name them: `PLUGIN/STRATEGY`.
    strategies: BTreeMap<String, PluginStrategy>,
    /// Every file of the folders, in the order in which names are given out.
    pub standings: Vec<PluginStanding>,
    /// What is wrong with a whole folder.
    pub problems: Vec<String>,
    /// Whether every file that was there has been looked at.
    pub is_settled: bool,
    /// Which set of its keeper it is: each has a greater number than the one before.
    pub generation: u64,
}

/// A plugin that can be called: it holds what its manifest wants and was granted to it, wherever it comes from.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The plugin.
    pub good: Arc<VettedPlugin>,
    /// Where it comes from.
    pub origin: PluginOrigin,
}

/// Where a plugin comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginOrigin {
    /// It is part of the program: its names are the host's, and it has the default grants of the configuration.
    Program,
    /// It was installed into a folder.
    Folder,
}

/// A filter strategy of an active plugin.
#[derive(Debug, Clone)]
pub struct PluginStrategy {
    /// Its plugin.
    pub plugin: Plugin,
    /// Its name in the plugin.
    pub own_name: String,
}

/// A manifest, perhaps yet to be read: most starts of the program call one plugin, or none.
pub type LazyManifest = LazyLock<Manifest, Box<dyn FnOnce() -> Manifest + Send>>;

/// A manifest that was read.
pub fn read_manifest(manifest: Manifest) -> LazyManifest {
    LazyLock::new(Box::new(move || manifest))
}

/// A file that turned out to be a plugin.
#[derive(Debug)]
pub struct VettedPlugin {
    /// Ready to be called.
    pub plugin: Plugin,
    /// What it wants.
    pub manifest: LazyManifest,
    /// Who says so.
    pub manifest_by: ManifestBy,
    /// What exactly it is.
    pub pin: Pin,
    /// What its file says about itself.
    pub about: ComponentInfo,
}

/// Who says what a plugin wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestBy {
    /// Its author, in the component.
    Author,
    /// The operator, in the lock, because its author does not.
    Operator,
    /// Nobody wrote a manifest: the plugin requests nothing, and the operator may add requests.
    Nobody,
}

/// What there is besides the folders.
#[derive(Debug, Clone, Default)]
pub struct ProgramParts {
    /// Plugins of the program.
    pub plugins: Vec<Arc<VettedPlugin>>,
    /// Tools of the host itself.
    pub builtin: Vec<Tool>,
}

impl VettedPlugin {
    /// The version that its file says it is.
    pub fn version(&self) -> Option<Version> {
        version_of_tag(self.about.version.as_deref()?)
    }

    /// A plugin of the program. Grants are bound to its name alone: another version of it comes with another version of the program,
    /// which its operator has chosen.
    pub fn of_program(plugin: Plugin, manifest: LazyManifest) -> Self {
        let part = zeph_engine::digest(format!("part of the program: {}", plugin.id()).as_bytes());
        Self {
            manifest,
            manifest_by: ManifestBy::Author,
            pin: Pin {
                wasm: part,
                tools: part,
            },
            about: ComponentInfo {
                kind: "part of the host".to_owned(),
                ..ComponentInfo::default()
            },
            plugin,
        }
    }

    /// Its definitions, which models and operators see.
    pub fn definitions(&self) -> Definitions {
        let wants = self.manifest.wants.clone();
        // Checked when the file was loaded, or the lock was written; only a record that was edited gets here, and its pin does not agree then.
        Definitions::new(wants, self.plugin.tools().to_vec()).unwrap_or_default()
    }

    /// Adds requests that the operator wrote; a manifest of the author takes precedence.
    pub fn with_wants(&self, wants: &[Want]) -> Self {
        let manifest = Manifest {
            wants: wants.to_vec(),
        };
        let mut good = Self {
            manifest: read_manifest(manifest),
            manifest_by: ManifestBy::Operator,
            plugin: self.plugin.clone(),
            pin: self.pin,
            about: self.about.clone(),
        };
        good.pin.tools = good.definitions().digest();
        good
    }
}

impl PluginSet {
    /// What there is without any folder.
    ///
    /// Errors: two tools of the host itself with one name.
    pub fn without_folders(fixed: &ProgramParts) -> Result<Self, DuplicateTool> {
        Self::assemble(fixed, Vec::new(), (&[], 0))
    }

    /// Decides which candidates are active, and assigns the names.
    ///
    /// Shape:  `locks` holds one entry for each folder; the last `n_typed` were typed for this run. A tool whose name belongs to its
    ///         plugin ([`Owners`](super::owners::Owners)) is offered by it, any other as `plugin__tool`.
    /// Errors: two tools of the host itself with one name.
    pub(crate) fn assemble(
        fixed: &ProgramParts,
        mut candidates: Vec<PluginCandidate>,
        (locks, n_typed): (&[FolderLock], usize),
    ) -> Result<Self, DuplicateTool> {
        let mut names = TakenNames::of(fixed, &candidates, (locks, n_typed));
        let typed_from = locks.len().saturating_sub(n_typed);
        let own = fixed
            .plugins
            .iter()
            .flat_map(|own| own.plugin.tools().iter());
        let mut tools: Vec<Tool> = own.chain(&fixed.builtin).cloned().collect();
        let mut set = Self::default();
        for own in &fixed.plugins {
            let in_force = InForce {
                good: Arc::clone(own),
                origin: PluginOrigin::Program,
            };
            set.in_force.insert(own.plugin.id().clone(), in_force);
        }
        candidates.sort_by_key(|candidate| order(candidate, locks));
        for candidate in candidates {
            let lock = &locks[candidate.folder_idx];
            let is_typed = candidate.folder_idx >= typed_from;
            let mut standing = PluginStanding::of(candidate, lock, is_typed);
            if let (Status::Active, Some(good)) = (&standing.status, &standing.good) {
                match set.give(&mut names, good, standing.folder_idx) {
                    Ok((offered, strategies)) => {
                        standing.tools = offered.iter().map(|tool| tool.name.clone()).collect();
                        standing.strategies = strategies;
                        tools.extend(offered);
                        let in_force = InForce {
                            good: Arc::clone(good),
                            origin: PluginOrigin::Folder,
                        };
                        set.in_force.insert(standing.name.clone(), in_force);
                    }
                    Err(reason) => standing.status = Status::Quarantined(reason),
                }
            }
            set.standings.push(standing);
        }
        set.is_settled = !set
            .standings
            .iter()
            .any(|standing| standing.status == Status::Loading);
        set.catalog = Arc::new(Catalog::new(tools)?);
        Ok(set)
    }

    /// The names of a plugin's tools and strategies. Its strategies are there from now on.
    ///
    /// Errors: one sentence when a tool's name cannot be given; then none is.
    fn give(
        &mut self,
        names: &mut TakenNames,
        good: &VettedPlugin,
        folder_idx: usize,
    ) -> Result<(Vec<Tool>, Vec<String>), String> {
        let plugin = &good.plugin;
        let tools = names.give(good, folder_idx)?;
        let mut strategies = Vec::new();
        for definition in plugin.strategies() {
            let own_name = definition.name.clone();
            let name = format!("{}/{own_name}", plugin.id());
            let strategy = PluginStrategy {
                plugin: plugin.clone(),
                own_name,
            };
            self.strategies.insert(name.clone(), strategy);
            strategies.push(name);
        }
        Ok((tools, strategies))
    }

    /// The filter strategy that rules name as `wasm:PLUGIN/STRATEGY`, or as `wasm:STRATEGY` when a single plugin has one of this
    /// name, active or not: it does not depend on which plugins are enabled.
    pub fn strategy(&self, name: &str) -> Option<&PluginStrategy> {
        if name.contains('/') {
            return self.strategies.get(name);
        }
        match self.owners(name).as_slice() {
            [owner] => self.strategies.get(&format!("{owner}/{name}")),
            _ => None,
        }
    }

    /// The plugins of the folders that have a strategy of this name, active or not; none as long as one of them may turn out to
    /// have it.
    pub fn owners(&self, own_name: &str) -> Vec<&PluginId> {
        let has_it = |standing: &&PluginStanding| {
            let good = standing.good.iter();
            let mut own = good.flat_map(|good| good.plugin.strategies());
            own.any(|strategy| strategy.name == own_name)
        };
        if !self.is_settled {
            return Vec::new();
        }
        let owners = self.standings.iter().filter(has_it);
        owners.map(|standing| &standing.name).collect()
    }

    /// The names of all filter strategies of plugins, sorted.
    pub fn strategy_names(&self) -> impl Iterator<Item = &str> {
        self.strategies.keys().map(String::as_str)
    }

    /// The plugin behind a backend.
    pub fn plugin(&self, backend: &Backend) -> Option<&InForce> {
        match backend {
            Backend::Wasm(id) => self.in_force.get(id),
            Backend::Builtin | Backend::Shell | Backend::Mcp(_) => None,
        }
    }

    /// Every tool that rules may name: those that are offered, and those of plugins that are off.
    pub fn known_tools(&self) -> impl Iterator<Item = &Tool> {
        let off = self
            .standings
            .iter()
            .filter(|standing| standing.status != Status::Active);
        let off = off.filter_map(|standing| standing.good.as_ref());
        let off = off.flat_map(|good| good.plugin.tools());
        self.catalog.tools().chain(off)
    }

    /// The plugins of the program, by name.
    pub fn of_program(&self) -> impl Iterator<Item = &Arc<VettedPlugin>> {
        let own = self.in_force.values();
        own.filter(|in_force| in_force.origin == PluginOrigin::Program)
            .map(|in_force| &in_force.good)
    }

    /// How the plugin of this name stands.
    pub fn standing(&self, name: &str) -> Option<&PluginStanding> {
        self.standings
            .iter()
            .find(|standing| standing.name.0 == name)
    }
}

impl InForce {
    /// The digest of an installed component; none for a part of the program.
    pub fn owner(&self) -> Option<Digest> {
        match self.origin {
            PluginOrigin::Program => None,
            PluginOrigin::Folder => Some(self.good.pin.wasm),
        }
    }

    /// The plugin itself.
    pub fn plugin(&self) -> &Plugin {
        &self.good.plugin
    }
}

#[cfg(test)]
mod tests;
