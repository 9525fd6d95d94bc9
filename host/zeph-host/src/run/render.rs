//! Renders a result for a person. Pure: it makes text, and the front end prints it.
//!
//! What a tool says is shown as it is, except that no character of it can drive the terminal.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};
use zeph_core::exit::CommandExit;
use zeph_core::failure::ToolFailure;
use zeph_core::output::Outcome;

use crate::calls::CallReport;

/// Side remarks.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The failure.
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
/// What the program knows better than its user.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Names to type.
pub(crate) const BOLD: Style = Style::new().bold();

/// A call as the terminal shows it: a dim head line, then the text or the error.
pub(crate) fn report(tool: &str, report: &CallReport) -> String {
    let mut shown = String::new();
    let output = &report.output;
    let head = head(tool, report);
    push_styled(&mut shown, DIM, &head);
    shown.push('\n');
    match &output.outcome {
        Outcome::Done => shown.push_str(&escape(&output.text)),
        Outcome::Failed(failure) if failure.exit.is_some() => {
            shown.push_str(&escape(output.produced()));
        }
        Outcome::Failed(failure) => shown.push_str(&self::failure(failure)),
    }
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

/// What is left to show of a command whose output was shown while it ran: the head line, how it ended, the notes.
pub(crate) fn after_output(tool: &str, report: &CallReport) -> String {
    let output = &report.output;
    let mut shown = String::from("\n");
    push_styled(&mut shown, DIM, &head(tool, report));
    shown.push('\n');
    let exit = match &output.outcome {
        Outcome::Done => None,
        Outcome::Failed(failure) => failure.exit,
    };
    match (&output.outcome, exit.and_then(CommandExit::line)) {
        (Outcome::Done, _) => {}
        (_, Some(line)) => push(&mut shown, format_args!("{line}\n")),
        (Outcome::Failed(failure), None) => {
            shown.push_str(&self::failure(failure));
            shown.push('\n');
        }
    }
    for note in &output.notes {
        push(&mut shown, format_args!("[note] {}\n", escape(note)));
    }
    shown
}

/// A failure in a person's words.
pub(crate) fn failure(failure: &ToolFailure) -> String {
    let mut shown = String::new();
    push_styled(&mut shown, RED, failure.category.label());
    shown.push_str(": ");
    shown.push_str(&escape(&failure.message));
    if failure.category.is_retryable() {
        shown.push('\n');
        push_styled(&mut shown, DIM, "the same call may succeed when made again");
    }
    shown
}

fn head(tool: &str, report: &CallReport) -> String {
    let mut head = format!("{} · {}", escape(tool), duration(report.duration));
    if let Some(id) = report.output.overflow {
        head.push_str(&format!(" · overflow:{id}"));
    }
    head
}

/// A duration with the digits a person reads: `0.4 ms`, `12 ms`, `3.2 s`.
pub(crate) fn duration(duration: std::time::Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1e3)
    }
}

/// `text` with every character that could drive a terminal or reorder a line written out: `\x1b`, `\r`, `\u{202e}`.
///
/// Shape: line feeds and tabs stay; the result has no other control character.
pub(crate) fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\r' => shown.push_str("\\r"),
            '\0'..='\x1f' | '\x7f'..='\u{9f}' => {
                push(&mut shown, format_args!("\\x{:02x}", u32::from(character)));
            }
            '\u{202A}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}'
            | '\u{200E}'
            | '\u{200F}'
            | '\u{061C}' => {
                push(
                    &mut shown,
                    format_args!("\\u{{{:x}}}", u32::from(character)),
                );
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Appends `text` in `style`.
pub(crate) fn push_styled(shown: &mut String, style: Style, text: &str) {
    push(shown, format_args!("{style}{text}{style:#}"));
}

fn push(shown: &mut String, arguments: std::fmt::Arguments<'_>) {
    shown
        .write_fmt(arguments)
        .expect("bug: writing to a string cannot fail");
}

#[cfg(test)]
mod tests;
