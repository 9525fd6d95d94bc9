//! `[plugins]`: which folders are looked into, what of them is kept from tools, and what each plugin is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use zeph_core::capability::{BadLimitName, Capability, FsRights};
use zeph_core::failure::one_line;
use zeph_core::id::PluginId;
use zeph_core::network::BadHostAccess;

use super::super::environment::FOLDERS;
use super::super::locate::{PLUGINS_FOLDER, PROGRAM, lock_of};
use super::super::origin::{ValueOrigin, path_text};
use super::super::own::OwnFiles;
use super::super::paths::{spellings, without_parents};
use super::super::raw::{RawMcp, RawPlugins, RawTools};
use super::Compiling;
use super::registries::downloads;
use crate::PluginsConfig;

/// Bytes of the settings of one plugin, as JSON. They are handed to it anew at each call.
const SETTINGS_BYTES_MAX: usize = 64 * 1024;

/// The plugin of the program whose settings are `tools.diagnostics`.
const DIAGNOSTICS: &str = "diagnostics";

/// The plugin of the program whose settings are `tools.scrape`.
const SCRAPE: &str = "scrape";

/// The plugin of the program whose settings are `tools.search`.
const SEARCH: &str = "search";

/// How the names of components end, and of the files beside them that say who vouches for them.
const KINDS: [&str; 4] = [
    "wasm",
    "wasm.minisig",
    "wasm.sigstore.json",
    "wasm.manifest.json",
];

/// The folders of plugins, in the order in which a name is looked up.
#[derive(Debug, Default)]
pub(super) struct Folders {
    /// Named by the operator.
    pub(super) named: Vec<PathBuf>,
    /// Beside the configuration file and in the data directory.
    usual: Vec<PathBuf>,
    /// How many of `named`, from the first, were typed for this run.
    n_typed: usize,
}

impl Folders {
    /// All of them, each once. Those that were typed are the last: what lies there takes no name from what the operator installed.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        each_once(self.own().iter().chain(self.typed()))
    }

    /// How many of [`all`](Self::all) were typed for this run, and are not the operator's own.
    fn n_last(&self) -> usize {
        self.all().len() - self.own().len()
    }

    /// The operator's own, each once.
    fn own(&self) -> Vec<PathBuf> {
        let named = self.named.iter().skip(self.n_typed);
        each_once(named.chain(&self.usual))
    }

    /// Where new plugins go: where this run was told to look, else to the user's own.
    pub(super) fn add_to(&self) -> Option<PathBuf> {
        match self.typed().first() {
            Some(typed) => Some(typed.clone()),
            None => self.usual.last().or(self.named.last()).cloned(),
        }
    }

    /// Those that were typed for this run.
    fn typed(&self) -> &[PathBuf] {
        self.named.get(..self.n_typed).unwrap_or(&self.named)
    }

    /// Those that commands can read and not change. One above all that they are given is out of their reach anyway.
    pub(super) fn protected(&self, open: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
        let is_above = |folder: &&PathBuf| {
            let folders = spellings(folder);
            let above = |place: &PathBuf| folders.iter().any(|folder| place.starts_with(folder));
            open.iter().any(above)
        };
        self.named
            .iter()
            .filter(move |folder| !is_above(folder))
            .cloned()
    }

    /// Keeps them from tools. The usual ones hold plugins only; of one that was named, which may be part of a project, what is
    /// loaded is hidden, and commands can add nothing.
    pub(super) fn hide(&self, own: &mut OwnFiles) {
        for folder in &self.usual {
            own.add_tree(Some(folder));
        }
        for folder in &self.named {
            KINDS.iter().for_each(|ending| own.add_kind(folder, ending));
        }
        for folder in self.usual.iter().chain(&self.named) {
            own.add_file(Some(&lock_of(folder)));
        }
    }
}

