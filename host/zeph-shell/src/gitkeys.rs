//! Settings of git whose values it runs: for commands that set them, and for repositories that commands made.

/// Last parts of the names of settings whose values git runs, or that make it read another configuration. New repositories have none.
///
/// Source: git-config(1) of git 2.50.
const RUN: [&str; 33] = [
    "alternaterefscommand",
    "askpass",
    "browser",
    "cccmd",
    "clean",
    "cmd",
    "command",
    "defaultkeycommand",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "headercmd",
    "helper",
    "hookspath",
    "packobjectshook",
    "pager",
    "path",
    "process",
    "program",
    "receivepack",
    "recentobjectshook",
    "sendmailcmd",
    "smudge",
    "sshcommand",
    "templatedir",
    "textconv",
    "tocmd",
    "tunnel",
    "uploadpack",
    "vcs",
];

/// Those whose values are no command lines by themselves.
const LEADING: [&str; 5] = ["helper", "hookspath", "path", "templatedir", "vcs"];

/// Whether git runs the value of a setting, or is led elsewhere by it; `key` is the last part of its name in lower case.
pub(crate) fn runs(key: &str) -> bool {
    RUN.contains(&key)
}

/// Whether such a value is no command line.
pub(crate) fn leads(key: &str) -> bool {
    LEADING.contains(&key)
}
