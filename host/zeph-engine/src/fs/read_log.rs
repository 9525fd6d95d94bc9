//! What a call has read of names, so that it replaces or removes only what it read.
//!
//! A name that a call found free, or a file it opened for reading, is remembered as it was. When the call then puts something in
//! its place or takes it away, what stands there must still be that: the same object, of the same size and times, and, where the
//! file changed so lately that its times may not tell, of the same content. A call that takes a name away or gives it to something else holds
//! its directory for that moment, so that nothing comes between comparing and changing, whether by one host or by two.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::FsCtx;
use super::error::{Code, FsOutcome};
use super::handle::DirHandle;
use super::path::GuestPath;
use super::policy::{FsPolicy, RootId};
use super::resolve::ResolvedName;
use super::stop::StopSwitch;
use super::sys::{self, FileId, Kernel, Meta, Moment};

/// Names remembered per call. What a call reads beyond them it replaces and removes like what it never read.
const NAMES_MAX: usize = 65_536;

/// Nanoseconds that the clock of a file system may stand still; twice the slowest tick of Linux.
const TICK: i64 = 20_000_000;

/// How long a directory is waited for that another program holds. Hosts hold one for microseconds.
const HELD_MAX: Duration = Duration::from_secs(2);

/// Between two looks whether a directory is free.
const HELD_LOOK: Duration = Duration::from_millis(1);

/// Bytes that are read at once for a content.
const PIECE_BYTES: u64 = 256 * 1024;

/// What one call has read.
#[derive(Debug, Default)]
pub(super) struct ReadLog {
    /// By real name; none where nothing stood.
    names: HashMap<PathBuf, Option<FileState>>,
    /// What the call itself has opened for writing.
    written: HashSet<FileId>,
}

/// A file as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    id: FileId,
    size: u64,
    modified: Moment,
    changed: Moment,
    /// A digest, where the times cannot tell of another change right after.
    content: Option<u64>,
}

impl ReadLog {
    fn note(&mut self, name: PathBuf, state: Option<FileState>) {
        if self.names.len() < NAMES_MAX || self.names.contains_key(&name) {
            self.names.insert(name, state);
        }
    }

    /// Forgets `name` and all below it, because the call has changed it.
    pub(super) fn forget(&mut self, name: &Path) {
        self.names.retain(|known, _| !known.starts_with(name));
    }

    /// Forgets an object that is gone: a file of another process may get its number.
    pub(super) fn forget_object(&mut self, id: FileId) {
        self.written.remove(&id);
    }

    /// Whether there is anything to compare with.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl FsCtx {
    /// Remembers the file behind `file`, which the call opened for reading in `root`. `handle` names it. False when it has lost its name
    /// meanwhile.
    pub(super) fn note_read(
        &mut self,
        policy: &FsPolicy,
        root: RootId,
        handle: &impl AsFd,
        file: &OwnedFd,
    ) -> FsOutcome<bool> {
        if !policy.changes(root) {
            return Ok(true);
        }
        let name = match policy.kernel().name(handle) {
            Err(Errno::NOENT) => return Ok(false),
            named => named?,
        };
        let state = FileState::of(file, &self.stop)?;
        self.seen.note(name, Some(state));
        Ok(true)
    }

    /// Remembers that the call writes the object `id` in place: it changes what it read itself.
    pub(super) fn note_written(&mut self, id: FileId) {
        self.seen.written.insert(id);
    }

    /// Remembers that nothing stands at `path`, when that is so. Its directory may be missing, too: then another process may make both.
    pub(super) fn note_absent(&mut self, dir: &DirHandle, path: GuestPath<'_>) {
        let policy = std::sync::Arc::clone(&self.policy);
        let asking = dir.asking(super::refusal::CREATE);
        let mut missing = Vec::new();
        let mut above = path;
        loop {
            let split = above.split();
            if !split.names_entry() {
                return;
            }
            match policy.entry(asking, above) {
                Ok(entry) => return self.note_free(&policy, &entry, &missing),
                Err(fail) if fail.is_absent() => missing.push(split.leaf),
                Err(_) => return,
            }
            let Ok(parent) = GuestPath::parse(split.parent.trim_end_matches('/')) else {
                return;
            };
            above = parent;
        }
    }

    /// Remembers that `entry` is free when it is so, or the path `missing` below it, the last name first.
    fn note_free(&mut self, policy: &FsPolicy, entry: &ResolvedName<'_>, missing: &[&str]) {
        let is_free = matches!(Meta::at(entry.dir(), entry.leaf), Err(Errno::NOENT));
        if is_free
            && !entry.hidden
            && policy.changes(entry.root)
            && let Ok(mut name) = entry.real_name(policy)
        {
            name.extend(missing.iter().rev());
            self.seen.note(name, None);
        }
    }

