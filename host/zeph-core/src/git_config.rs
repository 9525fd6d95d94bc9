//! Git's configuration as far as it tells where git finds what it runs: folders of hooks, programs, and further files of configuration.
//!
//! The guard of file tools and the jail of commands share this one reader. It reads as git does, but for the conditions of
//! `includeIf`: whatever may be included counts. It opens nothing itself: the caller says how a file is read.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::path::normal;

mod parse;
mod run;

pub use self::parse::{GitSetting, settings};
pub use self::run::{leads, runs};

use self::run::{NamedFile, words_of};

/// How far files include others; git gives up there.
const DEPTH_MAX: usize = 10;

/// Most files that are read for one repository; real ones include two or three.
const FILES_MAX: usize = 64;

/// The configuration of the machine, in the usual place.
const SYSTEM_FILE: &str = "/etc/gitconfig";

/// The list of users, which says where `~name` is.
const USERS_FILE: &str = "/etc/passwd";

/// What git runs from a folder of hooks.
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Reads a small regular file; `None` when it cannot.
pub type ReadText = fn(&Path) -> Option<String>;

/// The user whose git obeys the configuration, and whose programs obey what is in the home.
#[derive(Debug, Clone, Default)]
pub struct GitUser {
    /// What `~` stands for. Absolute.
    pub home: Option<PathBuf>,
    /// The directory of configuration, where it is not `.config` in the home. Absolute.
    pub config_home: Option<PathBuf>,
    /// Links in the home whose targets programs obey.
    pub links: HomeLinks,
}

/// The links in a home that programs obey. They are looked for when they are first needed, and once: most calls only read.
#[derive(Debug, Clone)]
pub struct HomeLinks(Arc<LazyLock<Vec<HomeLink>, FindLinks>>);

/// Finds the links in a home. May block.
type FindLinks = Box<dyn FnOnce() -> Vec<HomeLink> + Send>;

impl HomeLinks {
    /// The links that `find` finds.
    pub fn new(find: impl FnOnce() -> Vec<HomeLink> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(find))))
    }
}

impl Default for HomeLinks {
    fn default() -> Self {
        Self::new(Vec::new)
    }
}

/// A link in the home directory that programs obey, or a path through one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeLink {
    /// Absolute; a target need not exist.
    pub path: PathBuf,
    /// The name on the list of `obeyed`.
    pub name: &'static str,
}

/// What files of configuration name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitNames {
    /// Folders of hooks. Those that are relative are relative to the working directory of a repository.
    hooks: Vec<PathBuf>,
    /// Files that values name which git runs.
    programs: Vec<NamedFile>,
    /// Working directories that repositories have elsewhere. Those that are relative are relative to the git directory.
    works: Vec<PathBuf>,
    /// Further files of configuration, absolute.
    files: Vec<PathBuf>,
}

/// Reads what configurations name, for one user.
#[derive(Debug)]
pub struct GitReader {
    user: GitUser,
    read: ReadText,
    /// What the configurations of the user and of the machine name.
    own: GitNames,
}

impl GitUser {
    /// The files of the user's own configuration, and that of the machine, whether they exist or not.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let file = self.config_folder().map(|folder| folder.join("git/config"));
        let own = self.home.as_ref().map(|home| home.join(".gitconfig"));
        [Some(SYSTEM_FILE.into()), file, own].into_iter().flatten()
    }

    /// The directory of configuration.
    pub fn config_folder(&self) -> Option<PathBuf> {
        let usual = || Some(self.home.as_ref()?.join(".config"));
        self.config_home.clone().or_else(usual)
    }

    /// The path a value stands for; `None` when it names nothing, or what git itself brought. The list of the
    /// machine's users is `read`.
    pub fn path(&self, value: &str, read: ReadText) -> Option<PathBuf> {
        let value = value.strip_prefix(":(optional)").unwrap_or(value);
        if value.is_empty() || value.starts_with("%(prefix)/") {
            return None;
        }
        let Some(rest) = value.strip_prefix('~') else {
            return Some(value.into());
        };
        let (user, below) = rest.split_once('/').unwrap_or((rest, ""));
        Some(
            self.home_of(user, read)?
                .join(below.trim_start_matches('/')),
        )
    }

    /// The home directory of a user of the machine; the user's own without a name. One that the machine does not list has it
    /// beside the user's own.
    fn home_of(&self, name: &str, read: ReadText) -> Option<PathBuf> {
        let own = self.home.as_ref();
        if name.is_empty() {
            return own.cloned();
        }
        let users = read(Path::new(USERS_FILE)).unwrap_or_default();
        let mut homes = users.lines().filter_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == name).then(|| fields.nth(4))?
        });
        let listed = homes.next().map(PathBuf::from);
        listed.or_else(|| Some(own?.with_file_name(name)))
    }
}

