//! Compiles guests of this workspace to components. Shared by the build scripts that embed components.

#[path = "../../host/build/nested_cargo.rs"]
mod nested_cargo;

use std::path::{Path, PathBuf};
use std::process::Command;

use nested_cargo::{Build, variable, watch};

const TARGET: &str = "wasm32-wasip2";

/// What every guest is made from besides its own folder, relative to the workspace. A directory counts with all it holds.
const SOURCES: [&str; 4] = ["Cargo.toml", "Cargo.lock", "wit", "plugins/zeph-plugin"];

/// A guest to build.
pub(crate) struct Guest {
    /// Its package in this workspace.
    pub(crate) package: &'static str,
    /// The folders it is made from, relative to the workspace.
    pub(crate) folders: &'static [&'static str],
    /// The variable that gives rustc the component's path, for `include_bytes!(env!(…))`.
    pub(crate) variable: &'static str,
}

/// Builds the guests side by side, and returns where the components are, in their order.
///
/// Errors: one line for cargo to show.
pub(crate) fn build(guests: &[Guest]) -> Result<Vec<PathBuf>, String> {
    let folders = guests.iter().flat_map(|guest| guest.folders);
    watch(SOURCES.iter().chain(folders).copied())?;
    let packages: Vec<&str> = guests.iter().map(|guest| guest.package).collect();
    let build = Build {
        packages: &packages,
        profile: "guest",
        target: TARGET,
        // SIMD makes scanning text several times faster and every engine has it.
        flags: "-C target-feature=+simd128",
        folder: "guests",
        workspace: None,
    };
    let folder = build.run().map_err(|reason| match has_target() {
        true => reason,
        false => format!("the target of the plugins is missing: rustup target add {TARGET}"),
    })?;
    let out = PathBuf::from(variable("OUT_DIR"));
    let mut files = Vec::new();
    for Guest {
        package, variable, ..
    } in guests
    {
        // A copy of its own: the folder is shared, and another build may put other bytes there.
        let name = format!("{}.wasm", package.replace('-', "_"));
        let (built, file) = (folder.join(&name), out.join(&name));
        std::fs::copy(&built, &file).map_err(|error| format!("{}: {error}", built.display()))?;
        println!("cargo::rustc-env={variable}={}", file.display());
        files.push(file);
    }
    Ok(files)
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
