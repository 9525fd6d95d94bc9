//! From what was typed to one component: a file, or what was built in a project. Looks at nothing but the first bytes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use zeph_core::id::PluginId;

use super::ManageError;
use crate::author::cargo::{self, Artifact};

/// Where projects leave what they build: Cargo unless it says otherwise, most others, some others, by hand.
const PLACES: [&str; 4] = ["target/wasm32-wasip2/release", "dist", "build", "."];

/// A component that was named, by itself or by the project it is built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentSource {
    /// The component.
    pub file: PathBuf,
    /// What its author calls it, where the file's name cannot say it.
    package: Option<String>,
}

impl From<Artifact> for ComponentSource {
    fn from(artifact: Artifact) -> Self {
        Self {
            file: artifact.file,
            package: Some(artifact.package),
        }
    }
}

/// Most components of a project that a message lists.
const LISTED_MAX: usize = 8;

/// How a component begins: a module of version 13, layer 1. A core module has layer 0.
///
/// Source: the binary format of the component model.
const COMPONENT_PREAMBLE: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// The component that `from` names: itself when it is a file, else the only one built in that project.
///
/// Errors: `Read`, or `ComponentSource` when a project has none or several.
pub fn component(from: &Path) -> Result<ComponentSource, ManageError> {
    let cannot_read = |source| ManageError::Read {
        path: from.to_owned(),
        source,
    };
    let meta = fs::metadata(from).map_err(cannot_read)?;
    if !meta.is_dir() {
        return Ok(ComponentSource::of(from.to_owned()));
    }
    let cargo = match from.join("Cargo.toml").is_file() {
        true => cargo::expected(from),
        false => None,
    };
    let places = match cargo {
        Some(_) => &PLACES[1..],
        None => &PLACES,
    };
    let made = cargo.into_iter().flatten().map(ComponentSource::from);
    let mut built: Vec<ComponentSource> = made.filter(|made| is_component(&made.file)).collect();
    for place in places {
        // Without `.`, for messages.
        let place = from.join(place).components().collect::<PathBuf>();
        let found = components_in(&place).map_err(cannot_read)?;
        built.extend(found.into_iter().map(ComponentSource::of));
    }
    match built.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(ManageError::Source {
            problem: format!("`{}` holds no component", from.display()),
            hint: format!(
                "build it first; it is looked for in {} (or where cargo puts it), and the folder itself",
                PLACES[..3].join(", ")
            ),
        }),
        several => Err(ManageError::Source {
            problem: format!("`{}` holds {} components", from.display(), several.len()),
            hint: format!("name one of {}", listed(several)),
        }),
    }
}

impl ComponentSource {
    /// A component that was fetched.
    ///
    /// Shape: `from` is what messages call it, `package` what its plugin is named after.
    pub fn fetched(from: PathBuf, package: String) -> Self {
        Self {
            file: from,
            package: Some(package),
        }
    }

    fn of(file: PathBuf) -> Self {
        Self {
            file,
            package: None,
        }
    }
}

/// Sorted. Modules are passed over: some tools leave what a component was made of beside it.
fn components_in(place: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_wasm = path
            .extension()
            .is_some_and(|extension| extension == "wasm");
        if is_wasm && path.is_file() && is_component(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn is_component(path: &Path) -> bool {
    let mut start = [0; COMPONENT_PREAMBLE.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == COMPONENT_PREAMBLE
}

fn listed(files: &[ComponentSource]) -> String {
    let shown = files.iter().take(LISTED_MAX);
    let mut shown: Vec<String> = shown
        .map(|source| format!("`{}`", source.file.display()))
        .collect();
    if files.len() > LISTED_MAX {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// The name a plugin gets: the one given, else that of its package or file in small letters, with `_` for what a name cannot
/// have.
///
/// Errors: `BadName`, `TakenByHost`.
pub fn name(
    given: Option<&str>,
    source: &ComponentSource,
    host: &[PluginId],
) -> Result<PluginId, ManageError> {
    let stem = source.file.file_stem().unwrap_or_default();
    let name = match (given, &source.package) {
        (Some(name), _) => name.to_owned(),
        (None, Some(package)) => made_of(package),
        (None, None) => made_of(&stem.to_string_lossy()),
    };
    if PluginId::problem(&name).is_some() {
        return Err(ManageError::BadName(name));
    }
    let name = PluginId(name);
    match host.contains(&name) {
        true => Err(ManageError::TakenByHost(name)),
        false => Ok(name),
    }
}

fn made_of(stem: &str) -> String {
    let fit = |char: char| match char.to_ascii_lowercase() {
        char @ ('a'..='z' | '0'..='9' | '_' | '-') => char,
        _ => '_',
    };
    let mut name: String = stem.trim_start_matches('-').chars().map(fit).collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    name.truncate(name.trim_end_matches('_').len());
    name
}

#[cfg(test)]
mod tests;
