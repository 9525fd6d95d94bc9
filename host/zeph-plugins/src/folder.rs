//! The folders of plugins: which files are there, and reading one whole. Nothing here looks at what the bytes mean.
//!
//! A folder anybody may write into is not looked at: everybody could put tools into the hands of the model.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use zeph_config::PLUGINS_FOLDER;
use zeph_core::failure::one_line;
use zeph_core::id::PluginId;
use zeph_engine::{COMPONENT_BYTES_MAX, ComponentBytes};

use crate::visible::visible_line;

/// Most plugin files of one folder. More than anybody can oversee; bounds what a flood of files costs.
pub(crate) const FILES_MAX: usize = 256;

/// How long a file must have been left alone before it counts as complete. Source: a copy that goes on writes far more often.
pub(crate) const QUIET: Duration = Duration::from_millis(200);

/// What tells one state of a file from another without reading it. The change time cannot be set by any system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    pub(crate) dev: u64,
    pub(crate) inode: u64,
    pub(crate) n_bytes: u64,
    pub(crate) changed: (i64, i64),
    pub(crate) modified: (i64, i64),
}

/// A file that is, or should be, a plugin.
#[derive(Debug, Clone)]
pub(crate) struct FolderEntry {
    /// The name of the file without `.wasm`. It is a valid plugin name only if there is a stamp.
    pub(crate) name: PluginId,
    pub(crate) path: PathBuf,
    /// Or why it cannot be one, in one sentence.
    pub(crate) stamp: Result<FileStamp, String>,
}

/// Why a file could not be read whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It is being written, or was exchanged meanwhile.
    #[error("it changed while it was read")]
    Changing,
    /// The system refuses.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl FileStamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            dev: meta.dev(),
            inode: meta.ino(),
            n_bytes: meta.len(),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// The state of whatever stands at `path`; `None` when nothing does.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|meta| Self::of(&meta))
    }

    /// Whether the file was touched less than [`QUIET`] before `now_ms`, in Unix milliseconds.
    pub(crate) fn is_fresh(&self, now_ms: i64) -> bool {
        let (secs, nanos) = self.changed;
        let age_ms = now_ms - (secs * 1000 + nanos / 1_000_000);
        // A change in the future (the clock was set back) is taken as old: it must not be waited for.
        u128::try_from(age_ms).is_ok_and(|age_ms| age_ms < QUIET.as_millis())
    }
}

/// Every `*.wasm` of `folder`, sorted by name. A folder that is not there holds nothing.
///
/// Errors: one sentence when the folder must not be used.
pub(crate) fn scan(folder: &Path) -> Result<Vec<FolderEntry>, String> {
    let meta = match fs::metadata(folder) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    check(&meta)?;
    listed(folder, FILES_MAX)
}

/// The same of a folder that need not be one whose plugins are used: what is there can be named to be removed.
///
/// Errors: one sentence when it cannot be read.
pub(crate) fn everything(folder: &Path) -> Result<Vec<FolderEntry>, String> {
    match folder.exists() {
        true => listed(folder, usize::MAX),
        false => Ok(Vec::new()),
    }
}

fn listed(folder: &Path, n_max: usize) -> Result<Vec<FolderEntry>, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let path = entry.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "wasm")
        {
            let plugin = examine(path);
            found.insert(plugin.path.clone(), plugin);
        }
        if found.len() > n_max {
            return Err(format!(
                "it holds more than {n_max} plugins; `zeph-host plugin remove NAME` removes one"
            ));
        }
    }
    Ok(found.into_values().collect())
}

/// That `plugins` below `here` holds plugins and is none of `folders`, with the lines that use it; `None` when it is not so.
///
/// It is not used automatically, because the author of a repository chose its contents.
pub fn unused(here: &Path, folders: &[PathBuf]) -> Option<String> {
    let folder = here.join(PLUGINS_FOLDER);
    let real = folder.canonicalize().ok()?;
    let is_used = |used: &PathBuf| used.canonicalize().is_ok_and(|used| used == real);
    let n_plugins = scan(&folder).ok()?.len();
    if n_plugins == 0 || folders.iter().any(is_used) {
        return None;
    }
    let holds = match n_plugins {
        1 => "holds a plugin that is".to_owned(),
        n_plugins => format!("holds {n_plugins} plugins that are"),
    };
    let shown = one_line(&folder.to_string_lossy(), 1000);
    Some(format!(
        "`{shown}` {holds} not used, because a folder is not trusted for where it lies; `--plugins {PLUGINS_FOLDER}` uses it for one run, \
         `folders = [\"{shown}\"]` below [plugins] in your own configuration always"
    ))
}

pub(crate) fn check(folder: &Metadata) -> Result<(), String> {
    let me = rustix::process::geteuid().as_raw();
    if !folder.is_dir() {
        return Err("it is not a folder".to_owned());
    }
    if folder.mode() & 0o002 != 0 {
        return Err(
            "everybody may write into it; take that right away with `chmod o-w`".to_owned(),
        );
    }
    if folder.uid() != me && folder.uid() != 0 {
        return Err("it belongs to another user".to_owned());
    }
    Ok(())
}

fn examine(path: PathBuf) -> FolderEntry {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    // As it is: shortened or folded it could be the name of another file, which it would hide.
    let name = PluginId(visible_line(&stem));
    let stamp = match PluginId::problem(&stem) {
        Some(wanted) => Err(format!(
            "a plugin is named after its file: {wanted}; rename the file"
        )),
        None => stamp(&path),
    };
    FolderEntry { name, path, stamp }
}

fn stamp(path: &Path) -> Result<FileStamp, String> {
    let meta = fs::metadata(path).map_err(|error| format!("it cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if meta.len() > COMPONENT_BYTES_MAX {
        let n_bytes = meta.len();
        return Err(format!(
            "it has {n_bytes} bytes; the limit is {COMPONENT_BYTES_MAX}"
        ));
    }
    Ok(FileStamp::of(&meta))
}

/// Reads the file that has `stamp`, whole.
///
/// Errors: [`ReadError::Changing`] when it is no longer that file, before or after the reading.
pub(crate) fn read(path: &Path, stamp: &FileStamp) -> Result<ComponentBytes, ReadError> {
    let is_same = || Ok::<_, io::Error>(FileStamp::of(&fs::metadata(path)?) == *stamp);
    if !is_same()? {
        return Err(ReadError::Changing);
    }
    let bytes = ComponentBytes::read(path)?;
    if bytes.len() as u64 != stamp.n_bytes || !is_same()? {
        return Err(ReadError::Changing);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
