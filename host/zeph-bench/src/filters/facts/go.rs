//! `go test`, plain and as events.

use serde_json::Value;

use super::{FactKind, Facts};

pub(super) fn read(lines: &[&str], facts: &mut Facts) {
    let events: Vec<Value> = lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(Value::is_object)
        .collect();
    if events.is_empty() {
        return read_plain(lines, facts);
    }
    for event in &events {
        let is = |action: &str| event["Action"] == action;
        let test = event["Test"].as_str();
        let output = event["Output"].as_str().unwrap_or_default().trim_end();
        if is("fail") {
            facts.add(
                FactKind::Name,
                test.unwrap_or(event["Package"].as_str().unwrap_or_default()),
            );
        }
        let is_failed = events.iter().any(|other| {
            other["Action"] == "fail"
                && other["Test"] == event["Test"]
                && other["Package"] == event["Package"]
        });
        if is("output") && is_failed {
            facts.add_places(output);
            if output.contains(".go:") && !output.contains("\t") {
                facts.add(FactKind::Message, output);
            }
            if output.starts_with("panic: ") {
                facts.add(FactKind::Message, output);
            }
        }
    }
    let rest: Vec<&str> = lines
        .iter()
        .filter(|line| !line.starts_with('{'))
        .copied()
        .collect();
    read_plain(&rest, facts);
}

fn read_plain(lines: &[&str], facts: &mut Facts) {
    for (line_idx, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if let Some(name) = text.strip_prefix("--- FAIL: ") {
            facts.add(FactKind::Name, name.split(' ').next().unwrap_or(name));
        }
        let is_total = ["ok  \t", "FAIL\t", "exit status ", "FAIL"]
            .iter()
            .any(|start| line.starts_with(start));
        if is_total {
            facts.add(FactKind::Total, line);
        }
        if [
            "panic: ",
            "fatal error: ",
            "WARNING: DATA RACE",
            "# ",
            "vet: ",
        ]
        .iter()
        .any(|start| text.starts_with(start))
        {
            facts.add(FactKind::Message, text);
        }
        if !is_of_passed(lines, line_idx) {
            facts.add_places(line);
        }
    }
}

/// A log line belongs to the verdict that follows it, or, plain, to the one before it.
fn is_of_passed(lines: &[&str], line_idx: usize) -> bool {
    if !lines[line_idx].starts_with("    ") {
        return false;
    }
    let verdict =
        |line: &&&str| line.trim_start().starts_with("--- ") || line.starts_with("panic: ");
    let is_verbose = lines.iter().any(|line| line.starts_with("=== RUN"));
    let found = if is_verbose {
        lines[line_idx..].iter().find(verdict)
    } else {
        lines[..line_idx].iter().rev().find(verdict)
    };
    found.is_some_and(|line| line.contains("--- PASS") || line.contains("--- SKIP"))
}