    /// Whether what stands at `entry`, `found`, is what the call read there, as far as it did.
    ///
    /// Errors: would-block if it was changed by another process meanwhile.
    pub(super) fn is_as_read(
        &self,
        policy: &FsPolicy,
        entry: &ResolvedName<'_>,
        found: Option<&Meta>,
    ) -> FsOutcome<()> {
        if self.seen.is_empty() {
            return Ok(());
        }
        let now = match found {
            Some(_) => Some(
                policy
                    .kernel()
                    .open_beneath(entry.dir(), entry.leaf, false)?,
            ),
            None => None,
        };
        // The name as the file system has it, which may differ in case.
        let name = match &now {
            Some(now) => policy.kernel().name(now)?,
            None => entry.real_name(policy)?,
        };
        match (self.seen.names.get(&name), found, &now) {
            (None, ..) | (Some(None), None, _) => Ok(()),
            (_, Some(found), _) if self.created.has_at(entry.dir(), entry.leaf, found) => Ok(()),
            (Some(Some(_)), _, Some(now)) => self.is_file_as_read(policy, &name, now),
            _ => Err(Code::WouldBlock.into()),
        }
    }

    /// Checks the object behind `handle`, whose real path is `name`, before the call changes it.
    pub(super) fn is_file_as_read(
        &self,
        policy: &FsPolicy,
        name: &Path,
        handle: &OwnedFd,
    ) -> FsOutcome<()> {
        let Some(Some(then)) = self.seen.names.get(name) else {
            return Ok(());
        };
        let is_own = || {
            Ok::<_, Errno>(self.seen.written.contains(&then.id) && Meta::of(handle)?.id == then.id)
        };
        match is_own()? || then.is_still(policy.kernel(), handle, &self.stop)? {
            true => Ok(()),
            false => Err(Code::WouldBlock.into()),
        }
    }
}

impl FileState {
    fn of(file: &OwnedFd, stop: &StopSwitch) -> FsOutcome<Self> {
        let meta = Meta::of(file)?;
        let content = match is_new(meta.changed) {
            true => Some(digest(file, stop)?),
            false => None,
        };
        Ok(Self {
            id: meta.id,
            size: meta.size,
            modified: meta.modified,
            changed: meta.changed,
            content,
        })
    }

    /// Whether the object behind `handle` is this one, unchanged.
    fn is_still(self, kernel: &Kernel, handle: &OwnedFd, stop: &StopSwitch) -> FsOutcome<bool> {
        let now = Meta::of(handle)?;
        let same_times = (now.modified, now.changed) == (self.modified, self.changed);
        if now.id != self.id || now.size != self.size || !same_times {
            return Ok(false);
        }
        match self.content {
            None => Ok(true),
            Some(then) => {
                let file = kernel.reopen(handle, OFlags::RDONLY)?;
                Ok(digest(&file, stop)? == then)
            }
        }
    }
}

/// Whether a change at `moment` is so recent that another one may get the same time.
fn is_new((seconds, nanoseconds): Moment) -> bool {
    let now = clock_gettime(ClockId::Realtime);
    let since = now.tv_sec.saturating_sub(seconds);
    let since = since.saturating_mul(1_000_000_000);
    #[allow(
        clippy::unnecessary_cast,
        reason = "the width of the field differs between systems"
    )]
    let since = since.saturating_add(now.tv_nsec as i64 - i64::from(nanoseconds));
    since <= TICK
}

fn digest(file: &OwnedFd, stop: &StopSwitch) -> FsOutcome<u64> {
    let mut hash = DefaultHasher::new();
    let mut offset = 0;
    loop {
        stop.check()?;
        let piece = super::file::read(file, PIECE_BYTES, offset)?;
        if piece.is_empty() {
            return Ok(hash.finish());
        }
        hash.write(&piece);
        offset += piece.len() as u64;
    }
}

/// Directories held so that no other host changes names in them meanwhile. They are free again when this is dropped.
#[derive(Debug)]
pub(super) struct HeldDirectories {
    _locks: [Option<OwnedFd>; 2],
}

impl HeldDirectories {
    /// Holds `dir`; not at all where it cannot be listed or its file system knows no locks.
    ///
    /// Errors: busy when another program does not let it go for two seconds.
    pub(super) fn take(dir: BorrowedFd<'_>, stop: &StopSwitch) -> FsOutcome<Self> {
        Ok(Self {
            _locks: [hold(dir, stop)?, None],
        })
    }

    /// Holds the directories that a name moves between, which may be one. All hosts take two in the same order, so that none waits for
    /// the other.
    ///
    /// Errors: those of [`take`](Self::take).
    pub(super) fn take_both(dirs: [BorrowedFd<'_>; 2], stop: &StopSwitch) -> FsOutcome<Self> {
        let [one, two] = dirs;
        let order = |dir| Meta::of(dir).map(|meta| (meta.id.dev, meta.id.ino));
        let (first, second) = match order(one)?.cmp(&order(two)?) {
            Ordering::Equal => return Self::take(one, stop),
            Ordering::Less => (one, two),
            Ordering::Greater => (two, one),
        };
        Ok(Self {
            _locks: [hold(first, stop)?, hold(second, stop)?],
        })
    }
}

fn hold(dir: BorrowedFd<'_>, stop: &StopSwitch) -> FsOutcome<Option<OwnedFd>> {
    let Ok(opened) = sys::open_directory(dir, ".") else {
        return Ok(None);
    };
    let end = Instant::now() + HELD_MAX;
    loop {
        match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(opened)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        stop.check()?;
        if Instant::now() > end {
            return Err(Code::Busy.into());
        }
        std::thread::sleep(HELD_LOOK);
    }
}
