//! Where the names of directories lead that lie beside a path: the hooks of a repository may be a folder next to it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use zeph_core::git_config::GitReader;
use zeph_core::obeyed;

use super::GIT;
use super::git::{hooks_of, hooks_of_git, led_to};
use super::leads::Lead;

/// Most entries that are looked at: some 15 ms. The upper levels come first.
const ENTRIES_MAX: usize = 20_000;

/// What makes a directory a git directory that has no working directory around it.
const LAID_OPEN: [&str; 3] = ["HEAD", "objects", "refs"];

/// Where repositories and links with names on the list lead, anywhere below the `tops`, each with the name.
///
/// Limits: directories of packages are omitted, and what lies beyond the first 20,000 entries of all together.
pub(super) fn leads_in(reader: &GitReader, tops: &[&Path]) -> Vec<Lead> {
    let mut leads = Vec::new();
    let mut left = ENTRIES_MAX;
    let mut pending: VecDeque<(&Path, PathBuf)> =
        tops.iter().map(|top| (*top, PathBuf::new())).collect();
    while let Some((top, below)) = pending.pop_front() {
        if left == 0 {
            break;
        }
        let directory = top.join(&below);
        let listed = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut of_git: Vec<OsString> = Vec::new();
        let mut here = Vec::new();
        for entry in listed {
            let Some(rest) = left.checked_sub(1) else {
                break;
            };
            left = rest;
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let inner = below.join(&name);
            if name == GIT {
                let hooks = hooks_of(reader, &directory).into_iter();
                here.extend(hooks.map(|path| (path, GIT)));
            } else if kind.is_dir() && !obeyed::is_fetched(&name) {
                pending.push_back((top, inner.clone()));
            }
            if kind.is_symlink() {
                here.extend(lead_of(top, &inner));
            }
            if LAID_OPEN.iter().any(|part| name == *part) {
                of_git.push(name);
            }
        }
        if of_git.len() == LAID_OPEN.len() {
            let hooks = hooks_of_git(reader, &directory, &directory);
            here.extend(hooks.into_iter().map(|path| (path, GIT)));
        }
        // A name that leads to where it stands says nothing about what else is there.
        here.retain(|(target, _)| !directory.starts_with(target));
        leads.extend(here);
    }
    leads
}

/// Where a link leads, whether something is there or not, and by which links, if its own name is on the list.
fn lead_of(top: &Path, below: &Path) -> Vec<Lead> {
    let Some(name) = obeyed::name_of(below) else {
        return Vec::new();
    };
    let is_inside = below
        .parent()
        .is_some_and(|above| obeyed::name_of(above).is_some());
    if is_inside {
        return Vec::new();
    }
    let targets = led_to(&top.join(below)).into_iter();
    targets.map(|target| (target, name)).collect()
}