impl Compiling<'_> {
    /// The folders of plugins. Never a project's: what comes with a repository is not loaded because it lies there.
    ///
    /// Shape: `open` are the directories that tools and commands are given.
    pub(super) fn plugin_folders(
        &mut self,
        raw: &RawPlugins,
        user_file: Option<&Path>,
        open: &[PathBuf],
    ) -> Folders {
        let beside_file = user_file.and_then(Path::parent).map(Path::to_owned);
        let data = self.surroundings.data_home.as_ref();
        let data = data.map(|home| home.join(PROGRAM));
        let usual = [beside_file, data].into_iter().flatten();
        let n_typed = self.n_typed(FOLDERS, raw.folders.len());
        let named = raw.folders.iter().enumerate();
        Folders {
            named: named
                .filter_map(|(idx, text)| self.named_folder((idx, text), idx < n_typed, open))
                .collect(),
            usual: usual.map(|place| place.join(PLUGINS_FOLDER)).collect(),
            n_typed,
        }
    }

    /// How many of the `n_items` of a list, from the first, were typed: all where a flag said the list, else those it put before it.
    fn n_typed(&self, key: &str, n_items: usize) -> usize {
        if self.is_typed(key) {
            return n_items;
        }
        let entry = self.merged.entries.get(key);
        let origins = entry.iter().flat_map(|entry| &entry.origins);
        origins
            .filter(|origin| matches!(origin, ValueOrigin::Flag { .. }))
            .count()
    }

    fn named_folder(
        &mut self,
        (idx, text): (usize, &String),
        is_typed: bool,
        open: &[PathBuf],
    ) -> Option<PathBuf> {
        let shown = one_line(text, 200);
        let folder = match self.base().absolute(text).map(without_parents) {
            _ if text.is_empty() => Err("an empty path".to_owned()),
            // It would be another folder in every repository, and none of them is trusted by itself.
            _ if !is_full(text) && !is_typed => Err(format!(
                "`{shown}` starts at the working directory, whichever that is; write the whole path, or `--plugins {shown}`"
            )),
            other => other,
        };
        let folder = folder.and_then(|folder| match open.iter().any(|place| is_same(place, &folder)) {
            true => Err(format!(
                "`{shown}` is a directory that tools may change, so a tool could add plugins; name one of its own, such as `{PLUGINS_FOLDER}`"
            )),
            false => Ok(folder),
        });
        let folder = folder.and_then(|folder| {
            match is_typed && folder.exists() && !folder.is_dir() {
                true => Err(format!(
                    "`{shown}` is no directory; name one with plugins in it, or let `zeph-host plugin add {shown}` add a component"
                )),
                false => Ok(folder),
            }
        });
        match folder {
            Ok(folder) => {
                if !folder.is_dir() {
                    let problem = match folder.exists() {
                        true => "this is no directory:",
                        false => "there is no directory",
                    };
                    let said = self.folder_said(idx);
                    let folder = path_text(&folder);
                    let warnings = &mut self.merged.warnings;
                    warnings.push(format!("`{said}`: {problem} {folder}"));
                }
                Some(folder)
            }
            Err(message) => {
                self.merged.problem_of_item(FOLDERS, idx, &message);
                None
            }
        }
    }

    /// Where a folder was named: the flag, or the key.
    fn folder_said(&self, idx: usize) -> String {
        let entry = self.merged.entries.get(FOLDERS);
        match entry.and_then(|entry| entry.origins.get(idx).or(entry.origins.last())) {
            Some(ValueOrigin::Flag { flag }) => one_line(flag, 200),
            _ => FOLDERS.to_owned(),
        }
    }

    /// Whether the effective value of a key was typed for this run, by a person who sees where they are.
    pub(super) fn is_typed(&self, key: &str) -> bool {
        let entry = self.merged.entries.get(key);
        let origin = entry.and_then(|entry| entry.origins.last());
        matches!(origin, Some(ValueOrigin::Flag { .. }))
    }

    /// Where plugins are looked for, and what each has from the start.
    pub(super) fn plugins(
        &mut self,
        raw: &RawPlugins,
        (tools, mcp): (&RawTools, &RawMcp),
        folders: &Folders,
    ) -> PluginsConfig {
        let settings = self.plugin_settings(raw, tools);
        let mut default_grants = self.default_grants(raw);
        let lsp_tools = self.lsp_tools(&tools.search.lsp, mcp);
        if let Some(search) = default_grants.get_mut(SEARCH) {
            search.extend(lsp_tools);
        }
        PluginsConfig {
            folders: match raw.enabled {
                true => folders.all(),
                false => Vec::new(),
            },
            n_typed: folders.n_last(),
            add_to: folders.add_to(),
            settings,
            default_grants,
            signatures: self.signatures(&raw.trust),
            indexes: self.indexes(raw),
            registries: self.registries(&raw.registries),
            downloads: downloads(raw),
            watch: raw.watch,
            home: self.surroundings.home.clone(),
        }
    }

    /// What the plugins of the program hold by default.
    fn default_grants(&mut self, raw: &RawPlugins) -> BTreeMap<String, Vec<Capability>> {
        let mut grants = BTreeMap::new();
        for (name, given) in &raw.default_grants {
            let mut capabilities = Vec::new();
            for text in given {
                match capability(text) {
                    Ok(capability) => capabilities.push(capability),
                    Err(message) => {
                        let key = format!("plugins.default_grants.{name}");
                        self.merged.problem(&key, &message);
                    }
                }
            }
            grants.insert(name.clone(), capabilities);
        }
        grants
    }

    /// What each plugin is told, as JSON. The plugins of the program have sections of their own.
    fn plugin_settings(
        &mut self,
        raw: &RawPlugins,
        tools: &RawTools,
    ) -> BTreeMap<String, Arc<str>> {
        let mut settings = BTreeMap::new();
        settings.extend(own_settings(DIAGNOSTICS, &tools.diagnostics));
        settings.extend(own_settings(SCRAPE, &tools.scrape));
        settings.extend(own_settings(SEARCH, &tools.search));
        for (name, table) in &raw.settings {
            if settings.contains_key(name) {
                let message = format!("the settings of `{name}` are the section `tools.{name}`");
                self.merged
                    .problem(&format!("plugins.settings.{name}"), &message);
                continue;
            }
            if let Some(wanted) = PluginId::problem(name) {
                let message = format!("this is not a valid plugin name: {wanted}");
                self.merged
                    .problem(&format!("plugins.settings.{name}"), &message);
            }
            let text = json(&toml::Value::Table(table.clone())).to_string();
            if text.len() > SETTINGS_BYTES_MAX {
                let n_bytes = text.len();
                let message =
                    format!("{n_bytes} bytes as JSON, wanted at most {SETTINGS_BYTES_MAX}");
                self.merged
                    .problem(&format!("plugins.settings.{name}"), &message);
                continue;
            }
            settings.insert(name.clone(), text.into());
        }
        settings
    }
}

