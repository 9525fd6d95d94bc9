//! Packages of npm, installed by npm or bun.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;

use super::command::{PackageSpec, Tool};
use super::folder::InstallRecord;
use super::{InstallPin, Installation};
use crate::servers::launch::LaunchError;

/// Most bytes of a file that is read here.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where packages lie, below the folder.
const MODULES: &str = "node_modules";

/// What tells npm that the folder is where it installs.
const MANIFEST: &str = "{\"name\":\"installed-server\",\"private\":true}\n";

const NO_NPM: &str =
    "`npm` is not on the search path of commands; install Node.js, which `npx` is a part of";

const NO_BUN: &str = "`bun` is not on the search path of commands; install it, write the whole path of `bunx`, or `npx` instead";

/// What is read of a `package.json`.
#[derive(Debug, Deserialize)]
struct Package {
    version: String,
    #[serde(default)]
    bin: Option<Programs>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Programs {
    /// Called like the package.
    One(#[expect(dead_code, reason = "the link to it is run")] String),
    Named(BTreeMap<String, String>),
}

/// What is read of a `package-lock.json`.
#[derive(Debug, Deserialize)]
struct Lock {
    packages: BTreeMap<String, LockedPackage>,
}

#[derive(Debug, Deserialize)]
struct LockedPackage {
    #[serde(default)]
    version: String,
    #[serde(default)]
    integrity: String,
    #[serde(default)]
    resolved: String,
}

/// Installs.
///
/// Errors: [`LaunchError`].
pub(super) async fn install(installation: &Installation<'_>) -> Result<InstallRecord, LaunchError> {
    let folder = installation.folder.path();
    let told = |problem: String| installation.failed(problem, String::new());
    let manifest = fs::write(folder.join("package.json"), MANIFEST);
    manifest.map_err(|error| told(format!("{} cannot be written: {error}", folder.display())))?;
    let packages: Vec<String> = installation
        .packages
        .iter()
        .map(PackageSpec::text)
        .collect();
    let (program, mut arguments, missing) = match installation.command.tool {
        Tool::Bun => ("bun", vec!["add", "--no-progress"], NO_BUN),
        _ => ("npm", NPM.to_vec(), NO_NPM),
    };
    if !installation.runs_scripts {
        arguments.push("--ignore-scripts");
    }
    arguments.push("--");
    arguments.extend(packages.iter().map(String::as_str));
    let runner = installation.runner("npm")?;
    runner.run(program, &arguments, missing).await?;
    let integrity = match installation.command.tool {
        Tool::Bun => of_file(&folder.join("bun.lock")),
        _ => of_lock(&folder.join("package-lock.json")),
    };
    let integrity = integrity.map_err(told)?;
    let name = &installation.packages[0].name;
    let package = package(&folder.join(MODULES).join(name)).map_err(told)?;
    let program = match &installation.command.program {
        Some(program) => program.clone(),
        None => program_of(name, package.bin.as_ref()).map_err(told)?,
    };
    Ok(InstallRecord {
        program: link(folder, &program).map_err(told)?,
        pin: InstallPin {
            package: name.clone(),
            version: package.version,
            integrity,
        },
    })
}

/// Options of `npm install`, which the user's settings must not change.
const NPM: [&str; 8] = [
    "install",
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--omit=dev",
    "--package-lock=true",
    "--global=false",
    "--loglevel=error",
];

/// The program that a package is run by: its only one, or the one that is called like it. As npx chooses.
fn program_of(name: &str, programs: Option<&Programs>) -> Result<String, String> {
    let own = name.rsplit('/').next().unwrap_or(name);
    match programs {
        None => Err(format!(
            "`{name}` has no program to run; name another package"
        )),
        Some(Programs::One(_)) => Ok(own.to_owned()),
        Some(Programs::Named(named)) => {
            let only = named.keys().next().filter(|_| named.len() == 1);
            let chosen = only.or_else(|| named.keys().find(|program| *program == own));
            chosen.cloned().ok_or_else(|| {
                let all: Vec<&str> = named.keys().map(String::as_str).collect();
                format!(
                    "`{name}` has several programs: {}; write `npx -p {name} PROGRAM`",
                    all.join(", ")
                )
            })
        }
    }
}

/// The link to a program, below the folder.
fn link(folder: &Path, program: &str) -> Result<PathBuf, String> {
    let link = Path::new(MODULES).join(".bin").join(program);
    let is_plain = !program.contains('/') && !program.starts_with('.');
    match is_plain && folder.join(&link).is_file() {
        true => Ok(link),
        false => Err(format!(
            "the package was installed and has no program `{program}`"
        )),
    }
}

fn package(folder: &Path) -> Result<Package, String> {
    let text = text(&folder.join("package.json"))?;
    serde_json::from_str(&text).map_err(|error| format!("its package.json cannot be read: {error}"))
}

/// A digest over what a lock file says of every package: its place, its version and the digest of its content.
fn of_lock(path: &Path) -> Result<String, String> {
    let lock: Lock = serde_json::from_str(&text(path)?)
        .map_err(|error| format!("package-lock.json cannot be read: {error}"))?;
    let mut digest = Sha256::new();
    let packages = lock.packages.iter().filter(|(place, _)| !place.is_empty());
    for (place, package) in packages {
        // What has no digest of its content is known by where it came from.
        let content = match package.integrity.is_empty() {
            true => &package.resolved,
            false => &package.integrity,
        };
        digest.update(format!("{place}\0{}\0{content}\n", package.version));
    }
    Ok(Digest::new(digest.finalize().into()).to_string())
}

fn of_file(path: &Path) -> Result<String, String> {
    let digest = Sha256::digest(text(path)?.as_bytes());
    Ok(Digest::new(digest.into()).to_string())
}

fn text(path: &Path) -> Result<String, String> {
    let failed = |error| format!("{} cannot be read: {error}", path.display());
    let length = fs::metadata(path).map_err(failed)?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("{} is too long", path.display()));
    }
    fs::read_to_string(path).map_err(failed)
}

#[cfg(test)]
mod tests;
