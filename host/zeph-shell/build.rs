//! Compiles the inner stage of the jail, a small static program, and gives its path to the crate, which embeds the bytes.

#[path = "../build/nested_cargo.rs"]
mod nested_cargo;

use std::path::{Path, PathBuf};

use nested_cargo::{Build, variable, watch};

const PACKAGE: &str = "zeph-jail";

/// What the program is made from, relative to the workspace.
const SOURCES: [&str; 3] = ["Cargo.toml", "Cargo.lock", "host/zeph-jail"];

fn main() {
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    if let Err(reason) = build() {
        println!("cargo::error={reason}");
    }
}

/// Where a crate that is handed out has the sources: a workspace whose `Cargo.toml` and `Cargo.lock` have other names, since a registry
/// takes no package inside of another.
const ENCLOSED: &str = "jail";

fn build() -> Result<(), String> {
    let enclosed = Path::new(ENCLOSED).exists().then(unfold).transpose()?;
    match enclosed {
        Some(_) => println!("cargo::rerun-if-changed={ENCLOSED}"),
        None => watch(SOURCES)?,
    }
    let build = Build {
        packages: &[PACKAGE],
        profile: "jail",
        target: &variable("TARGET"),
        // Static, so that it needs no library of the jail and starts without a loader.
        flags: "-C target-feature=+crt-static -C relocation-model=static",
        folder: "jail",
        workspace: enclosed.as_deref(),
    };
    let program = build.run()?.join(PACKAGE);
    // Of this build: the folder of the program is shared by others.
    let own = Path::new(&variable("OUT_DIR")).join(PACKAGE);
    std::fs::copy(&program, &own).map_err(|error| format!("{}: {error}", program.display()))?;
    println!("cargo::rustc-env=ZEPH_JAIL_PROGRAM={}", own.display());
    Ok(())
}

/// Copies the enclosed workspace to where it can be built, with the names that cargo knows.
fn unfold() -> Result<PathBuf, String> {
    let to = Path::new(&variable("OUT_DIR")).join("workspace");
    copy(Path::new(ENCLOSED), &to).map_err(|error| format!("{ENCLOSED}: {error}"))?;
    Ok(to)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let target = to.join(name.to_string_lossy().replace("Cargo-", "Cargo."));
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
