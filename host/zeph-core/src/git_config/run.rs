//! Settings of git whose values it runs, and the files that such values name.

use std::path::PathBuf;

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
pub fn runs(key: &str) -> bool {
    RUN.contains(&key)
}

/// Whether such a value is no command line.
pub fn leads(key: &str) -> bool {
    LEADING.contains(&key)
}

/// Programs that run the file that is named after them.
const INTERPRETERS: [&str; 16] = [
    ".", "bash", "bun", "dash", "deno", "env", "exec", "lua", "node", "perl", "php", "python",
    "python3", "ruby", "sh", "zsh",
];

/// A file that a value may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFile {
    /// Relative to the working directory of a repository, or absolute.
    pub(super) path: PathBuf,
    /// Whether the value spells a path; else it is a word that may be the name of a file.
    pub(super) is_spelled: bool,
}

/// Words of a command line that may be files, as far as that can be told without a shell.
///
/// Shape: `(word, whether it is spelled as a path)`. A program without a slash is none: it is searched for elsewhere.
pub(super) fn words_of(command: &str) -> Vec<(&str, bool)> {
    let is_border = |letter: char| letter.is_whitespace() || "\"'`;|&()<>{}=!".contains(letter);
    let words = command.split(is_border).filter(|word| !word.is_empty());
    let mut found = Vec::new();
    let mut before = "";
    for word in words {
        let is_path = word.contains('/') && !word.contains("://");
        if word.starts_with('-') {
            continue;
        }
        match word.split_once('/') {
            // What a variable stands for is most often the top of the repository.
            Some((start, rest)) if is_path && start.contains('$') => found.push((rest, false)),
            Some((start, rest)) if is_path => {
                found.push((word, true));
                // The end of a command in the place of which its output stands.
                found.extend(start.is_empty().then_some((rest, false)));
            }
            _ if is_path || word.contains(['%', '$', ':']) => {}
            _ if !before.is_empty() && (word.contains('.') || INTERPRETERS.contains(&before)) => {
                found.push((word, false));
            }
            _ => {}
        }
        before = word;
    }
    found
}
