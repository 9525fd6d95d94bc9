//! Compiles the inner stage of the jail, a small static program, and gives its path to the crate, which embeds the bytes.
//!
//! A second cargo runs inside the first, so it gets its own target directory (the outer one is locked) and none of the
//! outer one's flags and wrappers.

use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "zeph-jail";
const PROFILE: &str = "jail";
const VARIABLE: &str = "ZEPH_JAIL_PROGRAM";

/// Static, so that it needs no library of the jail and starts without a loader.
const RUSTFLAGS: &str = "-C target-feature=+crt-static -C relocation-model=static";

/// What the program is made from, relative to the workspace.
const SOURCES: [&str; 3] = ["Cargo.toml", "Cargo.lock", "host/zeph-jail"];

/// Variables of the outer cargo that would change what the inner one builds, or make it another program.
const CLEARED: [&str; 9] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
    "CLIPPY_TERMINAL_WIDTH",
];

fn main() {
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    if let Err(reason) = build() {
        println!("cargo::error={reason}");
    }
}

fn build() -> Result<(), String> {
    let workspace = workspace()?;
    for source in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(source).display()
        );
    }
    let target = variable("TARGET");
    let target_dir = target_dir(&target)?;
    let status = inner_cargo(&workspace, &target_dir, &target).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => {
            return Err(format!(
                "`{PACKAGE}` does not compile; see the errors above"
            ));
        }
        Err(error) => return Err(format!("cargo does not start: {error}")),
    }
    let program = target_dir.join(target).join(PROFILE).join(PACKAGE);
    println!("cargo::rustc-env={VARIABLE}={}", program.display());
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a build script starts the compiler"
)]
fn inner_cargo(workspace: &Path, target_dir: &Path, target: &str) -> Command {
    let mut cargo = Command::new(variable("CARGO"));
    for name in CLEARED {
        cargo.env_remove(name);
    }
    cargo
        .current_dir(workspace)
        .env("RUSTFLAGS", RUSTFLAGS)
        .args(["build", "--profile", PROFILE, "--package", PACKAGE])
        .args(["--bin", PACKAGE, "--target", target, "--target-dir"])
        .arg(target_dir);
    cargo
}

/// `jail` beside the profiles of the outer build: OUT_DIR is `<target>/[<triple>/]<profile>/build/<crate>-<hash>/out`.
fn target_dir(triple: &str) -> Result<PathBuf, String> {
    let out = PathBuf::from(variable("OUT_DIR"));
    let above = out.ancestors().nth(4);
    let above = above.ok_or("the output directory is not where cargo puts it")?;
    let target = match above.ends_with(triple) {
        true => above.parent().unwrap_or(above),
        false => above,
    };
    Ok(target.join("jail"))
}

/// The nearest folder upwards that holds the lock file.
fn workspace() -> Result<PathBuf, String> {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let mut folders = manifest.ancestors();
    let workspace = folders.find(|folder| folder.join("Cargo.lock").exists());
    Ok(workspace
        .ok_or("no Cargo.lock in any folder above")?
        .to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("bug: cargo does not set `{name}`"))
}
