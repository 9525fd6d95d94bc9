//! What is protected in the writable directories: files that programs obey, hidden ones, and those with names elsewhere.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::LINKED_MAX;
use crate::jail::git::{self, OutsideGit};
use crate::jail::mount::within;
use crate::jail::names::Names;
use crate::jail::place::{Hold, Places};
use crate::jail::survey::{Survey, lies_in_fetched};
use crate::jail::{Roots, doors};

/// Everything in the writable directories that is held or watched, of files below their uppermost level that programs obey the first
/// `doors_max`.
pub(super) fn places(
    roots: &Roots,
    survey: &Survey,
    doors_max: usize,
) -> (Places, Vec<OutsideGit>) {
    let mut doors_left = doors_max;
    let mut places = Places {
        made: Arc::clone(&survey.made),
        ..Places::default()
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
                outside.extend(git::hold(&roots.writable, root, work, &mut places));
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
        let doors = survey.doors.iter().filter(|door| within(door, root));
        // Packages bring theirs, which nobody obeys, and have to be replaced and removed as a whole.
        let doors =
            doors.filter(|door| !lies_in_fetched(door, &survey.roots) && !survey.is_made(door));
        for path in doors {
            match doors_left.checked_sub(1) {
                Some(left) => {
                    doors_left = left;
                    places.hold(root, path, Hold::ReadOnly);
                }
                None => places.compared.push(path.clone()),
            }
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
    for one in &outside {
        git::hold_outside(one, &mut places);
    }
    (places, outside)
}

/// Files with names elsewhere that are made read-only. Links between packages and the store they came from are many, and packages are
/// replaced as a whole: those are compared instead, like what is beyond the limit.
pub(super) fn held_links(survey: &Survey) -> impl Iterator<Item = &PathBuf> {
    let linked = survey.linked.iter();
    linked
        .filter(|file| !lies_in_fetched(file, &survey.roots))
        .take(LINKED_MAX)
}
