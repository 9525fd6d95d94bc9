//! What is protected in the writable directories: files that programs obey, hidden ones, and those with names elsewhere.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zeph_core::git_config::GitReader;

use super::LINKED_MAX;
use crate::jail::git::{self, GitScope, OutsideGit};
use crate::jail::mount::within;
use crate::jail::names::Names;
use crate::jail::place::{Hold, Places};
use crate::jail::survey::{Survey, lies_in_fetched};
use crate::jail::{Roots, doors};

/// Files below the uppermost level that programs obey, to be made read-only.
#[derive(Debug)]
pub(super) struct Doors(Vec<PathBuf>);

impl Doors {
    /// All that `survey` found.
    pub(super) fn all(survey: &Survey) -> Self {
        // Packages bring theirs, which nobody obeys, and have to be replaced and removed as a whole.
        let is_own =
            |door: &&PathBuf| !lies_in_fetched(door, &survey.roots) && !survey.is_made(door);
        Self(survey.doors.iter().filter(is_own).cloned().collect())
    }

    /// The same where not all can be held, and how many of the first ones to hold if that can be, else how many fewer, `held_min` at
    /// last. What no command can have made comes first, then what has had its name for longer, and what commands are known to have made
    /// last: however many they make, they take no place from the others.
    pub(super) fn ranked(self, survey: &Survey, held_min: usize) -> (Self, [usize; 3]) {
        let is_made = |path: &Path| survey.made.is_made_door(path);
        let ranked = self.0.into_iter().map(|path| {
            let may_be_made = !doors::is_door_when_new(&path);
            (is_made(&path), may_be_made, named_at(&path), path)
        });
        let mut ranked: Vec<(bool, bool, _, PathBuf)> = ranked.collect();
        ranked.sort();
        let n_own = ranked.partition_point(|(is_made, ..)| !is_made);
        let n_certain = ranked[..n_own].partition_point(|(_, may_be_made, ..)| !may_be_made);
        let paths = ranked.into_iter().map(|(.., path)| path);
        let limits = [n_own, n_certain.max(held_min), held_min];
        (Self(paths.collect()), limits)
    }
}

/// When a file can have got its name at the latest; of an unknown time, it counts as new. A file that is renamed or linked keeps the time
/// of its birth and changes then, so the latest of its times counts, and that of the birth of its directory. No command can make that time
/// earlier, and later only of files that it may change. An edit makes it later, too.
///
/// Limits: that `.hg` of `.hg/hgrc` got its name is not seen. Its time of change says nothing: any file made in it sets it.
fn named_at(path: &Path) -> (bool, Option<SystemTime>) {
    let about = path.symlink_metadata().ok();
    let folder = path.parent().map(Path::symlink_metadata);
    let folder = folder.and_then(Result::ok);
    let born = |about: &Metadata| about.created().ok();
    let times = [
        about.as_ref().and_then(born),
        about.as_ref().and_then(changed_at),
        folder.as_ref().and_then(born),
    ];
    let latest = times
        .into_iter()
        .flatten()
        .max()
        .filter(|_| about.is_some());
    (latest.is_none(), latest)
}

fn changed_at(about: &Metadata) -> Option<SystemTime> {
    let seconds = u64::try_from(about.ctime()).ok()?;
    let nanoseconds = u32::try_from(about.ctime_nsec()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

/// Everything in the writable directories that is held or watched, of `doors` the first `doors_max`, or all.
pub(super) fn places(
    roots: &Roots,
    survey: &Survey,
    (doors, doors_max): (&Doors, Option<usize>),
) -> (Places, Vec<OutsideGit>) {
    let n_doors = doors.0.len();
    let n_held = doors_max.map_or(n_doors, |max| max.min(n_doors));
    let (held_doors, compared) = doors.0.split_at(n_held);
    let mut places = Places {
        made: Arc::clone(&survey.made),
        compared: compared.to_vec(),
        roots: roots.writable.clone(),
        ..Places::default()
    };
    let reader = GitReader::new(roots.git_user.clone(), git::small);
    let scope = GitScope {
        roots: &roots.writable,
        reader: &reader,
    };
    let mut outside = Vec::new();
    for root in &roots.writable {
        if !root.is_dir() {
            continue;
        }
        let names = Names::of(root);
        for name in doors::of_directory().chain(doors::of_root()) {
            places.hold_of(root, &names, &root.join(name), Hold::ReadOnly);
        }
        let loose: HashSet<&PathBuf> = survey.loose.iter().collect();
        let below = survey
            .repositories
            .iter()
            .filter(|work| within(work, root) && *work != root);
        for work in std::iter::once(root).chain(below) {
            if loose.contains(work) {
                places.loose.push(work.clone());
            } else {
                outside.extend(git::hold(scope, root, work, &mut places));
            }
            if survey.is_made(work) {
                continue;
            }
            for name in doors::if_present() {
                let door = work.join(name);
                if !names.lacks(&door) && door.symlink_metadata().is_ok() {
                    places.hold(root, &door, Hold::ReadOnly);
                }
            }
            // Those of the root itself are held above.
            for name in doors::of_directory().filter(|_| work != root) {
                places.hold(root, &work.join(name), Hold::ReadOnly);
            }
        }
        for path in held_doors.iter().filter(|door| within(door, root)) {
            places.hold(root, path, Hold::ReadOnly);
        }
        for path in held_links(survey).filter(|file| within(file, root)) {
            places.hold(root, path, Hold::ReadOnly);
        }
        for path in roots.protected.iter().filter(|path| within(path, root)) {
            places.hold_name(root, path, Hold::ReadOnly);
        }
        for path in roots.hidden.iter().filter(|path| within(path, root)) {
            places.hold_name(root, path, Hold::Hidden);
        }
        // A root in another one is a name of the policy too, which a command could lead elsewhere.
        let inner = roots.work.iter();
        let inner = inner.filter(|path| within(path, root) && *path != root);
        for path in inner {
            places.hold_name(root, path, Hold::Pinned);
        }
    }
    let given = roots.work.iter().chain(&roots.writable);
    git::hold_from_outside(scope, given.chain(&roots.readable), &mut places);
    for one in &outside {
        git::hold_outside(one, &mut places);
    }
    (places, outside)
}

/// Files with names elsewhere that are made read-only. Links between packages and the store they came from are many, and packages are
/// replaced as a whole: those are compared instead, like what is beyond the limit.
pub(super) fn held_links(survey: &Survey) -> impl Iterator<Item = &PathBuf> {
    let linked = survey.linked.iter();
    // Those among packages are the last ones.
    linked
        .take_while(|file| !lies_in_fetched(file, &survey.roots))
        .take(LINKED_MAX)
}
