//! The layers in their order, from nothing to a checked configuration.

use std::path::{Path, PathBuf};

use super::compile::compile;
use super::file::LayerSource;
use super::keys::Keys;
use super::locate::{self, UserFile};
use super::merge::{MergedLayers, ProjectPlace};
use super::origin::{ConfigErrors, Problem};
use super::paths::{PathBase, looking_once};
use super::surroundings::{Flags, Surroundings};
use super::{LoadedConfig, environment};

/// Reads all layers and checks them.
pub(crate) fn load(
    surroundings: &Surroundings,
    flags: &Flags,
) -> Result<LoadedConfig, ConfigErrors> {
    let keys = Keys::known();
    let user_file = locate::user_file(surroundings, flags);
    let user_path = user_file.as_ref().map(|file| file.path.as_path());

    let mut merged = MergedLayers::built_in();
    if let Some(file) = user_file.as_ref().filter(|file| is_there(file)) {
        merged.user(&file.path, &keys);
    }
    for file in project_files(surroundings, flags, user_path) {
        project(&mut merged, &file, surroundings, user_path, &keys);
    }
    merged.operator(environment::variables(surroundings, &keys));
    merged.operator(environment::flags(flags, &keys));

    checked(merged, surroundings, user_path)
}

/// Reads `text` in place of all files, and checks it with what variables and flags say.
pub(crate) fn of_text(
    surroundings: &Surroundings,
    flags: &Flags,
    text: &str,
) -> Result<LoadedConfig, ConfigErrors> {
    let keys = Keys::known();
    let mut merged = MergedLayers::built_in();
    merged.user_text(text, &keys);
    merged.operator(environment::variables(surroundings, &keys));
    merged.operator(environment::flags(flags, &keys));
    checked(merged, surroundings, None)
}

fn checked(
    mut merged: MergedLayers,
    surroundings: &Surroundings,
    user_path: Option<&Path>,
) -> Result<LoadedConfig, ConfigErrors> {
    let config = looking_once(|| compile(&mut merged, surroundings, user_path));
    match config {
        Some(config) if merged.problems.is_empty() => Ok(LoadedConfig {
            config,
            origins: merged.settings(),
            warnings: merged.warnings,
        }),
        _ => Err(ConfigErrors::sorted(merged.problems)),
    }
}

/// Checks one file by itself, as the user's or, below a `.zeph` folder, as a project's.
pub(crate) fn check_file(
    surroundings: &Surroundings,
    file: &Path,
) -> Result<LoadedConfig, ConfigErrors> {
    let mut alone = surroundings.clone();
    alone.env.clear();
    let file = surroundings.working_directory.join(file);
    let project_folder = file
        .parent()
        .filter(|folder| folder.ends_with(locate::PROJECT_FOLDER) && file.ends_with("config.toml"))
        .and_then(Path::parent);
    let Some(folder) = project_folder else {
        let flags = Flags {
            config: Some(file),
            no_project: true,
            ..Flags::default()
        };
        return load(&alone, &flags);
    };
    alone.working_directory = folder.to_owned();
    load(&alone, &Flags::default())
}

/// A file that was named has to exist; that it does not is found out by reading it.
fn is_there(file: &UserFile) -> bool {
    file.named || std::fs::symlink_metadata(&file.path).is_ok()
}

/// The project's files, except one that the operator named as the own.
fn project_files(
    surroundings: &Surroundings,
    flags: &Flags,
    user_path: Option<&Path>,
) -> Vec<PathBuf> {
    if flags.no_project {
        return Vec::new();
    }
    let user = user_path.and_then(|user| std::fs::canonicalize(user).ok());
    let is_users = |file: &PathBuf| user.is_some() && std::fs::canonicalize(file).ok() == user;
    let mut files = locate::project_files(surroundings);
    files.retain(|file| !is_users(file));
    files
}

fn project(
    merged: &mut MergedLayers,
    file: &Path,
    surroundings: &Surroundings,
    user_path: Option<&Path>,
    keys: &Keys,
) {
    let Some(directory) = file.parent().and_then(Path::parent) else {
        return;
    };
    if leads_out(file, directory) {
        let origin = LayerSource::Project(file.to_owned()).at(0);
        let message = "leads out of the project through a symlink".to_owned();
        merged.problems.push(Problem::new(origin, message));
        return;
    }
    let home = surroundings.home.as_deref();
    let place = ProjectPlace {
        file,
        operator: surroundings.base(),
        project: PathBase { directory, home },
        operator_file: user_path,
    };
    merged.project(place, keys);
}

/// Whether a project file is a symlink to elsewhere: a repository must not make the host read, and quote in its
/// messages, a file of the operator.
fn leads_out(file: &Path, directory: &Path) -> bool {
    match (
        std::fs::canonicalize(file),
        std::fs::canonicalize(directory),
    ) {
        (Ok(file), Ok(directory)) => !file.starts_with(directory),
        // What cannot be resolved is reported when it is read.
        _ => false,
    }
}
