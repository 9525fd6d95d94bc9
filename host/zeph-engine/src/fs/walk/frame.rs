//! One directory of a walk: its handle, and those of its names that the walk wants, sorted.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::super::allowance::{Allowance, HandleLease, Share, Stock};
use super::super::error::{Fail, code_of};
use super::super::globs::Shade;
use super::super::path::{PATH_BYTES_MAX, escaped};
use super::super::policy::{FsPolicy, RootId};
use super::super::stop::StopSwitch;
use super::super::sys::{self, FileId, Kernel, Listing, Meta};
use super::super::touched::{Asked, Origin, Told, TouchLog};
use super::Halt;
use super::ignore::{IgnoreVerdict, Present, Rules};
use super::options::WalkFilters;
use crate::bindings::zeph::plugin::walk::{Entry, EntryKind, WalkError};

/// A directory the walk is in.
#[derive(Debug)]
pub(super) struct Frame {
    /// None while the walk is far below.
    dir: Option<HandleLease>,
    id: FileId,
    /// Path below the granted root, with a slash at the end unless empty.
    path: String,
    /// How much of `path` belongs to the walk's root.
    root_len: usize,
    /// Verdict and real name, when names have to be checked.
    place: Option<(Shade, PathBuf)>,
    rules: Option<Arc<Rules>>,
    trail: Trail,
    /// `only` wants all files in here.
    wanted: bool,
    /// All names, one after the other: a large directory costs two allocations, not one per name.
    text: String,
    names: Vec<FrameName>,
    next: usize,
    /// What the names count for.
    share: Option<Share>,
}

/// What came of going into a directory.
#[derive(Debug)]
pub(super) enum Entered {
    Inside(Box<Frame>),
    /// The host may not list it.
    Closed,
    /// It vanished, is of no concern to the guest, or lies on a kernel file system.
    Gone,
}

/// Where the walk writes down what it was told: everything as a question from where it began.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    pub(super) touched: TouchLog,
    pub(super) root: RootId,
    pub(super) origin: Option<Origin>,
}

impl Trail {
    /// What stands at `path`, from where the walk began.
    pub(super) fn asked<'a>(&self, path: &'a str) -> Asked<'a> {
        Asked {
            origin: self.origin,
            path,
            follow: false,
        }
    }

    /// What stands under `name` in the directory `dir`, whose path from where the walk began is `above`.
    pub(super) fn look(
        &self,
        policy: &FsPolicy,
        dir: BorrowedFd<'_>,
        (above, name): (&str, &str),
        told: Told,
    ) {
        if !self.touched.is_open() {
            return;
        }
        let path = format!("{above}{name}");
        let found = policy.kernel().open_beneath(dir, name, false);
        match found.and_then(|found| Meta::of(&found)) {
            Ok(meta) => {
                let found = (self.root, &meta);
                self.touched.found(policy, self.asked(&path), found, told);
            }
            Err(errno) => self.touched.failed(self.asked(&path), code_of(errno)),
        }
    }

    fn found(&self, policy: &FsPolicy, path: &str, meta: &Meta) {
        self.touched
            .found(policy, self.asked(path), (self.root, meta), Told::State);
    }
}

/// A name in a frame's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameName {
    start: u32,
    len: u32,
    kind: FileType,
    /// Whether it is the text of a name that is not UTF-8: it names nothing.
    is_escaped: bool,
}

impl FrameName {
    pub(super) fn is_dir(self) -> bool {
        self.kind == FileType::Directory
    }

    fn of(self, text: &str) -> &str {
        &text[self.start as usize..][..self.len as usize]
    }
}

impl Frame {
    pub(super) fn new(
        dir: HandleLease,
        id: FileId,
        path: String,
        place: Option<(Shade, PathBuf)>,
        (rules, trail): (Option<Arc<Rules>>, Trail),
    ) -> Self {
        let root_len = path.len();
        let (text, names) = (String::new(), Vec::new());
        Self {
            dir: Some(dir),
            id,
            path,
            root_len,
            place,
            rules,
            trail,
            wanted: false,
            text,
            names,
            next: 0,
            share: None,
        }
    }

    /// The granted tree it is in.
    pub(super) fn root(&self) -> RootId {
        self.trail.root
    }

