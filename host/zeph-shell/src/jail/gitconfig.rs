//! The user's git configuration without what holds a secret or runs a program of the user's: who commits, and how.

use std::path::{Path, PathBuf};

use super::trusted;

/// Sections that are kept, in lower case.
const SECTIONS: [&str; 19] = [
    "advice", "alias", "apply", "blame", "branch", "color", "column", "commit", "diff", "fetch",
    "help", "init", "log", "merge", "pull", "push", "rebase", "status", "user",
];

/// Keys that are dropped from them: they name keys, programs and files that are not in the jail.
const DROPPED: [&str; 8] = [
    "command",
    "driver",
    "external",
    "gpgsign",
    "process",
    "signingkey",
    "template",
    "tool",
];

/// The cleaned configuration of the user whose home this is; `None` when there is none. Commands write to `writable`.
pub(super) fn cleaned(home: &Path, writable: &[PathBuf]) -> Option<Vec<u8>> {
    let read = |name: &str| trusted::read(&home.join(name), writable);
    let content = read(".gitconfig").or_else(|| read(".config/git/config"))?;
    Some(clean(&content).into_bytes())
}

pub(super) fn clean(content: &str) -> String {
    let mut cleaned = String::new();
    let mut keeps = false;
    for line in content.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let plain = !section.contains('"') && section.ends_with(']');
            let name = section.trim_end_matches(']').trim().to_ascii_lowercase();
            keeps = plain && SECTIONS.contains(&name.as_str());
            if keeps {
                cleaned.push_str(line);
                cleaned.push('\n');
            }
            continue;
        }
        let key = line
            .split('=')
            .next()
            .unwrap_or(line)
            .trim()
            .to_ascii_lowercase();
        // A line that goes on would take the next one with it.
        let whole = !line.ends_with('\\') && !line.starts_with(['#', ';']);
        if keeps && whole && !key.is_empty() && !DROPPED.contains(&key.as_str()) {
            cleaned.push('\t');
            cleaned.push_str(line);
            cleaned.push('\n');
        }
    }
    cleaned
}
