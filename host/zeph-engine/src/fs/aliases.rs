//! Finds out whether a file with several names is hidden under one of the others.
//!
//! A hard link gives a hidden file a second, innocent name. The kernel does not list the names of a file, so the hidden
//! files are looked up once per call, when first needed, and compared by identity. They are sought below every root, and,
//! for patterns that start with fixed names, wherever those names lead; a pattern that may match anywhere (`.env`) is
//! not sought outside the roots, since that would be the whole disk.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::FsCtx;
use super::error::{Code, FsOutcome};
use super::globs::has_glob;
use super::policy::FsPolicy;
use super::resolve::ResolvedObject;
use super::stop::StopSwitch;
use super::sweep::{Sight, Sweep, SweepEnd};
use super::sys::{FileId, Listing, Meta};

/// Names looked at in one call to find hidden files: about a quarter of a second. Beyond it, files with several names are
/// not readable in that call. Smaller in tests, which would otherwise spend seconds on making files.
const ENTRIES_MAX: usize = if cfg!(test) { 1_000 } else { 400_000 };

/// The hidden files a call knows of.
#[derive(Debug, Default)]
pub(super) struct HiddenFiles(Option<Arc<HiddenIds>>);

#[derive(Debug)]
enum HiddenIds {
    All(HashSet<FileId>),
    /// They could not all be found, so any file with several names may be one.
    NotAll,
}

impl FsCtx {
    /// Whether the file, which has several names, may be shown under the one it was found at.
    ///
    /// Errors: no-entry when it is hidden under another name; too-many-links when that cannot be found out.
    pub(super) fn may_be_shown(
        &mut self,
        policy: &FsPolicy,
        file: &ResolvedObject,
    ) -> FsOutcome<()> {
        if policy.patterns().is_empty() {
            return Ok(());
        }
        // It looks at names all over the disk.
        self.touched.spoil();
        let known = match &self.hidden_files.0 {
            Some(known) => Arc::clone(known),
            None => Arc::new(Search::new(policy, &self.stop).run()?),
        };
        self.hidden_files.0 = Some(Arc::clone(&known));
        match &*known {
            HiddenIds::All(ids) if ids.contains(&file.meta.id) => Err(Code::NoEntry.into()),
            HiddenIds::All(_) => Ok(()),
            HiddenIds::NotAll => Err(Code::TooManyLinks.into()),
        }
    }
}

struct Search<'a> {
    policy: &'a FsPolicy,
    sweep: Sweep<'a>,
    found: HashSet<FileId>,
}

impl<'a> Search<'a> {
    fn new(policy: &'a FsPolicy, stop: &'a StopSwitch) -> Self {
        Self {
            policy,
            sweep: Sweep::new(policy.kernel(), stop, ENTRIES_MAX),
            found: HashSet::new(),
        }
    }

    fn run(mut self) -> FsOutcome<HiddenIds> {
        let mut tops: Vec<PathBuf> = Vec::new();
        if self.policy.patterns().match_anywhere() {
            tops.extend(
                self.policy
                    .roots()
                    .filter(|(_, root)| root.handle().is_some())
                    .map(|(_, root)| PathBuf::from(&root.path)),
            );
        }
        for place in self.policy.patterns().places() {
            let Some(found) = expand(place) else {
                return Ok(HiddenIds::NotAll);
            };
            tops.extend(found);
        }
        tops.sort();
        tops.dedup_by(|inner, outer| inner.starts_with(outer));
        for top in &tops {
            if !self.collect(top)? {
                return Ok(HiddenIds::NotAll);
            }
        }
        Ok(HiddenIds::All(self.found))
    }

    /// Takes in the hidden files at and below `top`. False when not all of it could be looked at.
    fn collect(&mut self, top: &Path) -> FsOutcome<bool> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(dir) = rustix::fs::openat(CWD, top, flags, Mode::empty()) else {
            if self.policy.hides(top)
                && let Ok(meta) = Meta::at(CWD, top)
            {
                self.found.insert(meta.id);
            }
            return Ok(true);
        };
        let (policy, found) = (self.policy, &mut self.found);
        let swept = self.sweep.run(dir.as_fd(), |sight| {
            note(policy, found, top, sight);
            ControlFlow::Continue(())
        })?;
        Ok(swept == SweepEnd::All)
    }
}

fn note(policy: &FsPolicy, found: &mut HashSet<FileId>, top: &Path, sight: &Sight<'_>) {
    let is_file = matches!(sight.kind, FileType::RegularFile | FileType::Unknown);
    if !is_file || !policy.hides(&top.join(sight.path)) {
        return;
    }
    if let Ok(meta) = Meta::at(sight.dir, sight.leaf) {
        found.insert(meta.id);
    }
}

/// The existing paths that a pattern with a fixed beginning leads to: each is hidden or holds hidden files.
///
/// `None` if a component of the pattern is not a valid glob by itself.
fn expand(place: &[String]) -> Option<Vec<PathBuf>> {
    let mut reached = vec![PathBuf::from("/")];
    for part in place {
        if part == "**" {
            return Some(reached);
        }
        reached = if has_glob(part) {
            let glob = GlobBuilder::new(part)
                .literal_separator(true)
                .build()
                .ok()?
                .compile_matcher();
            reached
                .iter()
                .flat_map(|dir| matching(dir, &glob))
                .collect()
        } else {
            reached.iter().map(|dir| dir.join(part)).collect()
        };
    }
    Some(reached)
}

fn matching(dir: &Path, glob: &GlobMatcher) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::openat(CWD, dir, flags, Mode::empty()) else {
        return Vec::new();
    };
    let mut listing = Listing::new(opened);
    let mut found = Vec::new();
    while let Ok(true) = listing.batch(|name, _| {
        if glob.is_match(name) {
            found.push(dir.join(name));
        }
    }) {}
    found
}
