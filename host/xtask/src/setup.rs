//! What the other commands need of the machine, added when it is missing.
//!
//! Says nothing when all is there, and writes only to standard error.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::complain;
use crate::program::{profile_dir, program, root, succeed};

/// The guests are compiled to it.
const GUEST_TARGET: &str = "wasm32-wasip2";

/// Adds all that is missing; fails only for what the build cannot do without.
pub(crate) fn all() -> Result<()> {
    target(GUEST_TARGET)?;
    if cfg!(target_os = "linux") {
        bubblewrap()?;
    }
    Ok(())
}

/// Adds a target of the compiler when it is missing.
pub(crate) fn target(name: &str) -> Result<()> {
    let printed = program("rustc")
        .args(["--print", "target-libdir", "--target", name])
        .current_dir(root()?)
        .output()
        .context("cannot start `rustc`")?;
    let libraries = String::from_utf8_lossy(&printed.stdout);
    if printed.status.success() && Path::new(libraries.trim()).is_dir() {
        return Ok(());
    }
    if !succeeds_silently(program("rustup").arg("--version")) {
        bail!(
            "the Rust toolchain lacks the target `{name}`\n\n\
             hint: add it with the package manager that installed Rust, or install Rust with rustup"
        );
    }
    complain(&format!("Adding the target {name} with rustup."));
    // Standard input and output belong to the program that runs after this.
    succeed(
        program("rustup")
            .args(["target", "add", name])
            .current_dir(root()?)
            .stdout(io::stderr()),
    )
}

/// Installs bubblewrap when this can be done without asking, else says once per run how to.
fn bubblewrap() -> Result<()> {
    if succeeds_silently(program("bwrap").arg("--version")) {
        return Ok(());
    }
    // An attempt that failed (no network, say) is not made again on every start.
    let attempted = scratch_dir()?.join("bubblewrap-attempted");
    if !attempted.exists() {
        std::fs::write(&attempted, "")
            .with_context(|| format!("cannot write `{}`", attempted.display()))?;
        if let Some(apt) = apt_without_questions() {
            complain("Installing bubblewrap with apt-get.");
            if apt_install_bubblewrap(&apt) {
                return Ok(());
            }
        }
    }
    complain(
        "warning: bubblewrap is not installed; to install it, type: sudo apt-get install bubblewrap",
    );
    Ok(())
}

/// The words that start apt-get with root rights, when that takes no password.
fn apt_without_questions() -> Option<Vec<&'static str>> {
    let has_apt = succeeds_silently(program("apt-get").arg("--version"));
    if !has_apt {
        return None;
    }
    let is_root = program("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if is_root {
        return Some(vec!["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    }
    let has_sudo = succeeds_silently(program("sudo").args(["-n", "true"]));
    has_sudo.then(|| {
        vec![
            "sudo",
            "-n",
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
        ]
    })
}

fn apt_install_bubblewrap(apt: &[&str]) -> bool {
    let mut steps = [
        &["update"] as &[&str],
        &["install", "--yes", "--no-install-recommends", "bubblewrap"],
    ]
    .into_iter();
    steps.all(|step| {
        program(apt[0])
            .args(&apt[1..])
            .args([
                "-qq",
                "-o",
                "Acquire::http::Timeout=30",
                "-o",
                "DPkg::Lock::Timeout=60",
            ])
            .args(step)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// Tells whether the program starts and succeeds, without showing what it prints.
pub(crate) fn succeeds_silently(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Where xtask and its tools keep what they make: `xtask` in the target folder.
pub(crate) fn scratch_dir() -> Result<PathBuf> {
    let dir = profile_dir("xtask")?;
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
    Ok(dir)
}
