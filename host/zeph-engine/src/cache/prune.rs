//! What goes from a directory of compiled components when one is added: what other versions of the program left there long ago, and
//! the oldest of too much.
//!
//! A host keeps the files that it uses open or mapped, and compiles a component again when its file is gone, so removing a file costs
//! time only. Ages are measured by the clock of the file system: hosts that share a directory need not agree about the time.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long files of another engine are kept after they were written. A version that is used beside this one compiles again after that.
const OTHERS_MAX: Duration = Duration::from_hours(24 * 30);

/// How long a file may be half written: what is older was left by a host that died.
const UNFINISHED_MAX: Duration = Duration::from_hours(1);

/// Bytes of one directory: a hundred versions of the program with its own plugins. Beyond it, the oldest files go.
const BYTES_MAX: u64 = 4 << 30;

/// Most names of a directory that are looked at.
const NAMES_MAX: usize = 65_536;

/// What names of half written files begin with.
pub(super) const UNFINISHED: &str = ".zeph-compiled-";

/// The files of one component, for one engine.
#[derive(Default)]
struct Group {
    paths: Vec<PathBuf>,
    n_bytes: u64,
    modified: Option<SystemTime>,
}

/// Removes what is too old or too much from the directory of `written`, which was written a moment ago for the engine `engine_key`. Files that a
/// cache does not write are left alone.
pub(super) fn prune(written: &Path, engine_key: &str) {
    if let Err(error) = prune_to(written, engine_key, BYTES_MAX) {
        tracing::debug!(path = %written.display(), %error, "old compiled components cannot be removed");
    }
}

fn prune_to(written: &Path, engine_key: &str, n_bytes_max: u64) -> io::Result<()> {
    let now = fs::symlink_metadata(written)?.modified()?;
    let mut groups = groups(written.parent().unwrap_or(Path::new(".")), now)?;
    groups.retain(|(stem, group)| {
        let is_of_others = !stem.ends_with(engine_key);
        let is_kept = !is_of_others || !is_older(group.modified, now, OTHERS_MAX);
        if !is_kept {
            group.remove();
        }
        is_kept
    });
    // The lengths of sparse files can add up to more than 64 bits.
    let lengths = groups.iter().map(|(_, group)| u128::from(group.n_bytes));
    let mut n_bytes: u128 = lengths.sum();
    let written = written.file_stem().and_then(|stem| stem.to_str());
    groups.retain(|(stem, _)| Some(stem.as_str()) != written);
    groups.sort_unstable_by_key(|(_, group)| group.modified);
    for (_, group) in groups {
        if n_bytes <= u128::from(n_bytes_max) {
            break;
        }
        group.remove();
        n_bytes -= u128::from(group.n_bytes);
    }
    Ok(())
}

/// The files of each component in `dir`, by the name they share. What hosts that died left half written is removed.
fn groups(dir: &Path, now: SystemTime) -> io::Result<Vec<(String, Group)>> {
    let mut groups: HashMap<String, Group> = HashMap::new();
    for entry in fs::read_dir(dir)?.take(NAMES_MAX) {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str() else { continue };
        let is_unfinished = name.starts_with(UNFINISHED);
        let stem = name.split_once('.').map(|(stem, _)| stem);
        let stem = stem.filter(|stem| is_of_cache(stem));
        if !is_unfinished && stem.is_none() {
            continue;
        }
        // Not of what a link leads to. One that another host removed meanwhile is gone.
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        let modified = Some(meta.modified()?);
        match stem {
            Some(stem) => {
                let group = groups.entry(stem.to_owned()).or_default();
                group.paths.push(path);
                group.n_bytes = group.n_bytes.saturating_add(meta.len());
                group.modified = group.modified.max(modified);
            }
            None if is_older(modified, now, UNFINISHED_MAX) => remove(&path),
            None => {}
        }
    }
    Ok(groups.into_iter().collect())
}

/// Whether a file was written longer ago than `age`. One from the future was not.
fn is_older(modified: Option<SystemTime>, now: SystemTime, age: Duration) -> bool {
    let passed = modified.and_then(|modified| now.duration_since(modified).ok());
    passed.is_some_and(|passed| passed > age)
}

/// Whether files of this name, without its extension, are of a component: its digest, and 16 digits of an engine.
fn is_of_cache(stem: &str) -> bool {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_hex = |text: &str| text.bytes().all(is_digit);
    stem.split_once('-').is_some_and(|(digest, engine)| {
        (digest.len(), engine.len()) == (64, 16) && is_hex(digest) && is_hex(engine)
    })
}

impl Group {
    fn remove(&self) {
        self.paths.iter().for_each(|path| remove(path));
    }
}

/// Removes a file. What this user may not remove stays.
fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::debug!(path = %path.display(), %error, "an old compiled component stays");
    }
}

#[cfg(test)]
mod tests;
