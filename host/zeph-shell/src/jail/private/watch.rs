//! The watch on Linux: an inotify instance for each run.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use zeph_core::execution::PrivateFile;

use super::PrivateFiles;

/// Most objects that are watched. A machine lets a user watch some ten thousand.
const WATCHES_MAX: usize = 2_048;

/// Bytes for events; a read gives at least one.
const EVENT_BYTES: usize = 4_096;

/// Tells whether a private file was opened since it began.
#[derive(Debug)]
pub(in crate::jail) struct OpenWatch {
    events: Option<OwnedFd>,
    watched: HashMap<i32, PathBuf>,
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
            unknown: files.unread.clone(),
        };
        for (n, object) in files.objects.iter().enumerate() {
            if n >= WATCHES_MAX || !watch.add(object) {
                watch.unknown.get_or_insert_with(|| object.clone());
                break;
            }
        }
        Some(watch)
    }

    /// Whether `object` is watched, or cannot be opened by the run either.
    fn add(&mut self, object: &Path) -> bool {
        let Some(events) = &self.events else {
            return false;
        };
        match inotify::add_watch(events, object, WatchFlags::OPEN) {
            Ok(number) => {
                self.watched.insert(number, object.to_owned());
                true
            }
            Err(error) => matches!(error, Errno::NOENT | Errno::ACCESS | Errno::LOOP),
        }
    }

    /// The private file that was opened first.
    pub(in crate::jail) fn opened(&self) -> Option<PrivateFile> {
        let unknown = || self.unknown.as_deref().map(Path::to_string_lossy);
        let unknown = || unknown().map(|path| PrivateFile::Unknown(path.into_owned()));
        self.heard().or_else(unknown)
    }

    fn heard(&self) -> Option<PrivateFile> {
        let events = self.events.as_ref()?;
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = Reader::new(events, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                // All was read.
                Err(_) => return None,
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                let any = self.watched.values().next()?;
                return Some(PrivateFile::Opened(any.to_string_lossy().into_owned()));
            }
            let is_file = !event.events().contains(ReadFlags::ISDIR);
            if let Some(object) = self.watched.get(&event.wd()).filter(|_| is_file) {
                let name = event.file_name().map(|name| name.to_string_lossy());
                let path = name.map_or(object.clone(), |name| object.join(&*name));
                return Some(PrivateFile::Opened(path.to_string_lossy().into_owned()));
            }
        }
    }
}
