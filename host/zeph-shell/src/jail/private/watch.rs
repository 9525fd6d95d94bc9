//! The watch on Linux: an inotify instance for each run.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use zeph_core::execution::PrivateFile;

use super::PrivateFiles;

/// Most objects that are watched. A machine lets a user watch some ten thousand.
const WATCHES_MAX: usize = 2_048;

/// Bytes for events; a read gives at least one.
const EVENT_BYTES: usize = 4_096;

/// What is told of an object: that it was opened, and what gives its content another name.
const WATCHED: WatchFlags = WatchFlags::OPEN
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF);

/// Tells whether a private file was opened, moved or linked since it began.
#[derive(Debug)]
pub(in crate::jail) struct OpenWatch {
    events: Option<OwnedFd>,
    watched: HashMap<i32, PathBuf>,
    /// Which objects the paths led to that a directory above may move away.
    fixed: Vec<(PathBuf, ObjectId)>,
    /// A directory not all of which could be watched.
    unknown: Option<PathBuf>,
}

impl OpenWatch {
    /// Begins to watch `files`; none when there are none. To be called before the run is started, with the rights of its user.
    pub(in crate::jail) fn begin(files: &PrivateFiles) -> Option<Self> {
        if files.is_empty() {
            return None;
        }
        let mut watch = Self {
            events: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok(),
            watched: HashMap::new(),
            fixed: Vec::new(),
            unknown: files.unread.clone(),
        };
        for (n, object) in files.objects.iter().enumerate() {
            if n >= WATCHES_MAX || !watch.add(object) {
                watch.unknown.get_or_insert_with(|| object.clone());
                break;
            }
        }
        let fixed = files.fixed.iter().take(WATCHES_MAX);
        let fixed = fixed.filter_map(|object| Some((object.clone(), object_id(object)?)));
        watch.fixed = fixed.collect();
        Some(watch)
    }

    /// Whether `object` is watched, or cannot be opened by the run either.
    fn add(&mut self, object: &Path) -> bool {
        let Some(events) = &self.events else {
            return false;
        };
        match inotify::add_watch(events, object, WATCHED) {
            Ok(number) => {
                self.watched.insert(number, object.to_owned());
                true
            }
            Err(error) => matches!(error, Errno::NOENT | Errno::ACCESS | Errno::LOOP),
        }
    }

    /// The private file that was opened first, or else one whose content got another name.
    pub(in crate::jail) fn opened(&self) -> Option<PrivateFile> {
        let unknown = || self.unknown.as_deref().map(Path::to_string_lossy);
        let unknown = || unknown().map(|path| PrivateFile::Unknown(path.into_owned()));
        let opened = |path: PathBuf| PrivateFile::Opened(path.to_string_lossy().into_owned());
        self.heard().map(opened).or_else(unknown)
    }

    /// An object that its path does not lead to any more, although it is still there: a directory above it has another name.
    fn moved(&self, deleted: &[PathBuf]) -> Option<PathBuf> {
        let is_moved = |(object, id): &&(PathBuf, ObjectId)| {
            !deleted.contains(object) && object_id(object) != Some(*id)
        };
        let moved = self.fixed.iter().find(is_moved);
        moved.map(|(object, _)| object.clone())
    }

    fn heard(&self) -> Option<PathBuf> {
        let events = self.events.as_ref()?;
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = Reader::new(events, &mut buffer);
        let (mut changed, mut deleted): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                // All was read.
                Err(_) => {
                    let named = changed.into_iter().find(|object| has_other_name(object));
                    return named.or_else(|| self.moved(&deleted));
                }
            };
            let kinds = event.events();
            if kinds.contains(ReadFlags::QUEUE_OVERFLOW) {
                return self.watched.values().next().cloned();
            }
            let Some(object) = self.watched.get(&event.wd()) else {
                continue;
            };
            let is_read = kinds.contains(ReadFlags::OPEN) && !kinds.contains(ReadFlags::ISDIR);
            if is_read || kinds.intersects(ReadFlags::MOVE_SELF | ReadFlags::MOVED_FROM) {
                let name = event.file_name().map(|name| name.to_string_lossy());
                return Some(name.map_or(object.clone(), |name| object.join(&*name)));
            }
            if kinds.contains(ReadFlags::DELETE_SELF) {
                changed.retain(|other| other != object);
                deleted.push(object.clone());
            } else if kinds.contains(ReadFlags::ATTRIB) && !changed.contains(object) {
                changed.push(object.clone());
            }
        }
    }
}

/// Device and number of an object.
type ObjectId = (u64, u64);

fn object_id(object: &Path) -> Option<ObjectId> {
    let found = object.symlink_metadata().ok()?;
    Some((found.dev(), found.ino()))
}

/// Whether an object that was changed, and not removed for good, has a name besides the one it was watched by.
fn has_other_name(object: &Path) -> bool {
    match object.symlink_metadata() {
        Ok(found) => !found.is_dir() && found.nlink() > 1,
        Err(_) => true,
    }
}
