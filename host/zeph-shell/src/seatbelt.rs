//! The jail of macOS: a profile of Seatbelt for one command, as text for `sandbox-exec -p`.
//!
//! It only writes the profile. Later rules win over earlier ones there, so what is denied stands last.

use std::fmt::Write as _;
use std::path::Path;

use crate::jail::{JailPolicy, Job, Network};

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

/// The profile for `job` under `policy`.
///
/// Shape: SBPL, version 1, one rule a line; paths are quoted, so that no path can end its rule.
pub fn profile(policy: &JailPolicy, job: &Job<'_>) -> String {
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
    let tools = policy
        .home
        .iter()
        .flat_map(|home| TOOLS.iter().map(move |tool| home.join(tool)));
    for path in tools.chain(policy.allow_read.iter().cloned()) {
        rule(&mut text, "allow file-read*", "subpath", &path);
    }
    rule(&mut text, "allow file-read*", "literal", job.program);
    for path in policy.roots.iter().chain(&policy.allow_write) {
        rule(&mut text, "allow file-read* file-write*", "subpath", path);
    }
    network(&mut text, policy.network);
    denials(&mut text, policy);
    text
}

fn network(text: &mut String, network: Network) {
    text.push_str(match network {
        Network::Loopback => {
            "(allow network-bind (local ip \"localhost:*\"))\n(allow network-inbound (local ip \"localhost:*\"))\n\
             (allow network-outbound (remote ip \"localhost:*\"))\n"
        }
        Network::Open => "(allow network*)\n(allow system-socket)\n(deny network* (local unix-socket))\n",
    });
}

fn denials(text: &mut String, policy: &JailPolicy) {
    for pattern in PROTECTED {
        // Written by this program, never by a user: no quote in it.
        let _ = writeln!(text, "(deny file-write* (regex #\"{pattern}\"))");
    }
    // A directory that is moved takes what is protected in it along and makes room for another.
    for root in policy.roots.iter().chain(&policy.allow_write) {
        rule(text, "deny file-write-unlink", "literal", root);
    }
    text.push_str("(deny file-write-unlink (regex #\"/\\.git$\"))\n");
    text.push_str("(deny file-write-setugid)\n");
    for path in &policy.protected {
        rule(text, "deny file-write*", "subpath", path);
    }
    for path in &policy.hidden {
        rule(text, "deny file-read* file-write*", "subpath", path);
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
