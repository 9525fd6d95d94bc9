//! The output of cargo-nextest. The captured output inside it is marked by `libtest`.

use super::{Limits, Mark};

/// Marks what passed, and what repeats.
pub(super) fn mark(lines: &[&str], _: Limits, marks: &mut [Mark]) -> bool {
    let is_recognised = lines.iter().any(|line| is_summary(line));
    if !is_recognised {
        return false;
    }
    let mut seen = std::collections::HashSet::new();
    for (line_idx, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let is_repeated = text.starts_with("FAIL [") && !seen.insert(text);
        if is_passing(text) {
            marks[line_idx] = Mark::Passing;
        } else if is_repeated || is_around(line) {
            marks[line_idx] = Mark::Detail;
        }
    }
    true
}

fn is_summary(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("Summary [") && text.contains(" run: ")
}

fn is_passing(text: &str) -> bool {
    text.starts_with("PASS [")
        || text.starts_with("SKIP [")
        || text.starts_with("Nextest run ID ")
        || (text.starts_with("Starting ") && text.contains(" tests across "))
        || (!text.is_empty() && text.chars().all(|c| c == '─' || c == '-'))
}

/// What the runner inside says of the one test it was given: the line of the failure says it already.
fn is_around(line: &str) -> bool {
    let Some(text) = line.strip_prefix("    ") else {
        return false;
    };
    text == "running 1 test"
        || text == "failures:"
        || text.is_empty()
        || (text.starts_with("test ") && text.ends_with(" ... FAILED"))
        || (text.starts_with("test result: FAILED. 0 passed; 1 failed;"))
}