    /// The handle, unless it was closed.
    pub(super) fn dir(&self) -> Option<BorrowedFd<'_>> {
        self.dir.as_ref().map(|dir| dir.as_fd())
    }

    pub(super) fn is_open(&self) -> bool {
        self.dir.is_some()
    }

    /// Whether no name is left.
    pub(super) fn is_done(&self) -> bool {
        self.next >= self.names.len()
    }

    /// Lets the handle go until the walk is back.
    pub(super) fn close(&mut self) {
        self.dir = None;
    }

    /// Opens the directory anew from `top`, where the walk started. False when it is not the same any more.
    pub(super) fn open_from(
        &mut self,
        top: BorrowedFd<'_>,
        kernel: &Kernel,
        allowance: &Allowance,
    ) -> Result<bool, Halt> {
        let below = self.path[self.root_len..].trim_end_matches('/');
        let found = kernel.open_beneath(top, below, false);
        let Ok(found) = found.and_then(|found| sys::open_directory(&found, ".")) else {
            return Ok(false);
        };
        if !Meta::of(&found).is_ok_and(|meta| meta.id == self.id) {
            return Ok(false);
        }
        self.dir = Some(allowance.hold(found).map_err(Fail::from)?);
        Ok(true)
    }

    /// Whether a guest could name the contents of the directory `name`.
    pub(super) fn can_be_named(&self, name: FrameName) -> bool {
        self.path.len() + name.len as usize + "/x".len() <= PATH_BYTES_MAX
    }

    /// The next name in order.
    pub(super) fn advance(&mut self) -> Option<FrameName> {
        let name = self.names.get(self.next).copied();
        self.next += 1;
        name
    }

    /// Lists the directory, at most as many names as are left of `allowance`, and keeps what the walk wants.
    pub(super) fn fill(
        &mut self,
        policy: &FsPolicy,
        filters: &WalkFilters,
        stop: &StopSwitch,
        allowance: &Allowance,
    ) -> Result<(), Halt> {
        let room = allowance.left(Stock::Names);
        let Self {
            dir,
            text,
            names,
            trail,
            place,
            ..
        } = self;
        let Some(dir) = dir else { return Ok(()) };
        // Patterns are compared with names as they are, and not with what is written for them.
        let hides = |name: &OsStr| {
            let place = place.as_ref().filter(|_| name.to_str().is_none());
            place.is_some_and(|(shade, dir)| {
                policy.patterns().below(*shade, &dir.join(name)).hides()
            })
        };
        let mut listing = Listing::new(dir.as_fd());
        let mut more = true;
        while more {
            stop.check()?;
            // An error in the middle ends the directory: it vanished, or may not be read.
            more = listing
                .batch(|name, kind| {
                    if !hides(name) {
                        push(text, names, name, kind);
                    }
                })
                .unwrap_or_else(|_| {
                    trail.touched.spoil();
                    false
                });
            if names.len() > room {
                return Err(WalkError::Limit.into());
            }
        }
        self.settle_kinds();
        if filters.standard {
            self.load_rules(policy, allowance);
        }
        self.sift(policy, filters);
        let share = allowance.take(Stock::Names, self.names.len());
        self.share = Some(share.map_err(Fail::from)?);
        let text = &self.text;
        self.names
            .sort_unstable_by(|a, b| a.of(text).cmp(b.of(text)));
        Ok(())
    }

    /// Asks for the kind of names whose file system did not tell it while listing.
    fn settle_kinds(&mut self) {
        let Self {
            dir, text, names, ..
        } = self;
        let Some(dir) = dir else { return };
        for name in names
            .iter_mut()
            .filter(|name| name.kind == FileType::Unknown && !name.is_escaped)
        {
            name.kind = Meta::at(&*dir, name.of(text)).map_or(FileType::Unknown, |meta| meta.kind);
        }
    }

    fn load_rules(&mut self, policy: &FsPolicy, allowance: &Allowance) {
        let mut present = Present::default();
        for name in self.names.iter().filter(|name| !name.is_escaped) {
            let is_file = name.kind == FileType::RegularFile;
            match name.of(&self.text) {
                ".ignore" => present.ignore = is_file,
                ".gitignore" => present.gitignore = is_file,
                ".git" => present.git = true,
                _ => {}
            }
        }
        let shows = |name: &str| {
            self.place
                .as_ref()
                .is_none_or(|(_, dir)| !policy.hides(&dir.join(name)))
        };
        let above = self.rules.take();
        let Some(dir) = &self.dir else { return };
        self.rules = Rules::within(
            (policy, allowance),
            (dir.as_fd(), Some(&self.trail), &self.path[self.root_len..]),
            self.path.len(),
            present,
            above,
            shows,
        );
    }

    /// Drops the names the walk does not want.
    fn sift(&mut self, policy: &FsPolicy, filters: &WalkFilters) {
        let Self {
            path,
            root_len,
            place,
            rules,
            wanted,
            text,
            names,
            ..
        } = self;
        let dir_len = path.len();
        // Most directories are far from all that patterns hide, and need no match for each name.
        let checked = place
            .as_ref()
            .map(|(shade, dir)| (dir, shade, policy.patterns().hideable(dir, *shade)));
        names.retain(|name| {
            let leaf = name.of(text);
            let is_dir = name.is_dir();
            path.truncate(dir_len);
            path.push_str(leaf);
            let below_root = &path[*root_len..];
            let shown = checked.as_ref().is_none_or(|(dir, shade, hideable)| {
                !hideable.has(leaf) || !policy.patterns().below(**shade, &dir.join(leaf)).hides()
            });
            shown
                && !(filters.standard && leaves_out(rules.as_deref(), path, leaf, is_dir))
                && !filters.skips(below_root, is_dir)
                && (is_dir || filters.wants(below_root, *wanted))
        });
        path.truncate(dir_len);
    }

    /// The entry for a name; none when it vanished.
    pub(super) fn entry(
        &self,
        name: FrameName,
        (policy, filters): (&FsPolicy, &WalkFilters),
    ) -> Option<Entry> {
        let leaf = name.of(&self.text);
        let above = &self.path[self.root_len..];
        let mut path = String::with_capacity(above.len() + leaf.len());
        path.push_str(above);
        path.push_str(leaf);
        let meta = if filters.sizes && !name.is_escaped {
            match Meta::at(self.dir()?, leaf) {
                // It cannot be opened either: who tries is told.
                Err(Errno::ACCESS) => None,
                found => Some(found.ok()?),
            }
        } else {
            None
        };
        if let Some(meta) = &meta {
            self.trail.found(policy, &path, meta);
        }
        Some(Entry {
            path,
            kind: to_kind(name.kind),
            size: meta.filter(Meta::is_file).map_or(0, |meta| meta.size),
            modified_ms: meta.and_then(|meta| to_ms(meta.modified)),
        })
    }

    /// Opens the directory `name`.
    pub(super) fn enter(
        &self,
        name: FrameName,
        policy: &FsPolicy,
        filters: &WalkFilters,
        allowance: &Allowance,
    ) -> Result<Entered, Halt> {
        let leaf = name.of(&self.text);
        let place = self.place.as_ref().map(|(shade, dir)| {
            let inner = dir.join(leaf);
            (policy.patterns().below(*shade, &inner), inner)
        });
        if let Some((_, inner)) = &place
            && policy.nested()
            && !policy
                .governing(inner)
                .is_some_and(|root| policy.rights(root).read)
        {
            return Ok(Entered::Gone);
        }
        let (opened, meta) = match self.opened(leaf, policy.kernel())? {
            Ok(opened) => opened,
            Err(end) => {
                self.trail.touched.spoil();
                return Ok(end);
            }
        };
        let path = format!("{}{leaf}/", self.path);
        let below = &path[self.root_len..path.len() - 1];
        // Before its names are read: what changes meanwhile shows in its times.
        self.trail.found(policy, below, &meta);
        let wanted = filters.wants_all(&path[self.root_len..path.len() - 1], self.wanted);
        let inner = Self {
            dir: Some(allowance.hold(opened).map_err(Fail::from)?),
            id: meta.id,
            root_len: self.root_len,
            rules: self.rules.clone(),
            trail: self.trail.clone(),
            text: String::new(),
            names: Vec::new(),
            next: 0,
            share: None,
            path,
            place,
            wanted,
        };
        Ok(Entered::Inside(Box::new(inner)))
    }

    /// The directory `leaf`, or why it is not entered.
    fn opened(
        &self,
        leaf: &str,
        kernel: &Kernel,
    ) -> Result<Result<(OwnedFd, Meta), Entered>, Halt> {
        let Some(dir) = self.dir() else {
            return Ok(Err(Entered::Gone));
        };
        let opened = match sys::open_directory(dir, leaf) {
            Err(Errno::MFILE | Errno::NFILE) => return Err(WalkError::Limit.into()),
            Err(Errno::ACCESS | Errno::PERM) => return Ok(Err(Entered::Closed)),
            Err(_) => return Ok(Err(Entered::Gone)),
            Ok(opened) => opened,
        };
        let Ok(meta) = Meta::of(&opened) else {
            return Ok(Err(Entered::Gone));
        };
        if meta.id.dev != self.id.dev && kernel.is_kernel_file(&opened).unwrap_or(true) {
            return Ok(Err(Entered::Gone));
        }
        Ok(Ok((opened, meta)))
    }
}

