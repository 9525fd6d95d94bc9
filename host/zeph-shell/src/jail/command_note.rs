//! What a host leaves for the next one should it be killed while a command runs: since when commands ran, and what they could change.
//!
//! Nobody looks at what a command made when its host is gone, so nothing of it is held back. The next host cannot tell it from what a person
//! did meanwhile: it renames nothing, and tells what was made or changed since then. The note stands in the directory where the host keeps
//! what it found out about the machine, one for each jail: locked while its process lives, empty while no command runs. A note that nobody
//! locks is one of a host that is gone. No command fails because of a note.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use zeph_core::text::plain_line;

use super::aftermath::AftermathFinding;
use super::mount::within_any;
use super::survey::{Survey, TICK, lies_in_fetched};
use super::{Jail, Mode, as_user, doors, gitruns, new_repositories, place_state, rebase};

/// The directory of the notes, in that of the host's records.
const FOLDER: &str = "commands";

/// Most bytes of a note that are read; a longer one says nothing.
const BYTES_MAX: u64 = 64 * 1024;

/// Most notes that are looked at. Those of directories that are gone are removed.
const NOTES_MAX: usize = 1_000;

/// Most files that are named, and characters of each.
const SHOWN_MAX: usize = 5;
const PATH_CHARS_MAX: usize = 160;

/// Tries to make a note that no other host takes for one that was left, before it is locked.
const TRIES: usize = 3;

/// The note of one jail.
#[derive(Debug, Default)]
pub(super) struct CommandNote {
    /// Protects the note. Held for the look at those of others too, so that commands that begin meanwhile wait for it.
    state: Mutex<NoteState>,
}

#[derive(Debug, Default)]
struct NoteState {
    n_running: usize,
    /// Whether those of others were looked at.
    has_looked: bool,
    /// None where it could not be made. Removed with the jail.
    own: Option<OwnNote>,
}

#[derive(Debug)]
struct OwnNote {
    file: NamedTempFile,
    roots: Vec<PathBuf>,
}

/// What a note says while a command runs.
#[derive(Debug, Serialize, Deserialize)]
struct NoteText {
    /// When the first of the commands began that run; nanoseconds since 1970.
    begin_ns: i64,
    /// What they can change.
    roots: Vec<PathBuf>,
}

/// A command that is noted until this is dropped.
#[derive(Debug)]
pub(crate) struct CommandMark {
    note: Arc<CommandNote>,
    /// What a killed host left, if this is the first command of the next one.
    pub(super) found: Option<AftermathFinding>,
}

impl Jail {
    /// Notes that a command is about to run, until its protected places were looked at. None where there is no place for a note, or no
    /// jail. Blocks: some microseconds, for the first command up to the time of a survey.
    pub(crate) fn note_command(&self) -> Option<CommandMark> {
        let folder = self.policy.records.as_ref()?.join(FOLDER);
        if self.policy.mode == Mode::Disabled {
            return None;
        }
        let mut found = None;
        let mut state = self.commands.lock();
        if !std::mem::replace(&mut state.has_looked, true) {
            let looked = as_user(&self.policy, || self.begin_notes(&folder)).ok();
            (found, state.own) = looked.unwrap_or_default();
        }
        state.n_running += 1;
        if state.n_running == 1
            && let Some(own) = &state.own
            && let Err(error) = own.begin()
        {
            tracing::debug!(%error, "it cannot be noted that a command runs");
        }
        drop(state);
        Some(CommandMark {
            note: Arc::clone(&self.commands),
            found,
        })
    }

    /// What hosts left that are gone, and the note of this one.
    fn begin_notes(&self, folder: &Path) -> (Option<AftermathFinding>, Option<OwnNote>) {
        let Ok(granted) = &self.granted else {
            return (None, None);
        };
        let roots = granted.now();
        let left = left_in(folder, &roots.writable);
        let begin_ns = left.iter().map(|left| left.text.begin_ns).min();
        let found = begin_ns.and_then(|begin_ns| {
            let changed = changed_since(&self.survey(&roots), begin_ns);
            told(&changed)
        });
        if let Some(found) = &found {
            tracing::warn!("{}", found.text);
        }
        for left in &left {
            drop(fs::remove_file(&left.path));
        }
        let made = OwnNote::make(folder, roots.writable);
        if let Err(error) = &made {
            tracing::debug!(%error, "it cannot be noted when commands run");
        }
        (found, made.ok())
    }
}

