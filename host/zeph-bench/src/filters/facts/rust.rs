//! cargo with its test runners, compiler and lints.

use super::{FactKind, Facts};

pub(super) fn read(lines: &[&str], facts: &mut Facts) {
    let mut is_list = false;
    for (line_idx, line) in lines.iter().enumerate() {
        let text = line.trim();
        read_name(text, facts);
        // Names of failures once more, after an empty line behind the last body.
        is_list = *line == "failures:"
            || (is_list && line.starts_with("    ") && !line.starts_with("     "));
        if is_list && *line != "failures:" {
            facts.add(FactKind::Name, text);
        }
        if text.starts_with("--> ")
            || text.starts_with("::: ")
            || text.starts_with("at ")
            || text.contains("panicked at ")
        {
            facts.add_places(text);
        }
        if line.starts_with("error")
            || text.starts_with("fatal runtime error")
            || text.starts_with("Caused by")
        {
            facts.add(FactKind::Message, text);
        }
        if text.contains("panicked at ") {
            facts.add(
                FactKind::Message,
                text.split(" panicked at ").next().unwrap_or(text),
            );
            facts.add(
                FactKind::Message,
                lines.get(line_idx + 1).copied().unwrap_or_default(),
            );
        }
        let is_total = text.starts_with("test result: ") && !is_inside_nextest(lines, line_idx)
            || text.starts_with("Summary [")
            || text.contains(" generated ") && text.contains(" warning")
            || text.contains("could not compile")
            || text.contains("(signal: ");
        if is_total {
            facts.add(FactKind::Total, text);
        }
    }
}

/// `test a::b ... FAILED`, and the words of nextest before a failure's name.
fn read_name(text: &str, facts: &mut Facts) {
    if let Some(name) = text
        .strip_prefix("test ")
        .and_then(|rest| rest.strip_suffix(" ... FAILED"))
    {
        facts.add(FactKind::Name, name.trim_end_matches(" - should panic"));
    }
    let Some((words, rest)) = text.split_once(" [") else {
        return;
    };
    const FAILED: [&str; 10] = [
        "FAIL", "TMT", "TIMEOUT", "SIGABRT", "SIGSEGV", "ABORT", "LEAK", "FLAKY", "XFAIL",
        "SIGKILL",
    ];
    let is_failed = words.split(' ').all(|word| {
        word.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'/')
    }) && words.split(' ').any(|word| FAILED.contains(&word));
    if is_failed && rest.contains("s]") {
        facts.add(FactKind::Name, rest.rsplit(' ').next().unwrap_or_default());
    }
}

/// The runner inside nextest runs one test and counts it: its total says nothing.
fn is_inside_nextest(lines: &[&str], line_idx: usize) -> bool {
    lines[line_idx].starts_with("    ")
        && lines
            .iter()
            .any(|line| line.trim_start().starts_with("Summary ["))
}
