//! `ruff check --output-format=json`: one array.

use serde::Deserialize;

use super::Printout;
use crate::diagnostic::{Diagnostic, Severity};

#[derive(Deserialize)]
struct Finding {
    /// None for what is no Python.
    code: Option<String>,
    message: String,
    filename: String,
    location: Location,
}

#[derive(Deserialize)]
struct Location {
    row: u32,
    column: u32,
}

/// Reads the findings. Those of a linter are warnings; a file that cannot be read as Python is an error.
pub fn read(printout: &Printout) -> Vec<Diagnostic> {
    let findings: Vec<Finding> = serde_json::from_str(&printout.stdout).unwrap_or_default();
    findings.into_iter().map(diagnostic).collect()
}

fn diagnostic(finding: Finding) -> Diagnostic {
    let is_syntax = finding
        .code
        .as_deref()
        .is_none_or(|code| code == "invalid-syntax");
    Diagnostic {
        severity: match is_syntax {
            true => Severity::Error,
            false => Severity::Warning,
        },
        message: finding.message,
        file: Some(finding.filename),
        line: Some(finding.location.row),
        col: Some(finding.location.column),
        code: finding.code,
        rendered: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Printout;
    use super::read;

    #[test]
    fn findings_of_ruff() {
        let printout = Printout {
            stdout: include_str!("../../tests/recorded/ruff.json").to_owned(),
            stderr: String::new(),
        };
        let found: Vec<String> = read(&printout).iter().map(|one| one.line()).collect();
        let expect = [
            "/project/a.py:1:8: warning[F401]: `os` imported but unused",
            "/project/a.py:2:20: warning[F401]: `typing.overload` imported but unused",
            "/project/a.py:10:5: warning[F821]: Undefined name `undefined_name`",
            "/project/a.py:10:5: warning[B018]: Found useless expression. Either assign it to a variable or remove it.",
            "/project/b.py:1:12: error[invalid-syntax]: Expected a parameter or the end of the parameter list",
            "/project/b.py:2:1: error[invalid-syntax]: unexpected EOF while parsing",
        ];
        assert_eq!(found, expect);
        assert!(read(&Printout::default()).is_empty());
    }
}