impl CommandNote {
    fn lock(&self) -> std::sync::MutexGuard<'_, NoteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CommandMark {
    fn drop(&mut self) {
        let mut state = self.note.lock();
        state.n_running -= 1;
        if state.n_running == 0
            && let Some(own) = &state.own
        {
            // What stands there then is told once too often.
            drop(own.file.as_file().set_len(0));
        }
    }
}

impl OwnNote {
    /// Makes an empty note and locks it.
    fn make(folder: &Path, roots: Vec<PathBuf>) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        for _ in 0..TRIES {
            let file = NamedTempFile::new_in(folder)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // Another host that looks removes what is empty and not locked.
            if file.as_file().metadata()?.nlink() > 0 {
                return Ok(Self { file, roots });
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn begin(&self) -> io::Result<()> {
        let now = clock_gettime(ClockId::Realtime);
        let text = NoteText {
            begin_ns: now.tv_sec * 1_000_000_000 + now.tv_nsec - TICK,
            roots: self.roots.clone(),
        };
        let bytes = serde_json::to_vec(&text)?;
        self.file.as_file().write_all_at(&bytes, 0)
    }
}

/// A note that a host left, locked for this one.
struct LeftNote {
    path: PathBuf,
    text: NoteText,
    _lock: File,
}

/// The notes of hosts that are gone whose commands could change nothing outside of `roots`. Those that say nothing, or speak of directories
/// that are gone, are removed.
fn left_in(folder: &Path, roots: &[PathBuf]) -> Vec<LeftNote> {
    let mut left = Vec::new();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.take(NOTES_MAX) {
        let path = entry.path();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let Some(lock) = is_file.then(|| File::open(&path).ok()).flatten() else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let text = NoteText::read(&lock);
        let Some(text) = text.filter(|text| text.roots.iter().any(|root| root.is_dir())) else {
            drop(fs::remove_file(&path));
            continue;
        };
        if text.roots.iter().all(|root| within_any(root, roots)) {
            left.push(LeftNote {
                path,
                text,
                _lock: lock,
            });
        }
    }
    left
}

impl NoteText {
    fn read(file: &File) -> Option<Self> {
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// What programs obey of what `survey` found, and was made or changed since then.
fn changed_since(survey: &Survey, begin_ns: i64) -> BTreeSet<PathBuf> {
    let roots = &survey.roots;
    let at_home = roots.iter();
    let at_home = at_home.flat_map(|root| doors::of_root().map(|name| root.join(name)));
    let nothing = HashSet::new();
    let works = survey.repositories.iter();
    let of_git = works.flat_map(|work| {
        let mut found = gitruns::of_work(work, roots, &nothing);
        for git in new_repositories::directories(work) {
            found.extend(gitruns::of_directory(&git, roots, &nothing));
            found.extend(rebase::steps_in(&git).into_iter().map(|(file, _)| file));
        }
        found
    });
    let obeyed = survey.doors.iter().cloned().chain(at_home).chain(of_git);
    // Packages bring theirs, which nobody obeys.
    let own = obeyed.filter(|path| !lies_in_fetched(path, roots));
    own.filter(|path| is_changed(path, begin_ns)).collect()
}

/// Whether a place, or anything in it, was made or changed since then. The time of change cannot be set by anybody.
fn is_changed(path: &Path, begin_ns: i64) -> bool {
    place_state::paths(path).iter().any(|path| {
        let about = path.symlink_metadata();
        about.is_ok_and(|about| about.ctime() * 1_000_000_000 + about.ctime_nsec() >= begin_ns)
    })
}

fn told(changed: &BTreeSet<PathBuf>) -> Option<AftermathFinding> {
    let path = changed.first()?.clone();
    let shown = changed.iter().take(SHOWN_MAX);
    let shown = shown.map(|path| plain_line(&path.display().to_string(), PATH_CHARS_MAX));
    let shown: Vec<String> = shown.map(|path| format!("`{path}`")).collect();
    let more = match changed.len() - shown.len() {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    let text = format!(
        "an earlier host was killed while a command ran here, so nothing that the command made was held back: since that command began, {}{more} \
         appeared or changed, and programs outside the jail obey that; look at it before you go on",
        shown.join(", ")
    );
    Some(AftermathFinding { path, text })
}

#[cfg(test)]
mod tests;
