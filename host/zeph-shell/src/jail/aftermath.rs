//! After a run: places that no mount could protect, since nothing was there, are looked at. What the command put there is
//! moved aside, never deleted, and told.
//!
//! A mount point needs something to stand on, and making it would litter the user's directories with files that outlive a
//! crash. So a new hook, say, exists while the command runs, and not afterwards.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, RenameFlags};
use zeph_core::text::counted;
use zeph_core::text::plain_line;

use super::command_note::CommandMark;
use super::commits::CommitWatch;
use super::gitruns::ObeyedState;
use super::host_writes::RunMark;
use super::mount::within_any;
use super::names::Names;
use super::new_repositories::{self, Extent, Loose};
use super::own_places::{self, OwnPlaceKind, OwnPlaces};
use super::place::{Before, PlaceWatch};
use super::place_state::{self, PlaceState};
use super::rebase::{self, RebaseStep};
use super::survey::Survey;
use super::sweep::{self, DirectoryOrigin, NewDoor, Sweep, is_in_live_draft};
use super::told::{LeftOut, Told};
use super::view::View;
use super::{git, gitruns, host_writes, tracked};
use crate::held_object;

/// Put behind the name of what was moved aside.
const ASIDE: &str = "held-back";

/// Characters of a path in a note that needs only one of many.
const PATH_CHARS_MAX: usize = 160;

/// Most files that are named to git in a note.
const TRACKED_SHOWN_MAX: usize = 20;

/// Most tries to find a name that is free.
const TRIES: u32 = 100;

/// Something the command did to a protected place that could not be prevented, and what became of it. Fit for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AftermathFinding {
    /// The place.
    pub path: PathBuf,
    /// One sentence for the result.
    pub text: String,
}

/// What to look at.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    watched: Vec<PlaceWatch>,
    kept: Vec<PlaceState>,
    guarded: HashSet<PathBuf>,
    loose: Vec<Loose>,
    /// What git would have run that goes on with a rebase.
    steps: BTreeSet<RebaseStep>,
    left_out: LeftOut,
    commits: CommitWatch,
    survey: Option<Arc<Survey>>,
    told: Arc<Told>,
    /// What was known before the run.
    findings: Vec<AftermathFinding>,
    /// Until the end of the look.
    _mark: Option<RunMark>,
    command: Option<CommandMark>,
}

impl Aftermath {
    /// `told` is what was said already of what is neither looked at nor compared.
    pub(super) fn new(view: View, survey: &Arc<Survey>, told: &Arc<Told>) -> Self {
        Self {
            watched: view.watched,
            kept: view.kept,
            guarded: view.guarded.into_iter().collect(),
            loose: view.loose,
            steps: view.steps,
            left_out: view.left_out,
            commits: view.commits,
            survey: Some(Arc::clone(survey)),
            told: Arc::clone(told),
            findings: view.findings,
            _mark: Some(RunMark::begin()),
            command: None,
        }
    }

    /// Keeps the note of the command until the end of the look, and tells what was found with it.
    pub(super) fn note(&mut self, command: Option<CommandMark>) {
        self.command = command;
        let found = self.command.as_mut().and_then(|mark| mark.found.take());
        self.findings.extend(found);
    }

    /// What is said of `left`, which the command left in places of its own.
    pub(super) fn left_behind(
        &self,
        own: &OwnPlaces,
        left: Vec<PathBuf>,
        command: &str,
    ) -> Option<AftermathFinding> {
        let lost = left.into_iter().filter(|path| match own.kind(path) {
            OwnPlaceKind::Beside => true,
            OwnPlaceKind::Settings => self.told.is_new(path),
            // What is used again by the command was meant for it alone.
            OwnPlaceKind::Temporary if own_places::is_named_once(path, command) => true,
            OwnPlaceKind::Temporary => self.told.is_first_temporary(),
        });
        own_places::finding(&lost.collect::<Vec<_>>())
    }

