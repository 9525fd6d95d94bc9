//! What is known of a plugin from an earlier look, so that a start neither reads nor runs it.
//!
//! A record stands in the private cache directory and holds for one state of one file: inode, length, times. What it says
//! about the tools is only used if the pin matches. An unreadable record counts as missing.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeph_core::id::Pin;
use zeph_core::manifest::Manifest;
use zeph_core::tool::Tool;
use zeph_engine::StrategyDefinition;

use super::folder::FileStamp;

/// What a look at a file found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum RecordVerdict {
    /// A plugin.
    Good(Box<PluginDescription>),
    /// No plugin, for this reason.
    Bad(String),
}

/// A plugin as its file describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PluginDescription {
    /// Of the bytes and of the definitions.
    pub(crate) pin: Pin,
    /// What it wants.
    pub(crate) manifest: Manifest,
    /// Whether the file says what it wants; else the operator may.
    pub(crate) has_manifest: bool,
    /// Its tools under their own names.
    pub(crate) tools: Vec<Tool>,
    /// Its filter strategies under their own names.
    #[serde(default)]
    pub(crate) strategies: Vec<StrategyDefinition>,
    /// What the file says about itself.
    pub(crate) about: ComponentInfo,
}

/// What a component says about itself; every text is the author's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentInfo {
    /// `tool plugin`, `filter strategies` or `plain component`.
    pub kind: String,
    /// Its version.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who wrote it.
    pub authors: Option<String>,
    /// Under which terms, as SPDX.
    pub licences: Option<String>,
    /// Where to read more.
    pub homepage: Option<String>,
    /// Functions of a plain component that cannot be offered, each with the reason.
    #[serde(default)]
    pub skipped: Vec<(String, String)>,
}

/// The directory of records; `None` when there is no cache.
#[derive(Debug, Clone)]
pub struct Records {
    dir: Option<PathBuf>,
}

/// The file, exactly.
#[derive(Serialize, Deserialize)]
struct PluginRecord {
    /// Another version of the host may read components differently.
    host: String,
    path: PathBuf,
    stamp: FileStamp,
    verdict: RecordVerdict,
}

/// Changes whenever this build would judge or describe a component differently.
const HOST: &str = concat!(env!("CARGO_PKG_VERSION"), " 5");

impl Records {
    /// The records below the cache directory. One that others may write into is not used.
    pub fn new(cache_dir: Option<&Path>) -> Self {
        let dir = cache_dir.map(|cache| cache.join("plugins"));
        Self {
            dir: dir.filter(|dir| is_usable(dir)),
        }
    }

    /// What was found when `path` had `stamp`.
    pub(crate) fn recall(&self, path: &Path, stamp: &FileStamp) -> Option<RecordVerdict> {
        let text = fs::read(self.file(path)?).ok()?;
        let record: PluginRecord = serde_json::from_slice(&text).ok()?;
        let holds = record.host == HOST && record.path == path && record.stamp == *stamp;
        holds.then_some(record.verdict)
    }

    /// Keeps what was found. Failing only costs the next start some time.
    pub(crate) fn keep(&self, path: &Path, stamp: &FileStamp, verdict: &RecordVerdict) {
        let Some(file) = self.file(path) else {
            return;
        };
        let record = PluginRecord {
            host: HOST.to_owned(),
            path: path.to_owned(),
            stamp: stamp.clone(),
            verdict: verdict.clone(),
        };
        write(&file, &record);
    }

    /// Drops what is known of `path`.
    pub fn forget(&self, path: &Path) {
        if let Some(file) = self.file(path) {
            // What is left of a file that is gone is never asked for.
            drop(fs::remove_file(file));
        }
    }

    fn file(&self, path: &Path) -> Option<PathBuf> {
        let name = zeph_engine::digest(path.as_os_str().as_encoded_bytes()).hex();
        Some(self.dir.as_ref()?.join(name).with_extension("json"))
    }
}

fn is_usable(dir: &Path) -> bool {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir);
    let meta = made.and_then(|()| fs::metadata(dir));
    meta.is_ok_and(|meta| {
        meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
    })
}

fn write(file: &Path, record: &impl Serialize) {
    let kept = serde_json::to_vec(record)
        .map_err(std::io::Error::from)
        .and_then(|text| replace(file, &text));
    if let Err(error) = kept {
        tracing::debug!(file = %file.display(), %error, "what a plugin holds cannot be kept");
    }
}

fn replace(file: &Path, text: &[u8]) -> std::io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::NamedTempFile::new_in(dir)?;
    temporary.write_all(text)?;
    temporary.persist(file).map_err(|error| error.error)?;
    Ok(())
}
