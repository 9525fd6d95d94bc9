//! The crates, as a registry takes them and as one archive that `cargo install` builds from, with the components compiled inside.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use flate2::read::GzDecoder;
use serde_json::Value;
use toml_edit::{DocumentMut, Item, value};

use crate::archive::{self, gzip, tar};
use crate::compile::Guest;
use crate::program::{cargo, profile_dir, succeed};
use crate::release::{self, Release, output, platform};
use crate::staging::{files_below, put, stage};

/// The most a registry takes for a crate.
const CRATE_BYTES_MAX: usize = 10 << 20;

/// The crate that embeds the components.
const BUNDLE: &str = "zeph-bundle";

/// The inner stage of the jail, and the crate that embeds it.
const JAIL: &str = "zeph-jail";
const SHELL: &str = "zeph-shell";

/// The profiles of the workspace that an installation uses.
const PROFILES: [&str; 2] = ["release", "jail"];

/// Writes `NAME-VERSION.crate` for each crate, and `zeph-host-VERSION-source.tar.gz`.
pub(crate) fn write(release: &Release, guests: &[Guest], folder: &Path) -> Result<()> {
    let staged = profile_dir("dist-stage")?;
    if staged.exists() {
        std::fs::remove_dir_all(&staged)?;
    }
    let members = members()?;
    for member in members.values() {
        stage(&release.root, member, &staged)?;
        let manifest = staged.join(member).join("Cargo.toml");
        edit(&manifest, own_manifest)?;
    }
    put_prebuilt(&staged.join(&members[BUNDLE]), guests)?;
    put_jail(release, &staged, &members)?;
    write_workspace(release, &staged, &members)?;

    let packed = profile_dir("dist-stage-packed")?;
    let mut package = cargo()?;
    package
        .current_dir(&staged)
        .env("CARGO_TARGET_DIR", &packed);
    package.args([
        "package",
        "--workspace",
        "--offline",
        "--no-verify",
        "--allow-dirty",
        "--quiet",
    ]);
    succeed(&mut package)?;
    let mut crates = Vec::new();
    for name in members.keys() {
        let file = format!("{name}-{}.crate", release.version);
        let bytes = std::fs::read(packed.join("package").join(&file))?;
        if bytes.len() > CRATE_BYTES_MAX {
            bail!(
                "`{file}` has {} bytes; a registry takes {CRATE_BYTES_MAX}",
                bytes.len()
            );
        }
        release::write(folder, &file, &bytes)?;
        crates.push((name.as_str(), bytes));
    }
    write_sources(release, &crates, folder)
}

/// The crates of the workspace that the program is made of, with their folders.
fn members() -> Result<BTreeMap<String, PathBuf>> {
    let mut metadata = cargo()?;
    metadata.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let metadata: Value = serde_json::from_str(&output(&mut metadata)?)?;
    let root = metadata["workspace_root"]
        .as_str()
        .context("cargo names no root")?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo names no packages")?;
    let mut members = BTreeMap::new();
    let mut open: BTreeSet<String> = BTreeSet::from(["zeph-host".to_owned()]);
    while let Some(name) = open.pop_first() {
        let package = packages.iter().find(|package| package["name"] == *name);
        let package = package.with_context(|| format!("there is no crate `{name}`"))?;
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest
            .parent()
            .and_then(|folder| folder.strip_prefix(root).ok());
        members.insert(name, folder.context("a crate lies outside")?.to_owned());
        let uses = package["dependencies"].as_array().into_iter().flatten();
        let own = uses.filter(|used| used["path"].is_string() && used["kind"] != "dev");
        let names = own.filter_map(|used| used["name"].as_str());
        open.extend(
            names
                .filter(|name| !members.contains_key(*name))
                .map(str::to_owned),
        );
    }
    Ok(members)
}

fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut)) -> Result<()> {
    let text = std::fs::read_to_string(path)?;
    let mut document: DocumentMut = text.parse()?;
    change(&mut document);
    put(path, document.to_string().as_bytes())
}

/// What is only for tests here stays here.
fn own_manifest(manifest: &mut DocumentMut) {
    for table in ["dev-dependencies", "test", "bench", "example"] {
        manifest.remove(table);
    }
    if let Some(package) = manifest["package"].as_table_mut() {
        package.remove("publish");
    }
}

/// The workspace with these members only, which name each other by version.
fn write_workspace(
    release: &Release,
    staged: &Path,
    members: &BTreeMap<String, PathBuf>,
) -> Result<()> {
    put(
        &staged.join("Cargo.lock"),
        release.text("Cargo.lock")?.as_bytes(),
    )?;
    let path = staged.join("Cargo.toml");
    put(&path, release.text("Cargo.toml")?.as_bytes())?;
    edit(&path, |manifest| {
        let folders = members.values().map(|folder| folder.display().to_string());
        let workspace = &mut manifest["workspace"];
        workspace["members"] = value(folders.collect::<toml_edit::Array>());
        workspace["package"]["publish"] = value(true);
        if let Some(table) = workspace.as_table_mut() {
            table.remove("default-members");
        }
        if let Some(dependencies) = workspace["dependencies"].as_table_mut() {
            for (name, dependency) in dependencies.iter_mut() {
                if members.contains_key(name.get()) {
                    dependency["version"] = value(format!("={}", release.version));
                }
            }
        }
        if let Some(profiles) = manifest["profile"].as_table_mut() {
            profiles.retain(|name, _| PROFILES.contains(&name));
        }
    })?;
    lock(staged)
}

