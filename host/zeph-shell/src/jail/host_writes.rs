//! What calls of the host wrote, with leave, to places that programs obey while commands ran: the look after a run takes it for nobody
//! else's work as long as it is what the call left.
//!
//! A command may change such a file right after the call did, and before it is noted here. So what is known is left where it is, but
//! told.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::held_object;

/// Most entries of one directory that a call wrote; of a larger one nothing is known.
const ENTRIES_MAX: usize = 2_000;

/// Most paths that are known at one time; more count as made by commands.
const PATHS_MAX: usize = 20_000;

/// Most bytes of a file whose content is compared. What programs obey is shorter.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How much earlier than the clock a file system may date a change.
const TICK_MS: i64 = 20;

/// What is known in this process: every jail looks after its own runs, and there is one tree.
static WRITES: LazyLock<Mutex<HostWrites>> = LazyLock::new(Mutex::default);

#[derive(Debug, Default)]
struct HostWrites {
    /// Runs that are looked after.
    n_runs: usize,
    known: HashMap<PathBuf, u64>,
    /// So that no command can make a file that looks like another one.
    keys: RandomState,
}

/// A run that is looked after. What was written is forgotten with the last one.
#[derive(Debug)]
pub(super) struct RunMark(());

/// An entry as it is.
struct Print {
    path: PathBuf,
    hash: u64,
    /// When it was changed last, in milliseconds; of directories it does not matter.
    changed_ms: Option<i64>,
}

/// A call of the host that may write, with leave, to places that programs obey.
#[derive(Debug)]
pub struct HostWrite {
    named: Vec<PathBuf>,
    since_ms: i64,
    /// What stood at the paths that it named and in them: a move keeps it.
    before: HashMap<PathBuf, u64>,
}

impl HostWrite {
    /// A call that `named` these paths, absolute and resolved, and begins at `since_ms`.
    ///
    /// Limits: nothing is looked at while no run is looked after. Files up to 1 MiB, directories up to 2,000 entries. Blocks.
    pub fn begin(named: Vec<PathBuf>, since_ms: i64) -> Self {
        let keys = keys_in_use();
        let looks = keys.iter().flat_map(|keys| {
            let found = named.iter().filter_map(move |path| look(path, keys));
            found.flatten()
        });
        let before = looks.map(|print| (print.path, print.hash)).collect();
        Self {
            named,
            since_ms,
            before,
        }
    }

    /// Notes that the call wrote `path`. What is in a directory it wrote only as far as it stood, or still stands, at one of the paths
    /// that it named: anybody may have put something into a new directory at once.
    ///
    /// Shape:  absolute, resolved. What the call neither moved nor changed is not noted.
    /// Limits: those of [`begin`](Self::begin). Blocks.
    pub fn note(&self, path: &Path) {
        let Some(keys) = keys_in_use() else {
            return;
        };
        let Some(prints) = look(path, &keys) else {
            return;
        };
        let above = path.ancestors().skip(1);
        let above = above.filter_map(|path| directory(path, &keys));
        let above = above.filter(|print| self.is_new(print));
        let is_its_work = |print: &Print| {
            let is_written = || print.path == path || self.is_copy(&print.path, path);
            self.is_moved(print, path) || self.is_new(print) && is_written()
        };
        let written = prints.into_iter().filter(is_its_work);
        let written: Vec<Print> = written.chain(above).collect();
        let mut writes = writes();
        if writes.n_runs == 0 {
            return;
        }
        for print in written {
            if writes.known.len() < PATHS_MAX || writes.known.contains_key(&print.path) {
                writes.known.insert(print.path, print.hash);
            }
        }
    }

    fn is_new(&self, print: &Print) -> bool {
        let changed = print.changed_ms;
        changed.is_none_or(|changed_ms| changed_ms >= self.since_ms - TICK_MS)
    }

    /// Whether the entry, which stands below `top` or is it, stood at the same place below one of the paths that the call named.
    fn is_moved(&self, print: &Print, top: &Path) -> bool {
        let mut places = self.places(&print.path, top);
        places.any(|place| self.before.get(&place) == Some(&print.hash))
    }

    /// Whether what stands at `path`, below `top`, is the same as at the same place below one of the paths that the call named.
    fn is_copy(&self, path: &Path, top: &Path) -> bool {
        self.places(path, top).any(|place| is_same(&place, path))
    }

