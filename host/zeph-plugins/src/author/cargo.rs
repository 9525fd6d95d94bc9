//! What cargo says of a project: where its component is, and what its package is called. Cargo alone knows: a variable, a file of
//! settings above the project or a workspace can put what is built elsewhere.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::build;

/// The target that a plugin is built for.
pub(super) const TARGET: &str = "wasm32-wasip2";

/// What a library is that becomes a component.
const CDYLIB: &str = "cdylib";

/// A component that cargo makes, or has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub(crate) file: PathBuf,
    /// The name of its package, with the dashes that the file's name cannot have.
    pub(crate) package: String,
}

/// The part of `cargo metadata` that says where things are.
#[derive(Deserialize)]
struct Metadata {
    target_directory: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
    #[serde(default)]
    crate_types: Vec<String>,
}

/// One line of `cargo build --message-format=json`; those of other kinds lack some of this.
#[derive(Deserialize)]
struct Message {
    package_id: String,
    manifest_path: PathBuf,
    target: CargoTarget,
    filenames: Vec<PathBuf>,
}

/// The components that the project in `folder` is built to, there or not; `None` when cargo cannot be asked.
///
/// Blocks, while cargo reads the manifests. Cargo runs with the person's rights, as when it builds.
pub(crate) fn expected(folder: &Path) -> Option<Vec<Artifact>> {
    const COMMAND: [&str; 5] = [
        "cargo",
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version=1",
    ];
    let said = build::output(&COMMAND, folder).ok()?;
    let metadata: Metadata = serde_json::from_slice(&said).ok()?;
    let release = metadata.target_directory.join(TARGET).join("release");
    let artifacts = metadata.packages.iter().flat_map(|package| {
        let libraries = package.targets.iter().filter(|target| target.is_cdylib());
        libraries.map(|library| {
            let file = release.join(format!("{}.wasm", library.name.replace('-', "_")));
            let package_name = package.name.clone();
            (&package.manifest_path, file, package_name)
        })
    });
    Some(of_project(folder, artifacts))
}

/// The components among what `cargo build` said it made.
pub(super) fn made(folder: &Path, messages: &str) -> Vec<Artifact> {
    let messages: Vec<Message> = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let artifacts = messages.iter().filter(|message| message.target.is_cdylib());
    let artifacts = artifacts.flat_map(|message| {
        let is_wasm = |file: &&PathBuf| file.extension().is_some_and(|end| end == "wasm");
        let files = message.filenames.iter().filter(is_wasm);
        let package = package_of(&message.package_id);
        files.map(move |file| (&message.manifest_path, file.clone(), package.clone()))
    });
    of_project(folder, artifacts)
}

impl CargoTarget {
    fn is_cdylib(&self) -> bool {
        self.crate_types.iter().any(|kind| kind == CDYLIB)
    }
}

/// Those of the project's own package; all when it has none, as the root of a workspace may.
fn of_project<'a>(
    folder: &Path,
    artifacts: impl Iterator<Item = (&'a PathBuf, PathBuf, String)>,
) -> Vec<Artifact> {
    let manifest = folder.join("Cargo.toml");
    let manifest = manifest.canonicalize().unwrap_or(manifest);
    let all: Vec<(bool, Artifact)> = artifacts
        .map(|(of, file, package)| (*of == manifest, Artifact { file, package }))
        .collect();
    let has_own = all.iter().any(|(is_own, _)| *is_own);
    let kept = all.into_iter().filter(|(is_own, _)| *is_own || !has_own);
    kept.map(|(_, artifact)| artifact).collect()
}

/// The name in `path+file:///home/me/weather#0.1.0` or `path+file:///home/me/src#weather@0.1.0`.
fn package_of(id: &str) -> String {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    let name = match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or_default(),
    };
    name.to_owned()
}

#[cfg(test)]
pub(crate) mod tests;
