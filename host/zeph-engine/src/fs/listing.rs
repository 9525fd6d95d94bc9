//! `read-directory`: the names of a directory as the kernel hands them out, in batches, without a look at each object.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::FileType;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::DirectoryEntry;
use zeph_core::capability::FsRights;

use super::FsCtx;
use super::allowance::HandleLease;
use super::error::{Code, FsOutcome};
use super::globs::{Hideable, Shade};
use super::handle::DirHandle;
use super::path::escaped;
use super::policy::FsPolicy;
use super::stat::to_type;
use super::sys::{self, Listing, Meta};
use super::touched::Told;
use super::uses::FileUses;

/// A directory that is being listed. Holds one batch of names at a time, however many there are.
#[derive(Debug)]
pub(super) struct EntryStream {
    policy: Arc<FsPolicy>,
    listing: Listing<HandleLease>,
    /// The real name of the directory, its verdict and the names that may be hidden in it, when names have to be checked.
    place: Option<(PathBuf, Shade, Hideable)>,
    /// Names with their kinds; none for a name that is not UTF-8, which a guest cannot open.
    ready: VecDeque<(String, Option<FileType>)>,
}

impl FsCtx {
    /// Begins to list `dir`, which needs the right to read.
    pub(super) fn list(&self, dir: &DirHandle) -> FsOutcome<EntryStream> {
        let policy = Arc::clone(&self.policy);
        let start = dir.asking(FsRights::READ).start(&policy, ".")?;
        let mut root = dir.root;
        let mut place = None;
        if policy.needs_names() {
            let name = policy.kernel().name(&start)?;
            root = policy.rule(&name, FsRights::READ)?;
            let shade = policy.shade(&name);
            if shade.hides() {
                return Err(Code::NoEntry.into());
            }
            place = Some((name, shade));
        }
        if !policy.rights(root).read {
            let name = place.map(|(name, _)| name);
            let name = name.or_else(|| policy.name_to_blame(&start));
            return Err(policy.refuse(root, FsRights::READ, name.as_deref()));
        }
        if self.touched.is_open() {
            // Before its names are read: what changes meanwhile shows in its times.
            let found = (root, &Meta::of(start)?);
            self.touched
                .found(&policy, dir.asked(".", false), found, Told::State);
        }
        let opened = self.allowance.hold(sys::open_directory(start, ".")?)?;
        let name = || policy.kernel().name(&start).ok();
        self.uses.note((root, true), FileUses::LIST, name);
        let place = place.map(|(name, shade)| {
            let hideable = policy.patterns().hideable(&name, shade);
            (name, shade, hideable)
        });
        Ok(EntryStream {
            listing: Listing::new(opened),
            place,
            ready: VecDeque::new(),
            policy,
        })
    }
}

impl EntryStream {
    /// The next entry that is not hidden. A name that is not UTF-8 is written with escapes, and its kind is not told.
    pub(super) fn next(&mut self) -> FsOutcome<Option<DirectoryEntry>> {
        loop {
            if let Some((name, kind)) = self.ready.pop_front() {
                let kind = match kind {
                    Some(FileType::Unknown) => self.ask(&name),
                    Some(kind) => kind,
                    None => FileType::Unknown,
                };
                return Ok(Some(DirectoryEntry {
                    type_: to_type(kind),
                    name,
                }));
            }
            if !self.refill()? {
                return Ok(None);
            }
        }
    }

    fn refill(&mut self) -> FsOutcome<bool> {
        let Self {
            policy,
            listing,
            place,
            ready,
        } = self;
        Ok(listing.batch(|name, kind| {
            if is_hidden(policy, place.as_ref(), name) {
                return;
            }
            ready.push_back(match name.to_str() {
                Some(name) => (name.to_owned(), Some(kind)),
                None => (escaped(name), None),
            });
        })?)
    }

    fn ask(&self, name: &str) -> FileType {
        Meta::at(self.listing.dir().as_fd(), name).map_or(FileType::Unknown, |meta| meta.kind)
    }
}

fn is_hidden(policy: &FsPolicy, place: Option<&(PathBuf, Shade, Hideable)>, name: &OsStr) -> bool {
    place.is_some_and(|(dir, shade, hideable)| {
        name.to_str().is_none_or(|name| hideable.has(name))
            && policy.patterns().below(*shade, &dir.join(name)).hides()
    })
}