fn push(text: &mut String, names: &mut Vec<FrameName>, name: &OsStr, kind: FileType) {
    let is_escaped = name.to_str().is_none();
    let (name, kind) = match name.to_str() {
        Some(name) => (Cow::Borrowed(name), kind),
        None => (Cow::Owned(escaped(name)), FileType::Unknown),
    };
    // The text stays far below 4 GB: the number of names is bounded, and so is the length of each.
    if let (Ok(start), Ok(len)) = (u32::try_from(text.len()), u32::try_from(name.len())) {
        text.push_str(&name);
        names.push(FrameName {
            start,
            len,
            kind,
            is_escaped,
        });
    }
}

/// Whether the standard filters leave an entry out: ignored, or hidden and not named as an exception.
fn leaves_out(rules: Option<&Rules>, path: &str, leaf: &str, is_dir: bool) -> bool {
    match rules.map_or(IgnoreVerdict::Silent, |rules| rules.verdict(path, is_dir)) {
        IgnoreVerdict::Ignored => true,
        IgnoreVerdict::Kept => false,
        IgnoreVerdict::Silent => leaf.starts_with('.'),
    }
}

fn to_kind(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}

fn to_ms((seconds, nanoseconds): sys::Moment) -> Option<u64> {
    u64::try_from(seconds)
        .ok()?
        .checked_mul(1000)?
        .checked_add(u64::from(nanoseconds / 1_000_000))
}
