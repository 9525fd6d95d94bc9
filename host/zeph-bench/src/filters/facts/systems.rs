//! Package managers, containers, clouds, version control and the tools of the system.

use super::{FactKind, Facts};

/// Lines that begin like this count, by program and kind.
const STARTS: [(&str, FactKind, &[&str]); 16] = [
    (
        "npm",
        FactKind::Message,
        &["npm error", "npm ERR!", "npm warn", "npm WARN", "ERR_PNPM"],
    ),
    (
        "npm",
        FactKind::Total,
        &["added ", "removed ", "changed ", "up to date", "found "],
    ),
    (
        "pnpm",
        FactKind::Message,
        &["ERR_PNPM", "WARN", "[WARN]", "npm error"],
    ),
    ("pnpm", FactKind::Total, &["dependencies:", "Done in"]),
    (
        "yarn",
        FactKind::Message,
        &[
            "warning ",
            "error ",
            "➤ YN0001",
            "➤ YN0002",
            "➤ YN0060",
            "➤ YN0086",
        ],
    ),
    ("yarn", FactKind::Total, &["Done in ", "➤ YN0000: · Done"]),
    (
        "pip",
        FactKind::Message,
        &["ERROR:", "WARNING:", "error:", "DEPRECATION:"],
    ),
    ("pip", FactKind::Total, &["Successfully installed"]),
    (
        "docker",
        FactKind::Message,
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
        FactKind::Total,
        &[
            "Successfully built",
            "Successfully tagged",
            "Successfully installed",
            "added ",
        ],
    ),
    (
        "terraform",
        FactKind::Message,
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
        FactKind::Total,
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
        FactKind::Message,
        &["Warning: ", "Error: ", "==> Caveats"],
    ),
    ("brew", FactKind::Total, &["🍺 "]),
    (
        "git",
        FactKind::Message,
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
    ("apt-get", FactKind::Message, &["E: ", "W: "]),
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
            facts.add(FactKind::Name, path);
            facts.add(FactKind::Total, kind);
        }
        let is_log = words.contains(&"logs") || words.first() == Some(&"journalctl");
        let level = ["ERROR", "WARN", "FATAL"]
            .iter()
            .find_map(|level| line.find(level));
        if let Some(at) = level.filter(|_| is_log) {
            facts.add(FactKind::Message, &line[at..]);
        }
        let is_plain_error = ["error: ", "Error: ", "ERROR: ", "fatal: "]
            .iter()
            .any(|start| line.starts_with(start));
        if is_plain_error && !is_content {
            facts.add(FactKind::Message, line);
        }
    }
}