/// Takes out of a lock file what its workspace does not use, without asking a registry. Of the crates, those of this machine's platform are
/// looked at: no build has fetched any other.
fn lock(folder: &Path) -> Result<()> {
    let mut metadata = cargo()?;
    metadata.current_dir(folder);
    metadata.args(["metadata", "--offline", "--format-version", "1"]);
    metadata.args(["--filter-platform", &platform()?]);
    output(&mut metadata).map(drop)
}

/// The components, where the build script looks for them first.
fn put_prebuilt(bundle: &Path, guests: &[Guest]) -> Result<()> {
    for guest in guests {
        let folder = bundle.join("prebuilt");
        put(
            &folder.join(format!("{}.packed", guest.variable)),
            &guest.packed,
        )?;
        put(
            &folder.join(format!("{}.digest", guest.variable)),
            guest.digest.as_bytes(),
        )?;
    }
    Ok(())
}

/// The sources of the jail's inner stage, in the crate that compiles and embeds it. A registry takes no package inside of another, so
/// that its files have other names.
fn put_jail(release: &Release, staged: &Path, members: &BTreeMap<String, PathBuf>) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let jail = &members[JAIL];
    stage(&release.root, jail, scratch.path())?;
    let manifest = format!("[workspace]\nmembers = [{:?}]\nresolver = \"3\"\n", jail);
    put(&scratch.path().join("Cargo.toml"), manifest.as_bytes())?;
    put(
        &scratch.path().join("Cargo.lock"),
        release.text("Cargo.lock")?.as_bytes(),
    )?;
    edit(&scratch.path().join(jail).join("Cargo.toml"), own_manifest)?;
    let whole: DocumentMut = release.text("Cargo.toml")?.parse()?;
    let own = std::fs::read_to_string(scratch.path().join(jail).join("Cargo.toml"))?;
    edit(&scratch.path().join("Cargo.toml"), |manifest| {
        for key in ["package", "dependencies", "lints"] {
            manifest["workspace"][key] = whole["workspace"][key].clone();
        }
        if let Some(dependencies) = manifest["workspace"]["dependencies"].as_table_mut() {
            dependencies.retain(|name, _| own.contains(&format!("{name}.workspace")));
        }
        manifest["profile"] = Item::Table(toml_edit::Table::new());
        for profile in PROFILES {
            manifest["profile"][profile] = whole["profile"][profile].clone();
        }
    })?;
    lock(scratch.path())?;
    let to = staged.join(&members[SHELL]).join("jail");
    for file in files_below(scratch.path(), &[])? {
        let name = file.to_string_lossy().replace("Cargo.", "Cargo-");
        put(&to.join(name), &std::fs::read(scratch.path().join(&file))?)?;
    }
    Ok(())
}

/// One archive with all crates, as `cargo install --path` builds them: a workspace in which they take the place of what a registry has.
fn write_sources(release: &Release, crates: &[(&str, Vec<u8>)], folder: &Path) -> Result<()> {
    let name = release.file("source");
    let mut items = Vec::new();
    for (crate_name, bytes) in crates {
        let above = format!("{crate_name}-{}/", release.version);
        for item in unpacked(bytes)? {
            let path = item
                .path
                .strip_prefix(&above)
                .unwrap_or(&item.path)
                .to_owned();
            match (path.as_str(), *crate_name) {
                ("Cargo.lock", "zeph-host") => {
                    let lock = String::from_utf8(item.bytes.unwrap_or_default())?;
                    let lock = local_lock(&lock, crates)?;
                    items.push(archive::Item::file(
                        format!("{name}/Cargo.lock"),
                        lock.as_bytes(),
                    ));
                }
                ("Cargo.lock" | "Cargo.toml.orig", _) => {}
                _ => items.push(archive::Item {
                    path: format!("{name}/{crate_name}/{path}"),
                    ..item
                }),
            }
        }
    }
    let manifest = source_manifest(release, crates)?;
    items.push(archive::Item::file(
        format!("{name}/Cargo.toml"),
        manifest.as_bytes(),
    ));
    let packed = gzip(release, &tar(release, &items)?)?;
    release::write(folder, &format!("{name}.tar.gz"), &packed)
}

fn unpacked(packed: &[u8]) -> Result<Vec<archive::Item>> {
    let mut archive = tar::Archive::new(GzDecoder::new(packed));
    let mut items = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.display().to_string();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes)?;
        items.push(archive::Item::file(path, &bytes));
    }
    Ok(items)
}

/// The lock file with our own crates as members of a workspace instead of crates of a registry.
fn local_lock(lock: &str, crates: &[(&str, Vec<u8>)]) -> Result<String> {
    let mut lock: DocumentMut = lock.parse()?;
    let packages = lock["package"].as_array_of_tables_mut();
    for package in packages
        .into_iter()
        .flat_map(|packages| packages.iter_mut())
    {
        let name = package
            .get("name")
            .and_then(|name| name.as_str())
            .unwrap_or_default();
        if crates.iter().any(|(own, _)| *own == name) {
            package.remove("source");
            package.remove("checksum");
        }
    }
    Ok(lock.to_string())
}

fn source_manifest(release: &Release, crates: &[(&str, Vec<u8>)]) -> Result<String> {
    let whole: DocumentMut = release.text("Cargo.toml")?.parse()?;
    let mut manifest = "[workspace]\nresolver = \"3\"\nmembers = [\n".to_owned();
    for (name, _) in crates {
        writeln!(manifest, "    {name:?},")?;
    }
    manifest += "]\n\n[patch.crates-io]\n";
    for (name, _) in crates {
        writeln!(manifest, "{name} = {{ path = {name:?} }}")?;
    }
    let profile = &whole["profile"]["release"];
    write!(manifest, "\n[profile.release]\n{profile}")?;
    Ok(manifest)
}
