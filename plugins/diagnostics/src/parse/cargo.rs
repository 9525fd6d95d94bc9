//! Messages of cargo: `--message-format=json`, one JSON object on each line.

use std::path::Path;

use serde::Deserialize;

use super::Printout;
use crate::diagnostic::{Diagnostic, Severity};

#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<String>,
    message: Option<CompilerMessage>,
}

#[derive(Deserialize)]
struct CompilerMessage {
    message: String,
    level: String,
    code: Option<Code>,
    #[serde(default)]
    spans: Vec<Span>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    column_start: u32,
    #[serde(default)]
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: Span,
}

/// Reads the messages of compilers; files are absolute where they are found.
pub fn read(printout: &Printout) -> Vec<Diagnostic> {
    let messages = printout
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages.filter_map(diagnostic).collect()
}

fn diagnostic(message: Message) -> Option<Diagnostic> {
    let Message {
        reason,
        manifest_path,
        message: Some(compiler),
    } = message
    else {
        return None;
    };
    if reason != "compiler-message" || compiler.spans.is_empty() && is_summary(&compiler.message) {
        return None;
    }
    let primary = compiler.spans.iter().find(|span| span.is_primary);
    let span = primary.or(compiler.spans.first()).map(at_its_use);
    Some(Diagnostic {
        severity: Severity::of(&compiler.level),
        message: compiler.message,
        file: span.map(|span| found(&span.file_name, manifest_path.as_deref())),
        line: span.map(|span| span.line_start),
        col: span.map(|span| span.column_start),
        code: compiler.code.map(|code| code.code),
        rendered: compiler.rendered.map(|text| text.trim_end().to_owned()),
    })
}

/// What a compiler says at its end about all that it said.
fn is_summary(message: &str) -> bool {
    message.starts_with("aborting due to")
        || message.starts_with("For more information about")
        || message.starts_with("Some errors have detailed explanations")
        || message.ends_with("warning emitted")
        || message.ends_with("warnings emitted")
}

/// Where a macro of another crate was used.
fn at_its_use(span: &Span) -> &Span {
    let is_elsewhere = span.file_name.starts_with('<') || span.file_name.starts_with('/');
    match &span.expansion {
        Some(expansion) if is_elsewhere => at_its_use(&expansion.span),
        _ => span,
    }
}

/// The file, whose name starts in the workspace: the innermost directory above the manifest that has such a file.
fn found(name: &str, manifest: Option<&str>) -> String {
    let directories = manifest
        .map(Path::new)
        .into_iter()
        .flat_map(Path::ancestors);
    let mut files = directories.skip(1).map(|directory| directory.join(name));
    let file = files.find(|file| file.is_file());
    file.map_or_else(
        || name.to_owned(),
        |file| file.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Printout;
    use super::read;

    fn lines(recorded: &str) -> Vec<String> {
        let printout = Printout {
            stdout: recorded.to_owned(),
            stderr: String::new(),
        };
        read(&printout).iter().map(|one| one.line()).collect()
    }

    #[test]
    fn errors_and_warnings_of_rustc() {
        let expect = [
            "src/lib.rs:2:5: error[E0308]: mismatched types",
            "src/lib.rs:5:9: warning[unused_variables]: unused variable: `unused`",
        ];
        assert_eq!(
            lines(include_str!("../../tests/recorded/cargo-check.jsonl")),
            expect
        );
    }

    #[test]
    fn lints_of_clippy() {
        let found = lines(include_str!("../../tests/recorded/cargo-clippy.jsonl"));
        let lint = "src/lib.rs:2:5: warning[clippy::needless_return]: unneeded `return` statement";
        assert_eq!(found, [lint]);
    }

    #[test]
    fn what_is_no_message_is_passed_over() {
        let text = "no json\n{\"reason\":\"build-finished\",\"success\":true}\n{}\n[… 12 bytes omitted …]\n{\"reason\":";
        assert!(lines(text).is_empty());
    }
}
