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

/// Lines of a long argument, such as a script.
const ARGUMENT_LINES_MAX: usize = 12;

/// Lines of a diff.
const DIFF_LINES_MAX: usize = 24;

/// Lines at the end of a result among which the host says what filters removed.
const BELOW_LINES_MAX: usize = 6;

/// The tool whose calls are commands.
const SHELL: &str = "bash";

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

/// How it ended on a line, without colours: how long it took, the exit code of a command, and what filters removed.
pub(crate) fn end_line(call: &ToolCall, end: &CallEnd, took: Duration) -> String {
    let how = match end.kind {
        CallEndKind::Done => "ok",
        CallEndKind::Failed => "failed",
        CallEndKind::Malformed => "invalid call",
        CallEndKind::NeedsApproval => "needs approval",
        CallEndKind::Denied => "denied",
        CallEndKind::Cancelled => "cancelled",
    };
    let mut parts = vec![how.to_owned(), escape(&call.name), shown_duration(took)];
    parts.extend(exit(call, end));
    match (savings(&end.text), end.text.lines().count()) {
        (Some(savings), _) => parts.push(savings),
        (None, n_lines @ 2..) => parts.push(format!("{n_lines} lines")),
        _ => {}
    }
    parts.extend(end.handle.clone());
    format!("  {}", parts.join(" · "))
}

