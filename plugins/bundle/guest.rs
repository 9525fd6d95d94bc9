//! Compiles one guest package of this workspace to a component. Shared by the build scripts that embed components.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target of every component: WASI 0.2, straight from the Rust toolchain.
const TARGET: &str = "wasm32-wasip2";

/// Variables of the outer build that would change the inner one.
const OUTER_VARIABLES: [&str; 8] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CLIPPY_ARGS",
    "__CARGO_DEFAULT_LIB_METADATA",
];

/// Builds `package` and tells rustc where the component is, in the variable `name` (for `include_bytes!(env!(…))`).
///
/// The inner build has a target directory of its own: cargo holds a lock on the outer one. Guests are compiled with SIMD:
/// searching is several times faster with it, and every engine has it.
pub(crate) fn build(package: &str, name: &str) {
    let target_dir = target_dir();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--profile", "guest", "--target", TARGET])
        .args(["--package", package])
        .arg("--target-dir")
        .arg(&target_dir);
    for variable in OUTER_VARIABLES {
        build.env_remove(variable);
    }
    build.env("RUSTFLAGS", "-C target-feature=+simd128");
    let output = build.output().expect("cargo can be started");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("can't find crate for `core`") || said.contains("target may not be installed") {
            fail(&format!("the target {TARGET} is missing: run `rustup target add {TARGET}`"));
        }
        fail(&format!("`{package}` does not compile:\n{said}"));
    }
    let file = format!("{}.wasm", package.replace('-', "_"));
    let component = target_dir.join(TARGET).join("guest").join(file);
    println!("cargo::rustc-env={name}={}", component.display());
    println!("cargo::rerun-if-changed={}", component.display());
    for source in ["wit", "plugins/zeph-plugin", "Cargo.lock", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", workspace().join(source).display());
    }
}

fn fail(message: &str) -> ! {
    println!("cargo::error={}", message.replace('\n', "\ncargo::error="));
    std::process::exit(1);
}

/// `guests` beside the profile directories of the outer build: `OUT_DIR` is `…/<profile>/build/<package>/out`.
fn target_dir() -> PathBuf {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = out_dir.ancestors().nth(4).expect("OUT_DIR has the documented depth");
    target.join("guests")
}

fn workspace() -> PathBuf {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let is_root = |dir: &&Path| dir.join("Cargo.lock").exists();
    manifest.ancestors().find(is_root).expect("the workspace has a lock file").to_owned()
}