    /// Looks at every place. Findings name what was done.
    pub(super) fn look(mut self) -> Vec<AftermathFinding> {
        let mut findings = std::mem::take(&mut self.findings);
        findings.extend(self.told.left_out(&self.left_out));
        findings.extend(self.told.commits(&self.commits));
        // More than one look may come to a place.
        let mut met = HashSet::new();
        let mut put_aside = |path: &Path| match met.insert(path.to_owned()) {
            true if !is_in_live_draft(path) => put_aside(path),
            _ => Vec::new(),
        };
        let roots = self.survey.iter().flat_map(|survey| &survey.roots);
        let names: Vec<Names> = roots.map(|root| Names::of(root)).collect();
        let is_absent = |path: &Path| names.iter().any(|names| names.lacks(path));
        for watch in &self.watched {
            if watch.before == Before::Absent && is_absent(&watch.path) {
                continue;
            }
            match (&watch.before, now(&watch.path)) {
                (Before::Absent, LinkState::Absent) => {}
                (Before::Link(before), LinkState::Link(now)) if *before == now => {}
                // What is in a new repository is looked at below; `git init` fills the directory of hooks with examples.
                (Before::Absent, _)
                    if watch.path.ends_with(".git") || holds_samples(&watch.path) => {}
                (Before::Absent, _) => findings.extend(put_aside(&watch.path)),
                (Before::Link(target), _) => findings.push(put_back(&watch.path, target)),
            }
        }
        findings.extend(place_state::told(&self.kept));
        let new = place_state::new_in(&self.kept);
        findings.extend(new.iter().flat_map(|path| put_aside(path)));
        if let Some(survey) = &self.survey {
            let sweep = sweep::since(survey);
            let obeyed = self.obeyed(survey, &sweep);
            self.note_made(survey, &sweep);
            for path in &obeyed {
                let held = put_aside(path);
                // What stood there before comes back.
                let moved = held
                    .first()
                    .filter(|held| held.path == *path && now(path).is_absent());
                let before = self.loose.iter().find_map(|loose| loose.before(path));
                match moved
                    .zip(before)
                    .filter(|(_, before)| put_state(path, before))
                {
                    Some((held, _)) => findings.push(AftermathFinding {
                        text: format!("{}. What stood there before is back", held.text),
                        path: path.clone(),
                    }),
                    None => findings.extend(held),
                }
            }
            findings.extend(self.new_steps(&sweep));
            findings.extend(doors(&sweep.doors, &mut put_aside));
            findings.extend(self.unread(survey, &sweep));
        }
        findings.extend(taken_for_deleted(met));
        findings
    }

    /// What git would obey in repositories that were not there before, and in new submodules of those that were.
    fn obeyed(&self, survey: &Survey, sweep: &Sweep) -> BTreeSet<PathBuf> {
        let (roots, guarded) = (&survey.roots, &self.guarded);
        let works = sweep.repositories.iter();
        let mut obeyed: BTreeSet<PathBuf> = works
            .flat_map(|work| gitruns::of_work(work, roots, guarded))
            .collect();
        let inside = guarded.iter().filter(|git| within_any(git, roots));
        let modules = inside.flat_map(|git| git::modules(git));
        obeyed.extend(modules.flat_map(|git| gitruns::of_directory(&git, roots, guarded)));
        for loose in self.loose.iter().filter(|loose| loose.is_changed()) {
            let mut of_loose = gitruns::of_work(&loose.path, roots, guarded);
            let inner = new_repositories::directories(&loose.path);
            let inner = inner.iter();
            of_loose.extend(inner.flat_map(|git| gitruns::of_directory(git, roots, guarded)));
            of_loose.retain(|path| !loose.had(path));
            obeyed.extend(of_loose);
        }
        obeyed
    }

    /// What git would run that goes on with a rebase, and would not have run before, is taken out of its files.
    fn new_steps(&self, sweep: &Sweep) -> Vec<AftermathFinding> {
        let loose = self.loose.iter().map(|loose| &loose.path);
        let steps = rebase::steps(&self.guarded, loose.chain(&sweep.repositories));
        let mut new: BTreeMap<PathBuf, Vec<Vec<u8>>> = BTreeMap::new();
        for (file, line) in steps.difference(&self.steps) {
            new.entry(file.clone()).or_default().push(line.clone());
        }
        let mut findings = Vec::new();
        for (file, lines) in new {
            if is_in_live_draft(&file) {
                continue;
            }
            if host_writes::wrote_all(&file) {
                findings.push(left_alone(&file));
                continue;
            }
            findings.push(take_out(file, &lines));
        }
        findings
    }