/// The card of a call that begins: its line, and the rest of a long argument.
pub(crate) fn begin(call: &ToolCall) -> String {
    let title = title(call);
    let (mark, rest) = title.split_at(title.find(' ').map_or(title.len(), |idx| idx + 1));
    let (name, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut shown = format!("{DIM}{mark}{DIM:#}{BOLD}{name}{BOLD:#} {arguments}\n");
    let Arguments::Object(arguments) = &call.arguments else {
        return shown;
    };
    let whole = summary(arguments);
    if one_line(&whole, ARGUMENTS_CHARS_MAX) != whole {
        let style = Style::new();
        push_lines(
            &mut shown,
            ("│", DIM),
            style,
            whole.lines(),
            ARGUMENT_LINES_MAX,
        );
    }
    shown
}

/// The last lines of the card: what an edit changed or how a failure begins, and how it ended.
pub(crate) fn finish(call: &ToolCall, end: &CallEnd, took: Duration) -> String {
    let mut shown = String::new();
    let style = match end.kind {
        CallEndKind::Done => {
            diff(&mut shown, call, end);
            DIM
        }
        _ => RED,
    };
    shown.push_str(&format!("{style}{}{style:#}\n", end_line(call, end, took)));
    if end.kind != CallEndKind::Done {
        let lines = end.text.lines();
        push_lines(
            &mut shown,
            ("│", DIM),
            Style::new(),
            lines.take(ERROR_LINES_MAX),
            usize::MAX,
        );
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

/// What an edit changed: the difference its tool tells, else what its arguments take away and put in its place.
fn diff(shown: &mut String, call: &ToolCall, end: &CallEnd) {
    let told = end.text.lines().skip_while(|line| !line.starts_with("@@ "));
    let told: Vec<&str> = told.take_while(|line| !line.starts_with("--- ")).collect();
    if !told.is_empty() && end.text.contains("\n+++ ") {
        for (idx, line) in told.iter().enumerate() {
            if idx == DIFF_LINES_MAX {
                let more = told.len() - idx;
                shown.push_str(&format!("  {DIM}… {more} more lines{DIM:#}\n"));
                break;
            }
            let style = match line.chars().next() {
                Some('+') => GREEN,
                Some('-') => REMOVED,
                _ => DIM,
            };
            shown.push_str(&format!("  {style}{}{style:#}\n", escape(line)));
        }
        return;
    }
    let Arguments::Object(arguments) = &call.arguments else {
        return;
    };
    let text = |names: [&str; 2]| names.iter().find_map(|name| arguments.get(*name)?.as_str());
    let sides = [
        ("-", REMOVED, text(["old_string", "old_text"])),
        ("+", GREEN, text(["new_string", "new_text"])),
    ];
    for (sign, style, side) in sides {
        let lines = side.unwrap_or_default().lines();
        push_lines(shown, (sign, style), style, lines, DIFF_LINES_MAX / 2);
    }
}

/// Lines with a sign before each, and how many more there are.
fn push_lines<'a>(
    shown: &mut String,
    (sign, sign_style): (&str, Style),
    style: Style,
    lines: impl Iterator<Item = &'a str>,
    n_max: usize,
) {
    let mut n_lines = 0;
    for line in lines {
        n_lines += 1;
        if n_lines <= n_max {
            let line = escape(line);
            let sign = format!("{sign_style}{sign}{sign_style:#}");
            shown.push_str(&format!("  {sign} {style}{line}{style:#}\n"));
        }
    }
    if n_lines > n_max {
        let more = n_lines - n_max;
        shown.push_str(&format!("  {DIM}{sign} … {more} more lines{DIM:#}\n"));
    }
}

/// `exit code 1`, of a command. The host writes it below the output: the last such line counts.
fn exit(call: &ToolCall, end: &CallEnd) -> Option<String> {
    let is_end = |line: &&str| line.starts_with("[exit code ") || line.starts_with("[killed by ");
    let line = end.text.lines().rev().find(is_end);
    let line = line.filter(|_| end.kind == CallEndKind::Failed);
    let is_over = end.kind == CallEndKind::Done && end.task.is_none();
    let well = (is_over && call.name == SHELL).then_some("exit code 0");
    line.or(well)
        .map(|line| escape(line.trim_matches(['[', ']'])))
}

/// What filters removed, as the host says it below the output: `342 lines -> 28 lines, 91.8% filtered`.
fn savings(text: &str) -> Option<String> {
    let mut last = text.lines().rev().take(BELOW_LINES_MAX);
    let line = last.find(|line| line.starts_with('[') && line.ends_with("% filtered"))?;
    let (_, savings) = line.split_once("] ")?;
    Some(escape(savings))
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
    fn an_edit_shows_what_it_changed() {
        let call = call("{\"path\":\"a\",\"old_string\":\"one\\ntwo\",\"new_string\":\"three\"}");
        let shown = |text: &str| {
            let end = CallEnd::of(CallEndKind::Done, text);
            strip_str(&finish(&call, &end, Duration::ZERO)).to_string()
        };
        let bare = shown("edited");
        assert!(bare.starts_with("  - one\n  - two\n  + three\n"), "{bare}");
        let told = shown("edited\n--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n-one\n-two\u{1b}\n+three");
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(
            lines[..4],
            ["  @@ -1,2 +1 @@", "  -one", "  -two\\x1b", "  +three"]
        );
    }

    #[test]
    fn a_script_is_shown_in_full() {
        let shown = begin(&call("{\"command\":\"cd a\\nmake\"}"));
        let shown = strip_str(&shown).to_string();
        assert!(shown.ends_with("\n  │ cd a\n  │ make\n"), "{shown}");
    }

    #[test]
    fn the_end_of_a_command_tells_its_exit_code_and_what_filters_removed() {
        let mut call = call("{\"command\":\"make\"}");
        call.name = "bash".to_owned();
        let line =
            |kind, text: &str| end_line(&call, &CallEnd::of(kind, text), Duration::from_millis(20));
        let text =
            "a\n[exit code 7]\nb\n[exit code 2]\n[shell] 342 lines -> 28 lines, 91.8% filtered";
        assert_eq!(
            line(CallEndKind::Failed, text),
            "  failed · bash · 20 ms · exit code 2 · 342 lines -> 28 lines, 91.8% filtered"
        );
        assert_eq!(
            line(CallEndKind::Done, "[exit code 7]"),
            "  ok · bash · 20 ms · exit code 0"
        );
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
