//! Starting other programs: shared by `xtask` and `zeph-bench`, which includes this file by path.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A program to start in the current directory, with standard input and outputs inherited.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "starting programs is what these two crates are for"
    )]
    Command::new(name)
}

/// `cargo` of the toolchain that runs this program, in the root of the workspace.
pub(crate) fn cargo() -> Result<Command> {
    let mut cargo = program(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()?);
    Ok(cargo)
}

/// Starts the program, waits for it and fails unless it succeeds.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// The root of the workspace: two folders above this package.
pub(crate) fn root() -> Result<PathBuf> {
    let package = variable("CARGO_MANIFEST_DIR").context("start this program with cargo")?;
    let root = Path::new(&package)
        .ancestors()
        .nth(2)
        .context("this package lies two folders below the workspace")?;
    Ok(root.to_path_buf())
}

/// The folder of the build profile `name`, beside the one this program was built into.
pub(crate) fn profile_dir(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("this program has no path")?;
    let target = own
        .ancestors()
        .nth(2)
        .context("this program lies in a profile folder of the target folder")?;
    Ok(target.join(name))
}

/// A variable of the environment.
pub(crate) fn variable(name: &str) -> Option<std::ffi::OsString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo tells its programs where they are by variables, and people what they want"
    )]
    std::env::var_os(name)
}

fn show(command: &Command) -> String {
    let mut shown = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default()
        .display()
        .to_string();
    for arg in command.get_args() {
        shown.push(' ');
        shown.push_str(&arg.to_string_lossy());
    }
    shown
}