    /// Remembers the repositories and worktrees that were not there before: what commands made they may remove. Files that they may make
    /// are remembered, too: they take no place from the user's own.
    fn note_made(&self, survey: &Survey, sweep: &Sweep) {
        for work in &sweep.repositories {
            let extent = match survey.folders.contains_key(work) {
                true => Extent::Git,
                false => Extent::Whole,
            };
            survey.made.note(work, extent);
        }
        let inside = self.guarded.iter();
        let inside = inside.filter(|git| within_any(git, &survey.roots));
        let worktrees = inside.flat_map(|git| git::worktrees(git));
        for worktree in worktrees.filter(|worktree| !self.guarded.contains(worktree)) {
            survey.made.note(&worktree, Extent::Git);
        }
        for door in &sweep.permitted {
            survey.made.note_door(door);
        }
    }

    /// What could not be looked at: each time if the command made it so, else whenever it is more than before.
    fn unread(&self, survey: &Survey, sweep: &Sweep) -> Option<AftermathFinding> {
        let made = sweep.unread.iter();
        let made: Vec<&PathBuf> = made
            .filter(|folder| folder.of != DirectoryOrigin::Fetched)
            .map(|folder| &folder.path)
            .collect();
        let unread = match made.is_empty() {
            false => made,
            true if self.told.has_more(survey) => survey.unread.iter().collect(),
            true => return None,
        };
        self.told.note(&unread);
        let path = unread.iter().min_by_key(|path| path.components().count())?;
        Some(AftermathFinding {
            path: path.to_path_buf(),
            text: format!(
                "{} too much to be looked through (`{}` is one): what editors, shells or git obey there is neither \
                 kept from changes nor held back when a command makes it, but for what was found there before",
                counted(unread.len(), "directory holds", "directories hold"),
                plain_line(&path.display().to_string(), PATH_CHARS_MAX)
            ),
        })
    }
}

/// What is said of those of `met` that were put aside and that git itself put there: it takes them for deleted.
fn taken_for_deleted(met: HashSet<PathBuf>) -> Option<AftermathFinding> {
    let gone = met.into_iter().filter(|path| now(path).is_absent());
    let mut gone: Vec<PathBuf> = gone.collect();
    gone.sort();
    let tracked = gone
        .into_iter()
        .filter(|path| tracked::may_be_tracked(path));
    let gone: Vec<PathBuf> = tracked.take(TRACKED_SHOWN_MAX).collect();
    Some(AftermathFinding {
        path: gone.first()?.clone(),
        text: format!(
            "git takes what was renamed for deleted: {}",
            tracked::left_out_of_commits(&gone)
        ),
    })
}

/// New files that programs obey: held back in the user's directories, told where they came with something whole.
fn doors(
    doors: &[NewDoor],
    mut put_aside: impl FnMut(&Path) -> Vec<AftermathFinding>,
) -> Vec<AftermathFinding> {
    let mut findings: Vec<AftermathFinding> = Vec::new();
    let of = |wanted: &[DirectoryOrigin]| -> Vec<&NewDoor> {
        let doors = doors.iter();
        doors.filter(|door| wanted.contains(&door.of)).collect()
    };
    findings.extend(
        of(&[DirectoryOrigin::Ordinary])
            .iter()
            .flat_map(|door| put_aside(&door.path)),
    );
    let came = of(&[DirectoryOrigin::Repository, DirectoryOrigin::Fetched]);
    findings.extend(told(&came, "came with a new repository or with packages: editors, shells and tools obey it once they are used there"));
    let homes = of(&[DirectoryOrigin::PerhapsHome]);
    findings.extend(told(
        &homes,
        "was made: shells and tools obey it if its directory is a user's home",
    ));
    findings
}

fn told(doors: &[&NewDoor], text: &str) -> Option<AftermathFinding> {
    let first = doors.first()?;
    let more = match doors.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more like it)"),
    };
    Some(AftermathFinding {
        path: first.path.clone(),
        text: format!("`{}`{more} {text}", first.path.display()),
    })
}

/// Takes `lines` out of a file of an unfinished rebase. What it was is kept beside it.
fn take_out(file: PathBuf, lines: &[Vec<u8>]) -> AftermathFinding {
    let rest = rebase::without(&file, lines);
    let aside = aside(&file);
    let is_back = aside.is_some()
        && rest.is_some_and(|bytes| put_state(&file, &ObeyedState::File { bytes, mode: 0o644 }));
    let end = match (aside, is_back) {
        (Some(name), true) => format!(
            "they were taken out of it, and it is kept as it was as `{}`: rename that back if you want it",
            name.display()
        ),
        (Some(name), false) => format!(
            "it was renamed to `{}`: rename it back if you want it",
            name.display()
        ),
        (None, _) => "it could not be renamed: look at it before you go on".to_owned(),
    };
    AftermathFinding {
        text: format!(
            "the command left in `{}` what git runs{} when a rebase or another command of git goes on, also outside the jail; {end}",
            file.display(),
            rebase::shown(lines)
        ),
        path: file,
    }
}

