//! What a component can import here. The table says what `linker` links; a test holds the two together.

use super::names::{InterfaceName, line_of};

/// Packages whose interfaces this host provides, with the supported version line.
pub(super) const PACKAGES: [Package; 8] = [
    Package {
        name: "wasi:io",
        line: WASI,
        interfaces: &["error", "poll", "streams"],
    },
    Package {
        name: "wasi:cli",
        line: WASI,
        interfaces: &[
            "environment",
            "exit",
            "stderr",
            "stdin",
            "stdout",
            "terminal-input",
            "terminal-output",
            "terminal-stderr",
            "terminal-stdin",
            "terminal-stdout",
        ],
    },
    Package {
        name: "wasi:clocks",
        line: WASI,
        interfaces: &["monotonic-clock", "wall-clock"],
    },
    Package {
        name: "wasi:filesystem",
        line: WASI,
        interfaces: &["preopens", "types"],
    },
    Package {
        name: "wasi:http",
        line: WASI,
        interfaces: &["outgoing-handler", "types"],
    },
    Package {
        name: "wasi:random",
        line: WASI,
        interfaces: &["insecure", "insecure-seed", "random"],
    },
    Package {
        name: "wasi:sockets",
        line: WASI,
        interfaces: &[
            "instance-network",
            "ip-name-lookup",
            "network",
            "tcp",
            "tcp-create-socket",
            "udp",
            "udp-create-socket",
        ],
    },
    Package {
        name: "zeph:plugin",
        line: PLUGIN,
        interfaces: &[
            "context",
            "embeddings",
            "files",
            "log",
            "process",
            "progress",
            "server-tools",
            "types",
            "walk",
        ],
    },
];

/// The supported version line of WASI.
pub(super) const WASI: (u64, u64) = (0, 2);

/// The supported version line of `zeph:plugin`.
pub(super) const PLUGIN: (u64, u64) = (0, 1);

/// The supported version line of `zeph:filter`.
pub(super) const FILTER: (u64, u64) = (0, 1);

/// Interfaces of one package.
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) line: (u64, u64),
    pub(super) interfaces: &'static [&'static str],
}

/// Whether this host has the interface in this version.
pub(super) fn has(interface: InterfaceName<'_>) -> bool {
    let line = interface.version.and_then(line_of);
    find(interface).is_some_and(|package| line == Some(package.line))
}

/// The package that has the interface, in whatever version.
pub(super) fn find(interface: InterfaceName<'_>) -> Option<&'static Package> {
    let (package, name) = interface.path.split_once('/')?;
    PACKAGES
        .iter()
        .find(|known| known.name == package && known.interfaces.contains(&name))
}
