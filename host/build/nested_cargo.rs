//! A cargo inside the cargo that builds the workspace, for build scripts that embed programs compiled for somewhere else.
//!
//! It gets its own target directory, since the outer one is locked, and none of the outer one's flags and wrappers, which are
//! meant for another target. Included by path: a crate of its own would be one more to compile before everything else.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// What is to be built.
pub(crate) struct Build<'a> {
    /// Packages of this workspace.
    pub(crate) packages: &'a [&'a str],
    /// The profile, one of the workspace's own.
    pub(crate) profile: &'a str,
    /// The triple to build for.
    pub(crate) target: &'a str,
    /// Flags of the compiler.
    pub(crate) flags: &'a str,
    /// The folder for it beside the profiles of the outer build.
    pub(crate) folder: &'a str,
    /// Another workspace than the one that holds this package.
    pub(crate) workspace: Option<&'a Path>,
}

/// Paths that are not to stand in what is compiled, as `FROM=TO`, between separators of units (0x1f): so that a release is the same
/// wherever it is made. Set by `cargo xtask dist`.
const REMAP_VARIABLE: &str = "ZEPH_REMAPPED_PATHS";

impl Build<'_> {
    /// Builds, and returns the folder in which the result lies.
    ///
    /// Errors: one line for cargo to show; what does not compile has been told above it.
    pub(crate) fn run(&self) -> Result<PathBuf, String> {
        let target_dir = self.target_dir()?;
        let workspace = self
            .workspace
            .map_or_else(workspace, |it| Ok(it.to_owned()))?;
        let status = self.cargo(&workspace, &target_dir).status();
        match status {
            Ok(status) if status.success() => Ok(target_dir.join(self.target).join(self.profile)),
            Ok(_) => Err(format!(
                "`{}` does not compile; see the errors above",
                self.packages.join("`, `")
            )),
            Err(error) => Err(format!("cargo does not start: {error}")),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a build script starts the compiler"
    )]
    fn cargo(&self, workspace: &Path, target_dir: &Path) -> Command {
        let mut cargo = Command::new(variable("CARGO"));
        for name in CLEARED {
            cargo.env_remove(name);
        }
        cargo
            .current_dir(workspace)
            .env("RUSTFLAGS", self.flags.to_owned() + &remapping())
            .arg("build")
            .args(
                self.packages
                    .iter()
                    .flat_map(|package| ["--package", package]),
            )
            .args(["--profile", self.profile, "--target", self.target])
            .arg("--target-dir")
            .arg(target_dir);
        cargo
    }

    /// OUT_DIR is `<target>/[<triple>/]<profile>/build/<crate>-<hash>/out`.
    fn target_dir(&self) -> Result<PathBuf, String> {
        let out = PathBuf::from(variable("OUT_DIR"));
        let above = out.ancestors().nth(4);
        let above = above.ok_or("the output directory is not where cargo puts it")?;
        let target = match above.ends_with(variable("TARGET")) {
            true => above.parent().unwrap_or(above),
            false => above,
        };
        Ok(target.join(self.folder))
    }
}

fn remapping() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the builder of a release speaks to build scripts through the environment"
    )]
    let paths = std::env::var(REMAP_VARIABLE).unwrap_or_default();
    println!("cargo::rerun-if-env-changed={REMAP_VARIABLE}");
    let paths = paths.split('\x1f').filter(|path| !path.is_empty());
    paths
        .map(|path| format!(" --remap-path-prefix={path}"))
        .collect()
}

/// Has the script run again when one of these changes, files or folders relative to the workspace.
///
/// Errors: as [`Build::run`].
pub(crate) fn watch<'a>(sources: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let workspace = workspace()?;
    for source in sources {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(source).display()
        );
    }
    Ok(())
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

/// A variable that cargo sets for build scripts.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("bug: cargo does not set `{name}`"))
}
