//! Copies and removes whole trees, never through a symbolic link.
//!
//! Both go from directory to directory with a list of those to come, so depth costs no stack, and both say exactly what
//! they did. Directories stand in the list before what they hold.

use std::io::{self, ErrorKind};

use zeph_plugin::progress;

use crate::area::AreaPath;
use crate::deadline::Deadline;
use crate::replace::is_temporary;
use crate::sys::{Kind, Links, copy_mode, make_private};
use crate::text::{counted, is_escaped};

/// Bytes copied in one piece.
const COPY_BYTES: u64 = 1024 * 1024;
/// Failures of a removal that are kept to be told. The rest is counted.
const FAILURES_MAX: usize = 10;
/// Entries between two reports of progress.
const REPORT_EVERY: u64 = 500;

/// What a copy made and what it omitted.
#[derive(Debug, Default)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Directories, the top included.
    pub directories: u64,
    /// Symbolic links that stay inside the tree.
    pub links: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Links out of the tree, pipes, devices, sockets, names that are not UTF-8.
    pub skipped: u64,
    /// The paths of the files and links below the top, for [`remove_copied`].
    pub leaves: Vec<String>,
    /// The paths of the directories, each before those in it; the top is empty.
    pub branches: Vec<String>,
}

/// What a removal removed and what is left.
#[derive(Debug, Default)]
pub struct RemovalReport {
    /// Files, links and everything else that is not a directory.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// What could not be removed, the first of them.
    pub failures: Vec<(String, io::Error)>,
    /// How many could not be removed.
    pub n_failed: u64,
    /// Whether the time ended before all was removed.
    pub is_late: bool,
}

/// A step of a copy that failed.
#[derive(Debug)]
pub struct CopyFailure<'a> {
    /// Where.
    pub place: AreaPath<'a>,
    /// In doing what.
    pub done: &'static str,
    /// Why.
    pub error: io::Error,
}

impl Copied {
    /// `2 files, 1 directory, 1,234 bytes`.
    pub fn summary(&self) -> String {
        let mut parts = vec![counted(self.files, "file", "files")];
        if self.directories > 0 {
            parts.push(counted(self.directories, "directory", "directories"));
        }
        if self.links > 0 {
            parts.push(counted(self.links, "symbolic link", "symbolic links"));
        }
        parts.push(counted(self.bytes, "byte", "bytes"));
        parts.join(", ")
    }

    fn report(&self) {
        let n_done = self.files + self.directories + self.links;
        if n_done.is_multiple_of(REPORT_EVERY) {
            progress::count("copying", n_done, None);
        }
    }
}

/// Copies the file at `from` to the free name `to`.
///
/// The copy gets the permission bits of its source, so that a script stays executable and what was private stays so.
/// Errors: the step that failed; nothing stays at `to`.
pub fn copy_file<'a>(
    from: &AreaPath<'a>,
    to: &AreaPath<'a>,
    end: Deadline,
) -> Result<u64, CopyFailure<'a>> {
    let reading = |error| CopyFailure {
        place: from.clone(),
        done: "read",
        error,
    };
    let writing = |error| CopyFailure {
        place: to.clone(),
        done: "written",
        error,
    };
    let source = from.root().open(from.relative()).map_err(reading)?;
    // Its permissions may be narrower than those of new files: nobody reads it before it has them.
    make_private(&to.absolute(), false).map_err(writing)?;
    let target = to.root().open_own(to.relative()).map_err(writing)?;
    let mut offset = 0;
    loop {
        end.check().map_err(writing)?;
        let piece = source.read_at(offset, COPY_BYTES).map_err(reading)?;
        if piece.is_empty() {
            // Only the source can be missing: the target was made here.
            return match copy_mode(&from.absolute(), &to.absolute()) {
                Ok(()) => Ok(offset),
                Err(error) if error.kind() == ErrorKind::NotFound => Err(reading(error)),
                Err(error) => Err(writing(error)),
            };
        }
        target.write_at(offset, &piece).map_err(writing)?;
        offset += piece.len() as u64;
    }
}

