//! What a program is made of: the crates that are linked into it and into what it embeds, and the libraries of the compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;
use toml_edit::DocumentMut;

use crate::program::cargo;
use crate::release::{Release, TRIPLE, output};

/// Packages whose code stands in the program, each with the target it is compiled for.
const ROOTS: [(&str, &str); 7] = [
    ("zeph-host", TRIPLE),
    ("zeph-jail", TRIPLE),
    ("zeph-plugin-diagnostics", GUEST),
    ("zeph-plugin-file", GUEST),
    ("zeph-plugin-scrape", GUEST),
    ("zeph-plugin-search", GUEST),
    ("zeph-filters-standard", GUEST),
];

const GUEST: &str = "wasm32-wasip2";

/// A crate in the program.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An expression of SPDX.
    pub(crate) licence: String,
    /// SHA-256 of the crate in the registry; `None` for crates of the workspace.
    pub(crate) checksum: Option<String>,
    /// Where its sources lie.
    pub(crate) folder: PathBuf,
    /// A file with its licence, where the manifest names one.
    pub(crate) licence_file: Option<PathBuf>,
    /// What it uses of the others, by name and version.
    pub(crate) uses: BTreeSet<(String, String)>,
}

impl Part {
    /// Whether it is one of this workspace.
    pub(crate) fn is_own(&self) -> bool {
        self.checksum.is_none()
    }
}

type Name = (String, String);

/// Every part, by name and version. Macros and what build scripts use are no parts: they only work while it is built.
pub(crate) fn of(release: &Release) -> Result<Vec<Part>> {
    let mut linked: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
    for (package, target) in ROOTS {
        collect(package, target, &mut linked)?;
    }
    let checksums = checksums(release)?;
    let mut metadata = cargo()?;
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    // Crates of other platforms need not be fetched.
    for target in [TRIPLE, GUEST] {
        metadata.args(["--filter-platform", target]);
    }
    let metadata: Value = serde_json::from_str(&output(&mut metadata)?)?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("cargo lists no packages")?;
    let mut parts: Vec<Part> = packages
        .iter()
        .filter_map(|package| part(package, &linked, &checksums))
        .collect();
    parts.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(parts)
}

fn part(
    package: &Value,
    linked: &BTreeMap<Name, BTreeSet<Name>>,
    checksums: &BTreeMap<Name, String>,
) -> Option<Part> {
    let text = |key: &str| package[key].as_str().map(str::to_owned);
    let name = (text("name")?, text("version")?);
    let uses = linked.get(&name)?.clone();
    let folder = PathBuf::from(package["manifest_path"].as_str()?);
    let folder = folder.parent()?.to_owned();
    Some(Part {
        // `A/B` is how crates of old wrote `A OR B`.
        licence: text("license")
            .unwrap_or_default()
            .replace(" / ", "/")
            .replace('/', " OR "),
        checksum: checksums.get(&name).cloned(),
        licence_file: text("license_file").map(|file| folder.join(file)),
        name: name.0,
        version: name.1,
        folder,
        uses,
    })
}

/// Adds what `cargo tree` shows for a package: `DEPTH NAME vVERSION …` in each line.
fn collect(package: &str, target: &str, linked: &mut BTreeMap<Name, BTreeSet<Name>>) -> Result<()> {
    let mut tree = cargo()?;
    tree.args(["tree", "--locked", "--package", package, "--target", target]);
    tree.args(["--edges", "normal,no-proc-macro", "--prefix", "depth"]);
    // The depth stands directly before the package.
    tree.args(["--format", " {p}"]);
    let mut above: Vec<Name> = Vec::new();
    for line in output(&mut tree)?.lines() {
        let mut words = line.split_whitespace();
        let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let depth: usize = depth.parse().context("`cargo tree` shows no depth")?;
        let name = (name.to_owned(), version.trim_start_matches('v').to_owned());
        above.truncate(depth);
        if let Some(user) = above.last() {
            let uses = linked.entry(user.clone()).or_default();
            uses.insert(name.clone());
        }
        linked.entry(name.clone()).or_default();
        above.push(name);
    }
    Ok(())
}

fn checksums(release: &Release) -> Result<BTreeMap<Name, String>> {
    let lock: DocumentMut = release.text("Cargo.lock")?.parse()?;
    let packages = lock["package"].as_array_of_tables();
    let packages = packages.context("`Cargo.lock` lists no packages")?;
    let text = |package: &toml_edit::Table, key: &str| {
        package
            .get(key)
            .and_then(|value| value.as_str())
            .map(str::to_owned)
    };
    Ok(packages
        .iter()
        .filter_map(|package| {
            let name = (text(package, "name")?, text(package, "version")?);
            Some((name, text(package, "checksum")?))
        })
        .collect())
}
