//! jest, vitest, mocha, the TypeScript compiler and ESLint.

use super::{FactKind, Facts};

pub(super) fn read_tests(lines: &[&str], facts: &mut Facts) {
    for (line_idx, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if let Some(name) = text
            .strip_prefix("● ")
            .or_else(|| text.strip_prefix("FAIL "))
        {
            facts.add(FactKind::Name, name);
        }
        if let Some(name) = text.strip_prefix("✕ ").or_else(|| text.strip_prefix("× ")) {
            facts.add(FactKind::Name, without_time(name));
        }
        if is_numbered(text) {
            facts.add(
                FactKind::Name,
                text.split_once(") ").map_or(text, |(_, name)| name),
            );
        }
        let is_trace = text.starts_with("at ") || text.starts_with("❯ ");
        if is_trace {
            facts.add_places(text);
        }
        if is_error(text) && !text.starts_with("at ") {
            facts.add(FactKind::Message, text);
        }
        let is_total = [
            "Tests:",
            "Test Suites:",
            "Tests  ",
            "Test Files ",
            "Errors  ",
        ]
        .iter()
        .any(|start| text.starts_with(start))
            || (text.ends_with(" failing")
                || text.contains(" passing (")
                || text.ends_with(" pending"))
                && text.starts_with(|c: char| c.is_ascii_digit());
        if is_total {
            facts.add(FactKind::Total, text);
        }
        // The message of jest stands behind its title and a blank line.
        if text.starts_with("● ") && line.starts_with("  ●") && !text.starts_with("● Console")
        {
            facts.add(
                FactKind::Message,
                lines.get(line_idx + 2).copied().unwrap_or_default(),
            );
        }
    }
}

/// `TypeError: x`, `AssertionError [ERR_ASSERTION]: x`, `Error: x`.
fn is_error(text: &str) -> bool {
    let name = text.split([':', ' ']).next().unwrap_or_default();
    name.ends_with("Error")
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && text.contains(':')
}

/// `  3) name` in the list of mocha.
fn is_numbered(text: &str) -> bool {
    text.split_once(") ").is_some_and(|(number, name)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty()
    })
}

fn without_time(name: &str) -> &str {
    let name = name.split(" (").next().unwrap_or(name);
    let is_time = |word: &str| {
        word.ends_with("ms")
            && word[..word.len() - 2]
                .bytes()
                .all(|byte| byte.is_ascii_digit())
    };
    match name.rsplit_once(' ') {
        Some((rest, last)) if is_time(last) => rest.trim_end(),
        _ => name,
    }
}

/// Most warnings of one output that have to be there; a flood of them is counted by the tool itself.
const WARNINGS_MAX: usize = 200;

/// `path(1,2): error`, `path:1:2 - error`, `  1:2  error`, below a path.
pub(super) fn read_linters(lines: &[&str], facts: &mut Facts) {
    let mut n_warnings = 0;
    for line in lines {
        if let Some((place, _)) = line
            .split_once("): error ")
            .filter(|(place, _)| place.contains('('))
        {
            let text = &line[place.len() + "): error ".len()..];
            let (code, text) = text.split_once(": ").unwrap_or((text, ""));
            facts.add_finding(&format!("{place})"), text, code);
        }
        if let Some((place, text)) = line.split_once(" - error ") {
            let (code, text) = text.split_once(": ").unwrap_or((text, ""));
            facts.add_finding(place, text, code);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_finding = words.len() > 2
            && matches!(words[1], "error" | "warning")
            && words[0].contains(':')
            && words[0].starts_with(|c: char| c.is_ascii_digit());
        n_warnings += usize::from(is_finding && words[1] == "warning");
        if is_finding && n_warnings <= WARNINGS_MAX {
            let (rule, words) = words.split_last().unwrap_or((&"", &[]));
            facts.add_finding(words[0], &words[1..].join(" "), rule);
        } else if line.starts_with('/') && !line.contains(' ') {
            facts.add(FactKind::Name, line);
        }
        if line.starts_with("Found ")
            || line.contains(" problems (")
            || line.contains(" potentially fixable")
        {
            facts.add(FactKind::Total, line);
        }
    }
}
