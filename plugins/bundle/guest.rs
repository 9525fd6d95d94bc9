//! Compiles one guest of this workspace to a component. Shared by the build scripts that embed components.
//!
//! A second cargo runs inside the first, so it gets its own target directory (the outer one is locked) and none of the
//! outer one's flags and wrappers, which are meant for the host's target.

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "guest";

/// SIMD makes scanning text several times faster and every engine has it.
const RUSTFLAGS: &str = "-C target-feature=+simd128";

/// What every guest is made from besides its own folder, relative to the workspace. A directory counts with all it holds.
const SOURCES: [&str; 4] = ["Cargo.toml", "Cargo.lock", "wit", "plugins/zeph-plugin"];

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

/// Builds `package`, which is made from `folders`, and gives rustc the component's path in `variable`, for
/// `include_bytes!(env!(…))`.
///
/// Errors: one line for cargo to show.
pub(crate) fn build(package: &str, folders: &[&str], variable: &str) -> Result<(), String> {
    let workspace = workspace()?;
    for source in SOURCES.iter().chain(folders) {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(source).display()
        );
    }
    let target_dir = target_dir()?;
    let status = inner_cargo(&workspace, &target_dir, package).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) if !has_target() => {
            return Err(format!(
                "the target of the plugins is missing: rustup target add {TARGET}"
            ));
        }
        Ok(_) => {
            return Err(format!(
                "`{package}` does not compile; see the errors above"
            ));
        }
        Err(error) => return Err(format!("cargo does not start: {error}")),
    }
    let file = format!("{}.wasm", package.replace('-', "_"));
    let component = target_dir.join(TARGET).join(PROFILE).join(file);
    println!("cargo::rustc-env={variable}={}", component.display());
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a build script starts the compiler"
)]
fn inner_cargo(workspace: &Path, target_dir: &Path, package: &str) -> Command {
    let mut cargo = Command::new(self::variable("CARGO"));
    for name in CLEARED {
        cargo.env_remove(name);
    }
    cargo
        .current_dir(workspace)
        .env("RUSTFLAGS", RUSTFLAGS)
        .args(["build", "--target", TARGET, "--profile", PROFILE])
        .args(["--package", package, "--target-dir"])
        .arg(target_dir);
    cargo
}

/// Whether the compiler has a standard library for the guests' target.
#[expect(
    clippy::disallowed_methods,
    reason = "a build script asks the compiler"
)]
fn has_target() -> bool {
    let libdir = Command::new(variable("RUSTC"))
        .args(["--print", "target-libdir", "--target", TARGET])
        .output();
    libdir.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).exists())
}

/// `guests` beside the profiles of the outer build: OUT_DIR is `<target>/<profile>/build/<crate>-<hash>/out`.
fn target_dir() -> Result<PathBuf, String> {
    let out = PathBuf::from(variable("OUT_DIR"));
    let target = out.ancestors().nth(4);
    let target = target.ok_or("the output directory is not where cargo puts it")?;
    Ok(target.join("guests"))
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
