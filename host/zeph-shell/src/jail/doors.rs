//! Files and folders that programs outside the jail obey without being asked, as the jail protects them. The list is
//! `zeph_core::obeyed`, which file tools go by as well.

use std::path::{Path, PathBuf};

use zeph_core::obeyed::{ANYWHERE, HOME, WHERE_PRESENT, name_at};

/// What is a door whether it exists or not. Names with a `*` are found by the looks before and after a run.
pub(super) fn of_directory() -> impl Iterator<Item = &'static str> {
    ANYWHERE.into_iter().filter(|name| !name.contains('*'))
}

/// What is a door once it exists.
pub(super) fn if_present() -> impl Iterator<Item = &'static str> {
    WHERE_PRESENT.into_iter().filter(|name| !name.contains('*'))
}

/// What is a door in a writable directory itself.
pub(super) fn of_root() -> impl Iterator<Item = &'static str> {
    HOME.into_iter()
}

/// Whether a path that was not there before is a door of the directory it lies in.
pub(super) fn is_door_when_new(path: &Path) -> bool {
    name_at(path, ANYWHERE).is_some()
}

/// Whether a path that was not there before is a door from now on, which commands may make.
pub(super) fn is_permitted(path: &Path) -> bool {
    name_at(path, WHERE_PRESENT).is_some()
}

/// Whether a path is a start-up file of the directory it lies in, should that be a home.
pub(super) fn is_start_up(path: &Path) -> bool {
    name_at(path, HOME).is_some()
}

/// Where doors would lie below a path, if it were a folder.
pub(super) fn inside(path: &Path) -> impl Iterator<Item = PathBuf> {
    let parts = of_directory().filter_map(|name| name.split_once('/'));
    let parts = parts.filter(move |(folder, _)| path.ends_with(folder));
    parts.map(move |(_, name)| path.join(name))
}

/// Whether a path is a door of the directory it lies in.
pub(super) fn is_door(path: &Path) -> bool {
    name_at(path, ANYWHERE.into_iter().chain(WHERE_PRESENT)).is_some()
}
