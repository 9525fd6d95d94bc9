//! One finding of a compiler or linter, in the same form for all of them.

use schemars::JsonSchema;
use serde::Serialize;

/// How bad it is; ordered from the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

impl Severity {
    /// As compilers spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    /// Of a compiler's word; an unknown one is a warning.
    pub fn of(word: &str) -> Self {
        match word {
            word if word.starts_with("error") || word == "fatal" => Self::Error,
            "note" | "help" | "info" | "information" => Self::Note,
            _ => Self::Warning,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// The file; none when it is about no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub col: Option<u32>,
    /// The name of the error or of the lint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The whole message as the program shows it to people, with suggestions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendered: Option<String>,
}

impl Diagnostic {
    /// One line: `file:line:col: level: msg`, as far as these are known.
    pub fn line(&self) -> String {
        let mut line = String::new();
        if let Some(file) = &self.file {
            line.push_str(file);
            for number in [self.line, self.col].into_iter().flatten() {
                line.push_str(&format!(":{number}"));
            }
            line.push_str(": ");
        }
        let code = self.code.as_ref().map(|code| format!("[{code}]"));
        let message = one_line(&self.message);
        let severity = self.severity.as_str();
        line + &format!("{severity}{}: {message}", code.unwrap_or_default())
    }
}

/// A message of several lines as one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