/// Copies the directory at `from` with all it holds to the free name `to`.
///
/// Errors: the step that failed, or the end of the time.
pub fn copy_tree<'a>(
    from: &AreaPath<'a>,
    to: &AreaPath<'a>,
    end: Deadline,
) -> Result<Copied, CopyFailure<'a>> {
    let mut copied = Copied::default();
    let mut pending = vec![String::new()];
    while let Some(below) = pending.pop() {
        let (source, target) = (at(from, &below), at(to, &below));
        end.check().map_err(|error| CopyFailure {
            place: target.clone(),
            done: "created",
            error,
        })?;
        make_private(&target.absolute(), true).map_err(|error| CopyFailure {
            place: target.clone(),
            done: "created",
            error,
        })?;
        copied.branches.push(below.clone());
        copied.directories += 1;
        let entries = source
            .root()
            .list(source.relative())
            .map_err(|error| CopyFailure {
                place: source.clone(),
                done: "listed",
                error,
            })?;
        for entry in entries {
            // What calls are about to put elsewhere; the copy itself, when a link led it inside what is copied.
            if is_temporary(&entry.name) || entry.name == to.name() {
                continue;
            }
            let inner = match below.as_str() {
                "" => entry.name,
                below => format!("{below}/{}", entry.name),
            };
            let (source, target) = (from.child(&inner), to.child(&inner));
            match entry.kind {
                Kind::Directory => pending.push(inner),
                Kind::File => {
                    copied.bytes += copy_file(&source, &target, end)?;
                    copied.files += 1;
                    copied.leaves.push(inner);
                }
                Kind::Symlink if copy_link(&source, &target, &inner) => {
                    copied.links += 1;
                    copied.leaves.push(inner);
                }
                Kind::Symlink | Kind::Special(_) => copied.skipped += 1,
            }
            copied.report();
        }
    }
    // Last: a directory may be one in which nothing can be made.
    for below in copied.branches.iter().rev() {
        let (source, target) = (at(from, below), at(to, below));
        copy_mode(&source.absolute(), &target.absolute()).map_err(|error| CopyFailure {
            place: target,
            done: "written",
            error,
        })?;
    }
    Ok(copied)
}

/// Copies a symbolic link when it points to something inside the copied tree. Says whether it did.
fn copy_link(source: &AreaPath<'_>, target: &AreaPath<'_>, below: &str) -> bool {
    let Ok(text) = source.root().read_link(source.relative()) else {
        return false;
    };
    stays_inside(below, &text) && target.root().symlink(&text, target.relative()).is_ok()
}

/// Whether a link at `below` with the text `target` stays in the tree, going by the names.
fn stays_inside(below: &str, target: &str) -> bool {
    let mut depth = below.matches('/').count();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return false,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    !target.starts_with('/')
}

/// Removes what stands at `top` until `end`: a file, a link itself, or a directory with all it holds. Of a directory that holds what
/// cannot be removed, as far as that shows before, nothing is.
pub fn remove(top: &AreaPath<'_>, end: Deadline) -> RemovalReport {
    let mut removed = RemovalReport::default();
    match top.root().stat(top.relative(), Links::Keep) {
        Ok(stat) if stat.kind == Kind::Directory => remove_directory(top, end, &mut removed),
        Ok(_) => removed.file(top),
        Err(error) => removed.failed(top, error),
    }
    removed
}

/// Removes what was copied from `top` until `end`, and nothing that another program has put there since.
pub fn remove_copied(top: &AreaPath<'_>, copied: &Copied, end: Deadline) -> RemovalReport {
    let mut removed = RemovalReport::default();
    if copied.branches.is_empty() {
        removed.file(top);
    }
    removed.tree(top, &copied.leaves, &copied.branches, end);
    removed
}

