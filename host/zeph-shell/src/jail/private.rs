//! Whether a run opened a private file (`tools.governance.private_paths`), however it came upon it: by a search from above, a link, or a
//! name that was only known while it ran.
//!
//! What is private is found by the survey before the run; the kernel tells of each of these objects when it is opened. What could not be
//! found or watched counts as opened. Nothing is prevented here.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only Linux tells who opens a file")
)]

use std::path::{Path, PathBuf};

use zeph_core::policy::PrivatePaths;

#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
#[path = "private/none.rs"]
mod watch;

pub(super) use watch::OpenWatch;

/// The private files of the directories of a jail.
#[derive(Debug, Clone, Default)]
pub(super) struct PrivateFiles {
    /// Single files, and directories with nothing but private files.
    pub(super) objects: Vec<PathBuf>,
    /// Those of them that would not be private in another directory: when one above them gets another name, nothing else tells.
    pub(super) fixed: Vec<PathBuf>,
    /// A directory that was not looked through, and may hold more.
    pub(super) unread: Option<PathBuf>,
}

impl PrivateFiles {
    /// Notes an object that is private.
    pub(super) fn add(&mut self, private: &PrivatePaths, object: &Path) {
        let elsewhere = object
            .file_name()
            .map(|name| Path::new("/elsewhere").join(name));
        if !elsewhere.is_some_and(|elsewhere| private.holds(&elsewhere)) {
            self.fixed.push(object.to_owned());
        }
        self.objects.push(object.to_owned());
    }

    /// Notes a directory that was not looked through.
    pub(super) fn missed(&mut self, folder: &Path) {
        self.unread.get_or_insert_with(|| folder.to_owned());
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.unread.is_none()
    }
}
