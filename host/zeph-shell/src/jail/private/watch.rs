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

    /// The private files that were opened or whose content got another name, and the directory where more of that may have happened.
    pub(in crate::jail) fn opened(&self) -> Vec<PrivateFile> {
        let unknown = self.unknown.as_deref().map(Path::to_string_lossy);
        let unknown = unknown.map(|path| PrivateFile::Unknown(path.into_owned()));
        // First: what is unknown is not among those that one stands for.
        let mut files = Vec::from_iter(unknown);
        self.hear(|path| {
            PrivateFile::Opened(path.to_string_lossy().into_owned()).add_to(&mut files);
        });
        files
    }

    /// The objects that their paths do not lead to any more, although they are still there: a directory above has another name.
    fn moved(&self, deleted: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
        let is_moved = |(object, id): &&(PathBuf, ObjectId)| {
            !deleted.contains(object) && object_id(object) != Some(*id)
        };
        let moved = self.fixed.iter().filter(is_moved);
        moved.map(|(object, _)| object.clone())
    }

    /// Gives what the kernel told since the last time.
    fn hear(&self, mut opened: impl FnMut(&Path)) {
        let Some(events) = &self.events else { return };
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = Reader::new(events, &mut buffer);
        let (mut changed, mut deleted): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                // All was read.
                Err(_) => break,
            };
            let kinds = event.events();
            if kinds.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.watched.values().for_each(|object| opened(object));
            }
            let Some(object) = self.watched.get(&event.wd()) else {
                continue;
            };
            let is_read = kinds.contains(ReadFlags::OPEN) && !kinds.contains(ReadFlags::ISDIR);
            if is_read || kinds.intersects(ReadFlags::MOVE_SELF | ReadFlags::MOVED_FROM) {
                match event.file_name().map(|name| name.to_string_lossy()) {
                    Some(name) => opened(&object.join(&*name)),
                    None => opened(object),
                }
            }
            if kinds.contains(ReadFlags::DELETE_SELF) {
                changed.retain(|other| other != object);
                deleted.push(object.clone());
            } else if kinds.contains(ReadFlags::ATTRIB) && !changed.contains(object) {
                changed.push(object.clone());
            }
        }
        let renamed = changed.into_iter().filter(|object| has_other_name(object));
        let moved = renamed.chain(self.moved(&deleted));
        moved.for_each(|object| opened(&object));
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
