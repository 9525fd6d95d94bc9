//! Packages of a Python index, installed by uv or pip into an environment of their own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;

use super::command::{PackageSpec, Tool};
use super::folder::InstallRecord;
use super::{InstallPin, Installation};
use crate::servers::launch::LaunchError;

/// The environment, below the folder.
const VENV: &str = "venv";

/// Most bytes of a file that is read here.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

const NO_UV: &str = "`uv` is not on the search path of commands; install it, write the whole path of `uvx`, or `pipx run` instead";

const NO_PYTHON: &str = "there is no such Python on the search path of commands; install it";

/// Installs.
///
/// Errors: [`LaunchError`].
pub(super) async fn install(installation: &Installation<'_>) -> Result<InstallRecord, LaunchError> {
    match installation.command.tool {
        Tool::Uv => by_uv(installation).await?,
        _ => by_pip(installation).await?,
    }
    let told = |problem: String| installation.failed(problem, String::new());
    let folder = installation.folder.path();
    let name = &installation.packages[0].name;
    let program = installation.command.program.as_ref().unwrap_or(name);
    let installed = Installed::of(&folder.join(VENV)).map_err(told)?;
    let version = installed.version(name);
    let version = version.ok_or_else(|| told(format!("`{name}` was not installed")))?;
    Ok(InstallRecord {
        program: script(folder, program).map_err(told)?,
        pin: InstallPin {
            package: name.clone(),
            version: version.to_owned(),
            integrity: installed.digest(),
        },
    })
}

async fn by_uv(installation: &Installation<'_>) -> Result<(), LaunchError> {
    let runner = installation.runner("uv")?;
    let mut arguments = vec!["venv", "--quiet", "--no-project", VENV];
    if let Some(python) = &installation.command.python {
        arguments.extend(["--python", python.as_str()]);
    }
    runner.run("uv", &arguments, NO_UV).await?;
    let mut arguments = vec![
        "pip",
        "install",
        "--quiet",
        // Where the server runs, nothing can be written here.
        "--compile-bytecode",
        "--python",
        "venv/bin/python",
    ];
    if !installation.runs_scripts {
        arguments.push("--no-build");
    }
    arguments.push("--");
    let packages = texts(installation);
    arguments.extend(packages.iter().map(String::as_str));
    runner.run("uv", &arguments, NO_UV).await
}

async fn by_pip(installation: &Installation<'_>) -> Result<(), LaunchError> {
    let runner = installation.runner("pip")?;
    let python = installation.command.python.as_ref();
    let python = python.map_or_else(
        || "python3".to_owned(),
        |version| format!("python{version}"),
    );
    runner
        .run(&python, &["-m", "venv", VENV], NO_PYTHON)
        .await?;
    let own = installation.folder.path().join("venv/bin/python");
    let own = own.to_string_lossy();
    let mut arguments = vec![
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ];
    if !installation.runs_scripts {
        arguments.push("--only-binary=:all:");
    }
    arguments.push("--");
    let packages = texts(installation);
    arguments.extend(packages.iter().map(String::as_str));
    runner.run(&own, &arguments, NO_PYTHON).await
}

fn texts(installation: &Installation<'_>) -> Vec<String> {
    let packages = installation.packages.iter();
    packages.map(PackageSpec::text).collect()
}

/// A program of the environment, below the folder.
fn script(folder: &Path, program: &str) -> Result<PathBuf, String> {
    let script = Path::new(VENV).join("bin").join(program);
    if folder.join(&script).is_file() {
        return Ok(script);
    }
    let entries = fs::read_dir(folder.join(VENV).join("bin"));
    let names = entries.into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_of_venv = |name: &String| {
        ["activate", "python", "pip", "Activate"]
            .iter()
            .any(|begin| name.starts_with(begin))
    };
    let names: BTreeSet<String> = names.filter(|name| !is_of_venv(name)).collect();
    let names: Vec<String> = names.into_iter().collect();
    Err(format!(
        "the package was installed and has no program `{program}`; its programs, and those of what it needs, are: {}; write `uvx --from PACKAGE PROGRAM`",
        names.join(", ")
    ))
}

/// What is installed in an environment: of each package its name, its version and its list of files with their digests.
struct Installed(Vec<Distribution>);

struct Distribution {
    name: String,
    version: String,
    files: BTreeSet<String>,
}

impl Installed {
    /// Errors: in words.
    fn of(venv: &Path) -> Result<Self, String> {
        let mut all = Vec::new();
        for library in entries(&venv.join("lib"))? {
            let packages = library.join("site-packages");
            for place in entries(&packages).unwrap_or_default() {
                let is_info = place.extension().is_some_and(|end| end == "dist-info");
                if is_info {
                    all.push(Distribution::of(&place)?);
                }
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self(all))
    }

    fn version(&self, name: &str) -> Option<&str> {
        let wanted = normal(name);
        let found = self.0.iter().find(|one| normal(&one.name) == wanted);
        found.map(|found| found.version.as_str())
    }

    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        // What made the environment came with it, not from the index.
        let of_index = self.0.iter().filter(|one| one.name != "pip");
        for one in of_index {
            digest.update(format!("{}\0{}\n", normal(&one.name), one.version));
            for file in &one.files {
                digest.update(format!("{file}\n"));
            }
        }
        Digest::new(digest.finalize().into()).to_string()
    }
}

impl Distribution {
    fn of(folder: &Path) -> Result<Self, String> {
        let metadata = text(&folder.join("METADATA"))?;
        let field = |name: &str| {
            let mut lines = metadata.lines().take_while(|line| !line.is_empty());
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let record = text(&folder.join("RECORD"))?;
        let files = record.lines().filter(|line| is_of_package(line));
        let (name, version) = field("Name:")
            .zip(field("Version:"))
            .ok_or_else(|| format!("{} says no name or version", folder.display()))?;
        Ok(Self {
            name,
            version,
            files: files.map(str::to_owned).collect(),
        })
    }
}

/// Whether a line of a `RECORD` is of a file that came with the package, the same wherever and whenever it is installed.
fn is_of_package(line: &str) -> bool {
    let path = line.split(',').next().unwrap_or_default();
    let is_digested = line.contains(",sha256=");
    let made_here = [
        "INSTALLER",
        "REQUESTED",
        "RECORD",
        "direct_url.json",
        "uv_cache.json",
    ];
    let is_made_here = made_here
        .iter()
        .any(|name| path.ends_with(&format!(".dist-info/{name}")));
    let is_script = path.starts_with("../../../bin/");
    is_digested && !is_made_here && !is_script && !path.ends_with(".pyc")
}

/// The name as an index compares it.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
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