/// The settings of a plugin of the program, from its section.
fn own_settings(name: &str, section: &impl Serialize) -> Option<(String, Arc<str>)> {
    let text = serde_json::to_string(section).ok()?;
    Some((name.to_owned(), text.into()))
}

/// A capability: `KIND VALUE`, or a directory without its kind.
fn capability(text: &str) -> Result<Capability, String> {
    let (kind, value) = text.split_once(' ').unwrap_or(("directory", text));
    let name = value.to_owned();
    let capability = match kind {
        "directory" => return directory(value),
        "host" => host(value)?,
        "program" => Capability::Program { name },
        "variable" => Capability::Variable { name },
        "limit" => limit(value)?,
        "embedder" => Capability::Embedder { name },
        "tool" => Capability::Tool { name },
        // A path with a space in it.
        _ => return directory(text),
    };
    match capability.problem() {
        _ if capability.is_unnamed() => {
            Err(format!("`{capability}` names none; name the one to grant"))
        }
        Some(problem) => Err(format!("`{}`: {problem}", one_line(text, 200))),
        None => Ok(capability),
    }
}

/// Hosts of the network: `HOST[:PORT][:METHODS]`.
fn host(text: &str) -> Result<Capability, String> {
    let access: Result<_, BadHostAccess> = text.parse();
    access
        .map(Capability::Host)
        .map_err(|error| error.to_string())
}

/// A limit and its value: `NAME=VALUE`.
fn limit(text: &str) -> Result<Capability, String> {
    let shown = one_line(text, 200);
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("`{shown}` has no value: write `NAME=100`"));
    };
    let name = name
        .parse()
        .map_err(|error: BadLimitName| error.to_string())?;
    let value = value
        .parse()
        .map_err(|_| format!("`{shown}`: the value must be a whole number"))?;
    Ok(Capability::Limit { name, value })
}

/// A directory and the rights on it: `PATH:RIGHTS`.
fn directory(text: &str) -> Result<Capability, String> {
    let shown = one_line(text, 200);
    let Some((path, rights)) = text.rsplit_once(':') else {
        return Err(format!(
            "`{shown}` names no rights: write `PATH:read+write`"
        ));
    };
    let rights: FsRights = rights
        .parse()
        .map_err(|error| format!("`{shown}`: {error}"))?;
    if path != "." && !is_full(path) {
        return Err(format!(
            "`{shown}`: the path must be `.`, absolute, or start with `~/`"
        ));
    }
    let path = path.to_owned();
    Ok(Capability::Directory { path, rights })
}

/// Whether a path says where it begins.
pub(super) fn is_full(text: &str) -> bool {
    text.starts_with('/') || text == "~" || text.starts_with("~/")
}

fn each_once<'a>(all: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in all {
        if !folders.iter().any(|known| is_same(known, folder)) {
            folders.push(folder.clone());
        }
    }
    folders
}

fn is_same(one: &Path, other: &Path) -> bool {
    spellings(one).pop() == spellings(other).pop()
}

/// The same in JSON. A date, which JSON does not have, is its text.
pub(super) fn json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(value) => (*value).into(),
        toml::Value::Float(value) => (*value).into(),
        toml::Value::Boolean(value) => (*value).into(),
        toml::Value::Datetime(value) => value.to_string().into(),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(table) => {
            let members = table.iter();
            members
                .map(|(name, value)| (name.clone(), json(value)))
                .collect()
        }
    }
}