impl GitReader {
    /// Reads what the `user`'s own configuration names.
    pub fn new(user: GitUser, read: ReadText) -> Self {
        let own = GitNames::default();
        let mut reader = Self { user, read, own };
        let files: Vec<PathBuf> = reader.user.files().collect();
        reader.own = reader.read_all(&files);
        // They may be links to files of a project.
        reader.own.files.extend(files);
        reader
    }

    /// The links in the user's home whose targets programs obey. May block.
    pub fn home_links(&self) -> &[HomeLink] {
        &self.user.links.0
    }

    /// What git obeys of the user's own configuration for every repository of the machine: its files, and folders of hooks
    /// and programs with an absolute path.
    pub fn everywhere(&self) -> impl Iterator<Item = &PathBuf> {
        let programs = self.own.programs.iter();
        let programs = programs.filter(|file| file.is_named(&file.path));
        let programs = programs.map(|file| &file.path);
        let named = self.own.hooks.iter().chain(programs);
        let named = named.filter(|path| path.is_absolute());
        named.chain(&self.own.files)
    }

    /// Where the repository with the git directory `git` and the working directory `work` finds hooks, further configuration, and the
    /// programs that its configuration names.
    /// `common` is where its configuration is: `git`, but for linked worktrees.
    ///
    /// Shape: absolute paths that may hold `..` and links, whether anything is there or not. Of a folder of hooks that holds
    /// `work`, only what git runs from there.
    /// Limits: 64 files, each included through at most ten others. What `%(prefix)` names is omitted: git itself is there.
    pub fn of_repository(&self, git: &Path, common: &Path, work: &Path) -> Vec<PathBuf> {
        let names = self.read_all(&[common.join("config"), git.join("config.worktree")]);
        let works = names.works.iter().map(|work| git.join(work));
        let works: Vec<PathBuf> = works.chain([work.to_owned()]).collect();
        let hooks = self.own.hooks.iter().chain(&names.hooks);
        let folders =
            hooks.flat_map(|folder| works.iter().map(move |work| (work.join(folder), work)));
        let mut found = names.files.clone();
        for file in self.own.programs.iter().chain(&names.programs) {
            let paths = works.iter().map(|work| work.join(&file.path));
            found.extend(paths.filter(|path| file.is_named(path)));
        }
        for (folder, work) in folders {
            match normal(work).starts_with(normal(&folder)) {
                true => found.extend(hooks_in(&folder)),
                false => found.push(folder),
            }
        }
        found
    }

    fn read_all(&self, files: &[PathBuf]) -> GitNames {
        let mut names = GitNames::default();
        let mut pending: VecDeque<(PathBuf, usize)> =
            files.iter().map(|file| (file.clone(), 0)).collect();
        let mut known: HashSet<PathBuf> = files.iter().cloned().collect();
        let mut left = FILES_MAX;
        while let Some((file, depth)) = pending.pop_front() {
            let Some(text) = (self.read)(&file) else {
                continue;
            };
            let n_known = names.files.len();
            for setting in settings(&text) {
                self.note(&setting, &file, &mut names);
            }
            for included in &names.files[n_known..] {
                if depth < DEPTH_MAX && left > 0 && known.insert(included.clone()) {
                    left -= 1;
                    pending.push_back((included.clone(), depth + 1));
                }
            }
        }
        names
    }

    /// Notes what a setting of `file` names.
    fn note(&self, setting: &GitSetting, file: &Path, names: &mut GitNames) {
        let Some(value) = setting.value.as_deref() else {
            return;
        };
        let Some(path) = self.user.path(value, self.read) else {
            return;
        };
        let name = setting.name.as_str();
        let is_conditional = name.starts_with("includeif.") && name.ends_with(".path");
        match name {
            "core.hookspath" | "init.templatedir" => names.hooks.push(path),
            "core.worktree" => names.works.push(path),
            _ if is_conditional || name == "include.path" => {
                let beside = file.parent().unwrap_or(file);
                names.files.push(beside.join(path));
            }
            _ if runs(setting.key()) || name.starts_with("pager.") => {
                names.programs.extend(self.files_of(value));
            }
            _ => {}
        }
    }

    /// The files that a command line may name.
    fn files_of(&self, command: &str) -> Vec<NamedFile> {
        let words = words_of(command).into_iter();
        let files = words.filter_map(|(word, is_spelled)| {
            let path = self.user.path(word, self.read)?;
            Some(NamedFile { path, is_spelled })
        });
        files.collect()
    }
}

impl NamedFile {
    /// Whether `path`, where it would be, counts as named. A directory is no program, and a mere word only the name of what is there.
    fn is_named(&self, path: &Path) -> bool {
        match self.is_spelled {
            true => !path.is_dir(),
            false => path.is_file(),
        }
    }
}

/// What git runs from a folder of hooks, whether it is there or not.
fn hooks_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    HOOKS.iter().map(|hook| folder.join(hook))
}

#[cfg(test)]
mod tests;
