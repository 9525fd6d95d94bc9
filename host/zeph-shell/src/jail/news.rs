//! Whether a survey is out of date: whether something came since that a new one would name, and that the next run must find protected,
//! covered or watched, since it did not make it.
//!
//! Limits: a second name that a file gets elsewhere changes no directory here, and is seen by the next survey.

use std::collections::HashSet;
use std::fs::DirEntry;
use std::path::PathBuf;

use zeph_core::policy::PrivatePaths;

use super::survey::{self, Folder, Matter, Survey, Use, is_of_git, lies_in_fetched};
use super::{git, sweep};

/// Most entries of changed and new directories that are read. More are news.
const ENTRIES_MAX: usize = if cfg!(test) { 25_000 } else { 100_000 };

/// What a survey knows, to be compared.
struct Known<'a> {
    survey: &'a Survey,
    private: &'a PrivatePaths,
    repositories: HashSet<&'a PathBuf>,
    doors: HashSet<&'a PathBuf>,
    sockets: HashSet<&'a PathBuf>,
    /// What is private.
    objects: HashSet<&'a PathBuf>,
    unread: HashSet<&'a PathBuf>,
}

/// Whether something came since `survey` that a new one would name.
pub(super) fn has_news(survey: &Survey, private: &PrivatePaths) -> bool {
    let changed = |folders, use_of| {
        let changed = sweep::changed(folders, survey.clock).into_iter();
        changed.map(move |path| (path.clone(), use_of))
    };
    let shown = changed(&survey.shown, Use::ReadOnly);
    let next: Vec<(PathBuf, Use)> = shown
        .chain(changed(&survey.folders, Use::Writable))
        .collect();
    !next.is_empty() && Known::of(survey, private).has_news_in(next)
}

impl<'a> Known<'a> {
    fn of(survey: &'a Survey, private: &'a PrivatePaths) -> Self {
        Self {
            survey,
            private,
            repositories: survey.repositories.iter().collect(),
            doors: survey.doors.iter().collect(),
            sockets: survey.sockets.iter().collect(),
            objects: survey.private.objects.iter().collect(),
            unread: survey.unread.iter().collect(),
        }
    }

    /// Whether there is news in one of these directories, or in a new one below.
    fn has_news_in(&self, mut next: Vec<(PathBuf, Use)>) -> bool {
        let mut left = ENTRIES_MAX;
        while let Some((path, use_of)) = next.pop() {
            let folder = Folder {
                is_private: !self.private.is_empty() && self.private.holds(&path),
                path,
                use_of,
            };
            let mut of_git = Vec::new();
            for entry in std::fs::read_dir(&folder.path)
                .into_iter()
                .flatten()
                .flatten()
            {
                let Some(rest) = left.checked_sub(1) else {
                    return true;
                };
                left = rest;
                let Some(matter) = Matter::of(&entry, &folder, self.private) else {
                    continue;
                };
                if self.is_news(&entry, &matter, &folder) {
                    return true;
                }
                let name = entry.file_name();
                if is_of_git(&name) {
                    of_git.push(name);
                }
                if matter.is_directory && !self.has_read(&matter.path) {
                    next.push((matter.path, use_of));
                }
            }
            let is_laid_open = git::is_laid_open(|name| of_git.iter().any(|of| of == name));
            let is_repository = use_of == Use::Writable && is_laid_open;
            if is_repository && !self.repositories.contains(&folder.path) {
                return true;
            }
        }
        false
    }

    fn has_read(&self, folder: &PathBuf) -> bool {
        let survey = self.survey;
        survey.folders.contains_key(folder)
            || survey.shown.contains_key(folder)
            || self.unread.contains(folder)
    }

    fn is_news(&self, entry: &DirEntry, matter: &Matter, folder: &Folder) -> bool {
        let path = &matter.path;
        let is_private = matter.is_private && (matter.is_directory || !folder.is_private);
        is_private && !self.objects.contains(path)
            || matter.is_socket && !self.sockets.contains(path)
            || matter.makes_repository && !self.repositories.contains(&folder.path)
            || matter.is_door && !self.doors.contains(path)
            || matter.may_be_linked && self.has_new_link(entry, folder)
    }

    /// Whether a file has several names that the survey did not count. Among packages links are compared only, and are many.
    fn has_new_link(&self, entry: &DirEntry, folder: &Folder) -> bool {
        if lies_in_fetched(&folder.path, &self.survey.roots) {
            return false;
        }
        let Ok(about) = entry.metadata() else {
            return false;
        };
        let n_names = survey::n_names(&about);
        n_names > 1 && self.survey.links.get(&survey::key(&about)) != Some(&n_names)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::sync::Arc;

    use zeph_core::policy::PrivatePaths;

    use super::has_news;
    use crate::jail::survey::{self, SurveyScope};

    type Make = fn(&Path);

    fn touch(path: &Path) {
        std::fs::write(path, "").unwrap();
    }

    /// What is made in `project`, beside `elsewhere`, and whether a new survey would name it.
    #[test]
    fn whatever_a_new_survey_would_name_is_news() {
        let cases: [(&str, bool, Make); 12] = [
            ("nothing", false, |_| {}),
            ("a file", false, |base| touch(&base.join("project/lib/x"))),
            ("a directory", false, |base| {
                std::fs::create_dir_all(base.join("project/new/er")).unwrap();
            }),
            ("a socket", true, |base| {
                drop(UnixListener::bind(base.join("project/lib/s")).unwrap());
            }),
            ("a socket that can only be seen", true, |base| {
                drop(UnixListener::bind(base.join("shown/s")).unwrap());
            }),
            ("another name of a file", true, |base| {
                std::fs::hard_link(base.join("elsewhere"), base.join("project/lib/x")).unwrap();
            }),
            ("one fewer", false, |base| {
                std::fs::remove_file(base.join("project/one")).unwrap();
            }),
            ("a file that is obeyed", true, |base| {
                touch(&base.join("project/lib/.envrc"));
            }),
            ("one that commands may make", true, |base| {
                touch(&base.join("project/lib/.gitmodules"));
            }),
            ("one in a new directory", true, |base| {
                std::fs::create_dir_all(base.join("project/new/.mvn")).unwrap();
            }),
            ("a repository", true, |base| {
                std::fs::create_dir(base.join("project/lib/.git")).unwrap();
            }),
            ("a private file", true, |base| {
                touch(&base.join("project/lib/key.pem"));
            }),
        ];
        for (name, expect, make) in cases {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            std::fs::create_dir_all(base.join("project/lib")).unwrap();
            std::fs::create_dir(base.join("shown")).unwrap();
            touch(&base.join("elsewhere"));
            touch(&base.join("project/one"));
            std::fs::hard_link(base.join("project/one"), base.join("project/two")).unwrap();
            let private = PrivatePaths::new(&["/**/*.pem".to_owned()]).unwrap();
            let scope = SurveyScope {
                writable: &[base.join("project")],
                read_only: &[base.join("shown")],
                made: &Arc::default(),
                private: &private,
            };
            let survey = survey::take(scope, None);
            make(&base);
            assert_eq!(has_news(&survey, &private), expect, "{name}");
        }
    }
}
