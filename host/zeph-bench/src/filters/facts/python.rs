//! pytest, unittest and the linters of Python.

use super::{FactKind, Facts};

pub(super) fn read_pytest(lines: &[&str], facts: &mut Facts) {
    let mut is_first = true;
    for (line_idx, line) in lines.iter().enumerate() {
        read_pytest_name(line, facts);
        if line.starts_with("____") {
            is_first = true;
        }
        // The message: the first line that pytest marks, in each failure.
        if line.starts_with("E   ") && std::mem::take(&mut is_first) {
            facts.add(FactKind::Message, line);
        }
        if line.starts_with("Fatal Python error")
            || line.starts_with("ERROR:")
            || line.starts_with("INTERNALERROR> Traceback")
        {
            facts.add(FactKind::Message, line);
        }
        if !line.contains(" PASSED") && !line.starts_with("    ") {
            facts.add_places(line);
        }
        frame(line, facts);
        let is_last = lines[line_idx + 1..].iter().all(|line| line.is_empty());
        if is_last && line.contains(" in ") {
            facts.add(FactKind::Total, line.trim_matches(['=', ' ']));
        }
    }
}

/// `FAILED a.py::TestB::test_c[d] - message`: the name with its file.
fn read_pytest_name(line: &str, facts: &mut Facts) {
    let Some(rest) = line
        .strip_prefix("FAILED ")
        .or_else(|| line.strip_prefix("ERROR "))
    else {
        return;
    };
    let id = rest.split(" - ").next().unwrap_or(rest);
    facts.add(FactKind::Name, id);
}

/// `File "x.py", line 3, in f`, but for libraries.
fn frame(line: &str, facts: &mut Facts) {
    let text = line.trim_start();
    let is_library = ["site-packages", "/lib/python", "<frozen", "<string>"]
        .iter()
        .any(|part| text.contains(part));
    if let Some((place, _)) = text
        .strip_prefix("File \"")
        .and_then(|rest| rest.split_once(", in "))
        && !is_library
    {
        facts.add(FactKind::Place, place);
    }
}

pub(super) fn read_unittest(lines: &[&str], facts: &mut Facts) {
    let mut is_traceback = false;
    for line in lines {
        if let Some(name) = line
            .strip_prefix("FAIL: ")
            .or_else(|| line.strip_prefix("ERROR: "))
        {
            facts.add(FactKind::Name, name);
        }
        frame(line, facts);
        if is_traceback && !line.starts_with(' ') {
            facts.add(FactKind::Message, line);
            is_traceback = false;
        }
        is_traceback |= line.starts_with("Traceback (most recent");
        if line.starts_with("Ran ") || line.starts_with("FAILED (") || line.starts_with("OK") {
            facts.add(FactKind::Total, line);
        }
    }
}

/// `path:line: error`, `--> path:line:column`, and the line that counts.
pub(super) fn read_linters(lines: &[&str], facts: &mut Facts) {
    for line in lines {
        let is_finding = !line.starts_with(' ') || line.trim_start().starts_with("--> ");
        if is_finding && !line.contains(" | ") {
            facts.add_places(line);
        }
        if let Some((place, text)) = line.split_once(": error: ") {
            let code = text.rsplit("  [").next().filter(|code| code.ends_with(']'));
            facts.add_finding(
                place,
                text,
                code.map_or("", |code| code.trim_end_matches(']')),
            );
        }
        if let Some((place, text)) = line
            .split_once(": ")
            .filter(|(place, _)| place.contains(".py:"))
        {
            let rule = text.split([' ', ':']).next().unwrap_or_default();
            let is_code = rule.bytes().any(|byte| byte.is_ascii_digit());
            facts.add_finding(place, text, if is_code { rule } else { "" });
        }
        if line.starts_with("Found ")
            || line.starts_with("Your code has been rated")
            || line.starts_with("All checks passed")
        {
            facts.add(FactKind::Total, line);
        }
    }
}
