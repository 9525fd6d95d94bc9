//! Which files are the user's and the project's. Looks whether they exist and does not read them.

use std::path::{Path, PathBuf};

use super::environment::CONFIG_VARIABLE;
use super::paths::without_parents;
use super::surroundings::{Flags, Surroundings};

/// The directory of this program below each base directory.
pub(crate) const PROGRAM: &str = "zeph-host";

/// The folder of a project's own settings. It is hidden from tools: what a project file denies must not be undone by a
/// tool that edits the file.
pub(crate) const PROJECT_FOLDER: &str = ".zeph";

/// The folder of plugins beside the operator's configuration file and in the data directory.
pub const PLUGINS_FOLDER: &str = "plugins";

/// The pins of the plugins in a folder, and of MCP servers.
const LOCK_FILE: &str = "zeph.lock";

/// Where the pins of the plugins in `folder` stand: beside one that is named `plugins`, in any other, which may have
/// neighbours of its kind.
pub fn lock_of(folder: &Path) -> PathBuf {
    match (folder.parent(), folder.file_name()) {
        (Some(beside), Some(name)) if name == PLUGINS_FOLDER => beside.join(LOCK_FILE),
        _ => folder.join(LOCK_FILE),
    }
}

/// Where the pins of MCP servers stand: beside the operator's configuration file, whether that is there or not.
pub(crate) fn lock_beside(user_file: &Path) -> PathBuf {
    user_file.with_file_name(LOCK_FILE)
}

/// A configuration file of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFile {
    /// Absolute, as far as the working directory is, and without `..`; it need not exist.
    pub path: PathBuf,
    /// Named by `--config` or the variable, so that it has to exist.
    pub named: bool,
}

/// The user's file: `--config`, else the variable, else the usual place. `None` without a home.
pub fn user_file(surroundings: &Surroundings, flags: &Flags) -> Option<UserFile> {
    let variable = || {
        let text = surroundings.env.get(CONFIG_VARIABLE)?;
        (!text.is_empty()).then(|| PathBuf::from(text))
    };
    if let Some(path) = flags.config.clone().or_else(variable) {
        let path = without_parents(surroundings.working_directory.join(path));
        return Some(UserFile { path, named: true });
    }
    let base = surroundings.config_home.as_ref()?;
    let path = base.join(PROGRAM).join("config.toml");
    Some(UserFile { path, named: false })
}

/// The project files, outermost first: in the working directory and above it up to the root of the repository or to the
/// home directory (which does not count).
///
/// Every one of them counts and not only the nearest, so that a new file further in cannot switch off what one further
/// out forbids.
pub(crate) fn project_files(surroundings: &Surroundings) -> Vec<PathBuf> {
    let folders = project_folders(surroundings);
    let files = folders.into_iter().map(|folder| folder.join("config.toml"));
    files.filter(|file| may_exist(file)).collect()
}

/// The `.zeph` folders that count when they exist, outermost first. Outside of a repository and of the home directory only
/// the working directory's counts: a folder such as `/tmp` belongs to everybody.
pub(crate) fn project_folders(surroundings: &Surroundings) -> Vec<PathBuf> {
    let start = surroundings.working_directory.as_path();
    let top = project_top(surroundings).unwrap_or(start);
    let on_the_way = start
        .ancestors()
        .take_while(|folder| folder.starts_with(top));
    let mut folders: Vec<PathBuf> = on_the_way
        .map(|folder| folder.join(PROJECT_FOLDER))
        .collect();
    folders.reverse();
    folders
}

/// The outermost folder that can hold the project file.
fn project_top(surroundings: &Surroundings) -> Option<&Path> {
    let start = surroundings.working_directory.as_path();
    let mut below_home = None;
    for folder in start.ancestors() {
        if surroundings.home.as_deref() == Some(folder) {
            return below_home;
        }
        if std::fs::symlink_metadata(folder.join(".git")).is_ok() {
            return Some(folder);
        }
        below_home = Some(folder);
    }
    None
}

/// Whether something is there, or might be: a file that cannot be examined is reported when it is read, since its
/// restrictions would otherwise be lost.
fn may_exist(file: &Path) -> bool {
    match std::fs::symlink_metadata(file) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
        ),
    }
}
