//! Package managers, containers, clouds, version control and the tools of the system.

use super::{Facts, Kind};

/// Lines that begin like this count, by program and kind.
const STARTS: [(&str, Kind, &[&str]); 16] = [
    (
        "npm",
        Kind::Message,
        &["npm error", "npm ERR!", "npm warn", "npm WARN", "ERR_PNPM"],
    ),
    (
        "npm",
        Kind::Total,
        &["added ", "removed ", "changed ", "up to date", "found "],
    ),
    (
        "pnpm",
        Kind::Message,
        &["ERR_PNPM", "WARN", "[WARN]", "npm error"],
    ),
    ("pnpm", Kind::Total, &["dependencies:", "Done in"]),
    (
        "yarn",
        Kind::Message,
        &[
            "warning ",
            "error ",
            "➤ YN0001",
            "➤ YN0002",
            "➤ YN0060",
            "➤ YN0086",
        ],
    ),
    ("yarn", Kind::Total, &["Done in ", "➤ YN0000: · Done"]),
    (
        "pip",
        Kind::Message,
        &["ERROR:", "WARNING:", "error:", "DEPRECATION:"],
    ),
    ("pip", Kind::Total, &["Successfully installed"]),
    (
        "docker",
        Kind::Message,
        &[
            "ERROR",
            "Error",
            "failed to",
            "WARNING: ",
            "npm error",
            "npm warn",
        ],
    ),
    (
        "docker",
        Kind::Total,
        &[
            "Successfully built",
            "Successfully tagged",
            "Successfully installed",
            "added ",
        ],
    ),
    (
        "terraform",
        Kind::Message,
        &[
            "Error: ",
            "Warning: ",
            "│ Error: ",
            "│ Warning: ",
            "on ",
            "│   on ",
        ],
    ),
    (
        "terraform",
        Kind::Total,
        &[
            "Plan: ",
            "Apply complete!",
            "Destroy complete!",
            "No changes.",
            "# ",
            "~ ",
            "- ",
            "-/+ ",
        ],
    ),
    (
        "brew",
        Kind::Message,
        &["Warning: ", "Error: ", "==> Caveats"],
    ),
    ("brew", Kind::Total, &["🍺 "]),
    (
        "git",
        Kind::Message,
        &[
            "error: ",
            "fatal: ",
            "! [",
            "CONFLICT ",
            "warning: ",
            "diff --git ",
            "remote: error",
        ],
    ),
    ("apt-get", Kind::Message, &["E: ", "W: "]),
];

/// A line of BuildKit without the number of its step and the time.
fn step(line: &str) -> &str {
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let Some((number, rest)) = line.strip_prefix('#').and_then(|rest| rest.split_once(' ')) else {
        return line;
    };
    match rest.split_once(' ') {
        Some((time, rest)) if is_number(number) && is_number(time) => rest,
        _ => rest,
    }
}

pub(super) fn read(words: &[&str], lines: &[&str], facts: &mut Facts) {
    let program = words
        .iter()
        .find(|word| STARTS.iter().any(|(program, ..)| program == *word));
    let is_content = words.get(1) == Some(&"diff") || words.get(1) == Some(&"log");
    for line in lines {
        let text = step(line).trim_start();
        for (_, kind, starts) in STARTS
            .iter()
            .filter(|(name, ..)| Some(&name) == program.as_ref())
        {
            if starts.iter().any(|start| text.starts_with(start)) {
                facts.add(*kind, text);
            }
        }
        let is_path = words.starts_with(&["git", "status"]) && line.starts_with('\t');
        if is_path {
            // Paths of one kind may stand behind it together.
            let (kind, path) = text.split_once(":  ").unwrap_or(("", text));
            facts.add(Kind::Name, path);
            facts.add(Kind::Total, kind);
        }
        let is_log = words.contains(&"logs") || words.first() == Some(&"journalctl");
        let level = ["ERROR", "WARN", "FATAL"]
            .iter()
            .find_map(|level| line.find(level));
        if let Some(at) = level.filter(|_| is_log) {
            facts.add(Kind::Message, &line[at..]);
        }
        let is_plain_error = ["error: ", "Error: ", "ERROR: ", "fatal: "]
            .iter()
            .any(|start| line.starts_with(start));
        if is_plain_error && !is_content {
            facts.add(Kind::Message, line);
        }
    }
}