fn remove_directory(top: &AreaPath<'_>, end: Deadline, removed: &mut RemovalReport) {
    // The host looks what is in one that is not empty, and refuses it when it must keep something of that.
    match top.root().remove_directory(top.relative()) {
        Ok(()) => removed.directories += 1,
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
            // A tree that takes longer to look through gets smaller by each call.
            let (leaves, branches) = look_through(top, end.half(), removed);
            if removed.n_failed == 0 {
                removed.tree(top, &leaves, &branches, end);
            }
        }
        Err(error) => removed.failed(top, error),
    }
}

/// The leaves and the branches of the directory `top`, as in [`Copied`]; those that were found until `end`. Notes what stands in the way of
/// removing it: what cannot be listed, and names that cannot be said.
fn look_through(
    top: &AreaPath<'_>,
    end: Deadline,
    removed: &mut RemovalReport,
) -> (Vec<String>, Vec<String>) {
    let (mut leaves, mut branches) = (Vec::new(), vec![String::new()]);
    let mut idx = 0;
    while let Some(below) = branches.get(idx).cloned() {
        idx += 1;
        if end.is_over() {
            removed.is_late = true;
            break;
        }
        let directory = at(top, &below);
        let entries = match directory.root().list(directory.relative()) {
            Ok(entries) => entries,
            Err(error) => {
                removed.failed(&directory, error);
                continue;
            }
        };
        for entry in entries {
            let is_unnamed = matches!(entry.kind, Kind::Special(_)) && is_escaped(&entry.name);
            let inner = match below.as_str() {
                "" => entry.name,
                below => format!("{below}/{}", entry.name),
            };
            if is_unnamed {
                let error = io::Error::other("its name is not UTF-8");
                removed.failed(&top.child(&inner), error);
            } else if entry.kind == Kind::Directory {
                branches.push(inner);
            } else {
                leaves.push(inner);
            }
        }
    }
    (leaves, branches)
}

impl RemovalReport {
    /// `2 files, 1 directory`.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        if self.files > 0 || self.directories == 0 {
            parts.push(counted(self.files, "file", "files"));
        }
        if self.directories > 0 {
            parts.push(counted(self.directories, "directory", "directories"));
        }
        parts.join(", ")
    }

    fn file(&mut self, place: &AreaPath<'_>) {
        match place.root().remove_file(place.relative()) {
            Ok(()) => self.files += 1,
            Err(error) => self.failed(place, error),
        }
        if self.files.is_multiple_of(REPORT_EVERY) {
            progress::count("deleting", self.files, None);
        }
    }

    /// Removes the `leaves` below `top`, then its `branches`, until `end`.
    fn tree(&mut self, top: &AreaPath<'_>, leaves: &[String], branches: &[String], end: Deadline) {
        for below in leaves {
            if end.is_over() {
                self.is_late = true;
                return;
            }
            self.file(&at(top, below));
        }
        self.directories(top, branches, end);
    }

    /// Removes directories below `top`, each of which stands before those in it.
    fn directories(&mut self, top: &AreaPath<'_>, paths: &[String], end: Deadline) {
        for below in paths.iter().rev() {
            if end.is_over() {
                self.is_late = true;
                return;
            }
            let directory = at(top, below);
            match directory.root().remove_directory(directory.relative()) {
                Ok(()) => self.directories += 1,
                // What stands in it has been told already, or was not looked at.
                Err(error)
                    if error.kind() == ErrorKind::DirectoryNotEmpty
                        && (self.n_failed > 0 || self.is_late) => {}
                Err(error) => self.failed(&directory, error),
            }
        }
    }

    fn failed(&mut self, place: &AreaPath<'_>, error: io::Error) {
        self.n_failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push((place.shown(), error));
        }
    }
}

fn at<'a>(top: &AreaPath<'a>, below: &str) -> AreaPath<'a> {
    match below {
        "" => top.clone(),
        below => top.child(below),
    }
}

#[cfg(test)]
mod tests;
