//! Compiles the inner stage of the jail, a small static program, and gives its path to the crate, which embeds the bytes.

#[path = "../build/nested_cargo.rs"]
mod nested_cargo;

use std::path::Path;

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

fn build() -> Result<(), String> {
    watch(SOURCES)?;
    let build = Build {
        packages: &[PACKAGE],
        profile: "jail",
        target: &variable("TARGET"),
        // Static, so that it needs no library of the jail and starts without a loader.
        flags: "-C target-feature=+crt-static -C relocation-model=static",
        folder: "jail",
    };
    let program = build.run()?.join(PACKAGE);
    // Of this build: the folder of the program is shared by others.
    let own = Path::new(&variable("OUT_DIR")).join(PACKAGE);
    std::fs::copy(&program, &own).map_err(|error| format!("{}: {error}", program.display()))?;
    println!("cargo::rustc-env=ZEPH_JAIL_PROGRAM={}", own.display());
    Ok(())
}
