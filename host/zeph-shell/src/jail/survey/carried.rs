//! What is known beyond the limit of a survey. A command can fill a directory until the limit is reached above everything else: that must
//! uncover nothing, so what was found once stays known while it is there, and directories that were looked through once stay under watch.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{DirectoryStamp, Folder, Look, Survey, Use, is_fetched, is_of_git, lies_in_fetched};
use crate::jail::{doors, git};

/// Most entries that are looked at of directories which changed or came since the look before, and that this one did not come to.
const ENTRIES_MAX: usize = if cfg!(test) { 25_000 } else { 100_000 };

/// Most directories that stay under watch: each costs a system call before and after a run. Others are told.
const FOLDERS_MAX: usize = if cfg!(test) { 1_000 } else { 50_000 };

/// Most entries that the first look of all reads beyond its limit, by name alone: a tenth of a second.
const NAMES_MAX: usize = 200_000;

/// Takes over what the look `before` found where this one did not come, and looks at what changed there.
pub(super) fn over(look: &mut Look<'_>, before: &Survey) {
    let not_read = std::mem::take(&mut look.survey.unread);
    let was_unread: HashSet<&Path> = before.unread.iter().map(PathBuf::as_path).collect();
    let changed = folders(&mut look.survey, before);
    let is_new = |path: &PathBuf| {
        !before.folders.contains_key(path)
            && !path.ancestors().any(|above| was_unread.contains(above))
    };
    let (new, old): (Vec<PathBuf>, Vec<PathBuf>) = not_read.into_iter().partition(is_new);
    // What the user has is looked at before what may have been made to hide it.
    let next = changed.iter().map(|(path, _)| path).chain(&new);
    let next: VecDeque<Folder> = next
        .map(|path| look.folder(path.clone(), Use::Writable))
        .collect();
    let queued: HashSet<PathBuf> = next.iter().map(|folder| folder.path.clone()).collect();
    look.left = ENTRIES_MAX;
    look.through(next, |path| {
        !queued.contains(path) && !was_unread.contains(path)
    });
    let survey = &mut look.survey;
    let met: HashSet<&PathBuf> = old.iter().collect();
    let others = before.unread.iter();
    let others = others.filter(|path| !met.contains(path) && path.is_dir());
    survey.unread.extend(others.chain(&old).cloned());
    unique(&mut survey.unread);
    survey
        .unread
        .retain(|path| !survey.folders.contains_key(path));
    // Those that are too full to be read again are asked for single names after a run.
    for (path, stamp) in changed {
        survey.folders.entry(path).or_insert(stamp);
    }
    places(survey, before);
}

/// Takes over the directories that did not change, and gives the others, the uppermost first.
fn folders(survey: &mut Survey, before: &Survey) -> Vec<(PathBuf, DirectoryStamp)> {
    let not_met = before.folders.iter();
    let not_met = not_met.filter(|(path, _)| !survey.folders.contains_key(*path));
    let still = not_met.filter_map(|(path, then)| {
        let now = DirectoryStamp::of(path).filter(|now| now.is_of(*then))?;
        Some((path, *then, now))
    });
    let mut still: Vec<(&PathBuf, DirectoryStamp, DirectoryStamp)> = still.collect();
    let room = FOLDERS_MAX.saturating_sub(survey.folders.len());
    if still.len() > room {
        // Those that a command made to fill the watch came after what was to be displaced.
        still.sort_by_cached_key(|(path, ..)| {
            let is_fetched = lies_in_fetched(path, &survey.roots);
            (is_fetched, born(path), path.components().count(), *path)
        });
        let beyond = still.drain(room..).map(|(path, ..)| path.clone());
        survey.unread.extend(beyond);
    }
    let mut changed = Vec::new();
    for (path, then, now) in still {
        match now.differs(then, before.clock) {
            true => changed.push((path.clone(), now)),
            false => drop(survey.folders.insert(path.clone(), now)),
        }
    }
    changed.sort_by_cached_key(|(path, _)| {
        let is_fetched = lies_in_fetched(path, &survey.roots);
        (is_fetched, path.components().count(), path.clone())
    });
    changed
}

/// When a directory was made; of an unknown time, it counts as new.
fn born(path: &Path) -> (bool, Option<SystemTime>) {
    let about = path.symlink_metadata();
    let born = about.and_then(|about| about.created()).ok();
    (born.is_none(), born)
}

/// Takes over the single places that are still there.
fn places(survey: &mut Survey, before: &Survey) {
    let found = |path: &Path| path.symlink_metadata().ok();
    keep(&mut survey.doors, &before.doors, |path| {
        found(path).is_some()
    });
    keep(&mut survey.sockets, &before.sockets, |path| {
        found(path).is_some_and(|about| about.file_type().is_socket())
    });
    let known: HashSet<PathBuf> = survey.repositories.iter().cloned().collect();
    let missing = before
        .repositories
        .iter()
        .filter(|work| !known.contains(*work));
    for work in missing.filter(|work| git::is_repository(work)) {
        survey.found_repository(work);
    }
    unique(&mut survey.repositories);
    unique(&mut survey.loose);
}

