//! Brings an index up to date with the files that this call may see.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use zeph_plugin::progress;

use crate::index::{Index, IndexedFile, hash};
use crate::language;
use crate::outline::Outline;
use crate::sys::{self, Seen};

/// Larger files are not searched, in bytes.
const FILE_MAX: u64 = 1024 * 1024;
/// Files between two reports of progress.
const REPORT_EVERY: usize = 50;
/// Most strings that no file needs any more, before the index is made anew.
const STRINGS_SLACK: usize = 200_000;

/// A file that changed so short a time ago may change again without another time: it is looked at again.
const RECENT_MS: u64 = 2_000;

/// How the index stands to the files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Files that it holds.
    pub files: usize,
    /// Files whose content was new in this call.
    pub read: usize,
    /// Files that were removed from it.
    pub removed: usize,
    /// Files that are not in it, or differ: the time was not enough.
    pub pending: usize,
    /// Files that are too large.
    pub skipped: usize,
    /// Whether there are more files than are looked at.
    pub has_more: bool,
    /// Whether anything differs from what is kept.
    pub has_changed: bool,
}

/// Makes `index`, of the tree at `top`, hold exactly the files below `below` that this call sees; other files of the tree stay as they
/// are. Without `until`, nothing is read, and files that changed count as pending.
///
/// Errors: the directory cannot be listed.
pub fn refresh(
    index: &mut Index,
    top: &Path,
    below: &str,
    until: Option<Duration>,
) -> std::io::Result<Freshness> {
    let end = until.map(|time| Instant::now() + time);
    let wants = |path: &str| language::of_path(path).is_some();
    let (seen, has_more) = sys::walk(&top.join(below), &wants)?;
    let mut state = Freshness {
        has_more,
        ..Freshness::default()
    };
    let files = std::mem::take(&mut index.files);
    let is_below = |path: &str| {
        let rest = path.strip_prefix(below);
        below.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let (inside, outside): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| is_below(&file.path));
    let n_before = inside.len();
    let mut known: HashMap<String, IndexedFile> = inside
        .into_iter()
        .map(|file| (file.path.clone(), file))
        .collect();
    if known.is_empty() && outside.is_empty()
        || index.strings.len() > STRINGS_SLACK + 40 * seen.len()
    {
        *index = Index::default();
        known.clear();
    }
    let mut kept = Vec::new();
    let total = seen.len();
    for (at, file) in seen.into_iter().enumerate() {
        let path = match below {
            "" => file.path.clone(),
            below => format!("{below}/{}", file.path),
        };
        let old = known.remove(&path);
        let file = Seen { path, ..file };
        let time_is_up = end.is_none_or(|end| Instant::now() > end);
        kept.extend(one(index, top, file, old, time_is_up, &mut state));
        if at.is_multiple_of(REPORT_EVERY) && state.read > 0 {
            progress::count("indexing", at as u64, Some(total as u64));
        }
    }
    state.removed = known.len();
    state.has_changed |= state.removed > 0 || kept.len() != n_before;
    state.files = kept.len();
    kept.extend(outside);
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    index.files = kept;
    Ok(state)
}

/// What the index holds of one file from now on.
fn one(
    index: &mut Index,
    top: &Path,
    seen: Seen,
    old: Option<IndexedFile>,
    time_is_up: bool,
    state: &mut Freshness,
) -> Option<IndexedFile> {
    let same = |old: &IndexedFile| (old.size, old.modified_ms) == (seen.size, seen.modified_ms);
    if seen.size > FILE_MAX {
        state.skipped += 1;
        return None;
    }
    if old.as_ref().is_some_and(same) {
        return old;
    }
    if time_is_up {
        state.pending += 1;
        // What it says of lines that moved would be wrong.
        return None;
    }
    state.has_changed = true;
    let is_recent = seen.modified_ms + RECENT_MS > now_ms();
    let stamp = (seen.size, if is_recent { 0 } else { seen.modified_ms });
    let (bytes, text) = match sys::read(&top.join(&seen.path)) {
        Ok(Some(content)) => content,
        Ok(None) => return Some(IndexedFile::empty(seen.path, stamp)),
        Err(_) => return None,
    };
    if let Some(mut old) = old.filter(|old| old.hash == hash(&bytes)) {
        (old.size, old.modified_ms) = stamp;
        return Some(old);
    }
    state.read += 1;
    let reading = language::of_path(&seen.path)?;
    let outline = Outline::of(reading, &text);
    Some(IndexedFile::new(seen.path, stamp, &bytes, index, &outline))
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the times of files are compared with"
)]
fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = now.unwrap_or_default().as_millis();
    u64::try_from(millis).unwrap_or(u64::MAX)
}
