//! A call as people see it: one line when it begins, what it would change, and one line when it has ended. Pure.
//!
//! All of it may be the words of a model or of a tool: no character of it can drive the terminal.

use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};
use serde_json::{Map, Value};
use zeph_agent::message::{Arguments, ToolCall};
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_core::failure::one_line;

use crate::run::render::{BOLD, DIM, RED, duration as shown_duration, escape};

/// Characters of the arguments on a line: with the name of the tool it fits into 80 columns.
const ARGUMENTS_CHARS_MAX: usize = 60;

/// Lines of each side of a diff.
const DIFF_LINES_MAX: usize = 12;

/// Lines of a result that are shown when it failed.
const ERROR_LINES_MAX: usize = 6;

const GREEN: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// The arguments that say most of a call, by their names.
const TELLING: [&str; 7] = [
    "command", "path", "pattern", "query", "url", "source", "run_id",
];

/// The call on a line, without colours.
pub(crate) fn title(call: &ToolCall) -> String {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => summary(arguments),
        Arguments::Malformed { text, .. } => text.clone(),
    };
    let name = escape(&call.name);
    format!(
        "▸ {name} {}",
        escape(&one_line(&arguments, ARGUMENTS_CHARS_MAX))
    )
    .trim_end()
    .to_owned()
}

/// How it ended on a line, without colours.
pub(crate) fn end_line(call: &ToolCall, end: &CallEnd, took: Duration) -> String {
    let how = match end.kind {
        CallEndKind::Done => "ok",
        CallEndKind::Failed => "failed",
        CallEndKind::Malformed => "invalid call",
        CallEndKind::NeedsApproval => "needs approval",
        CallEndKind::Denied => "denied",
        CallEndKind::Cancelled => "cancelled",
    };
    let exit = exit_line(end)
        .map(|line| format!(" · {line}"))
        .unwrap_or_default();
    let handle = end.handle.as_ref().map(|handle| format!(" · {handle}"));
    let lines = match end.text.lines().count() {
        0 | 1 => String::new(),
        n => format!(" · {n} lines"),
    };
    format!(
        "  {how} · {} · {}{exit}{lines}{}",
        escape(&call.name),
        shown_duration(took),
        handle.unwrap_or_default()
    )
}

/// The card of a call that begins: its line, and what an edit changes.
pub(crate) fn begin(call: &ToolCall) -> String {
    let title = title(call);
    let (mark, rest) = title.split_at(title.find(' ').map_or(title.len(), |idx| idx + 1));
    let (name, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut shown = format!("{DIM}{mark}{DIM:#}{BOLD}{name}{BOLD:#} {arguments}\n");
    if let Arguments::Object(arguments) = &call.arguments {
        shown.push_str(&diff(arguments));
    }
    shown
}

/// The card's last line, with the beginning of what went wrong.
pub(crate) fn finish(call: &ToolCall, end: &CallEnd, took: Duration) -> String {
    let style = match end.kind {
        CallEndKind::Done => DIM,
        _ => RED,
    };
    let mut shown = format!("{style}{}{style:#}\n", end_line(call, end, took));
    if end.kind != CallEndKind::Done {
        for line in end.text.lines().take(ERROR_LINES_MAX) {
            shown.push_str(&format!("  {DIM}│{DIM:#} {}\n", escape(line)));
        }
    }
    shown
}

fn summary(arguments: &Map<String, Value>) -> String {
    let telling = TELLING
        .iter()
        .find_map(|name| arguments.get(*name)?.as_str());
    match telling {
        Some(text) => text.to_owned(),
        None if arguments.is_empty() => String::new(),
        None => serde_json::to_string(arguments).unwrap_or_default(),
    }
}

/// What an edit takes away and puts in its place.
fn diff(arguments: &Map<String, Value>) -> String {
    let text = |names: [&str; 2]| names.iter().find_map(|name| arguments.get(*name)?.as_str());
    let old = text(["old_string", "old_text"]);
    let new = text(["new_string", "new_text"]);
    let mut shown = String::new();
    for (sign, style, side) in [('-', REMOVED, old), ('+', GREEN, new)] {
        let side = side.unwrap_or_default();
        let n_lines = side.lines().count();
        for line in side.lines().take(DIFF_LINES_MAX) {
            shown.push_str(&format!("  {style}{sign} {}{style:#}\n", escape(line)));
        }
        if n_lines > DIFF_LINES_MAX {
            let more = n_lines - DIFF_LINES_MAX;
            shown.push_str(&format!("  {DIM}{sign} … {more} more lines{DIM:#}\n"));
        }
    }
    shown
}

/// `exit code 1`, of a command that failed.
fn exit_line(end: &CallEnd) -> Option<String> {
    let line = end
        .text
        .lines()
        .find(|line| line.starts_with("[exit code"))?;
    Some(escape(line.trim_matches(['[', ']'])))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anstream::adapter::strip_str;
    use zeph_agent::message::{Arguments, ToolCall};
    use zeph_agent::tool_host::{CallEnd, CallEndKind};

    use super::{begin, end_line, finish, title};

    fn call(arguments: &str) -> ToolCall {
        ToolCall {
            id: "1".to_owned(),
            name: "edit".to_owned(),
            arguments: Arguments::read(arguments),
        }
    }

    #[test]
    fn a_line_says_what_counts_and_drives_nothing() {
        assert_eq!(
            title(&call("{\"path\":\"src/lib.rs\",\"n\":1}")),
            "▸ edit src/lib.rs"
        );
        assert_eq!(title(&call("{}")), "▸ edit");
        let shown = title(&call("{\"command\":\"echo \\u001b[2J\\nrm\"}"));
        assert!(!shown.contains(['\u{1b}', '\n']), "{shown}");
        assert!(
            title(&call(&format!("{{\"path\":\"{}\"}}", "x".repeat(500))))
                .chars()
                .count()
                < 80
        );
    }

    #[test]
    fn an_edit_shows_what_it_changes() {
        let shown = begin(&call(
            "{\"path\":\"a\",\"old_string\":\"one\\ntwo\",\"new_string\":\"three\"}",
        ));
        let shown = strip_str(&shown).to_string();
        assert_eq!(shown, "▸ edit a\n  - one\n  - two\n  + three\n");
    }

    #[test]
    fn an_end_says_how_and_how_long() {
        let end = CallEnd::of(CallEndKind::Failed, "[error]\nwhat\u{7}");
        let line = end_line(&call("{}"), &end, Duration::from_millis(1_500));
        assert_eq!(line, "  failed · edit · 1.5 s · 2 lines");
        let shown = strip_str(&finish(&call("{}"), &end, Duration::ZERO)).to_string();
        assert!(shown.contains("│ what\\x07"), "{shown}");
    }
}
