//! Compiles one guest of this workspace to a component. Shared by the build scripts that embed components.

#[path = "../../host/build/nested_cargo.rs"]
mod nested_cargo;

use std::path::Path;
use std::process::Command;

use nested_cargo::{Build, variable, watch};

const TARGET: &str = "wasm32-wasip2";

/// What every guest is made from besides its own folder, relative to the workspace. A directory counts with all it holds.
const SOURCES: [&str; 4] = ["Cargo.toml", "Cargo.lock", "wit", "plugins/zeph-plugin"];

/// Builds `package`, which is made from `folders`, and gives rustc the component's path in `name`, for
/// `include_bytes!(env!(…))`.
///
/// Errors: one line for cargo to show.
pub(crate) fn build(package: &str, folders: &[&str], name: &str) -> Result<(), String> {
    watch(SOURCES.iter().chain(folders).copied())?;
    let build = Build {
        package,
        profile: "guest",
        target: TARGET,
        // SIMD makes scanning text several times faster and every engine has it.
        flags: "-C target-feature=+simd128",
        folder: "guests",
    };
    let folder = build.run().map_err(|reason| match has_target() {
        true => reason,
        false => format!("the target of the plugins is missing: rustup target add {TARGET}"),
    })?;
    let file = format!("{}.wasm", package.replace('-', "_"));
    println!("cargo::rustc-env={name}={}", folder.join(file).display());
    Ok(())
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
