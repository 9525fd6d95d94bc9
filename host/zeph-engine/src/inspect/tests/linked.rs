//! The table of what the host has agrees with what it links.

use crate::bindings::ToolPluginPre;
use crate::inspect::names::InterfaceName;
use crate::inspect::{PLUGIN_VERSION, host};
use crate::linker::linker_for;

/// Interfaces with one item of each: what the host has, and the rest of WASI 0.2.
const PROBES: [(&str, &str, &str); 52] = [
    ("wasi:io/error", "resource", "error"),
    ("wasi:io/poll", "func", "poll"),
    ("wasi:io/streams", "resource", "input-stream"),
    ("wasi:cli/environment", "func", "get-environment"),
    ("wasi:cli/exit", "func", "exit"),
    ("wasi:cli/run", "func", "run"),
    ("wasi:cli/stderr", "func", "get-stderr"),
    ("wasi:cli/stdin", "func", "get-stdin"),
    ("wasi:cli/stdout", "func", "get-stdout"),
    ("wasi:cli/terminal-input", "resource", "terminal-input"),
    ("wasi:cli/terminal-output", "resource", "terminal-output"),
    ("wasi:cli/terminal-stderr", "func", "get-terminal-stderr"),
    ("wasi:cli/terminal-stdin", "func", "get-terminal-stdin"),
    ("wasi:cli/terminal-stdout", "func", "get-terminal-stdout"),
    ("wasi:clocks/monotonic-clock", "func", "now"),
    ("wasi:clocks/timezone", "func", "display"),
    ("wasi:clocks/wall-clock", "func", "now"),
    ("wasi:config/store", "func", "get"),
    ("wasi:config/runtime", "func", "get"),
    ("wasi:filesystem/preopens", "func", "get-directories"),
    ("wasi:filesystem/types", "resource", "descriptor"),
    ("wasi:http/incoming-handler", "func", "handle"),
    ("wasi:http/outgoing-handler", "func", "handle"),
    ("wasi:http/types", "resource", "fields"),
    ("wasi:keyvalue/atomics", "func", "increment"),
    ("wasi:keyvalue/batch", "func", "get-many"),
    ("wasi:keyvalue/store", "func", "open"),
    ("wasi:logging/logging", "func", "log"),
    ("wasi:messaging/producer", "func", "send"),
    ("wasi:nn/graph", "func", "load"),
    ("wasi:random/insecure", "func", "get-insecure-random-bytes"),
    ("wasi:random/insecure-seed", "func", "insecure-seed"),
    ("wasi:random/random", "func", "get-random-bytes"),
    ("wasi:sockets/instance-network", "func", "instance-network"),
    ("wasi:sockets/ip-name-lookup", "func", "resolve-addresses"),
    ("wasi:sockets/network", "resource", "network"),
    ("wasi:sockets/tcp", "resource", "tcp-socket"),
    (
        "wasi:sockets/tcp-create-socket",
        "func",
        "create-tcp-socket",
    ),
    ("wasi:sockets/udp", "resource", "udp-socket"),
    (
        "wasi:sockets/udp-create-socket",
        "func",
        "create-udp-socket",
    ),
    ("wasi:threads/threads", "func", "spawn"),
    ("wasi:tls/types", "resource", "client-handshake"),
    ("wasi:webgpu/webgpu", "func", "get-gpu"),
    ("wasi:blobstore/blobstore", "func", "create-container"),
    ("zeph:plugin/context", "func", "settings"),
    ("zeph:plugin/embeddings", "func", "embedder"),
    ("zeph:plugin/files", "func", "copy-mode"),
    ("zeph:plugin/log", "func", "write"),
    ("zeph:plugin/process", "func", "run"),
    ("zeph:plugin/progress", "func", "report"),
    ("zeph:plugin/server-tools", "func", "call"),
    ("zeph:plugin/walk", "resource", "walker"),
];

/// Has no item of its own to look for: it holds types only.
const ONLY_TYPES: &str = "zeph:plugin/types";

fn engine() -> wasmtime::Engine {
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true).concurrency_support(false);
    wasmtime::Engine::new(&config).unwrap()
}

/// Whether the linker has the item of the interface, in whatever type.
fn is_linked(wasm: &wasmtime::Engine, import: &str, item: (&str, &str)) -> bool {
    let (what, name) = item;
    let declared = match what {
        "func" => "(func)",
        _ => "(type (sub resource))",
    };
    let wat =
        format!("(component (import \"{import}\" (instance (export \"{name}\" {declared}))))");
    let component =
        wasmtime::component::Component::new(wasm, wat::parse_str(&wat).unwrap()).unwrap();
    match linker_for(&component).unwrap().instantiate_pre(&component) {
        Ok(_) => true,
        Err(error) => {
            let reason = format!("{error:#}");
            assert!(
                reason.contains("type mismatch") || reason.contains("implementation is missing"),
                "{reason}"
            );
            reason.contains("type mismatch")
        }
    }
}

#[test]
fn the_table_says_what_is_linked() {
    let wasm = engine();
    for (path, what, item) in PROBES {
        let versions = match path.starts_with("zeph:") {
            true => ["0.1.0", "0.1.9", "0.2.0"],
            false => ["0.2.0", "0.2.99", "0.3.0"],
        };
        for version in versions {
            let import = format!("{path}@{version}");
            let has = host::has(InterfaceName::new(&import));
            assert_eq!(has, is_linked(&wasm, &import, (what, item)), "{import}");
        }
    }
}

#[test]
fn every_interface_of_the_table_is_probed() {
    for package in &host::PACKAGES {
        for interface in package.interfaces {
            let path = format!("{}/{interface}", package.name);
            let is_probed = PROBES.iter().any(|(probed, ..)| *probed == path);
            assert!(is_probed || path == ONLY_TYPES, "{path}");
        }
    }
}

#[test]
fn the_table_names_every_interface_of_the_contract() {
    let wit = include_str!("../../../../../wit/zeph-plugin/plugin.wit");
    let version = wit
        .lines()
        .find_map(|line| line.strip_prefix("package zeph:plugin@"));
    assert_eq!(version, Some(format!("{PLUGIN_VERSION};").as_str()));
    let ours = host::PACKAGES
        .iter()
        .find(|package| package.name == "zeph:plugin")
        .unwrap();
    let named = wit
        .lines()
        .filter_map(|line| line.strip_prefix("interface ")?.split(' ').next());
    let mut named: Vec<&str> = named.filter(|name| *name != "tools").collect();
    named.sort_unstable();
    assert_eq!(named, ours.interfaces);
}

#[test]
fn what_is_accepted_can_be_linked() {
    let wasm = engine();
    let bytes = wat::parse_str(super::plugin(super::TYPES_ONLY)).unwrap();
    assert!(crate::inspect(&bytes).unwrap().is_usable());
    let component = wasmtime::component::Component::new(&wasm, bytes).unwrap();
    let pre = linker_for(&component)
        .unwrap()
        .instantiate_pre(&component)
        .unwrap();
    assert!(ToolPluginPre::new(pre).is_ok());
}
