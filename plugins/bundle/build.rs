//! Compiles the first-party guests to components.
//!
//! A second cargo runs inside the first, so it gets its own target directory (the outer one is locked) and none of the
//! outer one's flags and wrappers, which are meant for the host's target.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The crates compiled, each to one component.
const GUESTS: [&str; 1] = ["zeph-plugin-file"];
const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "guest";
/// SIMD makes scanning text several times faster and every host we link has it.
const RUSTFLAGS: &str = "-C target-feature=+simd128";
/// What the guests are made from, relative to the workspace. A directory counts with all it holds.
const SOURCES: [&str; 5] = ["Cargo.toml", "Cargo.lock", "wit/zeph-plugin", "plugins/zeph-plugin", "plugins/file"];
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

fn main() -> ExitCode {
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
    // The output directory is <target>/<profile>/build/<crate>-<hash>/out.
    let out = PathBuf::from(variable("OUT_DIR"));
    let Some(target) = out.ancestors().nth(4) else {
        return failure("the output directory is not where cargo puts it");
    };
    let guests = target.join("guests");

    let status = inner_cargo(&workspace, &guests).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) if !has_target() => {
            return failure("the target of the plugins is missing: rustup target add wasm32-wasip2");
        }
        Ok(_) => return failure("a first-party plugin does not compile; see the errors above"),
        Err(error) => return failure(&format!("cargo does not start: {error}")),
    }
    println!("cargo::rustc-env=ZEPH_GUESTS={}", guests.join(TARGET).join(PROFILE).display());
    ExitCode::SUCCESS
}

#[expect(clippy::disallowed_methods, reason = "a build script starts the compiler")]
fn inner_cargo(workspace: &Path, target_dir: &Path) -> Command {
    let mut cargo = Command::new(variable("CARGO"));
    for name in CLEARED {
        cargo.env_remove(name);
    }
    cargo
        .current_dir(workspace)
        .env("RUSTFLAGS", RUSTFLAGS)
        .args(["build", "--target", TARGET, "--profile", PROFILE, "--target-dir"])
        .arg(target_dir);
    for guest in GUESTS {
        cargo.args(["--package", guest]);
    }
    cargo
}

/// Whether the compiler has a standard library for the guests' target.
#[expect(clippy::disallowed_methods, reason = "a build script asks the compiler")]
fn has_target() -> bool {
    let libdir = Command::new(variable("RUSTC"))
        .args(["--print", "target-libdir", "--target", TARGET])
        .output();
    match libdir {
        Ok(output) => Path::new(String::from_utf8_lossy(&output.stdout).trim()).exists(),
        Err(_) => false,
    }
}

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("bug: cargo does not set `{name}`"))
}

fn failure(message: &str) -> ExitCode {
    println!("cargo::error={message}");
    ExitCode::FAILURE
}