/// Makes at `path`, where nothing is, what stood there. Follows no link.
fn put_state(path: &Path, state: &ObeyedState) -> bool {
    let folder = path
        .parent()
        .and_then(|folder| held_object::find(folder).ok());
    let (Some(folder), Some(name)) = (folder, path.file_name()) else {
        return false;
    };
    match state {
        ObeyedState::Link(target) => rustix::fs::symlinkat(target, &folder, name).is_ok(),
        ObeyedState::File { bytes, mode } => {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o600));
            let Ok(file) = file.map(File::from) else {
                return false;
            };
            let mode = Permissions::from_mode(mode & 0o777);
            (&file)
                .write_all(bytes)
                .and_then(|()| file.set_permissions(mode))
                .is_ok()
        }
    }
}

enum LinkState {
    Absent,
    Link(PathBuf),
    Other,
}

fn now(path: &Path) -> LinkState {
    match path.symlink_metadata() {
        Err(_) => LinkState::Absent,
        Ok(about) if about.is_symlink() => {
            LinkState::Link(std::fs::read_link(path).unwrap_or_default())
        }
        Ok(_) => LinkState::Other,
    }
}

/// What `git init` puts into the directory of hooks, examples that never run, and into that of branches: nothing.
fn holds_samples(path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else {
        return false;
    };
    let real = path
        .symlink_metadata()
        .is_ok_and(|about| about.is_dir() && about.mode() & 0o170_000 == 0o040_000);
    let mut entries = entries.flatten();
    real && match path.ends_with("branches") {
        true => entries.next().is_none(),
        false => path.ends_with("hooks") && entries.all(|entry| gitruns::is_sample(&entry.path())),
    }
}

/// Moves aside what appeared at `path`, unless a call of the host wrote it with leave: then only what else is in it.
fn put_aside(path: &Path) -> Vec<AftermathFinding> {
    match host_writes::not_written(path) {
        None => vec![move_aside(path)],
        Some(strangers) if strangers.is_empty() => vec![left_alone(path)],
        Some(strangers) => strangers.iter().map(|path| move_aside(path)).collect(),
    }
}

fn move_aside(path: &Path) -> AftermathFinding {
    let text = match aside(path) {
        Some(name) => format!(
            "`{}` appeared while the command ran, and programs outside the jail obey it; it was renamed to `{}`: rename it back if you want it",
            path.display(),
            name.display()
        ),
        None => format!(
            "`{}` appeared while the command ran, programs outside the jail obey it, and it could not be renamed: look at it before you go on",
            path.display()
        ),
    };
    AftermathFinding {
        path: path.to_owned(),
        text,
    }
}

fn left_alone(path: &Path) -> AftermathFinding {
    AftermathFinding {
        path: path.to_owned(),
        text: format!(
            "`{}` was written by another call, with leave, while the command ran; it was left as that call wrote it",
            path.display()
        ),
    }
}

fn put_back(path: &Path, target: &Path) -> AftermathFinding {
    if host_writes::wrote_all(path) {
        return left_alone(path);
    }
    let moved = now(path).is_absent() || aside(path).is_some();
    let back = moved && std::os::unix::fs::symlink(target, path).is_ok();
    let end = match back {
        true => "it was put back, and what was there renamed",
        false => "it could not be put back: look at it before you go on",
    };
    AftermathFinding {
        path: path.to_owned(),
        text: format!(
            "the link `{}`, which programs outside the jail obey, was replaced while the command ran; {end}",
            path.display()
        ),
    }
}

impl LinkState {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Renames what `path` names to a name that is free. Follows no link on the way, which a command could have made to somewhere else.
fn aside(path: &Path) -> Option<PathBuf> {
    let (folder, old) = (held_object::find(path.parent()?).ok()?, path.file_name()?);
    let name = old.to_string_lossy().into_owned();
    let names = std::iter::once(format!("{name}.{ASIDE}"))
        .chain((2..TRIES).map(|number| format!("{name}.{ASIDE}-{number}")));
    for name in names {
        match rustix::fs::renameat_with(&folder, old, &folder, &name, RenameFlags::NOREPLACE) {
            Ok(()) => return Some(path.with_file_name(name)),
            Err(rustix::io::Errno::EXIST) => {}
            Err(_) => return None,
        }
    }
    None
}
