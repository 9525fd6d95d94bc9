//! What a grant of a directory gives besides what was used: its other entries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Most names that are told of one directory.
const NAMES_MAX: usize = 20;

/// Most entries of a directory that are looked at.
const ENTRIES_MAX: usize = 100_000;

/// The entries of a suggested directory that no recorded call used.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct UnseenSiblings {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// The first of their names, a directory with a slash; sorted.
    pub(crate) names: Vec<String>,
    /// How many there are; a directory counts once, whatever is in it.
    pub(crate) total: usize,
}

/// Of each of `directories`, what lies right in it and was not `used`, nor anything below it.
///
/// One that cannot be read is omitted.
pub(crate) fn unseen<'d>(
    directories: impl IntoIterator<Item = &'d Path>,
    used: &BTreeSet<PathBuf>,
) -> Vec<UnseenSiblings> {
    let found = directories.into_iter().filter_map(|directory| {
        let names = names(directory, used)?;
        let total = names.len();
        let first = names.into_keys().take(NAMES_MAX);
        (total > 0).then(|| UnseenSiblings {
            directory: directory.to_owned(),
            names: first.collect(),
            total,
        })
    });
    found.collect()
}

fn names(directory: &Path, used: &BTreeSet<PathBuf>) -> Option<BTreeMap<String, ()>> {
    let entries = std::fs::read_dir(directory).ok()?;
    let unseen = entries.take(ENTRIES_MAX).flatten().filter_map(|entry| {
        let path = entry.path();
        let next = used.range(path.clone()..).next();
        if next.is_some_and(|next| next.starts_with(&path)) {
            return None;
        }
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let slash = if is_directory { "/" } else { "" };
        let name = entry.file_name();
        Some((format!("{}{slash}", name.to_string_lossy()), ()))
    });
    Some(unseen.collect())
}
