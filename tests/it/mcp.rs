//! The server for agents, driven by programs of others: the conformance suite of the protocol, the Python library, the inspector.
//! They come from npm and PyPI, so these tests run when `ZEPH_SLOW_TESTS=1`. The files of clients are tested without them.

mod config;
mod conformance;
mod inspector;
mod python;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::peers::Wanted;
use crate::product::Product;

/// The component with the tools that the suite and the clients call.
const CONFORMANCE: &[u8] = include_bytes!(env!("GUEST_CONFORMANCE"));

/// What they are. The file server is a peer of `cargo xtask bench`.
const PEERS: Wanted = Wanted {
    folder: "mcp",
    what: "the programs of others that speak MCP are downloaded",
    packages: &[
        ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
        ("@modelcontextprotocol/inspector", "2.12.0"),
        ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    ],
    python: "mcp==2.3.0",
};

/// Longest time until a server answers.
const START_MAX: Duration = Duration::from_secs(60);

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
