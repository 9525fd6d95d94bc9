//! From a file to a plugin: read whole, checked, compiled, asked for its tools or strategies; or one sentence that says why not.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use zeph_core::failure::chain;
use zeph_core::id::{Pin, PluginId};
use zeph_core::limit::CallLimits;
use zeph_engine::{ComponentBytes, ComponentKind, Engine, Inspection, Plugin, inspect};

use super::definitions::Definitions;
use super::folder::{self, FileStamp, ReadError};
use super::record::{ComponentInfo, PluginDescription, RecordVerdict};
use super::set::{CandidateState, ManifestBy, VettedPlugin, read_manifest};

/// Longest time a plugin may take to list its tools. Source: a Python component on a busy machine takes a tenth of it.
const LISTING_MAX: Duration = Duration::from_secs(5);

/// Maximum length of the reason why a file is not a plugin, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What came of loading a file.
pub(crate) enum LoadResult {
    /// A plugin, and what to remember of it.
    Good(Arc<VettedPlugin>, RecordVerdict),
    /// None, for this reason.
    Bad(String),
    /// The file is still being written.
    Again,
}

/// A plugin that is known from an earlier look. It is not even read before its first call.
pub(crate) fn recalled(
    engine: &Engine,
    id: &PluginId,
    path: &Path,
    verdict: RecordVerdict,
) -> CandidateState {
    match verdict {
        RecordVerdict::Bad(reason) => CandidateState::Bad(reason),
        RecordVerdict::Good(known) => {
            let PluginDescription {
                pin,
                manifest,
                has_manifest,
                tools,
                strategies,
                about,
            } = *known;
            let (id, path) = (id.clone(), path.to_owned());
            let plugin = match strategies.is_empty() {
                true => Plugin::recall(engine, id, pin.wasm, path, tools),
                false => Plugin::recall_filter(engine, id, pin.wasm, path, strategies),
            };
            CandidateState::Good(Arc::new(VettedPlugin {
                plugin,
                manifest: read_manifest(manifest),
                manifest_by: manifest_by(has_manifest),
                pin,
                about,
            }))
        }
    }
}

/// Loads the file that has `stamp`. Runs nothing of it but `list-tools` or `list-strategies`, without any grant.
pub(crate) async fn load(
    engine: &Engine,
    id: &PluginId,
    path: &Path,
    stamp: &FileStamp,
    limits: CallLimits,
) -> LoadResult {
    let (path, stamp) = (path.to_owned(), stamp.clone());
    let read = move || {
        folder::read(&path, &stamp).map_err(|error| match error {
            ReadError::Changing => LoadResult::Again,
            ReadError::Io(_) => LoadResult::Bad(error.to_string()),
        })
    };
    load_read(engine, id, limits, read).await
}

/// Loads a plugin from bytes that were read already.
pub(crate) async fn load_bytes(
    engine: &Engine,
    id: &PluginId,
    bytes: ComponentBytes,
    limits: CallLimits,
) -> LoadResult {
    load_read(engine, id, limits, move || Ok(bytes)).await
}

async fn load_read(
    engine: &Engine,
    id: &PluginId,
    limits: CallLimits,
    read: impl FnOnce() -> Result<ComponentBytes, LoadResult> + Send + 'static,
) -> LoadResult {
    let looked = tokio::task::spawn_blocking(move || look(read()?)).await;
    let (bytes, inspection) = match looked {
        Ok(Ok(read)) => read,
        Ok(Err(unread)) => return unread,
        Err(error) => {
            tracing::error!(%error, plugin = %id, "reading a plugin failed in the host");
            return LoadResult::Bad("the host failed while it read the file".to_owned());
        }
    };
    match Plugin::load(engine, id.clone(), bytes, listing(limits)).await {
        Ok(plugin) => good(plugin, inspection),
        Err(error) => LoadResult::Bad(chain(&error, REASON_CHARS_MAX)),
    }
}

/// The bounds of `list-tools`: a list is small and made at once, and others wait for a guest thread meanwhile.
fn listing(limits: CallLimits) -> CallLimits {
    CallLimits {
        wall_clock: limits.wall_clock.min(LISTING_MAX),
        cpu: limits.cpu.min(LISTING_MAX),
        ..limits
    }
}

/// Looks into a component without running anything.
fn look(bytes: ComponentBytes) -> Result<(ComponentBytes, Inspection), LoadResult> {
    let inspection = inspect(&bytes).map_err(|error| LoadResult::Bad(error.to_string()))?;
    match inspection.problems.first() {
        Some(problem) => Err(LoadResult::Bad(problem.clone())),
        None => Ok((bytes, inspection)),
    }
}

fn good(plugin: Plugin, inspection: Inspection) -> LoadResult {
    let about = about(&plugin, &inspection);
    let has_manifest = inspection.manifest.is_some();
    let manifest = inspection.manifest.unwrap_or_default();
    let tools = plugin.tools().to_vec();
    let definitions = match Definitions::new(manifest.wants.clone(), tools.clone()) {
        Ok(definitions) => definitions,
        Err(error) => return LoadResult::Bad(error.to_string()),
    };
    let pin = Pin {
        wasm: plugin.digest(),
        tools: definitions.digest(),
    };
    let known = PluginDescription {
        pin,
        manifest: manifest.clone(),
        has_manifest,
        tools,
        strategies: plugin.strategies().to_vec(),
        about: about.clone(),
    };
    let good = VettedPlugin {
        plugin,
        manifest: read_manifest(manifest),
        manifest_by: manifest_by(has_manifest),
        pin,
        about,
    };
    LoadResult::Good(Arc::new(good), RecordVerdict::Good(Box::new(known)))
}

fn manifest_by(has_manifest: bool) -> ManifestBy {
    match has_manifest {
        true => ManifestBy::Author,
        false => ManifestBy::Nobody,
    }
}

fn about(plugin: &Plugin, inspection: &Inspection) -> ComponentInfo {
    let kind = match &inspection.kind {
        ComponentKind::ToolPlugin { version } => format!("tool plugin (zeph:plugin {version})"),
        ComponentKind::FilterPlugin { version } => {
            format!("filter strategies (zeph:filter {version})")
        }
        ComponentKind::Plain | ComponentKind::Neither => "plain component".to_owned(),
    };
    let metadata = inspection.metadata.clone();
    let skipped = plugin.skipped().iter();
    let skipped = skipped.map(|export| (export.function.clone(), export.reason.clone()));
    ComponentInfo {
        kind,
        version: metadata.version,
        description: metadata.description,
        authors: metadata.authors,
        licences: metadata.licenses,
        homepage: metadata.homepage,
        skipped: skipped.collect(),
    }
}
