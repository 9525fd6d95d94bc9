//! The jail of macOS: a profile of Seatbelt for one command, as text for `sandbox-exec -p`.
//!
//! It only writes the profile. Later rules win over earlier ones there, so what is denied stands last. The kernel compares the real
//! paths of objects, so every path here is resolved.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::mount::within_any;
use super::policy::{JailPolicy, Network};
use super::roots::Roots;

#[cfg(test)]
mod tests;

/// Read by every program: libraries, the dynamic linker, time zones, certificates.
const SYSTEM: [&str; 12] = [
    "/Applications/Xcode.app/Contents/Developer",
    "/Library/Developer/CommandLineTools",
    "/Library/Preferences/.GlobalPreferences.plist",
    "/System",
    "/bin",
    "/dev",
    "/nix/store",
    "/opt/homebrew",
    "/private/etc/ssl",
    "/private/var/db/timezone",
    "/sbin",
    "/usr",
];

/// Single files of the same kind.
const SYSTEM_FILES: [&str; 6] = [
    "/private/etc/hosts",
    "/private/etc/localtime",
    "/private/etc/passwd",
    "/private/etc/protocols",
    "/private/etc/services",
    "/private/var/select/sh",
];

/// Devices that may be written.
const DEVICES: [&str; 6] = [
    "/dev/dtracehelper",
    "/dev/null",
    "/dev/ptmx",
    "/dev/stderr",
    "/dev/stdout",
    "/dev/zero",
];

/// Below the home: toolchains without secrets.
const TOOLS: [&str; 10] = [
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".local/bin",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".volta",
    "go",
];

/// Below every writable directory: what programs outside obey, wherever it lies. Regular expressions of paths.
const PROTECTED: [&str; 6] = [
    r"/\.git/(hooks|config|config\.worktree|commondir)(/|$)",
    r"/\.git/modules/.*/(hooks|config)(/|$)",
    r"/\.git/worktrees/[^/]+/(commondir|gitdir|config\.worktree)$",
    r"/\.(vscode|idea|husky|zeph|devcontainer|claude|cursor|zed)(/|$)",
    r"/\.(mcp\.json|envrc|gitmodules|gitconfig|bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|zlogin)$",
    r"/\.cargo/config(\.toml)?$",
];

/// The profile for `program` under `policy`, of which `roots` stands. The run has the directory `scratch` to itself.
///
/// Shape: SBPL, version 1, one rule a line; paths are quoted, so that no path can end its rule.
pub(super) fn profile(
    policy: &JailPolicy,
    roots: &Roots,
    program: &Path,
    scratch: &Path,
) -> String {
    let mut text = String::from("(version 1)\n(deny default)\n");
    text.push_str(
        "(allow process-fork)\n(allow process-exec)\n(allow signal (target same-sandbox))\n\
         (allow process-info* (target same-sandbox))\n(allow sysctl-read)\n(allow ipc-posix-sem)\n(allow pseudo-tty)\n\
         (allow file-read-metadata)\n(allow file-ioctl (literal \"/dev/ptmx\") (regex #\"^/dev/ttys[0-9]+\"))\n",
    );
    for path in SYSTEM {
        rule(&mut text, "allow file-read*", "subpath", Path::new(path));
    }
    for path in SYSTEM_FILES {
        rule(&mut text, "allow file-read*", "literal", Path::new(path));
    }
    for path in DEVICES {
        rule(&mut text, "allow file-write*", "literal", Path::new(path));
    }
    let home = policy.home.as_deref();
    let tools = home.map(|home| TOOLS.map(|tool| home.join(tool)));
    for path in tools.iter().flatten().chain(&roots.readable) {
        rule(&mut text, "allow file-read*", "subpath", path);
    }
    rule(&mut text, "allow file-read*", "literal", program);
    let writable = || roots.writable.iter().map(PathBuf::as_path);
    for path in writable().chain([scratch]) {
        rule(&mut text, "allow file-read* file-write*", "subpath", path);
    }
    network(&mut text, policy.network);
    denials(&mut text, roots);
    for path in &policy.own.read {
        rule(&mut text, "allow file-read*", "subpath", path);
    }
    for path in &policy.own.write {
        rule(&mut text, "allow file-read* file-write*", "subpath", path);
    }
    text
}

fn network(text: &mut String, network: Network) {
    text.push_str(match network {
        Network::Loopback | Network::Hosts => {
            "(allow network-bind (local ip \"localhost:*\"))\n(allow network-inbound (local ip \"localhost:*\"))\n\
             (allow network-outbound (remote ip \"localhost:*\"))\n"
        }
        Network::Open => "(allow network*)\n(allow system-socket)\n(deny network* (local unix-socket))\n",
    });
}

fn denials(text: &mut String, roots: &Roots) {
    for pattern in PROTECTED {
        // Written by this program, never by a user: no quote in it.
        let _ = writeln!(text, "(deny file-write* (regex #\"{pattern}\"))");
    }
    // A directory that is moved takes what is protected in it along and makes room for another.
    for root in roots.work.iter().chain(&roots.writable) {
        rule(text, "deny file-write-unlink", "literal", root);
    }
    text.push_str("(deny file-write-unlink (regex #\"/\\.git$\"))\n");
    text.push_str("(deny file-write-setugid)\n");
    for path in &roots.protected {
        pin_above(text, path, roots);
        rule(text, "deny file-write*", "subpath", path);
    }
    for path in &roots.hidden {
        pin_above(text, path, roots);
        rule(text, "deny file-read* file-write*", "subpath", path);
    }
}

/// Directories between a writable one and what is kept in it stay where they are.
fn pin_above(text: &mut String, path: &Path, roots: &Roots) {
    let above = path.ancestors().skip(1);
    for parent in above.take_while(|parent| within_any(parent, &roots.writable)) {
        rule(text, "deny file-write-unlink", "literal", parent);
    }
}

fn rule(text: &mut String, what: &str, matcher: &str, path: &Path) {
    let _ = writeln!(text, "({what} ({matcher} {}))", quoted(path));
}

/// A string of SBPL. What is no UTF-8 becomes a path that does not exist: such a rule allows nothing.
fn quoted(path: &Path) -> String {
    let mut quoted = String::from("\"");
    for character in path.to_string_lossy().chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