    /// The place of `path`, which lies below `top`, in each of the other paths that the call named.
    fn places(&self, path: &Path, top: &Path) -> impl Iterator<Item = PathBuf> {
        let below = path.strip_prefix(top).ok();
        let sources = self
            .named
            .iter()
            .filter(move |source| !source.starts_with(top));
        sources.filter_map(move |source| Some(source.join(below?)))
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(of_one), Ok(of_other)) = (one.symlink_metadata(), other.symlink_metadata()) else {
        return false;
    };
    if of_one.file_type() != of_other.file_type() {
        return false;
    }
    if of_one.is_symlink() {
        let target = std::fs::read_link(one).ok();
        return target.is_some() && target == std::fs::read_link(other).ok();
    }
    of_one.is_dir() || content(one).is_some_and(|bytes| Some(bytes) == content(other))
}

/// Whether calls wrote all that stands at `path`.
pub(super) fn wrote_all(path: &Path) -> bool {
    not_written(path).is_some_and(|strangers| strangers.is_empty())
}

/// What stands at `path`, or in it, that no call wrote: of a directory with nothing but that only the directory. `None` when no call wrote
/// what stands at `path` itself, or when too much is in it.
pub(super) fn not_written(path: &Path) -> Option<Vec<PathBuf>> {
    let keys = keys_in_use()?;
    writes().known.get(path)?;
    // Nobody waits for it.
    let prints = look(path, &keys)?;
    let writes = writes();
    let other = prints
        .into_iter()
        .filter(|print| writes.known.get(&print.path) != Some(&print.hash));
    let mut other: Vec<PathBuf> = other.map(|print| print.path).collect();
    other.sort();
    // A directory comes before what is in it.
    other.dedup_by(|inner, outer| inner.starts_with(outer));
    (other.first().map(PathBuf::as_path) != Some(path)).then_some(other)
}

impl RunMark {
    pub(super) fn begin() -> Self {
        writes().n_runs += 1;
        Self(())
    }
}

impl Drop for RunMark {
    fn drop(&mut self) {
        let mut writes = writes();
        writes.n_runs -= 1;
        if writes.n_runs == 0 {
            writes.known = HashMap::new();
        }
    }
}

/// The keys of hashes; none while no run is looked after.
fn keys_in_use() -> Option<RandomState> {
    let writes = writes();
    (writes.n_runs > 0).then(|| writes.keys.clone())
}

fn writes() -> MutexGuard<'static, HostWrites> {
    WRITES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What stands at `path` and all in it; `None` when there is too much, something else than files, links and directories, or nothing.
fn look(path: &Path, keys: &RandomState) -> Option<Vec<Print>> {
    let mut found = Vec::new();
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        if found.len() + pending.len() > ENTRIES_MAX {
            return None;
        }
        let about = path.symlink_metadata().ok()?;
        if about.is_dir() {
            let listed = std::fs::read_dir(&path).ok()?.take(ENTRIES_MAX + 1);
            for entry in listed {
                pending.push(entry.ok()?.path());
            }
        }
        found.push(print(path, &about, keys)?);
    }
    Some(found)
}

fn directory(path: &Path, keys: &RandomState) -> Option<Print> {
    let about = path.symlink_metadata().ok().filter(Metadata::is_dir)?;
    print(path.to_owned(), &about, keys)
}

fn print(path: PathBuf, about: &Metadata, keys: &RandomState) -> Option<Print> {
    let mut hash = keys.build_hasher();
    (about.dev(), about.ino(), about.mode()).hash(&mut hash);
    if about.is_file() {
        content(&path)?.hash(&mut hash);
    } else if about.is_symlink() {
        std::fs::read_link(&path).ok()?.hash(&mut hash);
    } else if !about.is_dir() {
        return None;
    }
    let changed_ms = about.ctime() * 1000 + about.ctime_nsec() / 1_000_000;
    Some(Print {
        path,
        hash: hash.finish(),
        changed_ms: (!about.is_dir()).then_some(changed_ms),
    })
}

fn content(path: &Path) -> Option<Vec<u8>> {
    let file = File::from(held_object::open_to_read(path).ok()?);
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= FILE_BYTES_MAX).then_some(bytes)
}
