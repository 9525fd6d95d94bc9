//! After a run: places that no mount could protect, since nothing was there, are looked at. What the command put there is
//! moved aside, never deleted, and told.
//!
//! A mount point needs something to stand on, and making it would litter the user's directories with files that outlive a
//! crash. So a new hook, say, exists while the command runs, and not afterwards.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags};

use super::git;
use super::place::{Before, Watch};
use super::survey::{self, Survey};

/// Put behind the name of what was moved aside.
const ASIDE: &str = "held-back";

/// The writable directories are looked through again if that took no longer before.
const THOROUGH: Duration = Duration::from_millis(5);

/// Most tries to find a name that is free.
const TRIES: u32 = 100;

/// Something the command did to a protected place that could not be prevented, and what became of it. Fit for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The place.
    pub path: PathBuf,
    /// One sentence for the result.
    pub text: String,
}

/// What to look at.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    watched: Vec<Watch>,
    roots: Vec<PathBuf>,
    known: Vec<PathBuf>,
    thorough: bool,
}

impl Aftermath {
    pub(super) fn new(watched: Vec<Watch>, survey: &Survey) -> Self {
        Self {
            watched,
            roots: survey.roots.clone(),
            known: survey.repositories.clone(),
            thorough: survey.complete && survey.cost < THOROUGH,
        }
    }

    /// Looks at every place. Findings name what was done.
    pub(super) fn look(self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for watch in &self.watched {
            match (&watch.before, now(&watch.path)) {
                (Before::Absent, Now::Absent) => {}
                (Before::Link(before), Now::Link(now)) if *before == now => {}
                // What is in a new repository is looked at below; `git init` fills the directory of hooks with examples.
                (Before::Absent, _)
                    if watch.path.ends_with(".git") || holds_samples(&watch.path) => {}
                (Before::Absent, _) => findings.push(put_aside(&watch.path)),
                (Before::Link(target), _) => findings.push(put_back(&watch.path, target)),
            }
        }
        for work in self.new_repositories() {
            findings.extend(
                git::runs_by_itself(&work)
                    .iter()
                    .map(|path| put_aside(path)),
            );
        }
        findings
    }

    /// Repositories that were not there before. In large trees only those in the uppermost two levels.
    fn new_repositories(&self) -> Vec<PathBuf> {
        let now = match self.thorough {
            true => survey::take(&self.roots, &[]).repositories,
            false => self.roots.iter().flat_map(|root| upper(root)).collect(),
        };
        let mut new = now;
        new.retain(|work| {
            !self.known.contains(work) && work.join(".git").symlink_metadata().is_ok()
        });
        new
    }
}

fn upper(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let below = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    std::iter::once(root.to_owned()).chain(below).collect()
}

enum Now {
    Absent,
    Link(PathBuf),
    Other,
}

fn now(path: &Path) -> Now {
    match path.symlink_metadata() {
        Err(_) => Now::Absent,
        Ok(about) if about.is_symlink() => Now::Link(std::fs::read_link(path).unwrap_or_default()),
        Ok(_) => Now::Other,
    }
}

/// What `git init` puts into the directory of hooks: examples that never run.
fn holds_samples(path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else {
        return false;
    };
    let real = path
        .symlink_metadata()
        .is_ok_and(|about| about.is_dir() && about.mode() & 0o170_000 == 0o040_000);
    let mut entries = entries.flatten();
    real && path.ends_with("hooks")
        && entries.all(|entry| entry.path().extension().is_some_and(|end| end == "sample"))
}

fn put_aside(path: &Path) -> Finding {
    let text = match aside(path) {
        Some(name) => format!(
            "the command made `{}`, which programs outside the jail obey; it was renamed to `{}`: rename it back if you want it",
            path.display(),
            name.display()
        ),
        None => format!(
            "the command made `{}`, which programs outside the jail obey, and it could not be renamed: look at it before you go on",
            path.display()
        ),
    };
    Finding {
        path: path.to_owned(),
        text,
    }
}

fn put_back(path: &Path, target: &Path) -> Finding {
    let moved = now(path).is_absent() || aside(path).is_some();
    let back = moved && std::os::unix::fs::symlink(target, path).is_ok();
    let end = match back {
        true => "it was put back, and what was there renamed",
        false => "it could not be put back: look at it before you go on",
    };
    Finding {
        path: path.to_owned(),
        text: format!(
            "the command replaced the link `{}`, which programs outside the jail obey; {end}",
            path.display()
        ),
    }
}

impl Now {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Renames what `path` names, without following it, to a name that is free.
fn aside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let names = std::iter::once(format!("{name}.{ASIDE}"))
        .chain((2..TRIES).map(|number| format!("{name}.{ASIDE}-{number}")));
    for name in names {
        let new = path.with_file_name(name);
        match rustix::fs::renameat_with(CWD, path, CWD, &new, RenameFlags::NOREPLACE) {
            Ok(()) => return Some(new),
            Err(rustix::io::Errno::EXIST) => {}
            Err(_) => return None,
        }
    }
    None
}