/// Adds those of `before` that `still` are what they were, and leaves each once.
pub(super) fn keep(now: &mut Vec<PathBuf>, before: &[PathBuf], still: impl Fn(&Path) -> bool) {
    let known: HashSet<PathBuf> = now.iter().cloned().collect();
    let missing = before.iter().filter(|path| !known.contains(*path));
    now.extend(missing.filter(|path| still(path)).cloned());
    unique(now);
}

fn unique<T: Clone + Eq + Hash>(items: &mut Vec<T>) {
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(item.clone()));
}

/// Looks for repositories and files that programs obey where the first survey did not come: nothing of it is known yet, and an earlier
/// process may have filled what was read. Files are not asked for their other names, and packages are left out.
pub(super) fn look_for_places(survey: &mut Survey) {
    let roots = survey.roots.clone();
    let not_read = survey.unread.iter();
    let mut next: VecDeque<PathBuf> = not_read
        .filter(|folder| !lies_in_fetched(folder, &roots))
        .cloned()
        .collect();
    let mut left = NAMES_MAX;
    while left > 0
        && let Some(folder) = next.pop_front()
    {
        let mut of_git = Vec::new();
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if left == 0 {
                break;
            }
            left -= 1;
            let (name, path) = (entry.file_name(), entry.path());
            if name == ".git" {
                survey.found_repository(&folder);
                continue;
            }
            if is_of_git(&name) {
                of_git.push(name.clone());
            }
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if doors::is_door(&path) {
                survey.doors.push(path.clone());
            }
            if is_directory && !is_fetched(&name) {
                next.push_back(path);
            }
        }
        if git::is_laid_open(|name| of_git.iter().any(|of| of == name)) {
            survey.found_repository(&folder);
        }
    }
    unique(&mut survey.doors);
    unique(&mut survey.repositories);
    unique(&mut survey.loose);
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use zeph_core::policy::PrivatePaths;

    use super::super::{ENTRIES_MAX, Survey, SurveyScope, take};
    use super::FOLDERS_MAX;

    fn look(root: &Path, before: Option<&Survey>) -> Survey {
        let scope = SurveyScope {
            writable: &[root.to_owned()],
            read_only: &[],
            made: &Arc::default(),
            private: &PrivatePaths::default(),
        };
        take(scope, before)
    }

    fn fill(folder: &Path) {
        std::fs::create_dir(folder).unwrap();
        for number in 0..ENTRIES_MAX {
            std::fs::write(folder.join(number.to_string()), "").unwrap();
        }
    }

    /// A directory with one place of each kind, below a name that is read after `a`.
    fn project(root: &Path) -> [PathBuf; 3] {
        let deep = root.join("user/deep/er");
        std::fs::create_dir_all(deep.join("repository/.git")).unwrap();
        std::fs::create_dir(deep.join(".vscode")).unwrap();
        std::fs::write(deep.join(".envrc"), "").unwrap();
        [
            deep.join("repository"),
            deep.join(".vscode"),
            deep.join(".envrc"),
        ]
    }

    fn knows(survey: &Survey, [repository, folder, file]: &[PathBuf; 3]) -> bool {
        survey.repositories.contains(repository)
            && survey.doors.contains(folder)
            && survey.doors.contains(file)
    }

    #[test]
    fn a_full_directory_hides_nothing_that_was_found_before() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let places = project(&root);
        let deep = root.join("user/deep/er");
        let mut survey = look(&root, None);
        assert!(survey.complete && knows(&survey, &places));
        fill(&root.join("a"));
        for _ in 0..2 {
            survey = look(&root, Some(&survey));
            assert!(!survey.complete && knows(&survey, &places));
            assert!(survey.folders.contains_key(&deep));
            assert_eq!(survey.unread, Vec::<PathBuf>::new());
        }
        // What comes below a directory that stays under watch is found, and what is gone is forgotten.
        std::fs::create_dir_all(deep.join("new/.idea")).unwrap();
        std::fs::remove_file(&places[2]).unwrap();
        let survey = look(&root, Some(&survey));
        assert!(survey.doors.contains(&deep.join("new/.idea")));
        assert!(!survey.doors.contains(&places[2]));
    }

    /// More directories than stay under watch: those that were there before are not displaced.
    #[test]
    fn many_new_directories_displace_none_that_were_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let places = project(&root);
        let mut survey = look(&root, None);
        let were_there: Vec<PathBuf> = survey.folders.keys().cloned().collect();
        fill(&root.join("a"));
        let many = root.join("a/many");
        std::fs::create_dir(&many).unwrap();
        for number in 0..FOLDERS_MAX + 500 {
            std::fs::create_dir(many.join(number.to_string())).unwrap();
        }
        for _ in 0..3 {
            survey = look(&root, Some(&survey));
            let is_watched = |path: &&PathBuf| survey.folders.contains_key(*path);
            assert_eq!(were_there.iter().find(|path| !is_watched(path)), None);
            assert!(knows(&survey, &places));
        }
        assert!(!survey.unread.is_empty());
    }

    #[test]
    fn the_first_look_finds_places_beyond_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fill(&root.join("a"));
        let places = project(&root);
        let survey = look(&root, None);
        assert!(!survey.complete && knows(&survey, &places));
        assert!(!survey.unread.is_empty());
        assert!(knows(&look(&root, Some(&survey)), &places));
    }
}
